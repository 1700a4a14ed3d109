/**
 * How long something is in the way.
 *
 * @module
 */

/** A count of time that only grows. */
export class BlockedMeter {
  readonly #nowMs: () => number;
  #sinceMs: number | undefined;
  #ms = 0;

  /** @param nowMs Monotonic time. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** From now on something is in the way, or nothing. */
  note(isBlocked: boolean): void {
    if (isBlocked === (this.#sinceMs !== undefined)) return;
    this.#ms = this.ms;
    this.#sinceMs = isBlocked ? this.#nowMs() : undefined;
  }

  /** Up to now. */
  get ms(): number {
    return this.#ms + (this.#sinceMs === undefined ? 0 : this.#nowMs() - this.#sinceMs);
  }
}
