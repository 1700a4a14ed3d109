/** Measures the mean time of a step, including waiting for data. */
import type { Dataset } from "../../mod.ts";

const WARM_UP_STEPS = 10;
/** Least number of steps, even if they are slow. */
const STEPS_MIN = 4;

/** How long to measure. */
export interface Length {
  readonly steps: number;
  /** Least number of warm-up steps. */
  readonly warmUpSteps?: number;
  /** Least time of the warm-up, in ms. Default 0. */
  readonly warmUpMs?: number;
  /** The measurement ends after this many ms, but not before 4 steps. Default: no limit. */
  readonly limitMs?: number;
}

/** A training that can be measured several times. A dataset that ends is restarted. */
export class TimedTraining implements AsyncDisposable {
  readonly batches: Dataset<unknown>;
  readonly #train: () => unknown;
  #iterator;

  constructor(batches: Dataset<unknown>, train: () => unknown) {
    this.batches = batches;
    this.#train = train;
    this.#iterator = batches.iterator();
  }

  /** Warms up, then measures. Returns the mean time of a step in ms. */
  async time(
    { steps, warmUpSteps = WARM_UP_STEPS, warmUpMs = 0, limitMs = Infinity }: Length,
  ): Promise<number> {
    await this.#run((step, elapsedMs) => step >= warmUpSteps && elapsedMs >= warmUpMs);
    return await this.#run((step, elapsedMs) =>
      step === steps || step >= STEPS_MIN && elapsedMs > limitMs
    );
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.#iterator[Symbol.asyncDispose]();
  }

  async #run(isEnough: (steps: number, elapsedMs: number) => boolean): Promise<number> {
    const fromMs = performance.now();
    for (let step = 1;; step++) {
      while ((await this.#iterator.next()).done) {
        await this.#iterator[Symbol.asyncDispose]();
        this.#iterator = this.batches.iterator();
      }
      await this.#train();
      const elapsedMs = performance.now() - fromMs;
      if (isEnough(step, elapsedMs)) return elapsedMs / step;
    }
  }
}

/** Measures one training. */
export async function timeOfStep(
  batches: Dataset<unknown>,
  train: () => unknown,
  length: Length,
): Promise<number> {
  await using training = new TimedTraining(batches, train);
  return await training.time(length);
}
