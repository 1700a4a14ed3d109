/** Whether inexact values have changed: compares the mean of the last ones with that of earlier ones. */

/** How many values count as the last ones. There must be as many earlier ones. */
const RECENT = 8;
/** The means must differ by this many standard errors. */
const ERRORS_MIN = 4;

/** Inexact values of a quantity that keeps its level or changes it. */
export class Level {
  #recent: readonly number[] = [];
  readonly #earlier = new Mean();

  add(value: number): void {
    this.#recent = [...this.#recent, value];
    if (this.#recent.length <= RECENT) return;
    const [oldest, ...others] = this.#recent;
    this.#earlier.add(oldest!);
    this.#recent = others;
  }

  /** Whether the last values differ from earlier ones, on average by more than `least`. */
  hasChanged(least: number): boolean {
    if (this.#earlier.count < RECENT) return false;
    const recent = new Mean();
    for (const value of this.#recent) recent.add(value);
    const error = Math.sqrt(recent.squaredError + this.#earlier.squaredError);
    const difference = Math.abs(recent.mean - this.#earlier.mean);
    return difference > Math.max(least, ERRORS_MIN * error);
  }
}

/** A mean, and its standard error. */
class Mean {
  count = 0;
  mean = 0;
  /** The sum of squares of the differences from the mean. */
  #squares = 0;

  add(value: number): void {
    this.count++;
    const difference = value - this.mean;
    this.mean += difference / this.count;
    this.#squares += difference * (value - this.mean);
  }

  get squaredError(): number {
    return this.#squares / (this.count - 1) / this.count;
  }
}
