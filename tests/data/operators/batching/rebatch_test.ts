/** `rebatch` and `raggedBatch`, and `unbatch` of their results. */

import { Dataset, LeatError, RaggedTensor, Tensor, tensor, TensorSpec } from "../../../../mod.ts";
import {
  assert,
  assertEquals,
  assertStrictEquals,
  assertStringIncludes,
  assertThrows,
} from "../../../assert.ts";
import { assertCheckpointLaw } from "../../lib/checkpoint_law.ts";
import { collect, collectWithErrors, failingOn } from "../../lib/collect.ts";
import { itemsMoved } from "../../lib/items_moved.ts";

/** Arrays of n times n. */
const growing = (count: number) => Dataset.range(count).map((n) => new Int32Array(n).fill(n));

/** All ragged tensors as arrays. */
async function collectRagged(dataset: Dataset<unknown>): Promise<unknown[]> {
  const batches = await Array.fromAsync(dataset);
  return batches.map((batch) => (batch as RaggedTensor).toArray());
}

Deno.test("rebatch cuts and joins batches of any size", async () => {
  const rebatch = (count: number, from: number, to: number | number[], dropRemainder = false) =>
    collect(Dataset.range(count).batch(from).rebatch(to, { dropRemainder }));
  assertEquals(await rebatch(8, 4, 2), [[0, 1], [2, 3], [4, 5], [6, 7]]);
  assertEquals(await rebatch(5, 4, [2, 2]), [[0, 1], [2, 3], [4]]);
  assertEquals(await rebatch(5, 4, [2, 2], true), [[0, 1], [2, 3]]);
  assertEquals(await rebatch(12, 4, [6]), [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]);
  assertEquals(await rebatch(9, 2, [1, 3]), [[0], [1, 2, 3], [4], [5, 6, 7], [8]]);
  assertEquals(await rebatch(0, 2, 3), []);
  for (const size of [2, 3, 4]) {
    assertEquals(await rebatch(11, size, size), await collect(Dataset.range(11).batch(size)));
  }
});

Deno.test("rebatch's zeros give empty batches without reading", async () => {
  const rebatch = (sizes: number[]) => collect(Dataset.range(4).batch(4).rebatch(sizes));
  assertEquals(await rebatch([1, 1, 0]), [[0], [1], [], [2], [3], []]);
  assertEquals(await rebatch([0, 1]), [[], [0], [], [1], [], [2], [], [3], []]);
  assertEquals(await rebatch([1, 0]), [[0], [], [1], [], [2], [], [3], []]);
  const empty = await Array.fromAsync(Dataset.range(2).batch(2).rebatch([0, 2]));
  assertEquals(empty[0]!.shape, [0]);
  assertEquals(empty[0]!.dtype, "float64");
});

Deno.test("rebatch keeps structure, axes, dtypes, text, ragged tensors and nulls", async () => {
  const rows = Dataset.range(5).map((x) => ({
    a: x,
    b: [tensor([[x], [x + 1]]), `w${x}`, null],
    c: new Int32Array(x),
  }));
  const batches = await Array.fromAsync(rows.raggedBatch(2).rebatch(3));
  assertEquals(batches.map(({ a }) => a.toArray()), [[0, 1, 2], [3, 4]]);
  assertEquals(batches[0]!.b[0] instanceof RaggedTensor, true);
  assertEquals((batches[1]!.b[1] as Tensor).toArray(), ["w3", "w4"]);
  assertEquals(batches[1]!.b[2], null);
  assertEquals(batches.map(({ c }) => c.toArray()), [[[], [0], [0, 0]], [[0, 0, 0], [0, 0, 0, 0]]]);
  const matrices = Dataset.range(4).map((x) => tensor([[x, x]])).batch(1).rebatch(3);
  assertEquals((await Array.fromAsync(matrices)).map((x) => x.shape), [[3, 1, 2], [1, 1, 2]]);
  const hollow = Dataset.range(8).map(() => Tensor.zeros("float32", [5, 0])).batch(2).rebatch(4);
  assertEquals((await Array.fromAsync(hollow)).map((x) => x.shape), [[4, 5, 0], [4, 5, 0]]);
  const arrays = Dataset.from([new Int8Array([1, 2, 3]), new Int8Array([4])]).rebatch(2);
  assertEquals(await collect(arrays), [[1, 2], [3, 4]]);
});

Deno.test("rebatch copies nothing if a batch is cut from one batch and only read", async () => {
  const data = new Float64Array(6);
  const whole = Dataset.range(1).map(() => new Tensor("float64", [6], data));
  await using iterator = whole.rebatch([2, 4]).iterator({ isReadOnly: true });
  for await (const part of iterator) assertStrictEquals(part.data.buffer, data.buffer);
});

Deno.test("rebatch copies each text once, however many batches it cuts", async () => {
  let copied = 0;
  class Texts extends Array<string> {
    override slice(from?: number, to?: number): string[] {
      const part = super.slice(from, to);
      copied += part.length;
      return part;
    }
  }
  const texts = Texts.from({ length: 100 }, (_, i) => `${i}`);
  const whole = Dataset.range(1).map(() => new Tensor("string", [100], texts));
  assertEquals((await collect(whole.rebatch(4))).flat(), [...texts]);
  assertEquals(copied, 100);
});

Deno.test("rebatch fails once for rows that are gone, and ends", async () => {
  const data = new Float32Array(6);
  const rebatched = Dataset.range(1).map(() => data).rebatch(2);
  await using iterator = rebatched.iterator();
  await iterator.next();
  structuredClone(data, { transfer: [data.buffer] });
  const read = () => iterator.next().then(({ done }) => done, () => "failed");
  assertEquals([await read(), await read(), await read()], ["failed", "failed", true]);
});

Deno.test("rebatch's empty batches are independent", async () => {
  const read: unknown[] = [];
  const batches = Dataset.range(2).map((x) => ({ x })).batch(2).rebatch([0, 1]);
  for await (const batch of batches as Dataset<Partial<{ x: Tensor }>>) {
    read.push(batch.x?.toArray());
    delete batch.x;
  }
  assertEquals(read, [[], [0], [], [1], []]);
});

Deno.test("rebatch knows the shape of its batches when tf.data does", () => {
  const rows = (count: number, from: number, to: number | number[], input = true, own = false) => {
    const batches = Dataset.range(count).batch(from, { dropRemainder: input });
    const spec = batches.rebatch(to, { dropRemainder: own }).elementSpec as TensorSpec;
    return spec.shape[0];
  };
  assertEquals(rows(8, 4, [2, 1, 1]), null);
  assertEquals(rows(8, 4, [2, 2]), 2);
  assertEquals(rows(8, 4, 2, true, true), 2);
  assertEquals(rows(8, 4, [2, 2], false), null);
  assertEquals(rows(8, 4, [2, 2], false, true), 2);
  assertEquals(rows(10, 5, [2, 2]), null);
  assertEquals(rows(8, 4, [1, 1, 0], true, true), null);
  assertEquals(Dataset.range(4).repeat().batch(2).rebatch(3).cardinality(), Infinity);
});

Deno.test("rebatch keeps rows when a batch fails or does not fit", async () => {
  const failing = Dataset.range(9).batch(3).map((x) => (failingOn(3)(Number(x.data[0])), x));
  assertEquals(await collectWithErrors(failing.rebatch(2)), [
    [0, 1],
    "error data_loss",
    [2, 6],
    [7, 8],
  ]);
  const odd = Dataset.from<Tensor>([tensor([1]), tensor([[2]]), tensor(["a"]), tensor([3])]);
  assertEquals(await collectWithErrors(odd.rebatch(2)), [
    "error invalid_argument",
    "error invalid_argument",
    [1, 3],
  ]);
  const scalar = Dataset.range(1).map((x) => x);
  assertEquals(await collectWithErrors(scalar.rebatch(2)), ["error invalid_argument"]);
  const range = Dataset.range(4).batch(2);
  for (const size of [0, [], [0, 0], [1, -1], "a" as never]) {
    assertThrows(() => range.rebatch(size), LeatError, "rebatch: size must be");
  }
});

Deno.test("rebatch continues from every checkpoint with the rows it held", async () => {
  await assertCheckpointLaw(() => Dataset.range(11).batch(4).rebatch([1, 3, 0]));
  await assertCheckpointLaw(() => growing(7).raggedBatch(3).rebatch(2, { dropRemainder: true }));
});

Deno.test("rebatch moves each batch that it holds a bounded number of times", async () => {
  const count = 2_000;
  const moved = await itemsMoved(async () => {
    const [rows] = await collect(Dataset.range(count).batch(1).rebatch(count));
    assertEquals(rows, Array.from({ length: count }, (_, i) => i));
  });
  assert(moved <= 10 * count, `${moved} items`);
});

Deno.test("raggedBatch concatenates rows of different lengths", async () => {
  const [first, second] = await Array.fromAsync(growing(5).raggedBatch(3)) as RaggedTensor[];
  assertEquals(first!.toArray(), [[], [1], [2, 2]]);
  assertEquals(first!.rowSplits, new BigInt64Array([0n, 0n, 1n, 3n]));
  assertEquals(first!.values.dtype, "int32");
  assertEquals(second!.toArray(), [[3, 3, 3], [4, 4, 4, 4]]);
  assertEquals((await collectRagged(growing(5).raggedBatch(3, { dropRemainder: true }))).length, 1);
  assertEquals(growing(5).raggedBatch(3, { dropRemainder: true }).cardinality(), 1);
  const matrices = Dataset.range(3).map((n) => new Tensor("int8", [n, 2], new Int8Array(n * 2)));
  assertEquals(await collectRagged(matrices.raggedBatch(3)), [[[], [[0, 0]], [[0, 0], [0, 0]]]]);
  const words = Dataset.from([["a"], ["b", "c"]]).map((row) => tensor(row));
  assertEquals(await collectRagged(words.raggedBatch(2)), [[["a"], ["b", "c"]]]);
});

Deno.test("raggedBatch stacks components without an axis, or of fixed length by the spec", async () => {
  const spec = {
    n: new TensorSpec("float32", []),
    fixed: new TensorSpec("int32", [2]),
    varying: [new TensorSpec("int32", [null])],
  };
  const rows = Dataset.range(3).map((n) => ({
    n,
    fixed: new Int32Array(2),
    varying: [new Int32Array(n)],
  }), { spec });
  const batches = rows.raggedBatch(2);
  const [first] = await Array.fromAsync(batches);
  assert(first!.n instanceof Tensor && first!.n.dtype === "float32");
  assert(first!.fixed instanceof Tensor);
  assertEquals(first!.fixed.shape, [2, 2]);
  assert(first!.varying[0] instanceof RaggedTensor);
  assertEquals(batches.elementSpec, {
    n: new TensorSpec("float32", [null]),
    fixed: new TensorSpec("int32", [null, 2]),
    varying: [new TensorSpec("int32", [null, null])],
  });
  const same = Dataset.fromTensorSlices([[1, 2], [3, 4]]).raggedBatch(2);
  assertEquals((await Array.fromAsync(same))[0] instanceof Tensor, true);
});

Deno.test("raggedBatch refuses varying inner axes, which loses the element", async () => {
  const shapes = [[1, 2], [2, 3], [2, 2]];
  const odd = Dataset.from(shapes).map(([a, b]) => Tensor.zeros("int8", [a!, b!])).raggedBatch(2);
  await using iterator = odd.iterator();
  const error = await iterator.next().catch((error) => error as LeatError) as LeatError;
  assertStringIncludes(error.message, "of shape [2,3], but the first was int8 of shape");
  const batch = (await iterator.next()).value as RaggedTensor;
  assertEquals(batch.toArray(), [[[0, 0]], [[0, 0], [0, 0]]]);
});

Deno.test("unbatch splits ragged tensors, and knows the number of rows of even batches", async () => {
  assertEquals(await collect(growing(5).raggedBatch(3).unbatch()), await collect(growing(5)));
  const sliced = Dataset.fromTensorSlices(
    new RaggedTensor(tensor([1, 2, 3]), new BigInt64Array([0n, 2n, 3n])),
  );
  assertEquals(await collect(sliced), [[1, 2], [3]]);
  assertEquals(sliced.elementSpec, new TensorSpec("float64", [null]));
  const even = Dataset.range(5).batch(2, { dropRemainder: true });
  assertEquals(even.unbatch().cardinality(), 4);
  assertEquals(Dataset.range(5).batch(2).unbatch().cardinality(), -2);
  assertEquals(Dataset.range(5).repeat().batch(2).unbatch().cardinality(), Infinity);
});

Deno.test("raggedBatch continues from every checkpoint with the rows it held", async () => {
  await assertCheckpointLaw(() =>
    growing(7).map((x) => ({ x, n: failingOn(4)(x.length) })).raggedBatch(3)
  );
  await assertCheckpointLaw(() => growing(6).raggedBatch(4).unbatch());
});

Deno.test("unbatch gives rows that do not keep their batch alive", async () => {
  const rows = Dataset.range(64).map((x) => new Float32Array(512).fill(x)).batch(64)
    .unbatch() as Dataset<Tensor<"float32">>;
  for (const [isReadOnly, bytes] of [[true, 16_384], [false, 2048]] as const) {
    await using iterator = rows.iterator({ isReadOnly });
    const read = await Array.fromAsync(iterator);
    assertEquals(read.map(({ data }) => data[511]), Array.from({ length: 64 }, (_, x) => x));
    assertEquals(new Set(read.map(({ data }) => data.buffer.byteLength)), new Set([bytes]));
  }
});

Deno.test("unbatch and rebatch refuse scalars, also byte strings, by the spec of their input", () => {
  const bytes = Dataset.from(["ab"]).map((text) => ({ text: new TextEncoder().encode(text) }), {
    spec: { text: new TensorSpec("bytes", []) },
  });
  for (const operator of ["unbatch", "rebatch"] as const) {
    const message = `${operator}: component text is a scalar (bytes) and has no rows`;
    assertThrows(() => bytes[operator](2), LeatError, message);
    assertThrows(() => Dataset.range(4)[operator](2), LeatError, `${operator}: component 0`);
    bytes.batch(2)[operator](2);
  }
});

Deno.test("rebatch reads the spec of its input once", () => {
  let dataset = Dataset.range(8).batch(2, { dropRemainder: true });
  let reads = 0;
  const { elementSpec } = dataset;
  Object.defineProperty(dataset.node, "elementSpec", { get: () => (reads++, elementSpec) });
  for (let i = 0; i < 9; i++) dataset = dataset.rebatch(2);
  reads = 0;
  assertEquals(dataset.elementSpec, new TensorSpec("float64", [2]));
  assertEquals(reads, 1);
});
