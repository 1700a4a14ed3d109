/**
 * Groups jobs by the workers that may serve them, so that an autoscaler can start the right kind of
 * workers. A pool is a description of such workers.
 */
import { SlidingMax } from "../scaling/sliding_max.ts";
import type { PoolScaling, WorkerPool } from "../protocol_scaling.ts";
import { mayRead } from "./targets.ts";

interface JobWants {
  readonly pool: WorkerPool;
  readonly wanted: number;
}

/** The number of workers wanted per pool, which rises at once and falls slowly. */
export class WorkerPools {
  readonly #downAfterMs: number;
  readonly #pools = new Map<string, { readonly pool: WorkerPool; readonly max: SlidingMax }>();

  /** @param downAfterMs Fewer workers are wanted once fewer have sufficed for this time, in ms. */
  constructor(downAfterMs: number) {
    this.#downAfterMs = downAfterMs;
  }

  /** Takes what jobs want now, and returns what each pool wants. `nowMs` must not decrease. */
  observe(nowMs: number, jobs: readonly JobWants[]): PoolScaling[] {
    const wanted = new Map<string, number>();
    for (const job of jobs) {
      const key = keyOf(job.pool);
      wanted.set(key, Math.max(wanted.get(key) ?? 0, job.wanted));
      if (this.#pools.has(key)) continue;
      this.#pools.set(key, { pool: job.pool, max: new SlidingMax(this.#downAfterMs) });
    }
    return [...this.#pools].flatMap(([key, { pool, max }]) => {
      const recentMax = max.note(nowMs, wanted.get(key) ?? 0);
      if (recentMax === 0) this.#pools.delete(key);
      return recentMax === 0 ? [] : [{ ...pool, wanted: recentMax }];
    });
  }
}

/** Whether a worker may serve the jobs of a pool, for clients of every process. */
export function isOfPool(
  { names: workerNames, ...target }: WorkerPool,
  { name, tags, isPrivate = false }: {
    readonly name: string;
    readonly tags: readonly string[];
    readonly isPrivate?: boolean;
  },
): boolean {
  if (workerNames !== undefined && !workerNames.includes(name)) return false;
  return mayRead(target, null, { tags, process: null, isPrivate });
}

function keyOf({ targetWorkers, targetTags = [], names, numConsumers }: WorkerPool): string {
  const parts = [
    targetWorkers ?? null,
    [...targetTags].sort(),
    names ?? null,
    numConsumers ?? null,
  ];
  return JSON.stringify(parts);
}
