/**
 * How news reaches the clients of a job.
 *
 * @module
 */
import { Dataset, type LocalCluster } from "../../mod.ts";
import { assert } from "../assert.ts";
import { testOnEach } from "./carriers.ts";

/** Longer than any test may take: who waits for its next regular heartbeat reads all there is before. */
const NEVER_MS = 3_600_000;
const BATCHES_MAX = 200_000;

testOnEach(
  "a client reads a worker that is added mid-job without waiting for its refresh",
  async (start) => {
    await using cluster = await start({ workers: 1, clientRefreshMs: NEVER_MS });
    const endless = Dataset.range(100).repeat().batch(10);
    const batches = endless.distribute({ service: cluster, processingMode: "OFF" });
    let read = 0;
    for await (const _ of batches) {
      if (read++ === 0) await cluster.addWorker();
      if (read % 100 === 0 && await tasksRead(cluster) === 2) break;
      assert(read < BATCHES_MAX, `one task was read after ${read} batches`);
    }
  },
);

/** How many tasks have given their elements to clients. */
async function tasksRead(cluster: LocalCluster): Promise<number> {
  return (await cluster.sources()).filter(({ served }) => served > 0).length;
}
