/**
 * Measures the cost of requesting a split on this host: from a runner's thread to its worker, to
 * the dispatcher, which journals the assignment, and back. It uses a real worker, on a pipeline
 * that only requests splits.
 */
import { Dataset, DenoHost, LocalCluster } from "../../mod.ts";
import { listSplitTable } from "../../data/sharding/splits.ts";

/** Elements of the pipeline; each is a split if possible. */
const ELEMENTS = 64;
/** Splits between two readings of the clock. */
const SPLITS_AT_ONCE = 16;
/** Few, so that a stretch has many more batches than were buffered at its start. */
const BATCHES_AHEAD = 4;
const STRETCH_BATCHES = 16;
const STRETCHES = 3;
/** How often to try to remove a folder that another thread writes to. */
const REMOVALS_MAX = 100;

/** The time of a request for a split, in ms, on an otherwise idle host, without the network between hosts. */
export async function measureSplitMs(): Promise<number> {
  const once = Dataset.range(ELEMENTS);
  const [table] = await listSplitTable(once.node, new DenoHost());
  const elementsPerSplit = ELEMENTS / table!.length;
  const folder = Deno.makeTempDirSync({ prefix: "leat-plan-" });
  const remove = () => removeInUse(folder);
  // An interrupted program does not wait for the measurement.
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

/** Removes a folder into which a thread that is still stopping may just have written. */
function removeInUse(folder: string): void {
  for (let left = REMOVALS_MAX; left > 0; left--) {
    try {
      return Deno.removeSync(folder, { recursive: true });
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return;
      if (left === 1) throw error;
    }
  }
}

/**
 * The time per batch in the fastest of some stretches, since other programs may use the host; the
 * first stretch, in which code is compiled, is left out. The time of a single batch says nothing: it
 * may have arrived together with the previous one.
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
  for (let at = 0; at < STRETCHES; at++) leastMs = Math.min(leastMs, await stretchMs());
  return leastMs / STRETCH_BATCHES;
}
