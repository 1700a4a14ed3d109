/**
 * Decodes the images that its command line names, each of which is refused, and prints of each the code
 * of the refusal and by how many bytes the process has grown. It has a process to itself: the memory of
 * one is that of all its threads, and other tests run on those.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { Images } from "../../world/images.ts";

const images = new Images();
for (const path of Deno.args) {
  const png = await Deno.readFile(path);
  const before = Deno.memoryUsage().rss;
  const refused = await Promise.try(() => images.decode(png)).then(() => undefined, LeatError.from);
  console.log(`${refused?.code} ${Deno.memoryUsage().rss - before}`);
}
