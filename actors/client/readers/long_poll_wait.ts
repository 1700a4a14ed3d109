/**
 * How long a request may wait at a task, if there are more tasks than a client may have open requests.
 * If requests waited until there is an element, tasks with elements would idle. If they did not wait,
 * empty answers would keep the cluster busy. So the wait follows the rate of elements: there are a few
 * empty answers per element, and each task is asked several times while it produces one.
 */

/** About how many requests are made per element that arrives. */
const REQUESTS_PER_ELEMENT = 2;
const WAIT_MIN_MS = 20;
const WAIT_MAX_MS = 5_000;
/** About how many elements the mean time covers. */
const MEAN_OF = 16;
/** A longer time without elements counts as this long, in ms: all workers may have been away. */
const TIME_MAX_MS = REQUESTS_PER_ELEMENT * WAIT_MAX_MS;

export class LongPollWait {
  #meanMs = 0;
  /** The last time an element came. */
  #sinceMs = 0;

  /** Call this when a request is made while no other is open. Times are monotonic. */
  noteRequest(nowMs: number): void {
    this.#sinceMs = nowMs;
  }

  noteArrival(nowMs: number): void {
    this.#meanMs += (Math.min(TIME_MAX_MS, nowMs - this.#sinceMs) - this.#meanMs) / MEAN_OF;
    this.#sinceMs = nowMs;
  }

  /** How long a request may wait, in ms, if up to `requests` of them may be open. */
  waitMs(nowMs: number, requests: number): number {
    const perElementMs = Math.max(this.#meanMs, nowMs - this.#sinceMs);
    const waitMs = requests * perElementMs / REQUESTS_PER_ELEMENT;
    return Math.round(Math.max(WAIT_MIN_MS, Math.min(WAIT_MAX_MS, waitMs)));
  }
}
