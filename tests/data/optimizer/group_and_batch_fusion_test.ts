/** Rule `groupAndBatchFusion`. */
import { Dataset, LeatError } from "../../../mod.ts";
import { assertEquals, assertStringIncludes } from "../../assert.ts";
import { assertRuleLaw } from "./rule_law.ts";
import fc from "../../lib/properties.ts";

/** Arrays of some lengths; those that are a multiple of `odd` are of another dtype. */
function rows(odd: number): Dataset<Int32Array | Float32Array> {
  return Dataset.range(40).map((x, { random }) => {
    const length = 1 + random.int(6);
    return x % odd === odd - 1 ? new Float32Array(length) : new Int32Array(length).fill(x);
  });
}

const PIPELINES: readonly ((odd: number, size: number) => Dataset<unknown>)[] = [
  (odd, size) =>
    rows(odd).bucketBySequenceLength({
      ...{ length: (x) => x.length, boundaries: [3, 5], batchSizes: [size, 2, 3] },
      dropRemainder: size === 2,
    }),
  (odd, size) =>
    rows(odd).bucketBySequenceLength({
      ...{ length: (x) => x.length, boundaries: [3], batchSizes: [size, 2], noPadding: true },
    }),
  (odd, size) =>
    rows(odd).groupByWindow({
      key: async (x) => await x.length,
      reduce: (_key, window) => window.batch(size),
      windowSize: 3,
    }),
  (odd, size) =>
    rows(odd).groupByWindow({
      key: (x) => x.length % 2,
      reduce: async (key, window, { random }) => {
        if (random.int(5) === 0) throw new LeatError("aborted", `no window of ${key}`);
        return await window.paddedBatch(size, { dropRemainder: key === 0 });
      },
      windowSize: 4,
    }),
  (_, size) =>
    Dataset.range(30).groupByWindow({
      key: (x) => x % 3,
      reduce: (key, window) => key === 0 ? window.map((x) => x + 1).batch(9) : window.batch(size),
      windowSize: 3,
    }),
];

Deno.test("rule groupAndBatchFusion gives the batches and errors of pipelines of windows", async () => {
  const pipelines = fc.record({
    make: fc.constantFrom(...PIPELINES),
    odd: fc.integer({ min: 2, max: 9 }),
    size: fc.integer({ min: 1, max: 5 }),
    at: fc.nat(20),
  });
  await fc.assert(
    fc.asyncProperty(pipelines, async ({ make, odd, size, at }) => {
      const rules = { groupAndBatchFusion: true };
      await assertRuleLaw(make(odd, size), at, [rules, rules]);
    }),
    { numRuns: 40 },
  );
});

Deno.test("rule groupAndBatchFusion opens no dataset for a window that becomes a batch", async () => {
  const opened = async (groupAndBatchFusion: boolean) => {
    let iterators = 0;
    const dataset = Dataset.range(8).groupByWindow({
      key: () => 0,
      reduce: (_key, window) => {
        const batch = window.batch(4), { node } = batch, make = node.makeIterator.bind(node);
        node.makeIterator = (context) => (iterators++, make(context));
        return batch;
      },
      windowSize: 4,
    }).withOptions({ optimizations: { groupAndBatchFusion } });
    assertEquals((await Array.fromAsync(dataset)).map(({ shape }) => shape), [[4], [4]]);
    return iterators;
  };
  assertEquals([await opened(true), await opened(false)], [0, 2]);
});

Deno.test("explain names groupAndBatchFusion", () => {
  const dataset = Dataset.range(8).map((x) => [x]).bucketBySequenceLength({
    ...{ length: (x) => x.length, boundaries: [3], batchSizes: [2, 2] },
  });
  assertStringIncludes(dataset.explain().rewrites[0]!, "stacks each bucket directly");
});
