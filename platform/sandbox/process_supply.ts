/**
 * Processes, each for one caller. Only a few load at a time: many at once would each take as long as
 * all of them together.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";

/** A process that takes a while to load. */
export interface SuppliedProcess {
  /** Resolves when it can be asked; rejects if it never can. */
  readonly loaded: Promise<unknown>;
  /** Whether it has not ended. */
  readonly isAlive: boolean;
  terminate(): Promise<void>;
}

interface Waiting<T> {
  resolve(process: T): void;
  reject(error: unknown): void;
}

/**
 * Hands out processes in the order in which they were asked for, and keeps a spare one ready. A
 * process belongs to nobody before it has loaded, so a caller that gives up leaves it to the next.
 */
export class ProcessSupply<T extends SuppliedProcess> {
  readonly #start: () => T;
  readonly #loadingMax: number;
  /** In the order in which they came. */
  readonly #waiting = new Set<Waiting<T>>();
  #loading = 0;
  /** Loaded before it is needed. */
  #spare: T | undefined;
  #closed = false;

  /**
   * Begins to load the first process.
   *
   * @param loadingMax How many load at a time.
   */
  constructor(start: () => T, loadingMax: number) {
    this.#start = start;
    this.#loadingMax = loadingMax;
    this.#fill();
  }

  /**
   * A process for the caller alone.
   *
   * @param signal Ends the waiting.
   * @throws {LeatError} `cancelled` when it is given up or the supply is closed; or why the process did not load.
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

  /** Starts nothing more, and lets nobody wait. The processs are whose they are. */
  close(): void {
    this.#closed = true;
    this.#spare = undefined;
    for (const waiting of this.#waiting) waiting.reject(closed());
    this.#waiting.clear();
  }

  /** As many load as are wanted, up to the limit. One that cannot even begin leaves as many wanted: each is tried once. */
  #fill(): void {
    const isWanted = () =>
      !this.#closed && this.#loading < Math.min(this.#loadingMax, this.#missing);
    for (let tries = this.#missing; tries > 0 && isWanted(); tries--) this.#load();
  }

  get #missing(): number {
    return this.#waiting.size + (this.#spare === undefined ? 1 : 0);
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
      // Nobody needs one now: whoever does will have it tried again.
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
