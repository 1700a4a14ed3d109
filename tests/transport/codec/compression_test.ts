/** Compressed messages: their bytes, their contents, and refusals. */
import { decodeMessage, encodeMessage } from "../../../transport/codec.ts";
import {
  COMPRESSED_HEADER_BYTES,
  compressFrame,
  decompressFrame,
  type FrameCodec,
  isCompressed,
  sampleCompression,
} from "../../../transport/compression.ts";
import { LeatError, type LeatErrorCode } from "../../../core/error.ts";
import { assert, assertEquals, assertThrows } from "../../assert.ts";

const CODECS: readonly FrameCodec[] = ["zstd", "gzip"];
const FRAME = encodeMessage({ t: new Int16Array(64).map((_, i) => i & 3) });

function refused(read: () => unknown, code: LeatErrorCode): void {
  const error = assertThrows(read, LeatError) as LeatError;
  assertEquals(error.code, code, error.message);
}

function random(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += 65_536) {
    crypto.getRandomValues(bytes.subarray(at, at + 65_536));
  }
  return bytes;
}

for (const codec of CODECS) {
  Deno.test(`decompressFrame restores the input of compressFrame (${codec})`, () => {
    const frame = encodeMessage({ x: new Float32Array(500_000).map((_, i) => i % 7) });
    for (const into of ["arraybuffer", "shared"] as const) {
      const compressed = compressFrame(frame, codec, into)!;
      assert(isCompressed(compressed) && !isCompressed(frame));
      assert(compressed.length < frame.length / 10);
      assertEquals(compressed.buffer.byteLength, compressed.length, "alone in its buffer");
      assertEquals(compressed.buffer instanceof SharedArrayBuffer, into === "shared");
      assertEquals(decompressFrame(compressed), frame);
    }
  });

  Deno.test(`compressFrame refuses a frame that would not get smaller (${codec})`, () => {
    assertEquals(compressFrame(encodeMessage(random(100_000)), codec), undefined);
    assertEquals(compressFrame(encodeMessage(7), codec), undefined);
  });

  Deno.test(`a compressed message that is damaged or cut short is data_loss (${codec})`, () => {
    const frame = encodeMessage({ x: new Uint8Array(20_000).map((_, i) => i * i >> 3) });
    const compressed = compressFrame(frame, codec)!;
    for (const at of [0.3, 0.5, 0.9]) {
      const damaged = compressed.slice();
      damaged[Math.floor(at * damaged.length)]! ^= 0x10;
      refused(() => decompressFrame(damaged), "data_loss");
    }
    for (const length of [3, COMPRESSED_HEADER_BYTES, compressed.length - 1]) {
      refused(() => decompressFrame(compressed.subarray(0, length)), "data_loss");
    }
  });

  Deno.test(`a message that unpacks to more or less than announced is data_loss (${codec})`, () => {
    for (const difference of [-1, 1]) {
      const compressed = compressFrame(FRAME, codec)!;
      new DataView(compressed.buffer).setUint32(7, FRAME.length + difference);
      refused(() => decompressFrame(compressed), "data_loss");
    }
  });

  Deno.test(`a compressed message with bytes after its end is data_loss (${codec})`, () => {
    const compressed = compressFrame(FRAME, codec)!;
    for (const count of [1, 4, 9]) {
      const longer = new Uint8Array(compressed.length + count);
      longer.set(compressed);
      new DataView(longer.buffer).setUint32(1, longer.length - 6);
      refused(() => decompressFrame(longer), "data_loss");
    }
  });

  Deno.test(`a message that would unpack to more than the limit is refused unread (${codec})`, () => {
    const bomb = compressFrame(encodeMessage(new Uint8Array(2 ** 24)), codec)!;
    assert(bomb.length < 2 ** 18);
    refused(() => decompressFrame(bomb, 2 ** 20), "resource_exhausted");
    // One that lies about its size is stopped at the announced size.
    new DataView(bomb.buffer).setUint32(7, 2 ** 10);
    refused(() => decompressFrame(bomb, 2 ** 20), "data_loss");
  });
}

Deno.test("compressed messages are the bytes that docs/wire.md shows", () => {
  const zstd = Uint8Array.fromHex(`
    c9 00000032 5a 01 000000c0
    28b52ffd 04 48 050100 b8ce0000000b81a174c7054100000000 02c0c60000008000 02001ca465082c01
    48312c80
  `.replaceAll(/\s/g, ""));
  assertEquals(decodeMessage(decompressFrame(zstd)), { t: new Int16Array(64) });
  const gzip = Uint8Array.fromHex(`
    c9 00000035 5a 02 000000c0
    1f8b0800000000000403 3bc7c0c0c0ddb8b0e438ab2303030303d301e2c1310606860690a681c400
    f8b6e889 c0000000
  `.replaceAll(/\s/g, ""));
  assertEquals(decodeMessage(decompressFrame(gzip)), { t: new Int16Array(64) });
  const ours = compressFrame(encodeMessage({ t: new Int16Array(64) }), "zstd")!;
  assertEquals(ours.subarray(0, 1), zstd.subarray(0, 1));
  assertEquals(ours.subarray(5, COMPRESSED_HEADER_BYTES), zstd.subarray(5, 11));
});

Deno.test("an invalid compressed message is invalid_argument", () => {
  const compressed = compressFrame(FRAME, "zstd")!;
  const changed = (at: number, byte: number) => {
    const copy = compressed.slice();
    copy[at] = byte;
    return copy;
  };
  refused(() => decompressFrame(changed(5, 0x54)), "invalid_argument");
  refused(() => decompressFrame(changed(6, 0)), "invalid_argument");
  refused(() => decompressFrame(changed(6, 9)), "invalid_argument");
  const longer = new Uint8Array(compressed.length + 1);
  longer.set(compressed);
  refused(() => decompressFrame(longer), "invalid_argument");
});

Deno.test("sampleCompression reads the beginning, the middle and the end of a large frame", () => {
  const frame = new Uint8Array(3_000_000);
  frame.set(random(1_000_000), 1_000_000);
  const { bytes, compressedBytes } = sampleCompression(frame, "zstd");
  assert(bytes < 100_000, `${bytes}`);
  assert(compressedBytes > 0.3 * bytes && compressedBytes < 0.36 * bytes, `${compressedBytes}`);
});
