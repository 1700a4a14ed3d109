/**
 * Measures what requesting a split costs on this host. A request goes from a runner's thread to its
 * worker and on to the dispatcher, which journals the assignment, and back. The worker is real, and
 * its pipeline only requests splits.
 */
import { Dataset, DenoHost, LocalCluster } from "../../mod.ts";
import { listSplitTable } from "../../data/sharding/splits.ts";
import { makeTemporaryFolder, removeInUse } from "../lib/folders.ts";

/** Elements of the pipeline. Each is a split if possible. */
const ELEMENTS = 64;
/** Splits between two readings of the clock. */
const SPLITS_AT_ONCE = 16;
/** Small, so that few batches of a stretch were already buffered at its start. */
const BATCHES_AHEAD = 4;
const STRETCH_BATCHES = 16;
const STRETCHES = 3;

/** Measures the time of a request for a split, in ms, without a network and on an otherwise idle host. */
export async function measureSplitMs(): Promise<number> {
  const once = Dataset.range(ELEMENTS);
  const [table] = await listSplitTable(once.node, new DenoHost());
  const elementsPerSplit = ELEMENTS / table!.length;
  const folder = makeTemporaryFolder("leat-plan-");
  const remove = () => removeInUse(folder);
  // An interrupted program exits without waiting for the measurement.
  addEventListener("unload", remove);
  try {
    await using service = await LocalCluster.start({ workers: 1, journal: folder });
    const batches = once.repeat().batch(elementsPerSplit * SPLITS_AT_ONCE)
      .distribute({ service, processingMode: "DYNAMIC", maxOutstandingRequests: BATCHES_AHEAD });
    await using iterator = batches.iterator();
    const batchMs = await fastestMs(() => iterator.next(), () => performance.now());
    return batchMs / SPLITS_AT_ONCE;
  } finally {
    removeEventListener("unload", remove);
    remove();
  }
}

/**
 * Returns the time per batch in the fastest of several stretches, because other programs may slow the
 * others down. The first stretch does not count, because code is compiled in it. Single batches are
 * not timed: one may have arrived together with the previous one.
 */
export async function fastestMs(
  next: () => Promise<unknown>,
  nowMs: () => number,
): Promise<number> {
  const stretchMs = async () => {
    const startMs = nowMs();
    for (let batch = 0; batch < STRETCH_BATCHES; batch++) await next();
    return nowMs() - startMs;
  };
  await stretchMs();
  let leastMs = Infinity;
  for (let i = 0; i < STRETCHES; i++) leastMs = Math.min(leastMs, await stretchMs());
  return leastMs / STRETCH_BATCHES;
}
