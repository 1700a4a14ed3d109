/**
 * Compares simulated events per second of CPU time, with all the work of actors, codec, network and
 * checkers, with bare events that do nothing.
 */
import process from "node:process";
import { LeatError } from "../../core/error.ts";
import { drawOptions } from "../../sim/workloads/swarm.ts";
import { WORKLOADS } from "../../sim/workloads/workloads.ts";
import { open as openEvents } from "../bare/events.ts";
import type { Load } from "../bare/load.ts";
import type { Bench } from "../lib/bench.ts";

/** How many seeds are run. They are repeated, because other seeds would have other events. */
const SEEDS = 32;
/** How many times all seeds run before the measurement, while code is being compiled. */
const WARM_UP_TIMES = 4;

/** The benches of this file. */
export const benches: Bench[] = [{
  name: "simulator: events of a small cluster, against bare events",
  unit: "events/s of a core",
  floor: 0.02,
  bare: openEvents,
  leat: openCluster,
}];

async function openCluster(): Promise<Load> {
  for (let run = 0; run < WARM_UP_TIMES * SEEDS; run++) await runSeed(run);
  let runs = 0;
  return {
    async window(ms) {
      const before = process.threadCpuUsage();
      let events = 0;
      let cpuMs = 0;
      do {
        events += await runSeed(runs++);
        const { user, system } = process.threadCpuUsage(before);
        cpuMs = (user + system) / 1_000;
      } while (cpuMs < ms);
      return events / cpuMs * 1_000;
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

/** Runs one of the seeds, and returns its number of events. */
async function runSeed(run: number): Promise<number> {
  const options = drawOptions(BigInt(1 + run % SEEDS));
  const { cluster, violations } = await WORKLOADS.dynamic!(options);
  if (violations.length > 0) throw new LeatError("internal", violations.join("; "));
  return cluster.scheduler.steps;
}
