/** Rule `deadTransformationElimination`. */
import { Dataset, LeatError } from "../../../mod.ts";
import { assertEquals } from "../../assert.ts";
import { rounds } from "../lib/collect.ts";
import { assertRuleLaw } from "./rule_law.ts";
import fc from "../../lib/properties.ts";

const PIPELINES: readonly ((n: number) => Dataset<unknown>)[] = [
  (n) => numbers(n).unique().withOptions({ deterministic: true }).unique().unique().map((x) => [x]),
  (n) => numbers(n).unique().prefetch(3).prefetch(3).prefetch(1 + n % 4).batch(3),
  (n) => numbers(n).map((x) => ({ x, y: -x })).select(["y"]).select(["y"]).shuffle(4),
];

function numbers(n: number): Dataset<number> {
  return Dataset.range(30).map((x) => {
    if (x % 11 === n) throw new LeatError("data_loss", `no ${x}`);
    return x * x % (7 + n);
  });
}

Deno.test("rule deadTransformationElimination gives the elements and errors of pipelines", async () => {
  const pipelines = fc.record({
    make: fc.constantFrom(...PIPELINES),
    n: fc.nat(9),
    at: fc.nat(25),
  });
  await fc.assert(
    fc.asyncProperty(pipelines, async ({ make, n, at }) => {
      const rules = { deadTransformationElimination: true };
      await assertRuleLaw(make(n), at, [rules, rules]);
    }),
    { numRuns: 30 },
  );
});

Deno.test("rule deadTransformationElimination restores all that operators had read without it", async () => {
  const make = (deadTransformationElimination: boolean) =>
    Dataset.range(20).map((x) => Promise.resolve(x)).prefetch(8).prefetch(4).prefetch(2)
      .withOptions({ optimizations: { deadTransformationElimination } });
  await using saved = make(false).iterator();
  assertEquals([await saved.next(), await saved.next()].map(({ value }) => value), [0, 1]);
  await rounds(100); // all three read ahead
  const state = await saved.save();
  for (const rule of [false, true]) {
    await using restored = make(rule).iterator();
    await restored.restore(state);
    assertEquals(await Array.fromAsync(restored), Array.from({ length: 18 }, (_, i) => i + 2));
  }
});

Deno.test("rule deadTransformationElimination restores a prefetch on both sides of an offload", async () => {
  const plan = { candidate: null, ratio: 0 };
  const dataset = Dataset.range(9).prefetch(4).offload({ service: "ws://127.0.0.1:1", plan })
    .prefetch(2);
  await using saved = dataset.iterator();
  assertEquals([await saved.next(), await saved.next()].map(({ value }) => value), [0, 1]);
  await using restored = dataset.iterator();
  await restored.restore(await saved.save());
  assertEquals(await Array.fromAsync(restored), [2, 3, 4, 5, 6, 7, 8]);
});

Deno.test("rule deadTransformationElimination leaves out what was done below, and no more", () => {
  const said = (dataset: Dataset<unknown>) => dataset.explain().rewrites;
  const ten = Dataset.range(10), records = ten.map((x) => ({ x, y: x }));
  assertEquals(said(ten.unique().unique()), [
    "unique (operator 0) has no effect after another unique, and is left out.",
  ]);
  assertEquals(said(ten.unique().filter(() => true).unique()), []);
  assertEquals(said(ten.prefetch(4).prefetch(2)).length, 1);
  assertEquals(said(ten.prefetch(2).prefetch(4)), []);
  assertEquals(said(ten.prefetch(8).prefetch(4, { thread: true })), []);
  assertEquals(said(ten.prefetch(8, { thread: true }).prefetch(4, { thread: true })).length, 1);
  assertEquals(said(records.select(["x"]).select(["x"])).length, 1);
  assertEquals(said(records.select(["x", "y"]).select(["x"])), []);
  const off = { deadTransformationElimination: false };
  assertEquals(said(ten.unique().unique().withOptions({ optimizations: off })), []);
});
