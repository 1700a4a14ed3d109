/**
 * The only simulated part of the main job: an accelerator, which only waits for the time of its steps.
 * The model functions are pure; `Accelerator` and `SynchronousTraining` wait.
 */

import { setTimeout } from "node:timers/promises";
import { LeatError } from "../../core/error.ts";

/** How long a step takes as a function of the tokens in the batch, padding included. */
export interface StepModel {
  /** Part of a step that does not depend on the batch, in milliseconds. */
  constantMs: number;
  /** Time for one token, in milliseconds. */
  perTokenMs: number;
}

/** How many tokens a padded batch holds. */
export interface BatchTokens {
  /** Tokens that are data. */
  real: number;
  /** Tokens that the accelerator processes: rows times the padded length. */
  padded: number;
}

/** One step of synchronous training on several accelerators. */
export interface SynchronousStep {
  /** The time of the step, in milliseconds: that of its slowest trainer. */
  stepMs: number;
  /** Index of the slowest trainer. */
  slowest: number;
  /** Share of the accelerators' time, 0 to 1, spent waiting for the slowest. */
  idleShare: number;
}

/**
 * Counts the tokens of a batch whose rows are padded to one length.
 * @param lengths Length of each row before padding, in tokens.
 * @param paddedLength Length after padding. Default: that of the longest row.
 */
export function batchTokens(lengths: ArrayLike<number>, paddedLength?: number): BatchTokens {
  let real = 0;
  let longest = 0;
  for (let row = 0; row < lengths.length; row++) {
    const length = lengths[row] ?? 0;
    real += length;
    longest = Math.max(longest, length);
  }
  return { real, padded: lengths.length * (paddedLength ?? longest) };
}

/** Returns the time of a step on a batch of `paddedTokens`, padding included, in milliseconds. */
export function stepTimeMs(model: StepModel, paddedTokens: number): number {
  return model.constantMs + model.perTokenMs * paddedTokens;
}

/**
 * Computes one step of synchronous training, in which no trainer begins the next step before the
 * slowest has finished this one (section 3.6 of the tf.data service paper).
 * @param durationsMs The step time of each trainer alone, in milliseconds; at least one.
 */
export function synchronousStep(durationsMs: readonly number[]): SynchronousStep {
  if (durationsMs.length === 0) {
    throw new LeatError("invalid_argument", "synchronousStep: no trainer takes part");
  }
  const stepMs = Math.max(...durationsMs);
  const busyMs = durationsMs.reduce((sum, duration) => sum + duration, 0);
  return {
    stepMs,
    slowest: durationsMs.indexOf(stepMs),
    idleShare: stepMs === 0 ? 0 : 1 - busyMs / (stepMs * durationsMs.length),
  };
}

/** The clock of an accelerator. */
export interface Timer {
  /** Monotonic time in milliseconds. */
  now(): number;
  /** Resolves after about `delayMs` milliseconds, or rejects with the signal's reason. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}

/** The clock of this process. */
const SYSTEM_TIMER: Timer = {
  now: () => performance.now(),
  async sleep(delayMs, signal) {
    await setTimeout(delayMs, undefined, signal && { signal }).catch(() =>
      signal!.throwIfAborted()
    );
  },
};

/**
 * An accelerator, whose `step` takes the given time. Timers fire late, so each step is shortened by the
 * lateness of the previous steps. Over a run, the time spent in steps is then the sum of the steps.
 */
export class Accelerator {
  readonly #timer: Timer;
  #busyMs = 0;
  /** The total lateness of the steps so far, in milliseconds. */
  #lateMs = 0;

  constructor(timer: Timer = SYSTEM_TIMER) {
    this.#timer = timer;
  }

  /** Sum of the steps, in milliseconds. */
  get busyMs(): number {
    return this.#busyMs;
  }

  /** Waits for one step. If the signal ends it, rejects with the reason, and the step does not count. */
  async step(durationMs: number, signal?: AbortSignal): Promise<void> {
    if (!(durationMs >= 0 && Number.isFinite(durationMs))) {
      throw new LeatError(
        "invalid_argument",
        `Accelerator.step: durationMs is ${durationMs}; 0 or more, finite`,
      );
    }
    signal?.throwIfAborted();
    const start = this.#timer.now();
    const remainingMs = durationMs - this.#lateMs;
    if (remainingMs > 0) await this.#timer.sleep(remainingMs, signal);
    const elapsedMs = this.#timer.now() - start;
    this.#lateMs += elapsedMs - durationMs;
    this.#busyMs += durationMs;
  }
}

/**
 * Trainers that train one model synchronously: a step begins when every trainer has its batch, and
 * ends for all of them when the slowest has ended.
 */
export class SynchronousTraining {
  readonly #accelerator: Accelerator;
  readonly #trainers: number;
  #durationsMs: number[] = [];
  #round = Promise.withResolvers<SynchronousStep>();

  constructor(trainers: number, timer: Timer = SYSTEM_TIMER) {
    if (!(Number.isInteger(trainers) && trainers >= 1)) {
      throw new LeatError(
        "invalid_argument",
        `SynchronousTraining: trainers is ${trainers}; an integer of at least 1`,
      );
    }
    this.#trainers = trainers;
    this.#accelerator = new Accelerator(timer);
  }

  /** Sum of the steps, in milliseconds. */
  get busyMs(): number {
    return this.#accelerator.busyMs;
  }

  /** Adds a trainer to the current step. Resolves when the slowest trainer has ended the step. */
  step(durationMs: number): Promise<SynchronousStep> {
    const round = this.#round;
    this.#durationsMs.push(durationMs);
    if (this.#durationsMs.length === this.#trainers) {
      const step = synchronousStep(this.#durationsMs);
      this.#durationsMs = [];
      this.#round = Promise.withResolvers<SynchronousStep>();
      this.#accelerator.step(step.stepMs).then(() => round.resolve(step), round.reject);
    }
    return round.promise;
  }
}
