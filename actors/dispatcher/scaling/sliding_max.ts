/**
 * The most that a number was of late, so that what follows it rises at once and falls slowly.
 *
 * @module
 */

/** See the module. */
export class SlidingMax {
  readonly #forMs: number;
  /** What was within the time, oldest first, falling. */
  readonly #recent: { readonly atMs: number; readonly value: number }[] = [];

  /** @param forMs How long a number counts after it has fallen, in ms. */
  constructor(forMs: number) {
    this.#forMs = forMs;
  }

  /** Notes what it is now, and answers the most of late. Times never go back. */
  note(nowMs: number, value: number): number {
    const recent = this.#recent;
    while (recent.length > 0 && recent[0]!.atMs <= nowMs - this.#forMs) recent.shift();
    while (recent.length > 0 && recent.at(-1)!.value <= value) recent.pop();
    recent.push({ atMs: nowMs, value });
    return recent[0]!.value;
  }
}
