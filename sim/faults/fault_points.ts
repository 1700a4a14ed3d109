/** Fault points, at which production code asks the world whether a rare event happens now. */
import type { Counters } from "../engine/counters.ts";
import type { SimRandom } from "../engine/random.ts";

/** All fault points of production code. */
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

/** Returns the name of the counter of a point's firings. */
export function counterOf(point: string): string {
  return `point ${point}`;
}

/** Probability that a point is enabled for a run. */
const ENABLED_PROBABILITY = 0.5;

/**
 * Decides when a point fires. Its first evaluation decides whether it is enabled for the whole run. An
 * enabled point fires with a small probability each time. So a rare event is common in some runs and
 * absent in others.
 */
export class FaultPoints {
  readonly #random: SimRandom;
  readonly #counters: Counters;
  readonly #points = new Map<string, { readonly enabled: boolean; readonly rng: SimRandom }>();
  #probability: number;

  constructor(random: SimRandom, counters: Counters, probability: number) {
    this.#random = random;
    this.#counters = counters;
    this.#probability = probability;
  }

  fires(point: string): boolean {
    if (this.#probability === 0) return false;
    let state = this.#points.get(point);
    if (state === undefined) {
      const rng = this.#random.fork(point);
      state = { enabled: rng.chance(ENABLED_PROBABILITY), rng };
      this.#points.set(point, state);
    }
    const fires = state.enabled && state.rng.chance(this.#probability);
    if (fires) this.#counters.tally(counterOf(point));
    return fires;
  }

  /** Disables all points. */
  heal(): void {
    this.#probability = 0;
  }
}
