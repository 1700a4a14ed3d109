/**
 * Checks a distributed save that is aborted halfway and called again. The folder must then have each
 * element once and in its position, and no other files.
 */
import { join } from "node:path";
import { IS_SAVED } from "../../../data/saved/distributed/work.ts";
import { MANIFEST_NAME, readManifest } from "../../../data/saved/manifest.ts";
import { Dataset, distributedSave, LeatError } from "../../../mod.ts";
import { StreamChecker } from "../../../sim/checkers/stream.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import type { DrillContext, DrillFigures } from "./drill.ts";

/** The first call is aborted at a random report of progress: at the latest at this one. */
const ABORT_REPORT_MAX = 4;
/** No reader slows a save down, so it needs this much more work to last as long as other jobs. */
const WORK_FACTOR = 2;
const CHUNK_BYTES = 16 * 1_024;
/** Time limit for late writers to remove their files, and the time between two checks, in ms. */
const LATE_MAX_MS = 60_000;
const LATE_CHECK_MS = 50;

/** Saves a dataset, and reads the result. */
export async function drillSave(context: DrillContext): Promise<DrillFigures> {
  const { size: { elements, work }, folder, name } = context;
  const path = join(folder, name);
  const dataset = Dataset.range(elements).map((x, { work }) => {
    let value = x;
    for (let i = 0; i < work; i++) value = (Math.imul(value, 1_664_525) + 1_013_904_223) | 0;
    return x + (value >>> 8) / 2 ** 26;
  }, { captures: { work: work * WORK_FACTOR } });
  using reader = context.openReader("saver");
  let calls = 1;
  while (!await save(context, dataset, path, reader.address, calls === 1)) calls++;
  await expectStream(context, path);
  await expectNothingLeft(context, path);
  await Deno.remove(path, { recursive: true });
  return { delivered: elements, remark: `${elements} elements saved in ${calls} calls` };
}

/** Calls the save. Returns whether it completed. */
async function save(
  context: DrillContext,
  dataset: Dataset<number>,
  path: string,
  service: string,
  isFirst: boolean,
): Promise<boolean> {
  const abort = new AbortController();
  const abortReport = 1 + context.rng.int(ABORT_REPORT_MAX);
  let reports = 0;
  const onProgress = () => {
    void context.step(0);
    if (isFirst && ++reports === abortReport) abort.abort();
  };
  try {
    await distributedSave(dataset, path, service, {
      ...{ chunkBytesMax: CHUNK_BYTES, onProgress, signal: abort.signal },
    });
    return true;
  } catch (error) {
    if (abort.signal.aborted) return false;
    // The first call was aborted, but the workers completed the save.
    if (!isFirst && LeatError.from(error).details?.["reason"] === IS_SAVED) return true;
    throw error;
  }
}

async function expectStream({ size, findings }: DrillContext, path: string): Promise<void> {
  const expected = Array.from({ length: size.elements }, (_, i) => `${i}`);
  const stream = new StreamChecker(expected, findings("folder"));
  let position = 0;
  for await (const x of await Dataset.load<number>(path)) {
    stream.took(position++, `${Math.floor(x)}`, "the folder's reader");
  }
  stream.ended(position, "the folder's reader");
}

/**
 * Waits until only files of the manifest are left. A worker that timed out writes until it learns
 * this, and then removes its files.
 */
async function expectNothingLeft(context: DrillContext, path: string): Promise<void> {
  await context.endFaults();
  const endMs = performance.now() + LATE_MAX_MS;
  let unlisted = await unlistedFiles(path);
  while (unlisted.length > 0 && performance.now() < endMs) {
    await new Promise((resolve) => setTimeout(resolve, LATE_CHECK_MS));
    unlisted = await unlistedFiles(path);
  }
  for (const name of unlisted) {
    context.findings("folder").add(`${name} is left over in a folder that is complete`);
  }
}

/** The files that the manifest does not list. */
async function unlistedFiles(path: string): Promise<string[]> {
  const names = (await Array.fromAsync(Deno.readDir(path))).map(({ name }) => name);
  const manifest = await readManifest(new DenoHost(), path);
  const listed = new Set([MANIFEST_NAME, ...manifest?.chunks.map(({ name }) => name) ?? []]);
  return names.filter((name) => !listed.has(name));
}
