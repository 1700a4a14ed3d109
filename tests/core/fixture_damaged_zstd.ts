/** Prints by how many bytes the process grows while it decompresses damaged data. */
import { zstdCompressSync } from "node:zlib";
import { zstdDecompressed } from "../../core/builtins.ts";

const content = new Uint8Array(128 * 1024).map((_, i) => i * i % 251);
const options = { chunkSize: content.length, maxOutputLength: content.length };
const damaged = new Uint8Array(zstdCompressSync(content));
damaged.fill(0xff, 200, 300);

async function round(): Promise<void> {
  for (let i = 0; i < 100; i++) {
    try {
      zstdDecompressed(damaged, options);
    } catch {
      // It is damaged.
    }
  }
  await new Promise((resolve) => setTimeout(resolve)); // Node frees in later turns.
}

await round();
const { rss } = Deno.memoryUsage();
// On a busy machine memory is freed late: the least use of the last rounds counts.
let leastBytes = Infinity;
for (let i = 0; i < 30; i++) {
  await round();
  if (i >= 15) leastBytes = Math.min(leastBytes, Deno.memoryUsage().rss);
}
console.log(`grown by ${leastBytes - rss}`);
