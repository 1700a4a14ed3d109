/** Starts processes, one per caller, few at a time: more would only delay each other. */
import { LeatError } from "../../core/error.ts";

/** A process that takes a while to load. */
export interface SuppliedProcess {
  /** Resolves when it accepts requests; rejects if it never will. */
  readonly loaded: Promise<unknown>;
  readonly isAlive: boolean;
  terminate(): Promise<void>;
}

interface Waiting<T> {
  resolve(process: T): void;
  reject(error: unknown): void;
}

/**
 * Assigns processes in the order of requests, and keeps a spare one. A process is assigned when it
 * has loaded: if the caller has cancelled by then, the next caller gets it.
 */
export class ProcessSupply<T extends SuppliedProcess> {
  readonly #start: () => T;
  readonly #loadingMax: number;
  /** Callers that wait, in the order of arrival. */
  readonly #waiting = new Set<Waiting<T>>();
  #loading = 0;
  /** A process that was loaded before it is needed. */
  #spare: T | undefined;
  #closed = false;

  /** Begins to load the first process. At most `loadingMax` load at the same time. */
  constructor(start: () => T, loadingMax: number) {
    this.#start = start;
    this.#loadingMax = loadingMax;
    this.#fill();
  }

  /**
   * A process for the caller alone.
   * @param signal Ends the waiting.
   * @throws {LeatError} `cancelled` when it is aborted or the supply is closed; or why the process
   * did not load.
   */
  take(signal?: AbortSignal): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(closed());
      const givenUp = () =>
        reject(new LeatError("cancelled", "The process is not needed any more"));
      if (signal?.aborted) return givenUp();
      const spare = this.#spare;
      this.#spare = undefined;
      const waiting = { resolve, reject };
      if (spare?.isAlive) resolve(spare);
      else this.#waiting.add(waiting);
      signal?.addEventListener("abort", () => {
        this.#waiting.delete(waiting);
        givenUp();
      }, { once: true });
      this.#fill();
    });
  }

  /** Starts nothing more, and rejects waiting callers. Assigned processes stay. */
  close(): void {
    this.#closed = true;
    this.#spare = undefined;
    for (const waiting of this.#waiting) waiting.reject(closed());
    this.#waiting.clear();
  }

  /** Loads as many as are missing, up to the limit. The loop ends even if each load fails at once. */
  #fill(): void {
    const isWanted = () =>
      !this.#closed && this.#loading < Math.min(this.#loadingMax, this.#missing);
    for (let tries = this.#missing; tries > 0 && isWanted(); tries--) this.#load();
  }

  /** How many processes to load: a spare one only if no caller waits: it would delay the caller. */
  get #missing(): number {
    if (this.#waiting.size > 0) return this.#waiting.size;
    return this.#spare === undefined ? 1 : 0;
  }

  async #load(): Promise<void> {
    this.#loading++;
    try {
      const process = this.#start();
      await process.loaded;
      this.#loading--;
      this.#handOver(process);
    } catch (error) {
      this.#loading--;
      this.#next()?.reject(error);
      // Without waiting callers no attempt follows until the next call of `take`.
      if (this.#waiting.size === 0) return;
    }
    this.#fill();
  }

  #handOver(process: T): void {
    const waiting = this.#next();
    if (waiting !== undefined) waiting.resolve(process);
    else if (this.#spare === undefined && !this.#closed) this.#spare = process;
    else process.terminate();
  }

  #next(): Waiting<T> | undefined {
    const [first] = this.#waiting;
    if (first !== undefined) this.#waiting.delete(first);
    return first;
  }
}

function closed(): LeatError {
  return new LeatError("cancelled", "The runners have been closed");
}
