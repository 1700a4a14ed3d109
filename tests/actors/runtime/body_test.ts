/** The estimated memory of message bodies. */
import { bytesOfBody } from "../../../actors/runtime/body.ts";
import { Tensor } from "../../../core/tensor.ts";
import { Payload } from "../../../transport/payload.ts";
import { assertEquals } from "../../assert.ts";

Deno.test("bytesOfBody counts arrays of numbers, payloads and tensors with their bytes", () => {
  const data = new Uint8Array(1_000);
  const bytes = bytesOfBody(data);
  assertEquals(bytes > 1_000, true);
  for (const value of [new Payload(data), new Tensor("uint8", [1_000], data)]) {
    assertEquals(bytesOfBody(value), bytes);
  }
});

Deno.test("bytesOfBody counts a plain object by its fields, whatever a field named byteLength says", () => {
  for (const byteLength of [-1e12, 0, 1e12]) {
    assertEquals(bytesOfBody({ byteLength }), bytesOfBody({ somethingElse: byteLength }));
  }
});
