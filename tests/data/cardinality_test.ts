/** The cardinality of datasets, and the operators that enforce it. */

import {
  Dataset,
  LeatError,
  type RaggedTensor,
  type Tensor,
  tensor,
  TensorSpec,
  UNKNOWN_CARDINALITY as UNKNOWN,
} from "../../mod.ts";
import { copyTree } from "../../core/tree.ts";
import type { RandomOptions } from "../../data/operators/sources/random.ts";
import { assertEquals, assertRejects, assertThrows } from "../assert.ts";
import { assertCheckpointLaw } from "./lib/checkpoint_law.ts";
import { collect, collectWithErrors, failingOn } from "./lib/collect.ts";

const five = () => Dataset.range(5);
const unknown = () => five().filter(() => true);
const endless = () => five().repeat();

/** The results of tf.data for the same pipelines. */
const CARDINALITIES: [what: string, dataset: Dataset<unknown>, cardinality: number][] = [
  ["map", five().map((x) => x), 5],
  ["map in parallel", five().map((x) => x, { numParallelCalls: 1 }), 5],
  ["batch, dropping", five().batch(2, { dropRemainder: true }), 2],
  ["batch", five().batch(2), 3],
  ["batch of unknown", unknown().batch(2), UNKNOWN],
  ["batch of endless", endless().batch(2), Infinity],
  ["cache", five().cache(), 5],
  ["concatenate", five().concatenate(five()), 10],
  ["concatenate unknown first", unknown().concatenate(five()), UNKNOWN],
  ["concatenate endless first", endless().concatenate(five()), Infinity],
  ["concatenate unknown second", five().concatenate(unknown()), UNKNOWN],
  ["concatenate endless and unknown", endless().concatenate(unknown()), Infinity],
  ["concatenate unknown and endless", unknown().concatenate(endless()), Infinity],
  ["flatMap", five().flatMap(() => five()), UNKNOWN],
  ["filter", unknown(), UNKNOWN],
  ["fromTensors", Dataset.fromTensors([0, 1]), 1],
  ["fromTensorSlices", Dataset.fromTensorSlices([[0, 0, 0], [1, 1, 1]]), 2],
  ["interleave", five().interleave(() => five(), { cycleLength: 1 }), UNKNOWN],
  ["interleave of endless", endless().interleave(() => five()), UNKNOWN],
  ["unbatch", five().batch(2, { dropRemainder: true }).unbatch(), 4],
  ["unbatch of uneven batches", five().batch(2).unbatch(), UNKNOWN],
  ["unbatch of endless", endless().batch(2).unbatch(), Infinity],
  ["raggedBatch", five().raggedBatch(2), 3],
  ["rebatch", five().batch(2).rebatch(3), UNKNOWN],
  ["window, dropping", five().window(2, { dropRemainder: true }), 2],
  ["window", five().window(2), 3],
  ["scan", five().scan(0, (n, x) => [n, x]), 5],
  ["takeWhile", five().takeWhile(() => true), UNKNOWN],
  ["unique", five().unique(), UNKNOWN],
  ["ignoreErrors", five().ignoreErrors(), UNKNOWN],
  ["paddedBatch, dropping", five().paddedBatch(2, { dropRemainder: true }), 2],
  ["paddedBatch", five().paddedBatch(2), 3],
  ["paddedBatch of endless", endless().paddedBatch(2), Infinity],
  ["prefetch", five().prefetch(1), 5],
  ["range down", Dataset.range(10, 5, -2), 3],
  ["range the other way", Dataset.range(1, 0, 3), 0],
  ["repeat none", five().repeat(0), 0],
  ["repeat nothing", Dataset.range(0).repeat(), 0],
  ["repeat", five().repeat(5), 25],
  ["repeat for ever", endless(), Infinity],
  ["shuffle", five().shuffle(1), 5],
  ["shard", five().shard(2, 0), 3],
  ["shard beyond", five().shard(8, 7), 0],
  ["shard of unknown", unknown().shard(2, 0), UNKNOWN],
  ["shard of endless", endless().shard(2, 0), Infinity],
  ["skip", five().skip(2), 3],
  ["skip all", five().skip(8), 0],
  ["skip of unknown", unknown().skip(2), UNKNOWN],
  ["skip of endless", endless().skip(2), Infinity],
  ["take", five().take(2), 2],
  ["take more", five().take(8), 5],
  ["take of unknown", unknown().take(2), UNKNOWN],
  ["take of endless", endless().take(2), 2],
  ["zip", five().zip(Dataset.range(3)), 3],
  ["zip with endless", five().zip(Dataset.range(3).repeat()), 5],
  ["zip of endless", endless().zip(endless()), Infinity],
  ["zip with unknown", five().zip(unknown()), UNKNOWN],
  ["enumerate", five().enumerate(), 5],
  ["select", Dataset.from([{ a: 1 }, { a: 2 }]).select(["a"]), 2],
  ["cutPoint", five().cutPoint("here"), 5],
  ["offload", five().offload({ service: "ws://127.0.0.1:1" }), 5],
  ["withOptions", five().withOptions({ seed: 1 }), 5],
  ["counter", Dataset.counter(), Infinity],
  ["random", Dataset.random(), Infinity],
  ["assertCardinality", unknown().assertCardinality(3), 3],
];

Deno.test("cardinality is exact, infinite or unknown like in tf.data", () => {
  for (const [what, dataset, cardinality] of CARDINALITIES) {
    assertEquals(dataset.cardinality(), cardinality, what);
  }
});

Deno.test("counter counts endlessly, also with random access and saving", async () => {
  assertEquals(await collect(Dataset.counter().take(3)), [0, 1, 2]);
  assertEquals(await collect(Dataset.counter(2, -0.5).take(3)), [2, 1.5, 1]);
  assertThrows(() => Dataset.counter(0, 0), LeatError, "counter: step");
  const options = { elementsMax: 9 };
  await assertCheckpointLaw(() => Dataset.counter(1).shuffle(3), options);
  const sums = Dataset.counter(1).batch(100).take(2).map((x) => Number(x.data[99]));
  assertEquals(await collect(sums), [100, 200]);
});

Deno.test("random repeats by seed, in every iteration unless configured otherwise", async () => {
  const eight = (options?: RandomOptions) => Dataset.random(options).take(8);
  const seeded = eight({ seed: 4 });
  const first = await collect(seeded);
  assertEquals(await collect(eight({ seed: 4 })), first);
  assertEquals(await collect(seeded), first);
  const unseeded = eight();
  const others = [unseeded, eight(), eight({ seed: 5 })];
  const all = [first, ...await Promise.all(others.map(collect))];
  assertEquals(new Set(all.map(String)).size, 4);
  assertEquals(await collect(unseeded), all[1]);
  const anew = eight({ seed: 4, rerandomizeEachIteration: true });
  assertEquals(await collect(anew), first); // the first iteration is number 0
  const second = await collect(anew);
  assertEquals(String(second) === String(first), false);
  const twice = eight({ seed: 4, rerandomizeEachIteration: true }).repeat(2);
  assertEquals(await collect(twice), [...first, ...second]);
});

Deno.test("random's numbers are uniform integers below 2^32", async () => {
  const counts = new Array<number>(8).fill(0);
  for await (const x of Dataset.random({ seed: 1 }).take(8000)) {
    assertEquals(x, x >>> 0);
    counts[x >>> 29]!++;
  }
  for (const count of counts) assertEquals(Math.abs(count - 1000) < 150, true, String(counts));
});

Deno.test("random continues from every checkpoint, also without a seed", async () => {
  await assertCheckpointLaw(() => Dataset.random({ seed: 3 }).shuffle(2), { elementsMax: 6 });
  const make = () => Dataset.random({ rerandomizeEachIteration: false });
  await using iterator = make().iterator();
  await iterator.next();
  const state = await iterator.save();
  const other = make();
  await using restored = other.iterator();
  await restored.restore(state);
  const next = async (of: typeof iterator) => (await of.next()).value;
  const wanted = [await next(iterator), await next(iterator)];
  assertEquals([await next(restored), await next(restored)], wanted);
  assertEquals((await collect(other.take(3))).slice(1), wanted); // and its later iterations too
});

Deno.test("assertCardinality passes the right number, and ends with an error otherwise", async () => {
  assertEquals(await collect(unknown().assertCardinality(5)), [0, 1, 2, 3, 4]);
  const answers = (expected: number) => collectWithErrors(unknown().assertCardinality(expected));
  assertEquals(await answers(7), [0, 1, 2, 3, 4, "error failed_precondition"]);
  assertEquals(await answers(Infinity), [0, 1, 2, 3, 4, "error failed_precondition"]);
  assertEquals(await answers(2), [0, 1, "error failed_precondition"]);
  assertEquals(await collectWithErrors(five().assertCardinality(2)), await answers(2)); // by blocks
  const batches = five().assertCardinality(2).batch(2).map((x) => x.toArray());
  assertEquals(await collectWithErrors(batches), [[0, 1], "error failed_precondition"]);
  const { message } = await assertRejects(() => collect(unknown().assertCardinality(9)), LeatError);
  assertEquals(
    message,
    "assertCardinality: the input was expected to have 9 elements, but has only 5",
  );
  assertThrows(() => five().assertCardinality(-2), LeatError, "assertCardinality: expected");
  for (const expected of [2, 5, 9]) {
    await assertCheckpointLaw(() => five().shuffle(2).assertCardinality(expected));
  }
});

Deno.test("padToCardinality adds zeros shaped like the elements, and marks them", async () => {
  const element = {
    n: 1,
    big: 2n,
    yes: true,
    word: "a",
    nothing: null,
    array: new Int16Array([1, 2]),
    nested: [tensor([[1, 2]]), tensor(["x"])],
  };
  assertEquals(await collect(Dataset.from([element]).padToCardinality(3)), [
    { ...element, array: [1, 2], nested: [[[1, 2]], ["x"]], valid: true },
    ...new Array(2).fill({
      n: 0,
      big: 0n,
      yes: false,
      word: "",
      nothing: null,
      array: [0, 0],
      nested: [[[0, 0]], [""]],
      valid: false,
    }),
  ]);
  const shards = [0, 1].map((i) => five().map((x) => ({ x })).shard(2, i).padToCardinality(3));
  assertEquals((await Promise.all(shards.map(collect))).map((shard) => shard.length), [3, 3]);
});

Deno.test("padToCardinality gives padding that a loop may change in place", async () => {
  const padded = Dataset.from([{ x: [Float32Array.of(1)] }]).padToCardinality(4);
  const read: number[] = [];
  for await (const { x: [numbers] } of padded) {
    read.push(numbers![0]!);
    numbers![0] = 99;
  }
  assertEquals(read, [1, 0, 0, 0]);
});

Deno.test("padToCardinality pads the same whatever a loop does to the elements it gets", async () => {
  const ragged = await Dataset.from([new Int32Array([1]), new Int32Array([2, 3])]).raggedBatch(2)
    .getSingleElement();
  const element = () => ({ x: new Float32Array(3), ragged: copyTree(ragged) as RaggedTensor });
  const padded = Dataset.range(1).map(element).padToCardinality(2);
  await using iterator = padded.iterator();
  const { x, ragged: { rowSplits } } = (await iterator.next()).value!;
  x.buffer.transfer();
  rowSplits.fill(7n);
  structuredClone(rowSplits, { transfer: [rowSplits.buffer as ArrayBuffer] });
  await using restored = padded.iterator();
  await restored.restore(await iterator.save());
  for (const { value } of [await iterator.next(), await restored.next()]) {
    assertEquals([...value!.x], [0, 0, 0]);
    assertEquals(value!.ragged.toArray(), [[0], [0, 0]]);
  }
});

Deno.test("padToCardinality of no elements pads by the spec, or ends with an error", async () => {
  const spec = { x: new TensorSpec("int32", [2, null]), y: [new TensorSpec("bool", [])] };
  const none = (how: { spec?: typeof spec }) =>
    Dataset.range(0).map((x) => ({ x }), how).padToCardinality(2);
  const [first] = await Array.fromAsync(none({ spec }));
  assertEquals((first!.x as unknown as Tensor).shape, [2, 0]);
  assertEquals({ ...first, x: 0 } as unknown, { x: 0, y: [false], valid: false });
  assertEquals(await collectWithErrors(none({})), ["error failed_precondition"]);
  assertEquals(none({ spec }).elementSpec, { ...spec, valid: new TensorSpec("bool", []) });
});

Deno.test("padToCardinality refuses a longer dataset, elements without components, and an existing mask", async () => {
  const records = five().map((x) => ({ x }));
  assertThrows(() => records.padToCardinality(4), LeatError, "at least the input's cardinality, 5");
  assertThrows(() => records.repeat().padToCardinality(4), LeatError);
  assertThrows(() => five().padToCardinality(9), LeatError, "must be objects");
  const masked = Dataset.from([{ valid: 1 }]);
  assertThrows(() => masked.padToCardinality(9), LeatError, "choose another maskKey");
  assertEquals(masked.padToCardinality(2, "isReal").cardinality(), 2);
  const longer = unknown().map((x) => ({ x })).padToCardinality(1);
  assertEquals(await collectWithErrors(longer), [
    { x: 0, valid: true },
    "error failed_precondition",
  ]);
  const odd = Dataset.range(2).scan(0, (n, x) => [n, x === 0 ? 5 : { x }]).padToCardinality(2);
  assertEquals(await collectWithErrors(odd), [
    "error invalid_argument",
    { x: 1, valid: true },
    { x: 0, valid: false },
  ]);
});

Deno.test("padToCardinality continues from every checkpoint, also within padding", async () => {
  await assertCheckpointLaw(() =>
    Dataset.from([{ x: new Int8Array(1) }, { x: new Int8Array(3).fill(2) }]).padToCardinality(5)
  );
});

Deno.test("getSingleElement returns the element of a dataset that has one", async () => {
  assertEquals(await Dataset.range(3, 4).getSingleElement(), 3);
  for (const count of [0, 2]) {
    const error = await assertRejects(() => Dataset.range(count).getSingleElement(), LeatError);
    assertEquals(error.code, "invalid_argument");
  }
  const failing = Dataset.range(1).map(failingOn(0)).getSingleElement();
  assertEquals((await assertRejects(() => failing, LeatError)).code, "data_loss");
});
