/** What the recorded results of TensorFlow do not show. */
import { LeatError } from "../../core/error.ts";
import { assertEquals, assertThrows } from "../assert.ts";
import { tensor } from "../../core/tensor.ts";
import { cast, gather, oneHot, pad, stack } from "../../core/tensor_operations.ts";

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

Deno.test("tensor operations refuse anything but tensors, and name what they got", () => {
  const refuse = (make: () => unknown, message: string) => {
    const error = assertThrows(make, LeatError, message);
    assertEquals(error.code, "invalid_argument", message);
  };
  const shown = { null: null, undefined, number: 5, Float32Array: new Float32Array(2), Array: [1] };
  for (const [kind, value] of Object.entries(shown)) {
    const none = value as never;
    refuse(() => cast(none, "int32"), `cast: a tensor is wanted, not ${kind}`);
    refuse(() => pad(none, [[0, 1]]), `pad: a tensor is wanted, not ${kind}`);
    refuse(() => gather(none, [0]), `gather: a tensor is wanted, not ${kind}`);
    refuse(() => stack([tensor([1]), none]), `stack: a tensor is wanted, not ${kind}`);
  }
  refuse(() => stack(new Float32Array(2) as never), "stack: an array of tensors is wanted, not Fl");
  refuse(() => pad(tensor([1]), undefined as never), "is padded by 1 pairs");
  refuse(
    () => gather(tensor([1]), 5 as never),
    "gather: indices are a tensor or an array, not number",
  );
});

Deno.test("gather takes indices of any kind of number", () => {
  const values = tensor([10, 20, 30]);
  for (const indices of [[2, 0], [2n, 0n], Uint8Array.of(2, 0), BigInt64Array.of(2n, 0n)]) {
    assertEquals(gather(values, indices as number[]).toArray(), [30, 10]);
  }
});
