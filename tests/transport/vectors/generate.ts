/**
 * Writes `vectors.json` beside itself. Only for a change of the format that is meant.
 *
 * @module
 */

import { makeVectors } from "./cases.ts";

const text = JSON.stringify(makeVectors(), null, 2);
await Deno.writeTextFile(new URL("vectors.json", import.meta.url), `${text}\n`);
