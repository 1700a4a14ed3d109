/** What the recorded results of TensorFlow do not show. */
import { LeatError } from "../../core/error.ts";
import { assertEquals, assertThrows } from "../assert.ts";
import { tensor } from "../../core/tensor.ts";
import { cast, oneHot, pad } from "../../core/tensor_operations.ts";

Deno.test("cast and oneHot refuse a dtype of text or bytes, and an unknown one", () => {
  for (const dtype of ["string", "bytes", "int7"]) {
    const options = { dtype: dtype as "int8" };
    for (
      const make of [
        () => cast(tensor([1.5, 2]), options.dtype),
        () => oneHot(tensor([1]), 2, options),
      ]
    ) {
      const { code, message } = assertThrows(make, LeatError);
      assertEquals([code, message.includes(dtype)], ["invalid_argument", true]);
    }
  }
});

Deno.test("pad refuses a constant of another kind than the tensor's", () => {
  const texts = tensor(["s"]), numbers = tensor([1]);
  assertEquals(pad(texts, [[0, 1]], "t").data, ["s", "t"]);
  for (const make of [() => pad(texts, [[0, 1]], 5), () => pad(numbers, [[0, 1]], "5")]) {
    assertEquals(assertThrows(make, LeatError).code, "invalid_argument");
  }
});

Deno.test("pad takes a constant of any number type for tensors of any number type", () => {
  assertEquals(pad(tensor([7n]), [[1, 1]], 5).toArray(), [5n, 7n, 5n]);
  assertEquals(pad(tensor([0.5]), [[1, 0]], 5n).toArray(), [5, 0.5]);
  assertEquals(pad(tensor([false]), [[0, 1]], 3).data, Uint8Array.of(0, 1));
  assertEquals(pad(tensor(["a"]), [[0, 1]], "b").toArray(), ["a", "b"]);
});
