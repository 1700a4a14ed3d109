/** Byte arrays, and numbers of a fixed number of bytes. */
import { Buffer } from "node:buffer";
import { hexOf64, joined, uint32At } from "../../core/bytes.ts";
import { assert, assertEquals, assertStrictEquals } from "../assert.ts";

Deno.test("joined puts parts one after the other into a new Uint8Array", () => {
  const part = Uint8Array.of(1, 2);
  assertEquals(joined([part, new Uint8Array(), Uint8Array.of(3)]), Uint8Array.of(1, 2, 3));
  assertEquals(joined([]), new Uint8Array());
  assert(joined([part]).buffer !== part.buffer);
  assertStrictEquals(Object.getPrototypeOf(joined([Buffer.of(1)])), Uint8Array.prototype);
});

Deno.test("uint32At reads the most significant byte first, and no negative number", () => {
  assertEquals(uint32At(Uint8Array.of(9, 0xff, 0, 0, 1), 1), 0xff000001);
});

Deno.test("hexOf64 has 16 digits, also for small and for negative numbers", () => {
  assertEquals(hexOf64(10n), "000000000000000a");
  assertEquals(hexOf64(-1n), "ffffffffffffffff");
});
