/** Byte arrays, and numbers of a fixed number of bytes. */
import { Buffer } from "node:buffer";
import { copyOfArray, hexOf64, joined, ownBytes, uint32At } from "../../core/bytes.ts";
import { assert, assertEquals, assertStrictEquals } from "../assert.ts";

Deno.test("joined puts parts one after the other into a new Uint8Array", () => {
  const part = Uint8Array.of(1, 2);
  assertEquals(joined([part, new Uint8Array(), Uint8Array.of(3)]), Uint8Array.of(1, 2, 3));
  assertEquals(joined([]), new Uint8Array());
  assert(joined([part]).buffer !== part.buffer);
  assertStrictEquals(Object.getPrototypeOf(joined([Buffer.of(1)])), Uint8Array.prototype);
});

Deno.test("copyOfArray and ownBytes give memory of its own for a Buffer, too", () => {
  const large = Buffer.alloc(100_000, 7);
  for (const copy of [copyOfArray(large.subarray(5, 15)), ownBytes(large.subarray(5, 15))]) {
    assertEquals([copy.length, copy[0], copy.buffer.byteLength], [10, 7, 10]);
  }
  assertEquals(copyOfArray(Float32Array.of(1.5)), Float32Array.of(1.5));
});

Deno.test("uint32At reads the most significant byte first, and no negative number", () => {
  assertEquals(uint32At(Uint8Array.of(9, 0xff, 0, 0, 1), 1), 0xff000001);
});

Deno.test("hexOf64 has 16 digits, also for small and for negative numbers", () => {
  assertEquals(hexOf64(10n), "000000000000000a");
  assertEquals(hexOf64(-1n), "ffffffffffffffff");
});
