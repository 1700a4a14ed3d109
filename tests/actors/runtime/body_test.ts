/** Copies of message bodies, and their estimated memory. */
import { Buffer } from "node:buffer";
import { bytesOfBody, copyBody } from "../../../actors/runtime/body.ts";
import { Tensor } from "../../../core/tensor.ts";
import { Payload } from "../../../transport/payload.ts";
import { assertEquals } from "../../assert.ts";

Deno.test("copyBody copies bytes of every class: the sender may change its own", () => {
  for (const bytes of [Uint8Array.of(1, 2), Buffer.of(1, 2)]) {
    const copy = copyBody({ bytes, payload: new Payload(bytes) }, true) as {
      readonly bytes: Uint8Array;
      readonly payload: Payload;
    };
    bytes[0] = 9;
    assertEquals([copy.bytes[0], copy.payload.bytes[0]], [1, 1]);
  }
});

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
