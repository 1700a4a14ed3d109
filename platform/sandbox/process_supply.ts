/** Starts one process per caller. Few load at a time, because more would only delay each other. */
import { LeatError } from "../../core/error.ts";

/** A process that takes a while to load. */
export interface SuppliedProcess {
  /** Resolves when the process accepts requests; rejects if it never will. */
  readonly loaded: Promise<unknown>;
  readonly isAlive: boolean;
  terminate(): Promise<void>;
}

interface Waiting<T> {
  resolve(process: T): void;
  reject(error: unknown): void;
}

/**
 * Assigns processes to callers, and keeps a spare process. Callers that somebody waits for come first;
 * otherwise the order of the calls counts. A process is assigned once it has loaded. If the caller has
 * cancelled by then, the next caller gets the process.
 */
export class ProcessSupply<T extends SuppliedProcess> {
  readonly #start: () => T;
  readonly #loadingMax: number;
  /** Waiting callers that somebody waits for, in the order in which that began. */
  readonly #waiting = new Set<Waiting<T>>();
  /** Waiting callers that nobody waits for yet, in the order of their calls. */
  readonly #early = new Set<Waiting<T>>();
  #loading = 0;
  /** A loaded process for the next caller. */
  #spare: T | undefined;
  #isClosed = false;

  /** Starts to load the spare process. At most `loadingMax` processes load at the same time. */
  constructor(start: () => T, loadingMax: number) {
    this.#start = start;
    this.#loadingMax = loadingMax;
    this.#fill();
  }

  /**
   * Resolves to a process for the caller alone.
   * @param signal Cancels the call.
   * @param asked Resolves when somebody waits for the caller. Left out: somebody does already.
   * @throws {LeatError} `cancelled` if `signal` is aborted or the supply is closed, or the reason why
   * the process did not load.
   */
  async take(signal?: AbortSignal, asked?: Promise<void>): Promise<T> {
    if (this.#isClosed) throw closed();
    if (signal?.aborted) throw cancelled();
    const spare = this.#spare;
    this.#spare = undefined;
    if (!spare?.isAlive) return await this.#wait(signal, asked);
    this.#fill();
    return spare;
  }

  async #wait(signal: AbortSignal | undefined, asked: Promise<void> | undefined): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const waiting = { resolve, reject };
    const cancel = () => {
      if (!this.#early.delete(waiting)) this.#waiting.delete(waiting);
      reject(cancelled());
    };
    if (asked === undefined) this.#waiting.add(waiting);
    else {
      this.#early.add(waiting);
      asked.then(() => void (this.#early.delete(waiting) && this.#waiting.add(waiting)));
    }
    signal?.addEventListener("abort", cancel, { once: true });
    this.#fill();
    try {
      return await promise;
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  }

  /** Starts no more processes, and rejects waiting callers. Started processes keep running. */
  close(): void {
    this.#isClosed = true;
    this.#spare = undefined;
    for (let next = this.#next(); next !== undefined; next = this.#next()) next.reject(closed());
  }

  /** Loads the missing processes, up to the limit. The loop ends even if each load fails at once. */
  #fill(): void {
    const isWanted = () =>
      !this.#isClosed && this.#loading < Math.min(this.#loadingMax, this.#missing);
    for (let attempts = this.#missing; attempts > 0 && isWanted(); attempts--) this.#load();
  }

  /** How many processes to load. No spare one while a caller waits: loading it would delay the caller. */
  get #missing(): number {
    const callers = this.#waiting.size + this.#early.size;
    if (callers > 0) return callers;
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
      // If no caller waits, the next call of `take` tries again.
      if (this.#waiting.size + this.#early.size === 0) return;
    }
    this.#fill();
  }

  #handOver(process: T): void {
    const waiting = this.#next();
    if (waiting !== undefined) waiting.resolve(process);
    else if (this.#spare === undefined && !this.#isClosed) this.#spare = process;
    else process.terminate();
  }

  #next(): Waiting<T> | undefined {
    const queue = this.#waiting.size > 0 ? this.#waiting : this.#early;
    const [first] = queue;
    if (first !== undefined) queue.delete(first);
    return first;
  }
}

function cancelled(): LeatError {
  return new LeatError("cancelled", "The process is not needed any more");
}

function closed(): LeatError {
  return new LeatError("cancelled", "The runners have been closed");
}
