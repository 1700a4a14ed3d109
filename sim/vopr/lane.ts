/**
 * A thread that runs seeds, replaced when it dies or when a seed does not end: neither is lost, and
 * both are reported with the seed.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { brokenOff, READY, type SeedOutcome, type SeedRun } from "./seed_run.ts";

/** How to set up a {@linkcode Lane}. */
export interface LaneOptions {
  /** How long a seed may take before its thread is given up. */
  readonly seedTimeoutMs: number;
  /** The thread's module. Default: `seed_thread.ts`. */
  readonly module?: URL;
}

interface Pending {
  readonly run: SeedRun;
  readonly resolve: (outcome: SeedOutcome) => void;
  readonly reject: (error: LeatError) => void;
}

/** See the module. */
export class Lane implements Disposable {
  readonly #options: LaneOptions;
  /** In order; the thread is at the first once it is ready. */
  readonly #pending: Pending[] = [];
  #thread: Worker | undefined;
  #isReady = false;
  #watchdog: ReturnType<typeof setTimeout> | undefined;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  /**
   * Runs a seed after those before it.
   *
   * @throws LeatError `unavailable` if the thread cannot be started at all.
   */
  run(run: SeedRun): Promise<SeedOutcome> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ run, resolve, reject });
      if (this.#thread === undefined) this.#start();
      if (!this.#isReady) return;
      this.#thread!.postMessage(run);
      if (this.#pending.length === 1) this.#watch();
    });
  }

  /** Ends the thread; what it was at is not answered. */
  [Symbol.dispose](): void {
    clearTimeout(this.#watchdog);
    this.#pending.length = 0;
    this.#thread?.terminate();
    this.#thread = undefined;
    this.#isReady = false;
  }

  /**
   * Starts a thread, which is sent nothing before it is ready: the error of a seed that ends it could
   * overtake its word that it is, and look as if it did not start.
   */
  #start(): void {
    const module = this.#options.module ?? new URL("./seed_thread.ts", import.meta.url);
    const thread = new Worker(module, { type: "module" });
    thread.onmessage = ({ data }: MessageEvent<SeedOutcome | typeof READY>) => {
      if (data === READY) this.#ready(thread);
      else this.#ended(data);
    };
    thread.onerror = (event) => {
      event.preventDefault();
      this.#died(event.message);
    };
    this.#thread = thread;
    this.#isReady = false;
  }

  #ready(thread: Worker): void {
    this.#isReady = true;
    for (const { run } of this.#pending) thread.postMessage(run);
    this.#watch();
  }

  #ended(outcome: SeedOutcome): void {
    this.#pending.shift()!.resolve(outcome);
    this.#watch();
  }

  #died(message: string): void {
    if (this.#isReady) return this.#replace(`its thread has died: ${message}`);
    const error = new LeatError("unavailable", `A thread for seeds does not start: ${message}`);
    const lost = this.#pending.splice(0);
    this[Symbol.dispose]();
    for (const { reject } of lost) reject(error);
  }

  /** The seed that the thread is at has ended it, or will not end; those behind it get a new thread. */
  #replace(why: string): void {
    const [first, ...rest] = this.#pending.splice(0);
    this[Symbol.dispose]();
    this.#pending.push(...rest);
    if (rest.length > 0) this.#start();
    first?.resolve(brokenOff(first.run, why));
  }

  #watch(): void {
    clearTimeout(this.#watchdog);
    if (this.#pending.length === 0) return;
    const { seedTimeoutMs } = this.#options;
    this.#watchdog = setTimeout(
      () => this.#replace(`it has not ended after ${seedTimeoutMs / 1_000} s`),
      seedTimeoutMs,
    );
  }
}
