/**
 * How many events of a simulated cluster are run in a second, with all that actors, codec, network and
 * checkers do in them, beside bare events that do nothing.
 *
 * @module
 */
import { LeatError } from "../core/error.ts";
import { drawOptions } from "../sim/swarm.ts";
import { WORKLOADS } from "../sim/workloads.ts";
import { open as openEvents } from "./bare/events.ts";
import type { Load } from "./bare/load.ts";
import type { Bench } from "./lib/bench.ts";

/** The seeds that are run, over and over: others would have other events. */
const SEEDS = 32;

/** The benches of this file. */
export const benches: Bench[] = [{
  name: "simulator: events of a small cluster, beside bare events",
  unit: "events/s",
  // The code is compiled while it is measured: the first rounds have a third of the last ones' rate.
  floor: 0.004,
  bare: openEvents,
  leat: openCluster,
}];

function openCluster(): Load {
  let runs = 0;
  return {
    async window(ms) {
      const began = performance.now();
      let events = 0;
      let elapsedMs = 0;
      do {
        const options = drawOptions(BigInt(1 + runs++ % SEEDS));
        const { cluster, violations } = await WORKLOADS.dynamic!(options);
        if (violations.length > 0) throw new LeatError("internal", violations.join("; "));
        events += cluster.scheduler.steps;
        elapsedMs = performance.now() - began;
      } while (elapsedMs < ms);
      return events / elapsedMs * 1_000;
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
