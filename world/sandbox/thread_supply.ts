/**
 * Threads for whoever needs one of their own. Only a few load at a time: many at once would each take as
 * long as all of them, and starting one holds up the thread that starts it.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";

/** A thread that takes a while to load. */
export interface SuppliedThread {
  /** Resolves when it can be asked; rejects if it never can. */
  readonly loaded: Promise<unknown>;
  /** Whether it has not ended. */
  readonly isAlive: boolean;
  terminate(): Promise<void>;
}

interface Waiting<T> {
  resolve(thread: T): void;
  reject(error: unknown): void;
}

/**
 * Hands out threads in the order in which they were asked for, and keeps one ready for the next who
 * asks. Nobody waits for a certain thread before it has loaded, so that who gives up in the queue
 * leaves nothing that would have to be ended while it loads.
 */
export class ThreadSupply<T extends SuppliedThread> {
  readonly #start: () => T;
  readonly #loadingMax: number;
  /** In the order in which they came. */
  readonly #waiting = new Set<Waiting<T>>();
  #loading = 0;
  /** Loaded before it is needed. */
  #spare: T | undefined;
  #closed = false;

  /**
   * Begins to load the first thread.
   *
   * @param loadingMax How many load at a time.
   */
  constructor(start: () => T, loadingMax: number) {
    this.#start = start;
    this.#loadingMax = loadingMax;
    this.#fill();
  }

  /**
   * A thread for the caller alone.
   *
   * @param signal Ends the waiting; who has given up costs no thread.
   * @throws {LeatError} `cancelled` when it is given up or the supply is closed; or what the thread says that did not load.
   */
  take(signal?: AbortSignal): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(closed());
      const givenUp = () => reject(new LeatError("cancelled", "The thread is not needed any more"));
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

  /** Starts nothing more, and lets nobody wait. The threads are whose they are. */
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
      const thread = this.#start();
      await thread.loaded;
      this.#loading--;
      this.#handOver(thread);
    } catch (error) {
      this.#loading--;
      this.#next()?.reject(error);
      // Nobody needs one now: whoever does will have it tried again.
      if (this.#waiting.size === 0) return;
    }
    this.#fill();
  }

  #handOver(thread: T): void {
    const waiting = this.#next();
    if (waiting !== undefined) waiting.resolve(thread);
    else if (this.#spare === undefined && !this.#closed) this.#spare = thread;
    else thread.terminate();
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
