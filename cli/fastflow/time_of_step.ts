/** How long a step takes on average, waiting for data included. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Dataset } from "../../mod.ts";

const WARM_UP_STEPS = 10;
/** However slow: one step says nothing. */
const STEPS_MIN = 4;

/** How long to measure. */
export interface Length {
  readonly steps: number;
  readonly warmUpSteps?: number;
  /** Ends the measurement after so many ms and a few steps, and the warm-up after half. Default: never. */
  readonly limitMs?: number;
}

/** Trains, with an accelerator that sleeps. A dataset that ends is started again. */
export async function timeOfStep(
  batches: Dataset<unknown>,
  stepMs: number,
  { steps, warmUpSteps = WARM_UP_STEPS, limitMs = Infinity }: Length,
): Promise<number> {
  let iterator = batches.iterator();
  const step = async () => {
    while ((await iterator.next()).done) {
      await iterator[Symbol.asyncDispose]();
      iterator = batches.iterator();
    }
    await sleep(stepMs);
  };
  const run = async (stepsMax: number, limitMs: number) => {
    const fromMs = performance.now();
    for (let at = 1; at <= stepsMax; at++) {
      await step();
      const elapsedMs = performance.now() - fromMs;
      if (at === stepsMax || at >= STEPS_MIN && elapsedMs > limitMs) return elapsedMs / at;
    }
    return 0;
  };
  try {
    await run(warmUpSteps, limitMs / 2);
    return await run(steps, limitMs);
  } finally {
    await iterator[Symbol.asyncDispose]();
  }
}
