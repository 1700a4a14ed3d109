/**
 * Writes `vectors.json` and `frames.json` to this folder. Only for an intended change of the
 * format.
 */

import { makeVectors } from "./cases.ts";
import { makeFrameVectors } from "./frame_cases.ts";

for (const [name, made] of [["vectors", makeVectors()], ["frames", makeFrameVectors()]] as const) {
  const text = JSON.stringify(made, null, 2);
  await Deno.writeTextFile(new URL(`${name}.json`, import.meta.url), `${text}\n`);
}
