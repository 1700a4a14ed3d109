/**
 * What tests of workloads have in common: many seeds, of which none breaks a promise.
 *
 * @module
 */
import type { Counters } from "../../../sim/counters.ts";
import { formatRun, runSwarm } from "../../../sim/swarm.ts";
import type { RunOptions, Workload } from "../../../sim/workload.ts";

/** The runs of so many seeds, from the first on. */
export function seeds<O>(count: number, of: (seed: bigint) => O): O[] {
  return Array.from({ length: count }, (_, i) => of(BigInt(i + 1)));
}

/** Runs them all and fails on the first that breaks a promise. */
export async function expectAllKept<O extends RunOptions>(
  workload: Workload<O>,
  runs: Iterable<O>,
): Promise<Counters> {
  const { counters, failed } = await runSwarm(
    workload,
    runs,
    (_, { violations }) => violations.length > 0,
  );
  for (const { options, violations } of failed) {
    throw new Error(`${formatRun(options)}\n  ${violations.join("\n  ")}`);
  }
  return counters;
}
