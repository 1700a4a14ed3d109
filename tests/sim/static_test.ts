/**
 * Static policies under faults: whatever happens, each listed worker gives its own share and nobody
 * else's. A seed that fails is repeated by putting it into `runStatic`, or, where all its faults are
 * drawn, into `sim/vopr.ts --workload static --seed`.
 */
import { ROLES } from "../../sim/crashes.ts";
import { drawOptions } from "../../sim/swarm.ts";
import { WORKLOAD_FAULTS } from "../../sim/workload.ts";
import { runStatic } from "../../sim/workload_static.ts";
import { assert, assertEquals } from "../assert.ts";
import { expectAllKept, seeds } from "./lib/seeds.ts";

const SEEDS = 20;

Deno.test("static policies give each share by its worker through crashes of worker, dispatcher and client", async () => {
  const runs = seeds(SEEDS, (seed) => ({ seed, faults: WORKLOAD_FAULTS, crashes: ROLES }));
  const counters = await expectAllKept(runStatic, runs);
  for (const role of ROLES) assertEquals(counters.get(`${role}_crashed`), SEEDS);
});

Deno.test("static policies give each share by its worker through partitions, pauses and all other faults", async () => {
  const counters = await expectAllKept(runStatic, seeds(SEEDS, drawOptions));
  assert(counters.get("partition") > 0 && counters.get("node_paused") > 0);
});
