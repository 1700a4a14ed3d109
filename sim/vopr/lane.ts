/**
 * A thread that runs seeds. It is replaced when it dies or a seed does not end. The failure is reported
 * for that seed, and the other seeds continue.
 */
import { LeatError } from "../../core/error.ts";
import { brokenOff, READY, type SeedOutcome, type SeedRun } from "./seed_run.ts";

/** How to set up a {@linkcode Lane}. */
interface LaneOptions {
  /** Time limit of a seed, after which its thread is ended. */
  readonly seedTimeoutMs: number;
  /** The thread's module. Default: `seed_thread.ts`. */
  readonly module?: URL;
}

interface Pending {
  readonly run: SeedRun;
  readonly resolve: (outcome: SeedOutcome) => void;
  readonly reject: (error: LeatError) => void;
}

/** A thread and its queue of seeds. */
export class Lane implements Disposable {
  readonly #options: LaneOptions;
  /** Queued seeds. The thread runs the first one as soon as it is ready. */
  readonly #pending: Pending[] = [];
  #thread: Worker | undefined;
  #isReady = false;
  #watchdog: ReturnType<typeof setTimeout> | undefined;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  /**
   * Queues a seed.
   * @throws LeatError `unavailable` if the thread cannot be started.
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

  /** Ends the thread. Pending seeds get no answer. */
  [Symbol.dispose](): void {
    clearTimeout(this.#watchdog);
    this.#pending.length = 0;
    this.#thread?.terminate();
    this.#thread = undefined;
    this.#isReady = false;
  }

  /**
   * Starts a thread, and sends nothing before it is ready. Otherwise the error of a fatal seed could
   * arrive before the ready message, and look as if the thread did not start.
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
    const unstarted = this.#pending.splice(0);
    this[Symbol.dispose]();
    for (const { reject } of unstarted) reject(error);
  }

  /** Ends the thread because of its current seed. The following seeds get a new thread. */
  #replace(why: string): void {
    const [first, ...rest] = this.#pending.splice(0);
    this[Symbol.dispose]();
    this.#pending.push(...rest);
    if (rest.length > 0) this.#start();
    first?.resolve(brokenOff(first.run, why));
  }

  /** Starts the time limit of the first pending seed. */
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
