/** The recent maximum of a number, which rises at once and falls slowly. */

export class SlidingMax {
  readonly #windowMs: number;
  /** The decreasing candidates for the maximum within the window, oldest first. */
  readonly #recent: { readonly atMs: number; readonly value: number }[] = [];

  /** @param windowMs How long a value counts after it was added, in ms. */
  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** Adds the current value and returns the recent maximum. Times never decrease. */
  note(nowMs: number, value: number): number {
    const recent = this.#recent;
    while (recent.length > 0 && recent[0]!.atMs <= nowMs - this.#windowMs) recent.shift();
    while (recent.length > 0 && recent.at(-1)!.value <= value) recent.pop();
    recent.push({ atMs: nowMs, value });
    return recent[0]!.value;
  }
}
