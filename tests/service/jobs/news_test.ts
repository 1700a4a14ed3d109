/** How news reaches the clients of a job. */
import { Dataset, type LocalCluster } from "../../../mod.ts";
import { assertEquals } from "../../assert.ts";
import { until } from "../../lib/until.ts";
import { testOnEach } from "../lib/carriers.ts";

/**
 * Longer than any test may take: a client that waits for its next heartbeat has read everything
 * before.
 */
const NEVER_MS = 3_600_000;

testOnEach(
  "a client reads a worker that is added mid-job without waiting for its refresh",
  async (start) => {
    await using cluster = await start({ workers: 1, clientRefreshMs: NEVER_MS });
    const endless = Dataset.range(100).repeat().batch(10);
    const batches = endless.distribute({ service: cluster, processingMode: "OFF" });
    await using iterator = batches.iterator();
    await iterator.next();
    await cluster.addWorker();
    await until(async () => {
      assertEquals((await iterator.next()).done, false);
      return await tasksRead(cluster) === 2;
    }, 0);
  },
);

/** How many tasks have given their elements to clients. */
async function tasksRead(cluster: LocalCluster): Promise<number> {
  return (await cluster.sources()).filter(({ served }) => served > 0).length;
}
