/** Frames of LZ4, as Arrow compresses its buffers. */
import lz4 from "lz4js";
import { LeatError } from "../../../core/error.ts";
import { unlz4 } from "../../../data/formats/compression/bounded_codecs.ts";
import { xxHash32 } from "../../../data/formats/compression/xx_hash.ts";
import { assertEquals, assertThrows } from "../../assert.ts";
import { concat } from "./reading.ts";

const ascii = (text: string) => new TextEncoder().encode(text);
const unpacked = (frame: Uint8Array, bytesMax = 2 ** 30) => unlz4(frame, bytesMax, "BYTES_MAX");
const content = ascii("a buffer of text, and of text, and of more of the same text, ".repeat(40));

function uint32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}

/** A frame with every checksum. */
function frameOf(blocks: readonly [bytes: Uint8Array, isStored: boolean][], whole: Uint8Array) {
  const size = new Uint8Array(8);
  new DataView(size.buffer).setUint32(0, whole.length, true);
  // Version 1, linked blocks with checksums, the size and the checksum of the content; blocks of 64 KiB.
  const header = concat(new Uint8Array([0b0101_1100, 4 << 4]), size);
  return concat(
    uint32(0x184d2204),
    header,
    new Uint8Array([xxHash32(header) >>> 8 & 0xff]),
    ...blocks.flatMap(([bytes, isStored]) => [
      uint32(bytes.length + (isStored ? 2 ** 31 : 0)),
      bytes,
      uint32(xxHash32(bytes)),
    ]),
    uint32(0),
    uint32(xxHash32(whole)),
  );
}

/** A stored block, and one that repeats 6 bytes of it, and ends with "!". */
const LINKED = frameOf([
  [ascii("abcdef"), true],
  [new Uint8Array([0x02, 6, 0, 0x10, 33]), false],
], ascii("abcdefabcdef!"));

Deno.test("xxHash32 gives the hashes that other programs give", () => {
  assertEquals(xxHash32(ascii("")), 0x02cc5d05);
  assertEquals(xxHash32(ascii("a")), 0x550d7456);
  assertEquals(xxHash32(ascii("abc")), 0x32d153ff);
  assertEquals(xxHash32(ascii("Nobody inspects the spammish repetition")), 0xe2293b2f);
});

Deno.test("unlz4 reads frames of lz4js, and linked, stored and checked blocks", () => {
  const noise = Uint8Array.from({ length: 300_000 }, (_, i) => xxHash32(uint32(i)));
  for (const bytes of [content, noise, concat(content, noise, content), ascii("x")]) {
    assertEquals(unpacked(new Uint8Array(lz4.compress(bytes))), bytes);
  }
  assertEquals(unpacked(LINKED), ascii("abcdefabcdef!"));
});

Deno.test("unlz4 refuses every frame with a damaged byte, if the frame has checksums", () => {
  for (let at = 0; at < LINKED.length; at++) {
    const damaged = LINKED.slice();
    damaged[at]! ^= 0x41;
    assertThrows(() => unpacked(damaged), Error);
    assertThrows(() => unpacked(LINKED.subarray(0, at)), Error);
  }
});

Deno.test("unlz4 refuses a match that begins before the content, which lz4js reads as zeros", () => {
  const match = new Uint8Array([0x10, 65, 9, 0, 0x10, 33]);
  const frame = (bytes: Uint8Array) =>
    concat(
      uint32(0x184d2204),
      new Uint8Array([0x60, 0x40, xxHash32(new Uint8Array([0x60, 0x40])) >>> 8 & 0xff]),
      uint32(bytes.length),
      bytes,
      uint32(0),
    );
  assertEquals(unpacked(frame(match.with(2, 1))), ascii("AAAAA!"));
  assertThrows(() => unpacked(frame(match)), Error, "begins 9 bytes before byte 1");
});

Deno.test("unlz4 refuses content beyond its limit before it allocates memory", () => {
  const frame = new Uint8Array(lz4.compress(new Uint8Array(2 ** 20)));
  const error = assertThrows(() => unpacked(frame, 2 ** 16), LeatError, "BYTES_MAX");
  assertEquals(error.code, "resource_exhausted");
});
