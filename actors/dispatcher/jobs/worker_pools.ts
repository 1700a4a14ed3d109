/**
 * Groups jobs by the workers that may serve them (a pool), so that an autoscaler starts workers that
 * may serve the jobs that want more.
 */
import { SlidingMax } from "../scaling/sliding_max.ts";
import type { PoolScaling, WorkerPool } from "../protocol_scaling.ts";
import { mayRead } from "./targets.ts";

interface Wants {
  readonly pool: WorkerPool;
  readonly wanted: number;
}

/** The number of workers wanted per pool: rises at once, falls slowly. */
export class WorkerPools {
  readonly #downAfterMs: number;
  readonly #pools = new Map<string, { readonly pool: WorkerPool; readonly most: SlidingMax }>();

  /** @param downAfterMs How long fewer workers must suffice before fewer are wanted, in ms. */
  constructor(downAfterMs: number) {
    this.#downAfterMs = downAfterMs;
  }

  /** Records what jobs want now. Times never decrease. */
  observe(nowMs: number, jobs: readonly Wants[]): PoolScaling[] {
    const wanted = new Map<string, number>();
    for (const job of jobs) {
      // Only the trainer's own process can start workers for such a job.
      if (job.pool.targetWorkers === "local") continue;
      const key = keyOf(job.pool);
      wanted.set(key, Math.max(wanted.get(key) ?? 0, job.wanted));
      if (this.#pools.has(key)) continue;
      this.#pools.set(key, { pool: job.pool, most: new SlidingMax(this.#downAfterMs) });
    }
    return [...this.#pools].flatMap(([key, { pool, most }]) => {
      const ofLate = most.note(nowMs, wanted.get(key) ?? 0);
      if (ofLate === 0) this.#pools.delete(key);
      return ofLate === 0 ? [] : [{ ...pool, wanted: ofLate }];
    });
  }
}

/** Whether a worker may serve the jobs of a pool, for any client. */
export function isOfPool(
  { names, ...target }: WorkerPool,
  { name, tags, isPrivate = false }: {
    readonly name: string;
    readonly tags: readonly string[];
    readonly isPrivate?: boolean;
  },
): boolean {
  if (names !== undefined && !names.includes(name)) return false;
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
