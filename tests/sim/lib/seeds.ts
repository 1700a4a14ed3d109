/** Shared by tests of workloads: runs many seeds, none of which may break a promise. */
import type { Counters } from "../../../sim/engine/counters.ts";
import { formatRun, runSwarm } from "../../../sim/workloads/swarm.ts";
import type { RunOptions, Workload } from "../../../sim/workloads/workload.ts";

/** The options of the first `count` seeds. */
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
