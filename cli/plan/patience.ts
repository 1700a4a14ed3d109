/**
 * Time limits for a pipeline that yields nothing: a filter may drop everything of an endless
 * stream, and a function may never return.
 */
import { LeatError } from "../../mod.ts";

/** The least time limit, in ms: a function may load a model, or fetch a file, for the first batch. */
const PATIENCE_MIN_MS = 120_000;
/** The time limit in multiples of the profiling time. */
const PATIENCE_TIMES = 20;
const MS_PER_SECOND = 1_000;

/** The time limit of a batch, for users. */
export const PATIENCE_TEXT = `waited for ${PATIENCE_TIMES} times as long, and for ${
  PATIENCE_MIN_MS / MS_PER_SECOND
} s at least`;

/** The time limit without a batch, in ms, for a profile of this many seconds. */
export function patienceMs(seconds: number): number {
  return Math.max(PATIENCE_MIN_MS, PATIENCE_TIMES * MS_PER_SECOND * seconds);
}

/** Time limits, in ms. */
export interface PatienceLimits {
  /** For loading the module. */
  readonly loadingMs: number;
  /** For each batch, the first one included. */
  readonly batchMs: number;
}

/** Calls `onEnd` when nothing has come within the time limit. */
export class Patience implements Disposable {
  readonly #module: string;
  readonly #limits: PatienceLimits;
  readonly #onEnd: (error: LeatError) => void;
  #timer: ReturnType<typeof setTimeout>;
  #isLoaded = false;
  #batches = 0;

  /** @param onEnd Called with an error that says what has not come, and what to do. */
  constructor(module: string, limits: PatienceLimits, onEnd: (error: LeatError) => void) {
    this.#module = module;
    this.#limits = limits;
    this.#onEnd = onEnd;
    this.#timer = this.#start();
  }

  /** Notes that the module is loaded. */
  loaded(): void {
    this.#isLoaded = true;
    this.#restart();
  }

  /** Notes how many batches have come so far. */
  came(batches: number): void {
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
    return setTimeout(() => this.#onEnd(this.#error()), this.#forMs);
  }

  get #forMs(): number {
    return this.#isLoaded ? this.#limits.batchMs : this.#limits.loadingMs;
  }

  #error(): LeatError {
    const seconds = `${this.#forMs / MS_PER_SECOND} s`;
    const slow = `If it is only slow, give more --seconds: a batch is ${PATIENCE_TEXT}`;
    if (!this.#isLoaded) {
      return new LeatError(
        "deadline_exceeded",
        `'${this.#module}' was not loaded within ${seconds}: does the code at its top level end, ` +
          `and the function that it exports? ${slow}`,
      );
    }
    const after = this.#batches === 0 ? "" : ` after the first ${this.#batches}`;
    return new LeatError(
      "deadline_exceeded",
      `No batch of '${this.#module}' came within ${seconds}${after}: does a filter leave anything, ` +
        `does a function wait for something that never comes, or never return? ${slow}`,
    );
  }
}
