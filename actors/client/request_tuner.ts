/**
 * How many requests to keep open at one task.
 *
 * One is served while the next is on its way: that is enough where the way is short. Where the task
 * has its elements ready and the training loop waits all the same, they wait for requests: there are
 * too few on the way. Where requests wait at the task for much longer than they travel, some of them
 * bring nothing forward.
 *
 * @module
 */

/** Requests to begin with. */
export const REQUESTS_START = 2;
/** Most that are open at one task. */
export const REQUESTS_MAX = 64;
/** Answers that are looked at together. */
const PERIOD = 8;
/** Requests that wait at the task for this share of their travel are hardly waited for… */
const READY_SHARE = 0.5;
/** …and for so many times their travel, needlessly early. */
const EARLY_TIMES = 4;
/** Shorter travels are not worth a thought, in ms. */
const TRAVEL_MIN_MS = 1;

/** See the module. */
export class RequestTuner {
  #wanted = REQUESTS_START;
  #answers = 0;
  #waitedFor = 0;
  #travelMs = 0;
  #heldMs = 0;

  /** How many requests are worth while. */
  get wanted(): number {
    return this.#wanted;
  }

  /** Notes an answer: how long it was asked for, and at the task, and whether the loop waited for it. */
  came(answerMs: number, heldMs: number, isWaitedFor: boolean): void {
    this.#travelMs += Math.max(0, answerMs - heldMs);
    this.#heldMs += heldMs;
    if (isWaitedFor) this.#waitedFor++;
    if (++this.#answers < Math.max(PERIOD, this.#wanted)) return;
    const travelMs = this.#travelMs / this.#answers;
    const meanHeldMs = this.#heldMs / this.#answers;
    const loopWaits = 2 * this.#waitedFor > this.#answers;
    if (loopWaits && travelMs >= TRAVEL_MIN_MS && meanHeldMs < READY_SHARE * travelMs) {
      this.#wanted = Math.min(REQUESTS_MAX, 2 * this.#wanted);
    } else if (!loopWaits || meanHeldMs > EARLY_TIMES * travelMs) {
      this.#wanted = Math.max(REQUESTS_START, this.#wanted - 1);
    }
    this.#answers =
      this.#waitedFor =
      this.#travelMs =
      this.#heldMs =
        0;
  }
}
