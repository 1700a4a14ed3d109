/**
 * WAV files to try with: tones that rise from a low note to a high one, each faster than the one before.
 */

import { join } from "node:path";
import wavefile from "wavefile";

/** Frames per second of every file. */
export const SWEEP_SAMPLE_RATE = 16_000;

const LOWEST_HERTZ = 150;
const HIGHEST_HERTZ = 6_000;
const LONGEST_SECONDS = 3;
/** The loudness of the tones: half the maximum of a 16-bit sample. */
const AMPLITUDE = 2 ** 14;

/**
 * Writes `count` files into a folder, which is created if missing; returns their paths. Files that are
 * there stay as they are, because another program may be reading them.
 */
export async function writeSweeps(folder: string, count: number): Promise<string[]> {
  await Deno.mkdir(folder, { recursive: true });
  const paths = Array.from({ length: count }, (_, i) => join(folder, `sweep-${i}.wav`));
  for (const [i, path] of paths.entries()) {
    if (await isThere(path)) continue;
    const wav = new wavefile.WaveFile();
    wav.fromScratch(1, SWEEP_SAMPLE_RATE, "16", sweep(LONGEST_SECONDS / (1 + i / 4)));
    // Renamed when it is complete, because others take every file of this name for one.
    const partial = `${path}.${crypto.randomUUID()}`;
    await Deno.writeFile(partial, wav.toBuffer());
    await Deno.rename(partial, path);
  }
  return paths;
}

async function isThere(path: string): Promise<boolean> {
  return await Deno.lstat(path).then(() => true, () => false);
}

/** A tone whose pitch rises by the same number of octaves in every second. */
function sweep(seconds: number): Int16Array {
  const growth = Math.log(HIGHEST_HERTZ / LOWEST_HERTZ) / seconds;
  return Int16Array.from({ length: Math.round(seconds * SWEEP_SAMPLE_RATE) }, (_, i) => {
    const t = i / SWEEP_SAMPLE_RATE;
    const phase = 2 * Math.PI * LOWEST_HERTZ * (Math.exp(growth * t) - 1) / growth;
    return AMPLITUDE * Math.sin(phase);
  });
}
