/** What an example shows about elements, and the rows of batches. */

import { rowAt, SingleRows } from "../../../data/elements/components.ts";
import { Dataset, RaggedTensor, specOf, Tensor, tensor, TensorSpec } from "../../../mod.ts";
import { assert, assertEquals, assertStrictEquals } from "../../assert.ts";

Deno.test("specOf describes the components of an element", () => {
  const scalar = (dtype: TensorSpec["dtype"]) => new TensorSpec(dtype, []);
  assertEquals(
    specOf([1, 1n, true, "a"]),
    ["float64", "int64", "bool", "string"].map(scalar as never),
  );
  assertEquals(specOf({ a: { b: new Uint16Array(3) }, c: tensor([["x"]]) }), {
    a: { b: new TensorSpec("uint16", [3]) },
    c: new TensorSpec("string", [1, 1]),
  });
  const ragged = new RaggedTensor(tensor([[1], [2]]), new BigInt64Array([0n, 2n, 2n]));
  assertEquals(specOf(ragged), new TensorSpec("float64", [2, null, 1]));
  assertEquals(specOf({ a: undefined, b: () => 1, c: null }), {
    a: undefined,
    b: undefined,
    c: undefined,
  });
});

Deno.test("map declares its result by example", () => {
  const dataset = Dataset.range(4).map((x) => ({ x: new Float32Array(2).fill(x) }), {
    spec: specOf({ x: new Float32Array(2) }),
  });
  assertEquals(dataset.batch(2).elementSpec, { x: new TensorSpec("float32", [null, 2]) });
});

Deno.test("SingleRows gives the rows of a batch, of which each keeps at most 64 KiB alive", () => {
  const count = 100;
  const numbers = (size: number) => Float32Array.from({ length: count * size }, (_, i) => i % 251);
  const splits = BigInt64Array.from({ length: count + 1 }, (_, i) => BigInt(i * 300));
  const batch = {
    plain: numbers(1),
    flags: new Tensor("bool", [count], new Uint8Array(count).fill(1, 50)),
    names: new Tensor("string", [count], Array.from({ length: count }, (_, i) => `${i}`)),
    small: new Tensor("float32", [count, 2], numbers(2)),
    large: new Tensor("float32", [count, 20, 100], numbers(2000)),
    ragged: new RaggedTensor(new Tensor("float32", [count * 300], numbers(300)), splits),
    none: null,
  };
  const rows = new SingleRows(batch, count, "nothing");
  for (let index = 0; index < count; index++) {
    const row = rows.at(index) as Record<string, unknown>;
    assertEquals(row, rowAt(batch, index) as Record<string, unknown>);
    const kept = ["small", "large", "ragged"].map((name) => bufferOf(row[name]).byteLength);
    assert(kept.reduce((a, b) => a + b) <= 65_536, `row ${index}`);
  }
});

Deno.test("SingleRows copies small rows in parts of 4 KiB, up to 8 larger ones together, and no columns of scalars", () => {
  const names = Array.from({ length: 64 }, (_, i) => `${i}`);
  names.slice = () => {
    throw new Error("a column of scalars was cut");
  };
  const name = new Tensor("string", [64], names);
  for (
    const [width, bytes] of [[64, 4096], [512, 16_384], [4096, 65_536], [9000, 36_000]] as const
  ) {
    const x = new Tensor("float32", [64, width], new Float32Array(64 * width));
    const rows = new SingleRows({ x, name }, 64, "nothing");
    for (const index of [0, 9]) {
      const row = rows.at(index) as Record<string, unknown>;
      const kept = bufferOf(row.x).byteLength;
      assertEquals([row.name, kept], [`${index}`, bytes]);
    }
  }
});

function bufferOf(tensor: unknown): ArrayBufferLike {
  return (tensor as Tensor<"float32">).data.buffer;
}

Deno.test("SingleRows copies no batch of one row, and no small batch", () => {
  for (const shape of [[1, 9000], [9, 100]]) {
    const data = new Float32Array(shape[0]! * shape[1]!);
    const rows = new SingleRows(new Tensor("float32", shape, data), shape[0]!, "bytes");
    const row = rows.at(0);
    assertStrictEquals((row as Tensor<"float32">).data.buffer, data.buffer);
  }
});
