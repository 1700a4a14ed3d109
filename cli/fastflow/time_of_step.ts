/** How long a step takes on average, waiting for data included. */
import type { Dataset } from "../../mod.ts";

const WARM_UP_STEPS = 10;
/** However slow: one step says nothing. */
const STEPS_MIN = 4;

/** How long to measure. */
export interface Length {
  readonly steps: number;
  /** How many steps are made before, at least, */
  readonly warmUpSteps?: number;
  /** and how long that takes, in ms, at least. Default 0. */
  readonly warmUpMs?: number;
  /** Ends the measurement after so many ms and a few steps. Default: never. */
  readonly limitMs?: number;
}

/** A training that can be measured several times. A dataset that ends is started again. */
export class TimedTraining implements AsyncDisposable {
  readonly batches: Dataset<unknown>;
  readonly #train: () => unknown;
  #iterator;

  constructor(batches: Dataset<unknown>, train: () => unknown) {
    this.batches = batches;
    this.#train = train;
    this.#iterator = batches.iterator();
  }

  async time(
    { steps, warmUpSteps = WARM_UP_STEPS, warmUpMs = 0, limitMs = Infinity }: Length,
  ): Promise<number> {
    await this.#run((at, elapsedMs) => at >= warmUpSteps && elapsedMs >= warmUpMs);
    return await this.#run((at, elapsedMs) =>
      at === steps || at >= STEPS_MIN && elapsedMs > limitMs
    );
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.#iterator[Symbol.asyncDispose]();
  }

  async #run(isEnough: (steps: number, elapsedMs: number) => boolean): Promise<number> {
    const fromMs = performance.now();
    for (let at = 1;; at++) {
      while ((await this.#iterator.next()).done) {
        await this.#iterator[Symbol.asyncDispose]();
        this.#iterator = this.batches.iterator();
      }
      await this.#train();
      const elapsedMs = performance.now() - fromMs;
      if (isEnough(at, elapsedMs)) return elapsedMs / at;
    }
  }
}

/** Trains once. */
export async function timeOfStep(
  batches: Dataset<unknown>,
  train: () => unknown,
  length: Length,
): Promise<number> {
  await using training = new TimedTraining(batches, train);
  return await training.time(length);
}
