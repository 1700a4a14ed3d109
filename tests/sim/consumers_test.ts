/**
 * Consumers of one DETERMINISTIC stream on a cluster whose workers come and go: each is given its part
 * of the canonical stream. A seed that fails is repeated by putting it into `runConsumers`, or, where
 * all its faults are drawn, into `sim/vopr.ts --workload consumers --seed`.
 */
import { NO_FAULTS } from "../../sim/options.ts";
import { drawOptions } from "../../sim/swarm.ts";
import { runConsumers } from "../../sim/workload_consumers.ts";
import { assert } from "../assert.ts";
import { expectAllKept, seeds } from "./lib/seeds.ts";

const CALM_SEEDS = 8;
const SEEDS = 6;

Deno.test("consumers have their parts of the canonical stream while workers come and go", async () => {
  const counters = await expectAllKept(
    runConsumers,
    seeds(CALM_SEEDS, (seed) => ({ seed, faults: NO_FAULTS })),
  );
  assert(counters.get("worker_came") > 0 && counters.get("worker_left") > 0);
});

Deno.test("consumers are restored on clusters of other sizes and on other nodes, through all faults", async () => {
  const counters = await expectAllKept(runConsumers, seeds(SEEDS, drawOptions));
  assert(counters.get("consumer_moved") > 0 && counters.get("worker_came") > 0);
});
