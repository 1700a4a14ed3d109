/** The counters of the conditional operator (FastFlow paper, section 5.3). */

/** Tolerance for rounding: with a ratio of 0.1, inexact in binary, one element in ten is remote. */
const TOLERANCE = 1e-9;

/**
 * Chooses the side of each element. The number of remote elements always differs by less than one
 * from `ratio` times the number of all.
 */
export class Counters {
  readonly ratio: number;
  #local = 0;
  #remote = 0;

  /** @param ratio the share of remote elements, from 0 to 1. */
  constructor(ratio: number) {
    this.ratio = ratio;
  }

  /** The side of the next element. */
  get next(): "local" | "remote" {
    const count = this.#local + this.#remote + 1;
    return this.#remote + 1 <= this.ratio * count + TOLERANCE ? "remote" : "local";
  }

  count(side: "local" | "remote"): void {
    if (side === "local") this.#local++;
    else this.#remote++;
  }
}

/** Divides a list between two sides, in order. The ratio holds for every prefix of the list. */
export function divide<T>(
  items: readonly T[],
  ratio: number,
): { readonly local: T[]; readonly remote: T[] } {
  const counters = new Counters(ratio);
  const parts: { readonly local: T[]; readonly remote: T[] } = { local: [], remote: [] };
  for (const item of items) {
    const side = counters.next;
    counters.count(side);
    parts[side].push(item);
  }
  return parts;
}
