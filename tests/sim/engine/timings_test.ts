/** The timings of a run: the workload's own, or those of production. */
import { SimCluster } from "../../../sim/engine/cluster.ts";
import { NO_FAULTS } from "../../../sim/faults/options.ts";
import { drawTimings } from "../../../sim/engine/timings.ts";
import { assert, assertEquals } from "../../assert.ts";

Deno.test("drawTimings gives most seeds the quick timings, and some those of production", () => {
  const quick = { worker: { heartbeatMs: 300 }, client: { refreshMs: 200 } };
  let productions = 0;
  for (let seed = 1n; seed <= 100n; seed++) {
    const cluster = new SimCluster({ seed, faults: NO_FAULTS });
    const { dispatcher, worker, client } = drawTimings(cluster, quick);
    const isProduction = cluster.counters.get("timings_of_production") === 1;
    if (isProduction) productions++;
    assertEquals(dispatcher, {});
    assertEquals(worker, isProduction ? {} : quick.worker);
    assertEquals(client.refreshMs, isProduction ? undefined : 200);
    assert(client.firstAnswerTimeoutMs! > 20_000, "a client gives up while there is trouble");
  }
  assert(productions > 10 && productions < 50, `${productions} of 100`);
});
