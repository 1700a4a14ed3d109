/**
 * Chooses the candidate again after each epoch, and after periods of a long one, by the measured
 * throughput of training. The FastFlow paper decides once. Pure: it takes throughputs and returns a
 * candidate.
 */

/** An unmeasured candidate is tried if its estimate is this many times the current throughput. */
const TRY_FROM = 1.1;
/** A measured candidate is chosen again if it was this many times as fast as the current one. */
const RETURN_FROM = 1.02;
/** If a candidate's throughput changes by more than this share, all measurements are forgotten. */
const CHANGE_MIN = 0.2;
/** Limit of the epochs (or periods) between tries. They double when a try is undone. */
const PATIENCE_MAX = 64;

/** Remembers what each candidate has reached. */
export class CandidateControl {
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

  /** Sets the candidate with which the next epoch begins. */
  resume(candidate: string | null): void {
    this.#candidate = candidate;
  }

  /**
   * Takes the throughput of an epoch or a period. Returns whether the next one has another candidate.
   * @param among The candidates that it may have. Default: all.
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
    // The last try did not help: the next one waits longer.
    if (next === this.#before) this.#patience = Math.min(PATIENCE_MAX, 2 * this.#patience);
    [this.#before, this.#candidate, this.#epochs] = [candidate, next, 0];
    return true;
  }
}
