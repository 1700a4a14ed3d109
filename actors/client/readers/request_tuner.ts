/**
 * Decides how many requests to keep open at one task. With a short round trip two are enough: one
 * is served while the next is on its way. With a long round trip more are useful: as many as
 * elements arrive per round trip. Even more would only queue. So the number moves towards twice the
 * elements per round trip. It grows only if the training loop waits, and at most doubles at a time.
 */

export const REQUESTS_START = 2;
/** Limit of open requests at one task. */
export const REQUESTS_MAX = 64;
/**
 * The round trip of a small element counts as at least this long, in ms. To wake a thread or
 * process costs more than to send a small element, so each wake-up should serve several.
 */
const TRAVEL_MIN_MS = 1;
/** Because of `TRAVEL_MIN_MS`, at most this many bytes are requested, to fit the CPU's cache. */
const TRAVEL_MIN_BYTES = 2 ** 20;
/** The number changes after at least this many answers. */
const PERIOD = 8;
/** The number aims at this many requests per element of a round trip: would more elements come? */
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
   * Notes an answer. It came `answerMs` after its request, which waited `heldMs` for the element of
   * `bytes`.
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
