/** Checks that no value is delivered too often or too seldom. */
import type { Findings } from "./checker.ts";

/** Watches the deliveries to all training loops together. */
export class BagChecker {
  readonly #bag: ReadonlyMap<number, number>;
  readonly #timesMax: () => number;
  readonly #findings: Findings;
  readonly #taken = new Map<number, number>();
  #delivered = 0;

  /**
   * @param bag Maximum number of occurrences of each value in one complete run.
   * @param timesMax Upper bound on the number of complete runs so far.
   */
  constructor(bag: ReadonlyMap<number, number>, timesMax: () => number, findings: Findings) {
    this.#bag = bag;
    this.#timesMax = timesMax;
    this.#findings = findings;
  }

  get delivered(): number {
    return this.#delivered;
  }

  /** Records that a training loop received a value. */
  took(value: number, consumer: string): void {
    this.#delivered++;
    const times = (this.#taken.get(value) ?? 0) + 1;
    this.#taken.set(value, times);
    const timesMax = (this.#bag.get(value) ?? 0) * this.#timesMax();
    if (times <= timesMax) return;
    this.#findings.add(`${consumer} took ${value} for the ${times}th time, of ${timesMax}`);
  }

  /** Checks at the end that every value was delivered as often as in `times` complete runs. */
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
