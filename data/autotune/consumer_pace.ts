/** The weight of the newest pause if it is shorter than the estimate… */
const SHORTER = 0.3;
/** …and if it is longer. */
const LONGER = 0.03;
/** A longer pause counts as this many times the estimate, and 1 ms. */
const OUTLIER = 4;

/**
 * How long a consumer works between two elements. Short pauses count more than long ones. If the
 * estimate is too long, the consumer has to wait; if it is too short, this costs only calls and
 * buffers within the budgets. So a long pause, such as an evaluation, changes the estimate little.
 */
export class ConsumerPace {
  #pauseMs: number | undefined;
  #totalMs = 0;

  /** The estimate; 0 before the first pause. */
  get pauseMs(): number {
    return this.#pauseMs ?? 0;
  }

  /** Notes the total of all pauses, after `count` more of them. */
  note(totalMs: number, count: number): void {
    const newestMs = Math.max(0, totalMs - this.#totalMs) / count;
    this.#totalMs = totalMs;
    const before = this.#pauseMs ?? newestMs;
    const weight = newestMs < before ? SHORTER : LONGER;
    this.#pauseMs = before + weight * (Math.min(newestMs, OUTLIER * before + 1) - before);
  }
}
