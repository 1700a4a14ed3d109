/**
 * Asking again: what a far service could not answer now is asked for later, ever more rarely, and given up after a while.
 */

import { setTimeout } from "node:timers/promises";
import { LeatError } from "../core/error.ts";

/** How patient requests to far storage are. */
export interface RetryOptions {
  /** Attempts, the first included, that may fail one after the other without a byte of progress. Default 6. */
  readonly attemptsMax?: number;
  /** Longest wait before the second attempt, in ms; it doubles with each after that. Default 200. */
  readonly backoffMs?: number;
  /** Longest wait before any attempt, in ms. Default 10,000. */
  readonly backoffMsMax?: number;
}

/** The time and luck that waiting between attempts takes. */
export interface RetryTiming {
  /** Resolves after `ms` milliseconds; rejects when the signal is aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** A number from 0 up to 1, another one each time. */
  random(): number;
}

const DENO_TIMING: RetryTiming = {
  sleep: (ms, signal) => setTimeout(ms, undefined, { signal }),
  random: () => Math.random(),
};

const DEFAULTS: Required<RetryOptions> = { attemptsMax: 6, backoffMs: 200, backoffMsMax: 10_000 };

/** Longest wait that a service may ask for (`Retry-After`), in ms; what asks for more waits so long. */
const RETRY_AFTER_MS_MAX = 30_000;

/**
 * Runs attempts until one succeeds. What fails with `unavailable` is tried again after a random part of a time that doubles; every other
 * error is final. A service that says when to come back (`details.retryAfterMs`) is asked no sooner.
 */
export class Retries {
  readonly #options: Required<RetryOptions>;
  readonly #timing: RetryTiming;

  constructor(options: RetryOptions = {}, timing: RetryTiming = DENO_TIMING) {
    this.#options = { ...DEFAULTS, ...options };
    this.#timing = timing;
    const { attemptsMax, backoffMs, backoffMsMax } = this.#options;
    if (!(Number.isInteger(attemptsMax) && attemptsMax >= 1)) {
      throw new LeatError(
        "invalid_argument",
        `attemptsMax is a whole number from 1 up, not ${attemptsMax}`,
      );
    }
    if (!(backoffMs >= 0 && backoffMsMax >= 0)) {
      throw new LeatError(
        "invalid_argument",
        `backoffMs and backoffMsMax are milliseconds from 0 up, not ${backoffMs} and ${backoffMsMax}`,
      );
    }
  }

  /**
   * @param progress grows while attempts get somewhere: one that did begins the count of failures anew.
   * @throws {LeatError} `cancelled` once the signal is aborted, also amid a wait; else what the last attempt threw.
   */
  async run<T>(
    signal: AbortSignal,
    attempt: () => Promise<T>,
    progress: () => number = () => 0,
  ): Promise<T> {
    for (let failures = 0, reached = progress();;) {
      try {
        return await attempt();
      } catch (cause) {
        if (signal.aborted) throw cancelled(cause);
        const error = LeatError.from(cause);
        if (error.code !== "unavailable") throw error;
        failures = progress() > reached ? 1 : failures + 1;
        reached = progress();
        if (failures >= this.#options.attemptsMax) throw exhausted(error, failures);
        await this.#wait(failures, error, signal);
      }
    }
  }

  async #wait(failures: number, { details }: LeatError, signal: AbortSignal): Promise<void> {
    const { backoffMs, backoffMsMax } = this.#options;
    const backoff = this.#timing.random() * Math.min(backoffMs * 2 ** (failures - 1), backoffMsMax);
    const asked = details?.retryAfterMs;
    const least = typeof asked === "number" ? Math.min(asked, RETRY_AFTER_MS_MAX) : 0;
    try {
      await this.#timing.sleep(Math.max(backoff, least), signal);
    } catch (cause) {
      throw cancelled(cause);
    }
  }
}

function cancelled(cause: unknown): LeatError {
  return new LeatError("cancelled", "The request was given up, because nobody waits for it.", {
    cause,
  });
}

function exhausted(error: LeatError, attempts: number): LeatError {
  const times = attempts === 1 ? "1 attempt" : `${attempts} attempts`;
  return new LeatError(error.code, `${error.message} Given up after ${times}.`, { cause: error });
}
