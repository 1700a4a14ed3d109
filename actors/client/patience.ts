/**
 * How long a task may think where a client may have fewer requests open than there are tasks.
 *
 * A request that waits at a task which has nothing is one less for those which have. Were it to wait for
 * as long as that takes, tasks would stand idle with elements that nobody asks for; were it to give up at
 * once, the cluster would be busy with empty answers. So it follows what comes: however fast tasks are,
 * there are a few empty answers for each element, and all tasks are come by several times in the time in
 * which each makes one.
 *
 * @module
 */

/** How many requests are made, about, for each element that comes. */
const REQUESTS_PER_ELEMENT = 2;
const PATIENCE_MIN_MS = 20;
const PATIENCE_MAX_MS = 5_000;
/** Elements over whose times the mean is taken, about. */
const MEAN_OF = 16;
/** What counts of a longer time without elements, in ms: all workers may have been away. */
const TIME_MAX_MS = REQUESTS_PER_ELEMENT * PATIENCE_MAX_MS;

/** See the module. */
export class Patience {
  #meanMs = 0;
  /** Since when nothing has come that was asked for. */
  #sinceMs = 0;

  /** A request is made, and no other is open: before, nobody has waited. Times are monotonic. */
  begins(nowMs: number): void {
    this.#sinceMs = nowMs;
  }

  /** An element has come. */
  came(nowMs: number): void {
    this.#meanMs += (Math.min(TIME_MAX_MS, nowMs - this.#sinceMs) - this.#meanMs) / MEAN_OF;
    this.#sinceMs = nowMs;
  }

  /**
   * For how long a request may wait, in ms.
   *
   * @param requests How many may be open at a time.
   */
  waitMs(nowMs: number, requests: number): number {
    const perElementMs = Math.max(this.#meanMs, nowMs - this.#sinceMs);
    const waitMs = requests * perElementMs / REQUESTS_PER_ELEMENT;
    return Math.round(Math.max(PATIENCE_MIN_MS, Math.min(PATIENCE_MAX_MS, waitMs)));
  }
}
