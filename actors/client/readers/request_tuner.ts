/**
 * Decides how many requests to keep open at one task. With a short round trip two are enough: one
 * is served while the next is on its way. With a long round trip more are useful: as many as the
 * elements that arrive during one round trip. Further requests would only queue. The number moves
 * towards twice the useful one, because only more requests can show that more elements would come.
 * It grows only if the training loop waits, and at most doubles at a time.
 */

export const REQUESTS_START = 2;
/** Limit of open requests at one task. */
export const REQUESTS_MAX = 64;
/**
 * The round trip of a small element counts as at least this long, in ms. To wake a thread or
 * process costs more than to send a small element, so each wake-up should serve several.
 */
const TRAVEL_MIN_MS = 1;
/** `TRAVEL_MIN_MS` causes requests for at most this many bytes, which fit the CPU's cache. */
const TRAVEL_MIN_BYTES = 2 ** 20;
/** The number of requests changes after at least this many answers. */
const PERIOD = 8;
/** The number of requests moves towards this many per element of a round trip. */
const HEADROOM = 2;

export class RequestTuner {
  #wanted = REQUESTS_START;
  #answers = 0;
  #waitedFor = 0;
  #sinceMs: number | undefined;
  /** The shortest round trip so far: longer ones may include queueing behind each other. */
  #travelMs = Infinity;

  /** How many requests are worth keeping open. */
  get wanted(): number {
    return this.#wanted;
  }

  /**
   * Notes an answer of `bytes`, which came `answerMs` after its request. For `heldMs` of that time
   * the request waited at the task.
   * @param isWaitedFor Whether the training loop waits for an element.
   */
  noteArrival(
    nowMs: number,
    answerMs: number,
    heldMs: number,
    isWaitedFor: boolean,
    bytes: number,
  ): void {
    this.#sinceMs ??= nowMs;
    this.#travelMs = Math.min(this.#travelMs, Math.max(0, answerMs - heldMs));
    if (isWaitedFor) this.#waitedFor++;
    const tookMs = nowMs - this.#sinceMs;
    // Within one tick of a coarse clock nothing can be measured.
    if (++this.#answers < Math.max(PERIOD, this.#wanted) || tookMs <= 0) return;
    const perMs = this.#answers / tookMs;
    const small = Math.min(perMs * TRAVEL_MIN_MS, TRAVEL_MIN_BYTES / (HEADROOM * bytes));
    const useful = Math.ceil(HEADROOM * Math.max(perMs * this.#travelMs, small));
    const most = 2 * this.#waitedFor > this.#answers ? 2 * this.#wanted : this.#wanted - 1;
    // Decrease in small steps: one period says little about the next.
    const least = this.#wanted - 1;
    const next = Math.max(least, Math.min(useful, most));
    this.#wanted = Math.max(REQUESTS_START, Math.min(REQUESTS_MAX, next));
    this.#sinceMs = nowMs;
    this.#answers = this.#waitedFor = 0;
  }
}
