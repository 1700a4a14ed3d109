/**
 * Fault points: places in production code that ask the world whether something rare shall happen now.
 *
 * @module
 */
import type { Counters } from "./counters.ts";
import type { SimRandom } from "./random.ts";

/** Every point there is in production code. */
export const FAULT_POINTS = [
  "asks.repeat_at_once",
  "cache.later_at_once",
  "client.miss_news",
  "dispatcher.compact_early",
  "fetcher.acknowledge_late",
  "fetcher.ask_again_at_once",
  "first_come.buffer_full",
  "held_split.nothing_ahead",
  "ordered_task.hold_one",
  "reads.skip_at_once",
  "system.one_turn",
  "task.later_at_once",
  "task.nothing_ahead",
  "task_splits.ask_twice",
  "worker.miss_news",
  "worker.skip_heartbeat",
] as const;

/** What counts how often a point has fired. */
export function counterOf(point: string): string {
  return `point ${point}`;
}

/** Of a point being enabled for a run. */
const ENABLED_PROBABILITY = 0.5;

/**
 * Decides at its first evaluation whether a point is enabled for the whole run; an enabled one fires
 * with a small probability each time. So in some runs a rare thing is common, and in others it never
 * happens.
 */
export class FaultPoints {
  readonly #random: SimRandom;
  readonly #counters: Counters;
  readonly #points = new Map<string, { readonly enabled: boolean; readonly luck: SimRandom }>();
  #probability: number;

  constructor(random: SimRandom, counters: Counters, probability: number) {
    this.#random = random;
    this.#counters = counters;
    this.#probability = probability;
  }

  fires(point: string): boolean {
    if (this.#probability === 0) return false;
    let known = this.#points.get(point);
    if (known === undefined) {
      const luck = this.#random.fork(point);
      known = { enabled: luck.chance(ENABLED_PROBABILITY), luck };
      this.#points.set(point, known);
    }
    const fires = known.enabled && known.luck.chance(this.#probability);
    if (fires) this.#counters.tally(counterOf(point));
    return fires;
  }

  /** No point fires any more. */
  heal(): void {
    this.#probability = 0;
  }
}
