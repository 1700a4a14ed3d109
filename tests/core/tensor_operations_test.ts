/** What the recorded results of TensorFlow do not show. */
import { assertEquals } from "../assert.ts";
import { tensor } from "../../core/tensor.ts";
import { pad } from "../../core/tensor_operations.ts";

Deno.test("pad takes a constant of any number type for tensors of any number type", () => {
  assertEquals(pad(tensor([7n]), [[1, 1]], 5).toArray(), [5n, 7n, 5n]);
  assertEquals(pad(tensor([0.5]), [[1, 0]], 5n).toArray(), [5, 0.5]);
  assertEquals(pad(tensor([false]), [[0, 1]], 3).data, Uint8Array.of(0, 1));
  assertEquals(pad(tensor(["a"]), [[0, 1]], "b").toArray(), ["a", "b"]);
});
