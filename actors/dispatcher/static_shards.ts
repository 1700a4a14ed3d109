/**
 * Static policies: each worker of the job's list has a share of every iteration of its own. Nobody
 * else ever produces it, so an iteration waits for all of them.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { Shard } from "../../data/sharding_policy.ts";
import type { Iteration } from "./entities.ts";
import type { DispatcherState } from "./state.ts";

/** Workers that a sentence names; of the others it says how many there are. */
const NAMED_MAX = 8;

/**
 * The list of workers that a dispatcher is set up with.
 *
 * @throws {LeatError} `invalid_argument` for a name that is empty or there twice.
 */
export function checkWorkerNames(names: readonly string[]): readonly string[] {
  const before = new Set<string>();
  const wrong = names.find((name) => name === "" || before.size === before.add(name).size);
  if (wrong === undefined) return names;
  throw new LeatError(
    "invalid_argument",
    `workers must be the names of the workers, each once, got "${wrong}" in ${names.join(", ")}`,
  );
}

/** The worker's place among those that share the iteration; `undefined` where it has none. */
export function shardOf(
  state: DispatcherState,
  iteration: Iteration,
  worker: string,
): Shard | undefined {
  const workers = workersOf(state, iteration);
  const index = workers?.indexOf(worker) ?? -1;
  return workers === null || index < 0 ? undefined : { index, count: workers.length };
}

/** Whether there is something in the iteration for the worker to produce. */
export function hasShareFor(
  state: DispatcherState,
  iteration: Iteration,
  worker: string,
): boolean {
  if (workersOf(state, iteration) === null) return true;
  const shard = shardOf(state, iteration, worker);
  return shard !== undefined && !iteration.shardsDone.includes(shard.index);
}

/** The workers that have not produced all of their shares. */
export function workersMissing(state: DispatcherState, iteration: Iteration): string[] {
  const workers = workersOf(state, iteration) ?? [];
  const done = new Set(iteration.shardsDone);
  return workers.filter((_, index) => !done.has(index));
}

/** Whether a fixed list of workers shares it. */
export function isShared(state: DispatcherState, iteration: Iteration): boolean {
  return workersOf(state, iteration) !== null;
}

/** Why one of those iterations gives a worker nothing, if it does not: they go on, and are shared. */
export function whyNoShard(
  state: DispatcherState,
  iterations: readonly Iteration[],
  worker: string,
): { readonly noShard?: string } {
  for (const iteration of iterations) {
    const workers = workersOf(state, iteration) ?? [];
    if (workers.includes(worker)) continue;
    const { name, parameters } = state.jobs.get(iteration.jobId)!;
    const noShard =
      `${parameters.processingMode} job ${name ?? iteration.jobId} is shared by the workers ` +
      `${named(workers)}, and this one is not among them`;
    return { noShard };
  }
  return {};
}

/** Some of the names, and how many more there are. */
export function named(workers: readonly string[]): string {
  const more = workers.length - NAMED_MAX;
  return workers.slice(0, NAMED_MAX).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

function workersOf(state: DispatcherState, { jobId }: Iteration): readonly string[] | null {
  return state.jobs.get(jobId)!.workers;
}
