/** What an example shows about elements. */

import { Dataset, RaggedTensor, specOf, tensor, TensorSpec } from "../../../mod.ts";
import { assertEquals } from "../../assert.ts";

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
