/**
 * The job of `deno task cluster`, and a ledger that counts what the service delivered.
 *
 * A worker computes some steps of a linear congruential generator for each number of a range. The
 * trainer computes all steps in one jump, so it checks every value cheaply.
 */
import { Dataset, type DistributeOptions, type Tensor } from "../../mod.ts";

/** Numerical Recipes' generator modulo 2³². */
const MULTIPLIER = 1_664_525;
const INCREMENT = 1_013_904_223;
const BATCH_SIZE = 500;

/** A batch of the job. */
export interface Batch {
  readonly number: Tensor;
  readonly value: Tensor;
}

/** The distributed job over `0 … elements - 1`. */
export function jobOf(
  elements: number,
  steps: number,
  options: DistributeOptions,
): Dataset<Batch> {
  const values = Dataset.range(elements).map((number, { steps, multiplier, increment }) => {
    let value = number;
    for (let i = 0; i < steps; i++) value = (Math.imul(value, multiplier) + increment) | 0;
    return { number, value };
  }, { captures: { steps, multiplier: MULTIPLIER, increment: INCREMENT } });
  return values.batch(BATCH_SIZE).distribute(options) as unknown as Dataset<Batch>;
}

/** Counts how often each element arrived. */
export class Ledger {
  /** How many elements arrived. */
  received = 0;
  /** How many of them had a wrong value for their number, or a number that the job does not have. */
  wrong = 0;
  readonly #times: Uint8Array;
  readonly #multiplier: number;
  readonly #increment: number;

  constructor(elements: number, steps: number) {
    this.#times = new Uint8Array(elements);
    let [multiplier, increment] = [1, 0];
    for (let i = 0; i < steps; i++) {
      multiplier = Math.imul(multiplier, MULTIPLIER);
      increment = (Math.imul(increment, MULTIPLIER) + INCREMENT) | 0;
    }
    [this.#multiplier, this.#increment] = [multiplier, increment];
  }

  /** Records a batch. */
  enter({ number: numbers, value: values }: Batch): void {
    const count = numbers.shape[0]!;
    for (let i = 0; i < count; i++) {
      const number = Number(numbers.data[i]);
      const isKnown = this.#times[number] !== undefined;
      const expected = (Math.imul(number, this.#multiplier) + this.#increment) | 0;
      if (!isKnown || values.data[i] !== expected) this.wrong++;
      if (isKnown && this.#times[number]! < 255) this.#times[number]!++;
    }
    this.received += count;
  }

  /** How many elements came fewer than `times` times, and how many more often. */
  against(times: number): { readonly missing: number; readonly surplus: number } {
    let [missing, surplus] = [0, 0];
    for (const seen of this.#times) {
      if (seen < times) missing++;
      else if (seen > times) surplus++;
    }
    return { missing, surplus };
  }
}
