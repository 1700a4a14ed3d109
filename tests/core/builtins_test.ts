/** Decompression at once: that it frees what it takes. */
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { zstdDecompressed } from "../../core/builtins.ts";
import { assertEquals, assertLess, assertThrows } from "../assert.ts";

const CONTENT = new Uint8Array(128 * 1024).map((_, i) => i * i % 251);
const OPTIONS = { chunkSize: CONTENT.length, maxOutputLength: CONTENT.length };

Deno.test("zstdDecompressed gives what zstdDecompressSync does, and the same errors", () => {
  const packed = new Uint8Array(zstdCompressSync(CONTENT));
  assertEquals(new Uint8Array(zstdDecompressed(packed, OPTIONS)), CONTENT);
  for (
    const [bytes, options] of [
      [packed, { ...OPTIONS, maxOutputLength: 1_000 }],
      [CONTENT, OPTIONS],
      [packed.subarray(0, 7), OPTIONS],
    ] as const
  ) {
    const outcome = (decompress: typeof zstdDecompressed) => {
      try {
        return decompress(bytes, options).length;
      } catch (error) {
        const { code, message } = error as NodeJS.ErrnoException;
        return { code, message };
      }
    };
    assertEquals(outcome(zstdDecompressed), outcome(zstdDecompressSync as never));
  }
});

Deno.test("zstdDecompressed frees the decoder of damaged data", async () => {
  const damaged = new Uint8Array(zstdCompressSync(CONTENT));
  damaged.fill(0xff, 200, 300);
  const round = async () => {
    for (let i = 0; i < 100; i++) assertThrows(() => zstdDecompressed(damaged, OPTIONS));
    await new Promise((resolve) => setTimeout(resolve)); // Node frees in later turns.
  };
  await round();
  const { rss } = Deno.memoryUsage();
  for (let i = 0; i < 15; i++) await round();
  assertLess(Deno.memoryUsage().rss - rss, 64 * 2 ** 20);
});
