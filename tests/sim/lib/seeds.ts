/** Shared by tests of workloads: runs many seeds, none of which may break a promise. */
import { Counters } from "../../../sim/engine/counters.ts";
import { formatRun } from "../../../sim/workloads/swarm.ts";
import type { RunOptions, Workload } from "../../../sim/workloads/workload.ts";

/** The options of the first `count` seeds. */
export function seeds<O>(count: number, of: (seed: bigint) => O): O[] {
  return Array.from({ length: count }, (_, i) => of(BigInt(i + 1)));
}

/** Runs them one after the other, up to the first that breaks a promise. */
export async function runUntilBroken<O extends RunOptions>(
  workload: Workload<O>,
  runs: Iterable<O>,
) {
  const counters = new Counters();
  for (const options of runs) {
    const { cluster, violations } = await workload(options);
    counters.add(cluster.counters);
    if (violations.length > 0) return { counters, broken: { options, violations } };
  }
  return { counters };
}

/** Runs them all and fails on the first that breaks a promise. */
export async function expectAllKept<O extends RunOptions>(
  workload: Workload<O>,
  runs: Iterable<O>,
): Promise<Counters> {
  const { counters, broken } = await runUntilBroken(workload, runs);
  if (broken === undefined) return counters;
  throw new Error(`${formatRun(broken.options)}\n  ${broken.violations.join("\n  ")}`);
}
