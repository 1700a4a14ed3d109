/** Decompression at once: that it frees what it takes. */
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { zstdDecompressed } from "../../core/builtins.ts";
import { assertEquals, assertLess } from "../assert.ts";
import { startChild } from "../lib/child.ts";

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
  // In a process of its own: the memory of this one changes with other tests.
  await using child = startChild("tests/core/fixture_damaged_zstd.ts");
  const [, grownBytes] = await child.line(/grown by (-?\d+)/);
  assertLess(Number(grownBytes), 64 * 2 ** 20);
});
