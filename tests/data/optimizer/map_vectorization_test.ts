/** Rule `mapVectorization`. */
import { cast, Dataset, LeatError, oneHot, Tensor, TensorSpec } from "../../../mod.ts";
import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";
import { outcomesOf } from "../lib/outcomes.ts";
import { assertRuleLaw } from "./rule_law.ts";
import fc from "../../lib/properties.ts";

type Vector = Tensor<"float32">;

const ELEMENTS = 300;

/** Vectors; some have another length or dtype, or fail, where `odd` says so. */
function vectors(odd: number): Dataset<Tensor> {
  return Dataset.range(ELEMENTS).map((x) => {
    if (odd > 0 && x % 90 === 10 * odd) throw new LeatError("data_loss", `no ${x}`);
    const isLong = odd > 3 && x % 110 === 9;
    const row = new Tensor("float32", [isLong ? 4 : 3], new Float32Array(isLong ? 4 : 3).fill(x));
    return odd > 5 && x % 120 === 7 ? cast(row, "int32") : row;
  });
}

function plus({ shape, data }: Tensor, n: number): Tensor {
  return new Tensor("float64", shape, Float64Array.from(data as Float32Array, (x) => x + n));
}

const FUNCTIONS: readonly ((input: Dataset<Tensor>) => Dataset<unknown>)[] = [
  (input) => input.map((x) => cast(x, "int32"), { batchable: true }),
  (input) => input.map((x) => ({ x, is: cast(x, "bool") }), { batchable: true }),
  (input) =>
    input.map((x) => oneHot(x, 5), { batchable: true, spec: new TensorSpec("float32", [null, 5]) }),
  (input) => input.map((x, { random }) => plus(x, random.int(9)), { batchable: true }),
  (input) =>
    input.map((x) => {
      if ((x.data as Float32Array).includes(77)) throw new LeatError("aborted", "77");
      return cast(x, "float64");
    }, { batchable: true }),
  // Not batchable, whatever the user says.
  (input) => input.map((x) => (x.data as Float32Array)[0]!, { batchable: true }),
  (input) => input.map((x) => Promise.resolve(x), { batchable: true }),
  (input) => input.map((x, { index }) => plus(x, index), { batchable: true }),
];

Deno.test("rule mapVectorization gives the batches and errors of pipelines", async () => {
  const pipelines = fc.record({
    fn: fc.constantFrom(...FUNCTIONS),
    odd: fc.nat(8),
    size: fc.integer({ min: 2, max: 70 }),
    dropRemainder: fc.boolean(),
    at: fc.nat(20),
  });
  await fc.assert(
    fc.asyncProperty(pipelines, async ({ fn, odd, size, dropRemainder, at }) => {
      const rules = { mapVectorization: true };
      await assertRuleLaw(fn(vectors(odd)).batch(size, { dropRemainder }), at, [rules, rules]);
    }),
    { numRuns: 60 },
  );
});

Deno.test("rule mapVectorization calls a batchable function less often, and explain says so", async () => {
  const calls = async (batchable: boolean, mapVectorization = true) => {
    let calls = 0;
    const dataset = vectors(0).map((x) => (calls++, cast(x as Vector, "int32")), { batchable })
      .batch(100).withOptions({ optimizations: { mapVectorization } });
    assertEquals(
      (await Array.fromAsync(dataset)).map(({ shape }) => shape),
      Array(3).fill([100, 3]),
    );
    return calls;
  };
  assertEquals(await calls(false), ELEMENTS);
  assertEquals(await calls(true, false), ELEMENTS);
  const vectorized = await calls(true);
  assert(vectorized < ELEMENTS / 2, `${vectorized} calls`);
  const batches = vectors(0).map((x) => cast(x, "int32"), { batchable: true }).batch(4);
  assertStringIncludes(batches.explain().rewrites.join(), "because it is batchable");
  const wrong = { batchable: 1 as unknown as boolean };
  assertThrows(() => Dataset.range(3).map((x) => x, wrong), LeatError, "batchable");
});

Deno.test("rule mapVectorization gives a function the rest of its last argument as without it", async () => {
  const [apart, together] = await Promise.all([false, true].map(async (batchable) => {
    const names = new Set<string>();
    const dataset = vectors(0).take(8).map((x, { tensor, ...named }) => {
      names.add(Object.keys(named).join());
      return tensor((x.data as Float32Array).map((v) => v * named.scale), { shape: x.shape });
    }, { captures: { scale: 10 }, batchable }).batch(4);
    const batches = await Array.fromAsync(dataset);
    return { values: batches.map(({ data }) => [...data]), names };
  }));
  assertEquals(apart!.values[1], [4, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 7].map((x) => 10 * x));
  assertEquals(together, apart);
});

Deno.test("rule mapVectorization loses no row and no error if no row fits a batch", async () => {
  const rows = vectors(0).take(12).map((x) => cast(x, "int32"), { batchable: true });
  const padded = rows.paddedBatch(4, { paddingValues: "a" });
  await assertRuleLaw(padded, 5);
  await using iterator = padded.iterator();
  const errors = (await outcomesOf(iterator)).map(String);
  assertEquals(errors.length, 12);
  assertEquals(iterator.stats().find(({ operator }) => operator === "paddedBatch")!.errors, 12);
});

Deno.test("an error of paddedBatch names the operator once", async () => {
  const padded = vectors(0).paddedBatch(4, { paddingValues: "a" });
  const { message } = await assertRejects(() => Array.fromAsync(padded), LeatError);
  assertEquals(message.match(/paddedBatch/g), ["paddedBatch"]);
});
