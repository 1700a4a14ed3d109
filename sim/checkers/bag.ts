/** Checks how often each value is delivered: within its bounds. */
import type { Findings } from "./checker.ts";

/** Watches the deliveries to all training loops together. */
export class BagChecker {
  readonly #most: ReadonlyMap<number, number>;
  readonly #timesMax: () => number;
  readonly #findings: Findings;
  readonly #taken = new Map<number, number>();
  #delivered = 0;

  /**
   * @param most How often each value occurs in one complete run, at most.
   * @param timesMax Upper bound on the number of complete runs so far.
   */
  constructor(most: ReadonlyMap<number, number>, timesMax: () => number, findings: Findings) {
    this.#most = most;
    this.#timesMax = timesMax;
    this.#findings = findings;
  }

  get delivered(): number {
    return this.#delivered;
  }

  took(value: number, consumer: string): void {
    this.#delivered++;
    const times = (this.#taken.get(value) ?? 0) + 1;
    this.#taken.set(value, times);
    const most = (this.#most.get(value) ?? 0) * this.#timesMax();
    if (times <= most) return;
    this.#findings.add(`${consumer} took ${value} for the ${times}th time, of ${most}`);
  }

  /** At the end: every value must have come as often as in `times` complete runs. */
  expectAll(bag: ReadonlyMap<number, number>, times: number): void {
    const wrong = [...bag].filter(([value, count]) =>
      (this.#taken.get(value) ?? 0) !== count * times
    );
    if (wrong.length === 0) return;
    const text = wrong.slice(0, 10).map(([value, count]) =>
      `${value} (${this.#taken.get(value) ?? 0} of ${count * times})`
    );
    this.#findings.add(`${wrong.length} values came too seldom or too often: ${text.join(", ")}`);
  }
}
