/** Executes a run of a campaign. Runs are sent to a thread, and results from it. */
import process from "node:process";
import { LeatError } from "../../core/error.ts";
import { runMutant } from "../mutants/mutant.ts";
import { MUTANTS } from "../mutants/mutants.ts";
import type { RunOptions, RunOutcome } from "../workloads/workload.ts";
import { endingEarly } from "./early_end.ts";
import { WORKLOADS } from "../workloads/workloads.ts";

/** The first message of a thread. */
export const READY = "ready";

export interface SeedRun {
  /** Its index in the campaign, from 0. */
  readonly index: number;
  readonly workload: string;
  readonly options: RunOptions;
  /** The name of a mutant. Default: none. */
  readonly mutant?: string;
  /** Whether it ends at the first broken promise. See `early_end.ts`. Default false. */
  readonly endsEarly?: boolean;
}

/** The result of a run. */
export interface SeedOutcome {
  readonly run: SeedRun;
  /** Broken promises. See {@linkcode RunOutcome}. */
  readonly violations: readonly string[];
  /** The checkers that found them. */
  readonly checkers: readonly string[];
  /** The hash of the trace; empty if the run did not end. */
  readonly hash: string;
  readonly events: number;
  /** Processor time of the thread that ran it, in ms. */
  readonly cpuMs: number;
  /** Number of events by name. */
  readonly counts: readonly (readonly [name: string, times: number])[];
}

/** Executes a run in this thread. An error counts as a broken promise, so that a campaign continues. */
export async function runSeed(run: SeedRun): Promise<SeedOutcome> {
  const before = process.threadCpuUsage();
  try {
    const { violations, checkers, hash, cluster } = await outcomeOf(run);
    return {
      run,
      violations,
      checkers,
      hash,
      events: cluster.scheduler.steps,
      cpuMs: cpuMsSince(before),
      counts: cluster.counters.entries(),
    };
  } catch (error) {
    return brokenOff(run, LeatError.from(error).message, cpuMsSince(before));
  }
}

/** Executes a run. `readable` keeps the timeline of its messages. */
export async function outcomeOf(
  { workload, mutant, endsEarly = false, options }: SeedRun,
  { readable = false }: { readonly readable?: boolean } = {},
): Promise<RunOutcome> {
  using _ = endsEarly ? endingEarly() : undefined;
  const all = { ...options, readable };
  if (mutant === undefined) return await WORKLOADS[workload]!(all);
  return await runMutant(MUTANTS.get(mutant)!, workload, all);
}

/** Returns the result of a run that did not end. */
export function brokenOff(run: SeedRun, why: string, cpuMs = 0): SeedOutcome {
  return {
    run,
    violations: [`run: ${why}`],
    checkers: ["run"],
    hash: "",
    events: 0,
    cpuMs,
    counts: [],
  };
}

function cpuMsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}
