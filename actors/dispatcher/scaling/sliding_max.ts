/** The recent maximum of a number, which rises at once and falls slowly. */

export class SlidingMax {
  readonly #forMs: number;
  /** The decreasing candidates for the maximum within the window, oldest first. */
  readonly #recent: { readonly atMs: number; readonly value: number }[] = [];

  /** @param forMs How long a number still counts after it has fallen, in ms. */
  constructor(forMs: number) {
    this.#forMs = forMs;
  }

  /** Adds the current value and returns the recent maximum. Times never decrease. */
  note(nowMs: number, value: number): number {
    const recent = this.#recent;
    while (recent.length > 0 && recent[0]!.atMs <= nowMs - this.#forMs) recent.shift();
    while (recent.length > 0 && recent.at(-1)!.value <= value) recent.pop();
    recent.push({ atMs: nowMs, value });
    return recent[0]!.value;
  }
}
