/** Measures the steps of a loop: how long they take, and how much CPU time. */

export interface Clocks {
  /** A monotonic clock, in ms. */
  readonly nowMs: () => number;
  /** CPU time of this process so far, in ms. */
  readonly cpuMs: () => number;
}

export interface StepFigures {
  readonly steps: number;
  readonly elapsedMs: number;
  /** CPU time of the whole process, all threads together. */
  readonly cpuMs: number;
}

/** Measures from its creation on. */
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

  step(): void {
    this.#steps++;
  }

  read(): StepFigures {
    return {
      steps: this.#steps,
      elapsedMs: this.elapsedMs,
      cpuMs: this.#clocks.cpuMs() - this.#cpuFromMs,
    };
  }
}

/** Reads a dataset without end: when an iterator ends, it opens the next one. */
export class EndlessRun<I extends AsyncIterator<unknown> & AsyncDisposable>
  implements AsyncDisposable {
  readonly #open: () => I;
  readonly #onEnd: (iterator: I, taken: number) => void;
  #iterator: I;
  #runs = 1;
  #taken = 0;
  #takenBefore = 0;
  #isDisposed = false;

  /** @param onEnd Receives each iterator that has ended, and how many elements it gave. */
  constructor(open: () => I, onEnd: (iterator: I, taken: number) => void = () => {}) {
    this.#open = open;
    this.#onEnd = onEnd;
    this.#iterator = open();
  }

  get iterator(): I {
    return this.#iterator;
  }

  /** How many iterators were opened. */
  get runs(): number {
    return this.#runs;
  }

  /** How many elements the current iterator has given. */
  get taken(): number {
    return this.#taken;
  }

  /** How many elements all iterators have given. */
  get takenOfAll(): number {
    return this.#takenBefore + this.#taken;
  }

  /** The next element; undefined if an iterator has ended without one, or this run is disposed. */
  async next(): Promise<{ readonly element: unknown } | undefined> {
    for (;;) {
      const { done, value } = await this.#iterator.next();
      if (done !== true) {
        this.#taken++;
        return { element: value };
      }
      if (this.#taken === 0) return undefined;
      this.#onEnd(this.#iterator, this.#taken);
      await this.#iterator[Symbol.asyncDispose]();
      // Disposing also ends an iterator that this call waits for. Nothing would dispose the next one.
      if (this.#isDisposed) return undefined;
      this.#takenBefore += this.#taken;
      this.#taken = 0;
      this.#runs++;
      this.#iterator = this.#open();
    }
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    this.#isDisposed = true;
    return this.#iterator[Symbol.asyncDispose]();
  }
}
