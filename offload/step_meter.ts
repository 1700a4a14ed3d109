/** Measures the steps of a loop: how long they take, and how much CPU time. */

/** The clocks of a measurement. */
export interface Clocks {
  /** A monotonic clock, in ms. */
  readonly nowMs: () => number;
  /** CPU time of this process so far, in ms. */
  readonly cpuMs: () => number;
}

/** What was measured. */
export interface StepFigures {
  readonly steps: number;
  readonly elapsedMs: number;
  /** CPU time of the whole process, all threads together. */
  readonly cpuMs: number;
}

/** Measures from its creation on; steps before that are the warm-up. */
export class StepMeter {
  readonly #clocks: Clocks;
  readonly #fromMs: number;
  readonly #cpuFromMs: number;
  #steps = 0;

  constructor(clocks: Clocks) {
    this.#clocks = clocks;
    this.#cpuFromMs = clocks.cpuMs();
    this.#fromMs = clocks.nowMs();
  }

  /** How long it has measured, in ms. */
  get elapsedMs(): number {
    return this.#clocks.nowMs() - this.#fromMs;
  }

  get steps(): number {
    return this.#steps;
  }

  /** A step has ended. */
  step(): void {
    this.#steps++;
  }

  /** The figures up to now. */
  read(): StepFigures {
    return {
      steps: this.#steps,
      elapsedMs: this.elapsedMs,
      cpuMs: this.#clocks.cpuMs() - this.#cpuFromMs,
    };
  }
}

/**
 * Elements without end: a dataset that ends is started again.
 *
 * @typeParam T The type of elements.
 */
export class EndlessRun<T> implements AsyncDisposable {
  readonly #open: () => AsyncIterator<T> & AsyncDisposable;
  #iterator: AsyncIterator<T> & AsyncDisposable;
  #runs = 1;
  #taken = 0;

  constructor(open: () => AsyncIterator<T> & AsyncDisposable) {
    this.#open = open;
    this.#iterator = open();
  }

  /** How often the dataset was started. */
  get runs(): number {
    return this.#runs;
  }

  /** Elements taken of the current start. */
  get taken(): number {
    return this.#taken;
  }

  /** The next element; undefined for a dataset that gave none when it was started last. */
  async next(onRestart: () => void = () => {}): Promise<{ readonly element: T } | undefined> {
    for (;;) {
      const result = await this.#iterator.next();
      if (!result.done) {
        this.#taken++;
        return { element: result.value };
      }
      if (this.#taken === 0) return undefined;
      onRestart();
      await this.#iterator[Symbol.asyncDispose]();
      this.#taken = 0;
      this.#runs++;
      this.#iterator = this.#open();
    }
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.#iterator[Symbol.asyncDispose]();
  }
}
