/** Tensors: construction, shapes, nesting, and every refusal. */

import { LeatError } from "../../core/error.ts";
import { RaggedTensor, Tensor, tensor, utf8Length } from "../../core/tensor.ts";
import { assert, assertEquals, assertStrictEquals, assertThrows } from "../assert.ts";

function refused(fn: () => unknown, part: string): void {
  const error = assertThrows(fn, LeatError, part) as LeatError;
  assertEquals(error.code, "invalid_argument");
}

Deno.test("Tensor keeps its data uncopied and checks it against the shape", () => {
  const data = new Float32Array(6);
  const made = new Tensor("float32", [2, 3], data);
  assertStrictEquals(made.data, data);
  assertEquals([made.size, made.byteLength], [6, 24]);
  refused(
    () => new Tensor("float32", [2, 2], data),
    "shape [2,2] has 4 elements, but its data has 6",
  );
  refused(() => new Tensor("float64", [6], data as never), "Float64Array, not Float32Array");
  refused(() => new Tensor("string", [6], data as never), "an array, not Float32Array");
  refused(() => new Tensor("complex" as "int8", [6], data as never), "unknown dtype");
  for (const shape of [[-1], [1.5], [NaN], [2 ** 60]]) {
    refused(() => new Tensor("float32", shape, data), `[${shape}]`);
  }
});

Deno.test("Tensor.toArray nests row-major; a scalar comes bare; zero-length axes nest empty", () => {
  assertEquals(tensor(new Int8Array([1, 2, 3, 4, 5, 6]), { shape: [1, 2, 3] }).toArray(), [
    [[1, 2, 3], [4, 5, 6]],
  ]);
  assertEquals(new Tensor("bool", [], new Uint8Array([1])).toArray(), true);
  assertEquals(Tensor.zeros("float16", [2, 0]).toArray(), [[], []]);
  assertEquals(Tensor.zeros("bytes", [1]).toArray(), [new Uint8Array(0)]);
});

Deno.test("Tensor.row and reshape view the same data", () => {
  const grid = tensor([[1, 2], [3, 4]]);
  assertEquals(grid.row(1).toArray(), [3, 4]);
  assertEquals(grid.row(1).row(0).toArray(), 3);
  assertStrictEquals(
    (grid.row(1).data as Float64Array).buffer,
    (grid.reshape([4]).data as Float64Array).buffer,
  );
  assertEquals(tensor([["a"], ["b"]]).row(1).toArray(), ["b"]);
  assertEquals((assertThrows(() => grid.row(2), LeatError) as LeatError).code, "out_of_range");
  refused(() => tensor(1).row(0), "scalar");
  refused(() => grid.reshape([3]), "[3]");
});

Deno.test("Tensor.byteLength counts strings as UTF-8", () => {
  for (const text of ["", "abc", "éß", "水車", "😀", "a\u{10ffff}b", "\ud83d", "\udc00\ud800"]) {
    assertEquals(utf8Length(text), new TextEncoder().encode(text).length);
  }
  assertEquals(tensor(["é", "a"]).byteLength, 3);
});

Deno.test("tensor infers dtype and shape", () => {
  const made = [1, 1n, true, "x", [[1], [2]], [[]], [], [new Int16Array(2), [3, 4]]].map(
    (value) => {
      const { dtype, shape } = tensor(value as Parameters<typeof tensor>[0]);
      return `${dtype} [${shape}]`;
    },
  );
  assertEquals(made, [
    "float64 []",
    "int64 []",
    "bool []",
    "string []",
    "float64 [2,1]",
    "float64 [1,0]",
    "float64 [0]",
    "int16 [2,2]",
  ]);
});

Deno.test("tensor keeps a typed array uncopied, and converts it if a dtype is given", () => {
  const data = new Uint8Array([1, 2]);
  assertStrictEquals(tensor(data).data, data);
  assertEquals(tensor(data, { dtype: "int64" }).toArray(), [1n, 2n]);
  assertEquals(tensor(data, { dtype: "bytes" }).toArray(), data);
  assertEquals(tensor([data, data], { dtype: "bytes" }).shape, [2]);
  assertEquals(tensor(tensor([1, 0]), { dtype: "bool" }).toArray(), [true, false]);
  assertEquals(tensor([1n, -1n], { dtype: "float32" }).toArray(), [1, -1]);
  assert(Object.is(tensor([-0]).toArray() instanceof Array && tensor(-0).toArray(), -0));
});

Deno.test("tensor refuses values that the dtype cannot hold, naming value and shape", () => {
  refused(() => tensor([256], { dtype: "uint8" }), "shape [1] cannot hold 256");
  refused(() => tensor([0.5], { dtype: "int32" }), "0.5");
  refused(() => tensor([NaN], { dtype: "int8" }), "NaN");
  refused(() => tensor([2n ** 63n]), "9223372036854775808");
  refused(() => tensor([1.5], { dtype: "int64" }), "1.5");
  refused(() => tensor([2], { dtype: "bool" }), "2");
  refused(() => tensor([1, "a"]), "a (string)");
  refused(() => tensor(["a", 1]), "1 (number)");
  refused(() => tensor([1, 9_007_199_254_740_993n]), "9007199254740993 (bigint)");
  refused(() => tensor([[true], [0]]), "0 (number)");
  refused(() => tensor([undefined as unknown as number]), "undefined");
  refused(() => tensor([["a"], undefined as unknown as string[]]), "undefined");
  refused(() => tensor([1], { dtype: "complex" as "int8" }), "complex");
});

Deno.test("tensor refuses rows of unequal length", () => {
  refused(() => tensor([[1, 2], [3]]), "axis 1 of [2,2] is 2 long, but a row is 1");
  refused(() => tensor([[1], 2]), "a row is number");
});

Deno.test("RaggedTensor cuts values into rows and checks its splits", () => {
  const values = tensor([1, 2, 3]);
  const made = new RaggedTensor(values, new BigInt64Array([0n, 2n, 2n, 3n]));
  assertEquals(made.toArray(), [[1, 2], [], [3]]);
  assertEquals([made.numRows, made.byteLength], [3, 24 + 32]);
  for (const splits of [[], [0n], [1n, 3n], [0n, 2n], [0n, 3n, 1n, 3n], [0n, -1n, 3n]]) {
    refused(() => new RaggedTensor(values, new BigInt64Array(splits)), "split");
  }
  refused(() => new RaggedTensor(tensor(1), new BigInt64Array([0n])), "split");
});

Deno.test("the type of a tensor follows from its typed array, or from the given dtype", () => {
  const pixels = tensor(new Uint8Array(2), { shape: [2, 1] }) satisfies Tensor<"uint8">;
  const rows = tensor(new Float32Array([1, 2])) satisfies Tensor<"float32">;
  const labels = tensor([1, 2], { dtype: "int32" }) satisfies Tensor<"int32">;
  assertEquals([pixels.dtype, rows.dtype, labels.dtype], ["uint8", "float32", "int32"]);
  // @ts-expect-error: float16 is no dtype.
  tensor(new Float16Array(1)) satisfies Tensor<"float32">;
  // @ts-expect-error: a bare Uint8Array holds numbers, not blocks.
  tensor(new Uint8Array(1)) satisfies Tensor<"bytes">;
});
