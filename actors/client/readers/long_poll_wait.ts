/**
 * How long a request may wait at a task, where fewer requests may be open than there are tasks.
 *
 * A request that waits at a task without elements is missing at tasks that have some. If requests
 * waited until there is an element, tasks with elements would idle; if they gave up at once, the
 * cluster would be busy with empty answers. So the wait follows the rate of elements: at any speed
 * there are a few empty answers per element, and every task is asked several times while each makes
 * one element.
 */

/** Requests made per element that comes, about. */
const REQUESTS_PER_ELEMENT = 2;
const WAIT_MIN_MS = 20;
const WAIT_MAX_MS = 5_000;
/** Elements over which the mean time is taken, about. */
const MEAN_OF = 16;
/** The most that one time without elements counts, in ms: all workers may have been away. */
const TIME_MAX_MS = REQUESTS_PER_ELEMENT * WAIT_MAX_MS;

export class LongPollWait {
  #meanMs = 0;
  /** The last time an element came. */
  #sinceMs = 0;

  /** A request is made while no other is open: nothing has waited before. Times are monotonic. */
  begins(nowMs: number): void {
    this.#sinceMs = nowMs;
  }

  /** An element has come. */
  came(nowMs: number): void {
    this.#meanMs += (Math.min(TIME_MAX_MS, nowMs - this.#sinceMs) - this.#meanMs) / MEAN_OF;
    this.#sinceMs = nowMs;
  }

  /**
   * How long a request may wait, in ms.
   * @param requests How many may be open at a time.
   */
  waitMs(nowMs: number, requests: number): number {
    const perElementMs = Math.max(this.#meanMs, nowMs - this.#sinceMs);
    const waitMs = requests * perElementMs / REQUESTS_PER_ELEMENT;
    return Math.round(Math.max(WAIT_MIN_MS, Math.min(WAIT_MAX_MS, waitMs)));
  }
}
