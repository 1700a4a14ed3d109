/**
 * What asking for a split costs on this host: from a runner's thread to its worker, to the dispatcher,
 * which journals what it hands out, and back. It is measured with a real worker, on a pipeline that does
 * nothing but ask.
 *
 * @module
 */
import { Dataset, DenoHost, LocalCluster } from "../../mod.ts";
import { listSplitTable } from "../../data/splits.ts";
import { percentile } from "./percentile.ts";

/** Elements of the pipeline, each of which is a split where that may be. */
const ELEMENTS = 64;
/** Splits between two looks at the clock. */
const SPLITS_AT_ONCE = 16;
/** Batches that are left out: code is being compiled. */
const WARM_UP = 8;
const BATCHES = 48;
const FAST = 0.1;

/** In ms, as the fastest tenth of many: others may use the host. The network between hosts comes to it. */
export async function measureSplitMs(): Promise<number> {
  const once = Dataset.range(ELEMENTS);
  const [table] = await listSplitTable(once.node, new DenoHost());
  const elementsPerSplit = ELEMENTS / table!.length;
  const folder = await Deno.makeTempDir({ prefix: "leat-plan-" });
  try {
    await using service = await LocalCluster.start({ workers: 1, journal: folder });
    const batches = once.repeat().batch(elementsPerSplit * SPLITS_AT_ONCE)
      .distribute({ service, processingMode: "DYNAMIC" });
    await using iterator = batches.iterator();
    for (let batch = 0; batch < WARM_UP; batch++) await iterator.next();
    const timesMs: number[] = [];
    for (let batch = 0; batch < BATCHES; batch++) {
      const startMs = performance.now();
      await iterator.next();
      timesMs.push(performance.now() - startMs);
    }
    return percentile(timesMs, FAST) / SPLITS_AT_ONCE;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
