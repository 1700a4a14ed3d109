/**
 * Many seeds of the small cluster, each with faults of its own.
 *
 * @module
 */
import { Counters } from "./counters.ts";
import { drawFaults, formatOptions } from "./options.ts";
import { SimRandom } from "./random.ts";
import { type DynamicOptions, type DynamicOutcome, ROLES, runDynamic } from "./workload_dynamic.ts";

/** A seed that has broken a promise. */
export interface FailedSeed {
  readonly options: DynamicOptions;
  readonly violations: readonly string[];
}

/** What came of many seeds. */
export interface SwarmOutcome {
  readonly counters: Counters;
  readonly failed: readonly FailedSeed[];
  /** Events in all. */
  readonly events: number;
}

/** The faults of a seed, all drawn from it: on the network, on disks, and who crashes. */
export function drawOptions(seed: bigint): DynamicOptions {
  const random = new SimRandom(seed).fork("options");
  const crashes = ROLES.filter(() => random.chance(0.5));
  return { seed, crashes, faults: drawFaults(random) };
}

/** One line: everything about a run that its seed does not say by itself. */
export function formatRun({ seed, crashes = [], faults }: DynamicOptions): string {
  return `SEED=${seed} crashes=${crashes.join(",") || "none"} ${formatOptions(faults)}`;
}

/**
 * Runs seeds one after the other.
 *
 * @param onSeed Called after each, to show progress; true ends the batch.
 */
export async function runSwarm(
  runs: Iterable<DynamicOptions>,
  onSeed: (options: DynamicOptions, outcome: DynamicOutcome) => boolean | void = () => {},
): Promise<SwarmOutcome> {
  const counters = new Counters();
  const failed: FailedSeed[] = [];
  let events = 0;
  for (const options of runs) {
    const outcome = await runDynamic(options);
    counters.add(outcome.cluster.counters);
    events += outcome.cluster.scheduler.steps;
    if (outcome.violations.length > 0) failed.push({ options, violations: outcome.violations });
    if (onSeed(options, outcome) === true) break;
  }
  return { counters, failed, events };
}
