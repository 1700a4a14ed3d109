/** Starts processes or threads for callers. Few load at a time: more would only delay each other. */
import { setTimeout as sleep } from "node:timers/promises";
import type { RunnerCaller } from "../actors/worker/runner/runner.ts";
import { Turns } from "../actors/worker/runner/turns.ts";
import { LeatError, type LeatErrorCode } from "../core/error.ts";

/** Limit of runners that load at the same time: more of them than cores would delay each other. */
export const LOADING_MAX = Math.min(8, navigator.hardwareConcurrency);
/** Pause after a failed load, in ms. It doubles with each further one of a caller, up to the maximum. */
const RETRY_MIN_MS = 1_000;
const RETRY_MAX_MS = 60_000;
/** How often a caller's load is tried: for two minutes if each fails at once. */
const TRIES_MAX = 8;
/** Errors of loads for want of what may come back: memory, processes, open files, time. */
const PASSING: ReadonlySet<LeatErrorCode> = new Set(["unavailable", "resource_exhausted"]);

/** A process or a thread that takes a while to load. */
export interface Supplied {
  /** Resolves when it accepts requests; rejects if it never will. */
  readonly loaded: Promise<unknown>;
  readonly isAlive: boolean;
  /** Whether it is occupied, so that no caller gets it now. Left out: never. */
  readonly isOccupied?: boolean;
  /** Whether a caller of `share` uses it, so that it must not end. Left out: never. */
  readonly isShared?: boolean;
  terminate(): unknown;
}

export interface SupplyOptions {
  /** Limit of those that load at the same time. */
  readonly loadingMax: number;
  /**
   * How many unneeded ones are kept if callers give them back. Then a spare one is loaded only at the
   * beginning, until one is withdrawn. Default: nothing comes back, so a spare one is always loaded.
   */
  readonly returnedMax?: number;
  /** Called when `takePatiently` will try again, with the reason. */
  readonly onRetry?: ((error: LeatError) => void) | undefined;
  /** The pause of `takePatiently` after its first failed load, in ms. Default: a second. */
  readonly retryMinMs?: number;
}

interface Waiting<T> {
  readonly owner: string;
  resolve(item: T): void;
  reject(error: unknown): void;
}

/** Waiting callers. Their identities take turns; the order of an identity's callers counts. */
class Queue<T> {
  readonly #turns = new Turns(() => new Set<Waiting<T>>());
  size = 0;

  add(waiting: Waiting<T>): void {
    this.#turns.queueOf(waiting.owner).add(waiting);
    this.size++;
  }

  delete(waiting: Waiting<T>): boolean {
    const isHere = this.#turns.queueOf(waiting.owner).delete(waiting);
    this.#turns.forgetIdle(waiting.owner);
    if (isHere) this.size--;
    return isHere;
  }

  shift(): Waiting<T> | undefined {
    const turn = this.#turns.begin();
    if (turn === undefined) return undefined;
    const first = turn.queue.values().next().value!;
    turn.queue.delete(first);
    this.#turns.end(turn.owner);
    this.size--;
    return first;
  }
}

/**
 * Assigns processes or threads to callers, and keeps a spare one. Callers that somebody waits for come
 * first; otherwise the order of the calls counts, but identities take turns. A caller gets what has
 * loaded. If it has cancelled by then, the next caller gets it.
 */
export class Supply<T extends Supplied> {
  readonly #start: () => T;
  readonly #options: SupplyOptions;
  /** Waiting callers that somebody waits for, in the order in which that began. */
  readonly #waiting = new Queue<T>();
  /** Waiting callers that nobody waits for yet, in the order of their calls. */
  readonly #early = new Queue<T>();
  #loading = 0;
  /** Loaded ones for the next callers. */
  readonly #spares = new Set<T>();
  readonly #closing = new AbortController();
  /** How many spare ones are loaded ahead of callers. */
  #sparesMin: number;

  /** Starts to load the spare one. */
  constructor(start: () => T, options: SupplyOptions) {
    this.#start = start;
    this.#options = options;
    this.#sparesMin = options.returnedMax === undefined ? 1 : 0;
    this.#fill(1);
  }

  /**
   * Resolves to a process or thread for the caller alone.
   * @param signal Cancels the call.
   * @param caller Who needs it. Left out: this program, which waits already.
   * @throws {LeatError} `cancelled` if `signal` is aborted or the supply is closed, or the reason why
   * loading failed.
   */
  async take(signal?: AbortSignal, caller?: RunnerCaller): Promise<T> {
    this.#requireOpen(signal);
    const spare = this.#freeSpare();
    if (spare === undefined) return await this.#wait(signal, caller);
    this.#spares.delete(spare);
    this.#fill();
    return spare;
  }

  /**
   * Like `take`, but tries again a few times while the machine lacks what a load needs. No function has
   * run then, so this says nothing about the caller's pipeline. What lasts is reported at last.
   */
  async takePatiently(signal: AbortSignal, caller?: RunnerCaller): Promise<T> {
    const { retryMinMs = RETRY_MIN_MS, onRetry = () => {} } = this.#options;
    let pauseMs = retryMinMs;
    for (let tries = 1;; tries++) {
      try {
        return await this.take(signal, caller);
      } catch (thrown) {
        const error = LeatError.from(thrown);
        if (!PASSING.has(error.code) || tries === TRIES_MAX) throw error;
        onRetry(error);
      }
      // If the pause is aborted, the next call of `take` says why.
      const options = { signal: AbortSignal.any([signal, this.#closing.signal]) };
      await sleep(pauseMs, undefined, options).catch(() => {});
      pauseMs = Math.min(2 * pauseMs, RETRY_MAX_MS);
    }
  }

  /** Like `take`, but the next callers may get it, too. */
  async share(signal?: AbortSignal, caller?: RunnerCaller): Promise<T> {
    this.#requireOpen(signal);
    const spare = this.#freeSpare();
    if (spare !== undefined) return spare;
    const taken = await this.#wait(signal, caller);
    this.giveBack(taken);
    return taken;
  }

  /** Takes back what a caller no longer needs. */
  giveBack(item: T): void {
    if (item.isAlive) this.#handOver(item);
  }

  /**
   * Takes back what no caller may get any more. Returns false if a caller has it. Otherwise a spare one
   * is always loaded from now on, because later ones may not come back either.
   */
  withdraw(item: T): boolean {
    if (!this.#spares.delete(item)) return false;
    this.#sparesMin = 1;
    this.#fill();
    return true;
  }

  /** Starts nothing more, and rejects waiting callers. What was started keeps running. */
  close(): void {
    this.#closing.abort();
    this.#spares.clear();
    for (let next = this.#next(); next !== undefined; next = this.#next()) next.reject(closed());
  }

  async #wait(
    signal: AbortSignal | undefined,
    { owner, asked }: RunnerCaller = { owner: "" },
  ): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const waiting = { owner, resolve, reject };
    const cancel = () => {
      if (!this.#early.delete(waiting)) this.#waiting.delete(waiting);
      reject(cancelled());
    };
    if (asked === undefined) this.#waiting.add(waiting);
    else {
      this.#early.add(waiting);
      asked.then(() => this.#early.delete(waiting) && this.#waiting.add(waiting));
    }
    signal?.addEventListener("abort", cancel, { once: true });
    this.#fill();
    try {
      return await promise;
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  #requireOpen(signal: AbortSignal | undefined): void {
    if (this.#isClosed) throw closed();
    if (signal?.aborted) throw cancelled();
  }

  /** The newest spare one that callers may get. */
  #freeSpare(): T | undefined {
    for (const spare of this.#spares) if (!spare.isAlive) this.#spares.delete(spare);
    return [...this.#spares].findLast(({ isOccupied }) => isOccupied !== true);
  }

  /** Loads what is missing, up to the limit. The loop ends even if each load fails at once. */
  #fill(spares = this.#sparesMin): void {
    // No spare one while a caller waits: loading it would delay the caller.
    const missing = () => this.#callers > 0 ? this.#callers : spares - this.#spares.size;
    const isWanted = () =>
      !this.#isClosed && this.#loading < Math.min(this.#options.loadingMax, missing());
    for (let attempts = missing(); attempts > 0 && isWanted(); attempts--) this.#load();
  }

  get #callers(): number {
    return this.#waiting.size + this.#early.size;
  }

  async #load(): Promise<void> {
    this.#loading++;
    let item: T | undefined;
    try {
      item = this.#start();
      await item.loaded;
      this.#loading--;
      this.#handOver(item);
    } catch (error) {
      this.#loading--;
      // It may still run: what it was told at its start may have failed.
      item?.terminate();
      this.#next()?.reject(error);
      // If no caller waits, the next call of `take` tries again. If the start failed at once, the loop
      // that called this continues.
      if (this.#callers === 0 || item === undefined) return;
    }
    this.#fill();
  }

  #handOver(item: T): void {
    const { returnedMax: sparesMax = 1 } = this.#options;
    const waiting = item.isOccupied === true ? undefined : this.#next();
    if (waiting !== undefined) waiting.resolve(item);
    else if (this.#isClosed) item.terminate();
    else {
      this.#spares.add(item);
      if (this.#spares.size > sparesMax) this.#endNewestUnused();
    }
  }

  /** Ends the newest spare one that no caller shares. If all are shared, all stay. */
  #endNewestUnused(): void {
    const unused = [...this.#spares].findLast(({ isShared }) => isShared !== true);
    if (unused === undefined) return;
    this.#spares.delete(unused);
    unused.terminate();
  }

  #next(): Waiting<T> | undefined {
    return this.#waiting.shift() ?? this.#early.shift();
  }
}

function cancelled(): LeatError {
  return new LeatError("cancelled", "The runner is not needed any more");
}

function closed(): LeatError {
  return new LeatError("cancelled", "The runners have been closed");
}
