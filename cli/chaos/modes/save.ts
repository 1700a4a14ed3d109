/**
 * A distributed save that is ended halfway and called again. The folder must then have each element
 * once and in its position, and no other files.
 */
import { join } from "node:path";
import { IS_SAVED } from "../../../data/saved/distributed/work.ts";
import { MANIFEST_NAME, readManifest } from "../../../data/saved/manifest.ts";
import { Dataset, distributedSave, LeatError } from "../../../mod.ts";
import { StreamChecker } from "../../../sim/checkers/stream.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import type { DrillContext, DrillFigures } from "./drill.ts";

/** At each report of progress, the first call is ended with a probability of one in this many. */
const END_AT_PROGRESS = 4;
/** No reader slows a save down. To last as long as other jobs, it gets more work by this factor. */
const TIMES_WORK = 2;
const CHUNK_BYTES = 16 * 1_024;
/** Time limit for late writers to remove their files, and the time between two checks, in ms. */
const LATE_MAX_MS = 60_000;
const LATE_CHECK_MS = 50;

/** Saves a dataset, and reads the result. */
export async function drillSave(around: DrillContext): Promise<DrillFigures> {
  const { size: { elements, work }, folder, name } = around;
  const path = join(folder, name);
  const dataset = Dataset.range(elements).map((x, { work }) => {
    let value = x;
    for (let i = 0; i < work; i++) value = (Math.imul(value, 1_664_525) + 1_013_904_223) | 0;
    return x + (value >>> 8) / 2 ** 26;
  }, { captures: { work: work * TIMES_WORK } });
  using reader = around.openReader("saver");
  let lives = 1;
  while (!await save(around, dataset, path, reader.address, lives === 1)) lives++;
  await expectStream(around, path);
  await expectNothingLeft(around, path);
  await Deno.remove(path, { recursive: true });
  return { delivered: elements, remark: `${elements} elements saved in ${lives} calls` };
}

/** Calls the save. Returns whether it completed. */
async function save(
  around: DrillContext,
  dataset: Dataset<number>,
  path: string,
  service: string,
  isFirst: boolean,
): Promise<boolean> {
  const ending = new AbortController();
  const endAt = 1 + around.rng.int(END_AT_PROGRESS);
  let told = 0;
  const onProgress = () => {
    void around.step(0);
    if (isFirst && ++told === endAt) ending.abort();
  };
  try {
    await distributedSave(dataset, path, service, {
      ...{ chunkBytesMax: CHUNK_BYTES, onProgress, signal: ending.signal },
    });
    return true;
  } catch (error) {
    if (ending.signal.aborted) return false;
    // The first call was ended, but the workers completed the save.
    if (!isFirst && LeatError.from(error).details?.["reason"] === IS_SAVED) return true;
    throw error;
  }
}

async function expectStream({ size, findings }: DrillContext, path: string): Promise<void> {
  const wanted = Array.from({ length: size.elements }, (_, i) => `${i}`);
  const stream = new StreamChecker(wanted, findings("folder"));
  let position = 0;
  for await (const x of await Dataset.load<number>(path)) {
    stream.took(position++, `${Math.floor(x)}`, "the folder's reader");
  }
  stream.ended(position, "the folder's reader");
}

/**
 * Waits until no other files are left. A worker that timed out writes until it learns that, and then
 * removes its files.
 */
async function expectNothingLeft(around: DrillContext, path: string): Promise<void> {
  await around.calm();
  const endMs = performance.now() + LATE_MAX_MS;
  let left = await leftIn(path);
  while (left.length > 0 && performance.now() < endMs) {
    await new Promise((resolve) => setTimeout(resolve, LATE_CHECK_MS));
    left = await leftIn(path);
  }
  for (const name of left) {
    around.findings("folder").add(`${name} is left over in a folder that is complete`);
  }
}

/** The files that the manifest does not list. */
async function leftIn(path: string): Promise<string[]> {
  const names = (await Array.fromAsync(Deno.readDir(path))).map(({ name }) => name);
  const manifest = await readManifest(new DenoHost(), path);
  const kept = new Set([MANIFEST_NAME, ...manifest?.chunks.map(({ name }) => name) ?? []]);
  return names.filter((name) => !kept.has(name));
}
