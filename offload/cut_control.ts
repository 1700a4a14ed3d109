/**
 * Chooses the candidate again after each epoch, and after periods of a long one, by what training
 * was measured to reach. The FastFlow paper decides once. Pure: it sees throughputs and gives a
 * candidate.
 */

/** A candidate that was only estimated is tried if its estimate is so many times as high. */
const TRY_FROM = 1.1;
/** One that was measured is taken again if it was so many times as fast. */
const RETURN_FROM = 1.02;
/** If an epoch differs by more than this share from the last with its candidate, all are open again. */
const CHANGE_MIN = 0.2;
/** Epochs between tries that were undone, at most. */
const PATIENCE_MAX = 64;

/** Remembers what each candidate has reached. */
export class CutControl {
  /** Throughputs, in bytes per second. The candidate `null` prepares everything here. */
  readonly #estimates: ReadonlyMap<string | null, number>;
  readonly #measured = new Map<string | null, number>();
  #candidate: string | null;
  #before: string | null | undefined;
  #epochs = 0;
  #patience = 1;

  constructor(estimates: ReadonlyMap<string | null, number>, candidate: string | null) {
    this.#estimates = estimates;
    this.#candidate = candidate;
  }

  /** The candidate of the next epoch. */
  get candidate(): string | null {
    return this.#candidate;
  }

  /** The epoch that follows has this candidate, because it was begun with it. */
  resume(candidate: string | null): void {
    this.#candidate = candidate;
  }

  /**
   * An epoch, or a period, with the candidate has ended. True if the next one has another.
   * @param among those that it may have. Default: all.
   */
  observe(throughput: number, among?: ReadonlySet<string | null>): boolean {
    const candidate = this.#candidate;
    const last = this.#measured.get(candidate) ?? throughput;
    if (Math.abs(throughput / last - 1) > CHANGE_MIN) this.#measured.clear();
    this.#measured.set(candidate, throughput);
    this.#epochs++;
    let next = candidate;
    let gain = 1;
    for (const [other, estimate] of this.#estimates) {
      const measured = this.#measured.get(other);
      const isDue = measured !== undefined || this.#epochs >= this.#patience;
      const expected = (measured ?? estimate) / throughput;
      const from = measured === undefined ? TRY_FROM : RETURN_FROM;
      const isOpen = other !== candidate && among?.has(other) !== false;
      if (isOpen && isDue && expected > from && expected > gain) {
        [next, gain] = [other, expected];
      }
    }
    if (next === candidate) {
      this.#before = undefined;
      return false;
    }
    // A try that did not help: the next one waits longer.
    if (next === this.#before) this.#patience = Math.min(PATIENCE_MAX, 2 * this.#patience);
    [this.#before, this.#candidate, this.#epochs] = [candidate, next, 0];
    return true;
  }
}
