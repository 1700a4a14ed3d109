/** The memory of batches that were used up, in later batches. */

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { assert, assertEquals } from "../../assert.ts";
import { Tensor } from "../../../core/tensor.ts";
import { flattenTree } from "../../../core/tree.ts";
import { reuseElement } from "../../../data/elements/released.ts";
import { Dataset } from "../../../mod.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Numbers in 64 KiB: batches of fewer are not used again. */
const ROWS = 8_192;

function copied(element: unknown): unknown[] {
  return flattenTree(element).map((leaf) => leaf instanceof Tensor ? leaf.toArray() : leaf);
}

/** While a test refers to arrays by this, the garbage collector does not free spare ones. */
const kept: unknown[] = [];

function buffersOf(element: unknown): ArrayBufferLike[] {
  return flattenTree(element).map((leaf) => (leaf as Tensor).data as Float64Array)
    .map(({ buffer }) => buffer);
}

Deno.test("reuseElement gives all columns of a batch to later batches", async () => {
  const rows = Dataset.range(5 * ROWS).map((x) => ({ x, big: BigInt(x), half: x % 2 === 0 }));
  await using iterator = rows.map((row) => ({ ...row, pair: new Float32Array([row.x, 1]) }))
    .batch(ROWS).iterator();
  const first = (await iterator.next()).value!;
  const buffers = new Set(buffersOf(first).filter(({ byteLength }) => byteLength >= 2 ** 16));
  assertEquals(buffers.size, 3, "all but the booleans are large");
  kept.push(first);
  reuseElement(first);
  const second = (await iterator.next()).value!;
  const third = (await iterator.next()).value!;
  assertEquals(buffersOf([second, third]).filter((buffer) => buffers.has(buffer)).length, 3);
  assertEquals(second.x.toArray(), Array.from({ length: ROWS }, (_, i) => ROWS + i));
  assertEquals((third.big.data as BigInt64Array)[5], BigInt(2 * ROWS + 5));
});

Deno.test("a batch that nobody gives back keeps its memory", async () => {
  const batches = await Array.fromAsync(Dataset.range(4 * ROWS).batch(ROWS));
  assertEquals(new Set(buffersOf(batches)).size, 4);
});

const batched = () => Dataset.range(6 * ROWS + 5).batch(ROWS);
const records = () => Dataset.range(4 * ROWS).map((x) => ({ x, y: -x })).batch(ROWS);

/** Operators above a batch that hold it, cut it, or give it more than once. */
const PIPELINES: Record<string, () => Dataset<unknown>> = {
  batch: batched,
  records,
  cache: () => batched().cache().repeat(3),
  "cache before repeated epochs of batches": () =>
    Dataset.range(2 * ROWS).cache().batch(ROWS).repeat(3),
  shuffle: () => batched().shuffle(4).repeat(2),
  prefetch: () => batched().prefetch(3),
  "rebatch whole": () => batched().rebatch(ROWS),
  "rebatch smaller": () => batched().rebatch(ROWS / 2 + 1),
  "rebatch larger": () => batched().rebatch(ROWS + 7),
  unbatch: () => batched().take(1).unbatch().take(20),
  window: () => batched().window(3, { shift: 1 }).flatMap((window) => window),
  zip: () => Dataset.zip([batched(), batched().prefetch(2)]),
  "zip with a cache": () => Dataset.zip([batched(), batched().cache()]).repeat(2),
  concatenate: () => batched().take(2).concatenate(batched()),
  sample: () => Dataset.sampleFromDatasets([batched(), batched().cache().repeat(2)], { seed: 7 }),
  enumerate: () => batched().enumerate(),
  padToCardinality: () => records().padToCardinality(7),
  select: () => records().select(["y"]),
  "batches of batches": () => batched().take(6).batch(2),
  paddedBatch: () => Dataset.range(ROWS).map((x) => new Float64Array(x % 7)).paddedBatch(ROWS / 4),
  interleave: () => Dataset.range(3).interleave((i) => batched().skip(i), { cycleLength: 2 }),
  unique: () => Dataset.range(9).unique().repeat(ROWS).batch(ROWS),
};

for (const [name, pipeline] of Object.entries(PIPELINES)) {
  Deno.test(`elements are the same when each is reused: ${name}`, async () => {
    const expected: unknown[] = [];
    for await (const element of pipeline().withOptions({ seed: 3 })) expected.push(copied(element));
    assert(expected.length > 1);
    let count = 0;
    for await (const element of pipeline().withOptions({ seed: 3 })) {
      assertEquals(copied(element), expected[count++], `element ${count}`);
      reuseElement(element);
    }
    assertEquals(count, expected.length);
  });
}

Deno.test("a saved position is not changed by batches that are reused after it", async () => {
  const pipeline = batched().cache().rebatch(ROWS / 2 + 3).prefetch(2);
  const expected = (await Array.fromAsync(pipeline)).map(copied);
  for (let saved = 0; saved < 4; saved++) {
    await using iterator = pipeline.iterator();
    for (let i = 0; i < saved; i++) reuseElement((await iterator.next()).value);
    const position = await iterator.save();
    for await (const element of iterator) reuseElement(element);
    await using continued = pipeline.iterator();
    await continued.restore(position);
    assertEquals((await Array.fromAsync(continued)).map(copied), expected.slice(saved));
  }
});

Deno.test("a batch that grew gives its memory to a whole one", async () => {
  // More than a column allocates at first, so it grows.
  const length = 2 ** 20;
  await using iterator = Dataset.range(20).map((x) => new Float64Array(length).fill(x))
    .batch(10).iterator();
  const first = (await iterator.next()).value!;
  const [buffer] = buffersOf(first);
  kept.push(first);
  reuseElement(first);
  const second = (await iterator.next()).value as Tensor<"float64">;
  assert(second.data.buffer === buffer);
  const firsts = Array.from({ length: 10 }, (_, i) => second.data[i * length + 9]);
  assertEquals(firsts, [10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
});

Deno.test("a batch keeps no array that a function has taken out of it", async () => {
  const arrays: WeakRef<object>[] = [];
  const dataset = Dataset.range(8 * ROWS).map((x) => ({ x, label: 1 })).batch(ROWS)
    .map((batch) => {
      arrays.push(new WeakRef(batch.x.data));
      Reflect.deleteProperty(batch, "x");
      return batch;
    });
  const batches = await Array.fromAsync(dataset);
  const held = () => arrays.filter((array) => array.deref() !== undefined).length;
  // The engine may hold the last one for longer.
  for (let round = 0; round < 100 && held() > 1; round++) {
    // A weak reference that was read keeps its array until the next turn of the event loop.
    await new Promise((resolve) => setTimeout(resolve));
    collectGarbage();
  }
  assert(held() <= 1, `${held()} of ${arrays.length} arrays are held`);
  assertEquals(batches.map((batch) => Object.keys(batch as object)), Array(8).fill(["label"]));
});
