/**
 * How many requests to keep open at one task.
 *
 * One is served while the next is on its way: that is enough where the way is short. Over a long way
 * it takes as many as elements come in the time of a request's travel there and back; more only wait
 * in line. So the number follows what came lately in the time of the shortest travel, twice that, as
 * long as the training loop waits: where requests were too few it doubles, and where the way or the
 * task is at its limit it stays.
 *
 * @module
 */

/** Requests to begin with. */
export const REQUESTS_START = 2;
/** Most that are open at one task. */
export const REQUESTS_MAX = 64;
/** Answers that are looked at together, at least. */
const PERIOD = 8;
/** How many times as many as came in the time of a travel: room to find out that more would come. */
const HEADROOM = 2;

/** See the module. */
export class RequestTuner {
  #wanted = REQUESTS_START;
  #answers = 0;
  #waitedFor = 0;
  #sinceMs: number | undefined;
  /** The shortest so far: longer ones may have waited in line, for each other. */
  #travelMs = Infinity;

  /** How many requests are worth while. */
  get wanted(): number {
    return this.#wanted;
  }

  /**
   * Notes an answer.
   *
   * @param answerMs How long it was asked for.
   * @param heldMs How much of that it was not made yet.
   * @param isWaitedFor Whether the training loop waits.
   */
  came(nowMs: number, answerMs: number, heldMs: number, isWaitedFor: boolean): void {
    this.#sinceMs ??= nowMs;
    this.#travelMs = Math.min(this.#travelMs, Math.max(0, answerMs - heldMs));
    if (isWaitedFor) this.#waitedFor++;
    const tookMs = nowMs - this.#sinceMs;
    // Within one tick of a coarse clock nothing is measured.
    if (++this.#answers < Math.max(PERIOD, this.#wanted) || tookMs <= 0) return;
    const perMs = this.#answers / tookMs;
    const useful = Math.ceil(HEADROOM * perMs * this.#travelMs);
    const most = 2 * this.#waitedFor > this.#answers ? 2 * this.#wanted : this.#wanted - 1;
    // Down in small steps: what comes at once says little of what comes after.
    const least = this.#wanted - 1;
    const next = Math.max(least, Math.min(useful, most));
    this.#wanted = Math.max(REQUESTS_START, Math.min(REQUESTS_MAX, next));
    this.#sinceMs = nowMs;
    this.#answers = this.#waitedFor = 0;
  }
}
