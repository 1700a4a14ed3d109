/** Measures how long something is blocked. */

/** The total time blocked, in ms. It never decreases. */
export class BlockedMeter {
  readonly #nowMs: () => number;
  #sinceMs: number | undefined;
  #ms = 0;

  /** @param nowMs Monotonic time. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  note(isBlocked: boolean): void {
    if (isBlocked === (this.#sinceMs !== undefined)) return;
    this.#ms = this.ms;
    this.#sinceMs = isBlocked ? this.#nowMs() : undefined;
  }

  /** Milliseconds blocked up to now. */
  get ms(): number {
    return this.#ms + (this.#sinceMs === undefined ? 0 : this.#nowMs() - this.#sinceMs);
  }
}
