/**
 * Ends profiling if a pipeline yields nothing: a filter may drop everything of an endless stream, and
 * a function may never return.
 */
import { LeatError } from "../../mod.ts";

/** The least time limit, in ms: a function may load a model, or fetch a file, for the first batch. */
const LIMIT_MIN_MS = 120_000;
/** The time limit as a multiple of the profiling time. */
const LIMIT_FACTOR = 20;
const MS_PER_SECOND = 1_000;

/** The time limit in words, relative to the profiling time. */
export const TIME_LIMIT_TEXT = `${LIMIT_FACTOR} times as long, or ${
  LIMIT_MIN_MS / MS_PER_SECOND
} s if that is more`;

/** The default time limit, in ms, for a profile of this many seconds. */
export function timeLimitMs(seconds: number): number {
  return Math.max(LIMIT_MIN_MS, LIMIT_FACTOR * MS_PER_SECOND * seconds);
}

/** Time limits, in ms. */
export interface TimeLimits {
  /** For loading the module. */
  readonly loadingMs: number;
  /** For each batch, the first one included. */
  readonly batchMs: number;
}

/** Calls `onTimeout` when loading, or the next batch, takes longer than its time limit. */
export class ProgressTimeout implements Disposable {
  readonly #module: string;
  readonly #limits: TimeLimits;
  readonly #onTimeout: (error: LeatError) => void;
  #timer: ReturnType<typeof setTimeout>;
  #isLoaded = false;
  #batches = 0;

  /** @param onTimeout Called with an error that says what is missing, and what to do. */
  constructor(module: string, limits: TimeLimits, onTimeout: (error: LeatError) => void) {
    this.#module = module;
    this.#limits = limits;
    this.#onTimeout = onTimeout;
    this.#timer = this.#start();
  }

  /** Reports that the module is loaded. */
  loaded(): void {
    this.#isLoaded = true;
    this.#restart();
  }

  /** Reports how many batches were received so far. */
  received(batches: number): void {
    if (batches === this.#batches) return;
    this.#batches = batches;
    this.#restart();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  #restart(): void {
    clearTimeout(this.#timer);
    this.#timer = this.#start();
  }

  #start(): ReturnType<typeof setTimeout> {
    return setTimeout(() => this.#onTimeout(this.#error()), this.#limitMs);
  }

  get #limitMs(): number {
    return this.#isLoaded ? this.#limits.batchMs : this.#limits.loadingMs;
  }

  #error(): LeatError {
    const seconds = `${this.#limitMs / MS_PER_SECOND} s`;
    const leastSeconds = LIMIT_MIN_MS / MS_PER_SECOND;
    const slow = "If it is only slow, raise --seconds: a batch may take " +
      `${LIMIT_FACTOR} times that, or ${leastSeconds} s if that is more`;
    if (!this.#isLoaded) {
      return new LeatError(
        "deadline_exceeded",
        `'${this.#module}' was not loaded within ${seconds}. Check that its top-level code ends, and ` +
          `that the function that it exports returns. ${slow}`,
      );
    }
    const after = this.#batches === 0 ? "" : ` after the first ${this.#batches}`;
    return new LeatError(
      "deadline_exceeded",
      `No batch of '${this.#module}' came within ${seconds}${after}. Check that no filter drops ` +
        `everything, and that no function waits forever. ${slow}`,
    );
  }
}
