/**
 * Decodes the images that its command line names, and prints for each the error code or the shape,
 * by how many bytes the process has grown, and how much it keeps after everything is released. It
 * runs in a process of its own: the memory of a process is that of all its threads, and other tests
 * run on those.
 */
import { LeatError } from "../../../core/error.ts";
import { Images } from "../../../platform/media/images.ts";

const { gc } = globalThis as unknown as { gc(): void };
/** Below this the rest is not measured. */
const KEPT_BYTES_MAX = 60_000_000;

const images = new Images();
for (const path of Deno.args) {
  const png = await Deno.readFile(path);
  gc();
  const before = Deno.memoryUsage().rss;
  const outcome = await Promise.try(() => images.decode(png)).then(
    ({ shape }) => shape.join(),
    (error) => LeatError.from(error).code,
  );
  const grown = Deno.memoryUsage().rss - before;
  // V8 returns freed memory later, on another thread.
  let kept = Infinity;
  for (let attempt = 0; attempt < 300 && kept > KEPT_BYTES_MAX; attempt++) {
    gc();
    await new Promise((resolve) => setTimeout(resolve, 10));
    kept = Math.min(kept, Deno.memoryUsage().rss - before);
  }
  console.log(`${outcome} ${grown} ${kept}`);
}
