/** Static optimisation: every rule leaves elements, order, errors, figures and checkpoints as they are. */
import { RULE_NAMES } from "../../../data/optimizer/options.ts";
import { Dataset, type DatasetOptions, LeatError, TensorSpec } from "../../../mod.ts";
import {
  assert,
  assertEquals,
  assertNotEquals,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";
import { rounds } from "../lib/collect.ts";
import { assertRuleLaw, only, type Optimizations } from "./rule_law.ts";
import fc from "../../lib/properties.ts";

type Numbers = Dataset<number>;

/** Enough elements that most are neither timed nor measured. */
const ELEMENTS = 700;

const SOURCES: readonly (() => Numbers)[] = [
  () => Dataset.range(ELEMENTS),
  () => Dataset.from(Array.from({ length: 40 }, (_, i) => i * 3)),
  () => Dataset.range(ELEMENTS).map((x) => Promise.resolve(x)),
];

const OPERATORS: Readonly<Record<string, (input: Numbers, n: number) => Numbers>> = {
  map: (input, n) => input.map((x) => x * 2 + n),
  mapRandom: (input) => input.map((x, { random, index }) => x + random.int(5) + index),
  mapThrows: (input, n) =>
    input.map((x, { index }) => {
      if (index % 97 === 10 * n) throw new LeatError("data_loss", `no ${x}`);
      return x + 1;
    }),
  mapLater: (input, n) => input.map((x) => x % 89 === n ? Promise.resolve(x) : x),
  mapSpec: (input, n) =>
    input.map((x) => x % 83 === n ? "no number" as unknown as number : x + 1, {
      spec: new TensorSpec("float64", []),
    }),
  filter: (input, n) => input.filter((x) => x % 5 !== n),
  filterRandom: (input) => input.filter((_x, { random, index }) => random.int(4) + index % 2 > 0),
  filterThrows: (input, n) =>
    input.filter((x, { index }) => {
      if (index % 101 === 10 * n) throw new LeatError("data_loss", `no ${x}`);
      return true;
    }),
  filterLater: (input, n) =>
    input.filter(((x) => x % 79 === n ? Promise.resolve(true) : true) as (x: number) => boolean),
  filterWrong: (input, n) => input.filter((x) => x % 73 === n ? 1 as unknown as boolean : true),
  mapText: (input, n) => input.map((x) => x % 71 === n ? `${x}` as unknown as number : x),
  takeAll: (input) => input.take(-1),
  takeMore: (input) => input.take(2 * ELEMENTS + 1),
  takeSome: (input, n) => input.take(30 + n),
  skipNone: (input) => input.skip(0),
  oneShard: (input) => input.shard(1, 0),
  prefetchNone: (input) => input.prefetch(0),
  shuffle: (input, n) => input.shuffle(3 + n),
  repeat: (input) => input.take(60).repeat(2),
};

const PIPELINES = fc.record({
  source: fc.nat(SOURCES.length - 1),
  operators: fc.array(
    fc.record({ name: fc.constantFrom(...Object.keys(OPERATORS)), n: fc.nat(4) }),
    { minLength: 1, maxLength: 7 },
  ),
  batchSize: fc.constantFrom(1, 30, 64),
  at: fc.nat(120),
  saving: fc.subarray([...RULE_NAMES]),
  restoring: fc.subarray([...RULE_NAMES]),
});

Deno.test("rules change neither elements nor errors nor figures, and checkpoints fit with and without them", async () => {
  let rewritten = 0;
  await fc.assert(
    fc.asyncProperty(PIPELINES, async ({ source, operators, batchSize, at, saving, restoring }) => {
      const numbers = operators.reduce(
        (input, { name, n }) => OPERATORS[name]!(input, n),
        SOURCES[source]!(),
      );
      // Several elements are only read at once for a batch.
      const dataset: Dataset<unknown> = batchSize === 1 ? numbers : numbers.batch(batchSize);
      rewritten += dataset.explain().rewrites.length;
      const elements = Math.ceil(at / batchSize);
      await assertRuleLaw(dataset, elements, [only(saving), only(restoring)]);
    }),
    { numRuns: 80 },
  );
  assert(rewritten > 60, `only ${rewritten} uses of rules`);
});

Deno.test("rule mapFusion calls two functions on an element before it takes the next", async () => {
  const order = async (optimizations: Optimizations) => {
    let calls = "";
    const dataset = Dataset.range(ELEMENTS).map((x) => (calls += "f", x))
      .map((x) => (calls += "g", x)).batch(ELEMENTS).withOptions({ optimizations });
    await Array.fromAsync(dataset);
    return calls;
  };
  assertStringIncludes(await order({ mapFusion: true }), "fg".repeat(8));
  const unfused = await order({ mapFusion: false });
  assertStringIncludes(unfused, "f".repeat(8) + "g".repeat(8));
  assertNotEquals(await order(true), unfused);
});

Deno.test("rule noOpElimination does not run what changes nothing, unless it is switched off", async () => {
  const dataset = Dataset.range(3).take(-1);
  const { node } = dataset;
  node.makeIterator = () => {
    throw new LeatError("internal", "take runs");
  };
  assertEquals(await Array.fromAsync(dataset), [0, 1, 2]);
  const off = dataset.withOptions({ optimizations: { noOpElimination: false } });
  assertThrows(() => off.iterator(), LeatError, "take runs");
});

Deno.test("take that is as long as its input asks it for no end", async () => {
  const dataset = Dataset.range(9).filter(() => true).assertCardinality(5).take(5);
  assertEquals(await Array.fromAsync(dataset), [0, 1, 2, 3, 4]);
});

Deno.test("explain says what rules have done and withOptions switches them off by name", () => {
  const dataset = Dataset.range(9).map((x) => x).skip(0).filter((x) => x > 0).batch(2);
  const said = dataset.explain().rewrites;
  assertEquals(said.map((text) => text.split(":")[0]), [
    "filter (operator 1) writes elements that are numbers directly to the batches of batch (operator 0)",
    "filter (operator 1) calls its function in one loop with that of map (operator 3)",
    "skip (operator 2) changes nothing and is left out.",
  ]);
  assertStringIncludes(String(dataset.explain()), said[0]!);
  const off = { mapAndFilterFusion: false, mapAndBatchFusion: false, noOpElimination: false };
  assertEquals(dataset.withOptions({ optimizations: off }).explain().rewrites, []);
  assertEquals(dataset.withOptions({ optimizations: false }).explain().rewrites, []);
});

Deno.test("explain claims no rewrite across an offload", () => {
  const offload = (numbers: Numbers): Numbers => numbers.offload({ service: "ws://127.0.0.1:1" });
  const said = (dataset: Dataset<unknown>) => dataset.explain().rewrites;
  const ten = Dataset.range(10), mapped = ten.map((x) => x, { batchable: true });
  assertEquals(said(offload(mapped).map((x) => x)), []);
  assertEquals(said(offload(mapped).batch(2)), []);
  assertEquals(said(offload(ten.shuffle(4)).repeat(2)), []);
  assertEquals(said(offload(ten.prefetch(4)).prefetch(4)), []);
  const prefetches = said(
    offload(mapped).withOptions({ optimizations: { prefetchInjection: true } }),
  );
  assertEquals(prefetches.map((text) => text.split(":")[0]), [
    "prefetch(AUTOTUNE) runs after offload (operator 1)",
  ]);
});

Deno.test("withOptions names a wrong rule of optimizations, and the nearest", () => {
  const refusal = (optimizations: unknown) => {
    const options = { optimizations } as DatasetOptions;
    const { code, message } = assertThrows(() => Dataset.range(1).withOptions(options), LeatError);
    assertEquals(code, "invalid_argument");
    return message;
  };
  const misspelt = refusal({ mapFusion: true, mapAndBatchFusoin: false });
  assertStringIncludes(misspelt, "mapFusion, filterFusion");
  assertStringIncludes(
    misspelt,
    `there is no rule "mapAndBatchFusoin"; did you mean "mapAndBatchFusion"?`,
  );
  assert(!refusal({ all: true }).includes("did you mean"));
  assertEquals(
    refusal({ mapFusion: "no" }),
    `withOptions: optimizations.mapFusion must be a boolean, got "no"`,
  );
  assertStringIncludes(refusal("all"), `must be a boolean, or booleans by the names`);
  Dataset.range(1).withOptions({ optimizations: { mapFusion: undefined } });
});

Deno.test("rule mapParallelization makes several calls at once, in order, unless it is off", async () => {
  const most = async (optimizations: Optimizations) => {
    let running = 0, most = 0;
    const waits = async (x: number) => {
      most = Math.max(most, ++running);
      for (let i = 0; i < 3 + x % 5; i++) await Promise.resolve();
      running--;
      return x;
    };
    const dataset = Dataset.range(50).map(waits).filter(async (x) => await waits(x) % 3 > 0)
      .withOptions({ optimizations });
    const expected = Array.from({ length: 50 }, (_, i) => i).filter((x) => x % 3 > 0);
    assertEquals(await Array.fromAsync(dataset), expected);
    return most;
  };
  assertEquals(await most(undefined), 1);
  assert(await most({ mapParallelization: true }) > 3);
});

Deno.test("rule prefetchInjection makes elements while the consumer works, unless it is off", async () => {
  const made = async (optimizations: Optimizations) => {
    let calls = 0;
    const dataset = Dataset.range(50).map((x) => (calls++, x)).withOptions({ optimizations });
    await using iterator = dataset.iterator();
    await iterator.next();
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setTimeout(resolve));
    return calls;
  };
  assertEquals(await made(undefined), 1);
  assert(await made({ prefetchInjection: true }) > 3);
});

Deno.test("rule prefetchInjection saves what it has read ahead again after a restore", async () => {
  for (
    const last of [
      (numbers: Dataset<number>) => numbers.takeWhile((x) => x < 5),
      (numbers: Dataset<number>) => Dataset.sampleFromDatasets([numbers.take(5)]),
    ]
  ) {
    const dataset = last(Dataset.range(10))
      .withOptions({ optimizations: { prefetchInjection: true } });
    await using iterator = dataset.iterator();
    await iterator.next();
    // The rule reads to the end meanwhile.
    await rounds(20);
    await using restored = dataset.iterator();
    await restored.restore(await iterator.save());
    await using again = dataset.iterator();
    await again.restore(await restored.save());
    assertEquals(await Array.fromAsync(again), [1, 2, 3, 4]);
  }
});
