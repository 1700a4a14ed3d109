/** The weight of the newest pause in the mean. */
const NEWEST = 0.1;
/** A longer pause counts as one of this many means, and 1 ms. */
const OUTLIER = 4;

/**
 * How long a consumer works between two elements: a moving mean. Single long pauses, as for an
 * evaluation, hardly count, because the elements in between are wanted as fast as before.
 */
export class ConsumerPace {
  #meanMs: number | undefined;
  #totalMs = 0;

  /** The mean; 0 before the first pause. */
  get meanMs(): number {
    return this.#meanMs ?? 0;
  }

  /** Notes the total of all pauses, after `count` more of them. */
  note(totalMs: number, count: number): void {
    const pauseMs = Math.max(0, totalMs - this.#totalMs) / count;
    this.#totalMs = totalMs;
    const mean = this.#meanMs ?? pauseMs;
    this.#meanMs = mean + NEWEST * (Math.min(pauseMs, OUTLIER * mean + 1) - mean);
  }
}
