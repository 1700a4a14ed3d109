/** Retries with exponential backoff for requests to far services. */

import { setTimeout } from "node:timers/promises";
import { LeatError } from "../../core/error.ts";
import { definedFields } from "../../core/tree.ts";
import { TIMER_MS_MAX } from "../../data/check.ts";

/** The limits of retries to far storage. */
export interface RetryOptions {
  /** Limit of attempts in a row, the first included, that fail without any progress. Default 6. */
  readonly attemptsMax?: number;
  /** Longest wait before the second attempt, in ms. It doubles with each further one. Default 200. */
  readonly backoffMs?: number;
  /** Longest wait before any attempt, in ms, or `Infinity` for no limit. Default 10,000. */
  readonly backoffMsMax?: number;
}

/** The timers and random numbers of waits between attempts. */
export interface RetryTiming {
  /** Resolves after `ms` milliseconds; rejects when the signal is aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** A random number from 0 up to 1. */
  random(): number;
}

const DENO_TIMING: RetryTiming = {
  sleep: (ms, signal) => setTimeout(ms, undefined, { signal }),
  random: () => Math.random(),
};

const DEFAULTS: Required<RetryOptions> = { attemptsMax: 6, backoffMs: 200, backoffMsMax: 10_000 };

/** Limit of the `Retry-After` of a service, in ms; longer ones are cut to it. */
const RETRY_AFTER_MS_MAX = 30_000;

/**
 * Runs attempts until one succeeds. An attempt that fails with `unavailable` is repeated after a random
 * part of a time that doubles, but not before the time that the service requests
 * (`details.retryAfterMs`). Every other error is final.
 */
export class Retries {
  readonly #options: Required<RetryOptions>;
  readonly #timing: RetryTiming;

  constructor(options: RetryOptions = {}, timing: RetryTiming = DENO_TIMING) {
    this.#options = { ...DEFAULTS, ...definedFields(options) };
    this.#timing = timing;
    const { attemptsMax, backoffMs, backoffMsMax } = this.#options;
    if (!(Number.isInteger(attemptsMax) && attemptsMax >= 1)) {
      throw new LeatError(
        "invalid_argument",
        `attemptsMax is a whole number from 1 up, not ${attemptsMax}`,
      );
    }
    if (!(backoffMs >= 0 && backoffMs <= TIMER_MS_MAX && backoffMsMax >= 0)) {
      throw new LeatError(
        "invalid_argument",
        `backoffMs is a number of milliseconds from 0 to ${TIMER_MS_MAX}, not ${backoffMs}; and ` +
          `backoffMsMax is one of at least 0, not ${backoffMsMax}`,
      );
    }
  }

  /**
   * @param progress Returns a number that grows with successful work. An attempt that made progress
   * resets the count of failures.
   * @throws {LeatError} `cancelled` once the signal is aborted, also during a wait; otherwise the
   * last attempt's error.
   */
  async run<T>(
    signal: AbortSignal,
    attempt: () => Promise<T>,
    progress: () => number = () => 0,
  ): Promise<T> {
    for (let failures = 0, lastProgress = progress();;) {
      try {
        return await attempt();
      } catch (cause) {
        if (signal.aborted) throw cancelled(cause);
        const error = LeatError.from(cause);
        if (error.code !== "unavailable") throw error;
        failures = progress() > lastProgress ? 1 : failures + 1;
        lastProgress = progress();
        if (failures >= this.#options.attemptsMax) throw exhausted(error, failures);
        await this.#wait(failures, error, signal);
      }
    }
  }

  async #wait(failures: number, { details }: LeatError, signal: AbortSignal): Promise<void> {
    const { backoffMs, backoffMsMax } = this.#options;
    const doubled = backoffMs * 2 ** (failures - 1);
    const backoff = this.#timing.random() * Math.min(doubled, backoffMsMax, TIMER_MS_MAX);
    const requested = details?.retryAfterMs;
    const waitMin = typeof requested === "number" ? Math.min(requested, RETRY_AFTER_MS_MAX) : 0;
    try {
      await this.#timing.sleep(Math.max(backoff, waitMin), signal);
    } catch (cause) {
      throw cancelled(cause);
    }
  }
}

function cancelled(cause: unknown): LeatError {
  return new LeatError("cancelled", "The request was cancelled, because no reader waits for it.", {
    cause,
  });
}

function exhausted(error: LeatError, attempts: number): LeatError {
  const times = attempts === 1 ? "1 attempt" : `${attempts} attempts`;
  return new LeatError(error.code, `${error.message} Given up after ${times}.`, { cause: error });
}
