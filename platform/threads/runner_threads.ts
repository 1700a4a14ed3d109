/** Runners on threads: a user function that spins or throws harms only its own thread. */
import * as comlink from "comlink";
import { AbortRace } from "../../core/abort_race.ts";
import { LeatError } from "../../core/error.ts";
import { Fifo } from "../../core/fifo.ts";
import type { SplitBounds } from "../../data/sharding/split_table.ts";
import type {
  CompressionWish,
  OwnStep,
  Runner,
  RunnerCaller,
  RunnerFactory,
  RunnerOutcome,
  RunnerSettings,
  RunnerSplits,
} from "../../actors/worker/runner/runner.ts";
import { PYTHON, type PythonPool } from "../python/python_pool.ts";
import { PythonProcesses } from "../python/python_processes.ts";
import { type StartThread, startThread } from "../../transport/start_thread.ts";
import { EndingThreads, type LateThreads } from "./ending_threads.ts";
import type { RunnerThreadControl, StepAnswer, StepRequest } from "./runner_thread.ts";
import type { WorkerStorage } from "../storage/storage.ts";
import { LOADING_MAX, type Supplied, Supply } from "../supply.ts";
import { wireSplits } from "./wire_splits.ts";

/** Limit of idle threads kept for the next task. Each costs memory, and Deno never frees all of it. */
const IDLE_THREADS_MAX = 4;
/** Time limit for a thread to dispose of its pipeline before it is terminated, in ms. */
const RETIRE_TIMEOUT_MS = 1_000;
/** A terminated thread that still runs after this time, in ms, counts as a runaway. */
const RUNAWAY_AFTER_MS = 120_000;

export interface RunnerThreadsOptions extends LateThreads {
  /** Starts the threads. Default: from the calling thread. */
  readonly start?: StartThread | undefined;
  /** Time in ms after which a terminated thread that still runs is a runaway. Default two minutes. */
  readonly runawayAfterMs?: number;
  /** Called for each thread that loads slowly, with advice. */
  readonly onSlowLoading?: (what: string) => void;
  /** Called when no thread could be started for a pipeline, which is tried again. */
  readonly onRetry?: (error: LeatError) => void;
  /** After how long a thread counts as slow, in ms. Default ten seconds. */
  readonly slowAfterMs?: number;
  /** Time limit for loading a thread, in ms. Then tasks start on another thread. Default two minutes. */
  readonly loadTimeoutMs?: number | undefined;
  /** Limit of threads that load at the same time. Default: the number of cores, at most 8. */
  readonly loadingMax?: number;
}

/** Limit of used buffers that wait to be sent back to the thread, which reuses them. */
const SPENT_MAX = 4;
/** After this time, in ms, a thread counts as slow to load. Even a busy machine takes far less. */
const SLOW_AFTER_MS = 10_000;
/** Time limit for loading a thread, in ms: as for the process of a confined runner. */
const LOAD_TIMEOUT_MS = 120_000;

export class RunnerThreads implements RunnerFactory {
  readonly #options: WorkerStorage;
  readonly #start: StartThread;
  readonly #threads = new Set<RunnerThread>();
  readonly #supply: Supply<RunnerThread>;
  readonly #runners = new Set<ThreadRunner>();
  readonly #ending: EndingThreads;
  readonly #runawayAfterMs: number;
  readonly #onSlowLoading: (what: string) => void;
  readonly #slowAfterMs: number;
  readonly #loadTimeoutMs: number;
  readonly #python = new PythonProcesses(PYTHON);

  constructor(
    options: WorkerStorage = {},
    {
      start = startThread,
      runawayAfterMs = RUNAWAY_AFTER_MS,
      onSlowLoading = () => {},
      slowAfterMs = SLOW_AFTER_MS,
      loadTimeoutMs = LOAD_TIMEOUT_MS,
      loadingMax = LOADING_MAX,
      onRetry,
      ...late
    }: RunnerThreadsOptions = {},
  ) {
    this.#options = options;
    this.#start = start;
    this.#ending = new EndingThreads(late);
    this.#runawayAfterMs = runawayAfterMs;
    this.#onSlowLoading = onSlowLoading;
    this.#slowAfterMs = slowAfterMs;
    this.#loadTimeoutMs = loadTimeoutMs;
    this.#supply = new Supply(() => this.#startThread(), {
      ...{ loadingMax, onRetry, returnedMax: IDLE_THREADS_MAX },
    });
  }

  get runaways(): number {
    return this.#ending.runaways;
  }

  start(settings: RunnerSettings, splits: RunnerSplits, caller?: RunnerCaller): Runner {
    const disposing = new AbortController();
    const thread = this.#supply.takePatiently(disposing.signal, caller);
    const runner = new ThreadRunner(thread, settings, splits, this.#python.open(caller?.owner), {
      cancel: () => {
        this.#runners.delete(runner);
        disposing.abort();
      },
      release: (thread) => this.#giveBack(thread, settings.name),
    });
    this.#runners.add(runner);
    return runner;
  }

  /**
   * Lists on a thread that stays available: a pipeline that starts there meanwhile may be delayed by
   * the listing, but usually needs those splits anyway.
   */
  async listSplits(
    graph: Uint8Array,
    signal?: AbortSignal,
    caller?: RunnerCaller,
  ): Promise<SplitBounds> {
    const thread = await this.#supply.share(signal, caller);
    if (signal?.aborted) throw LeatError.from(signal.reason);
    thread.listings++;
    const giveUp = () => {
      thread.listings--;
      thread.abandoned++;
      this.#endIfOccupied(thread, "a listing");
    };
    signal?.addEventListener("abort", giveUp, { once: true });
    const listed = await thread.call((control) => control.listSplits(graph)).finally(() => {
      signal?.removeEventListener("abort", giveUp);
      if (signal?.aborted === true) thread.abandoned--;
      else thread.listings--;
      this.#endIfOccupied(thread, "a listing");
    });
    if (listed.error !== undefined) throw LeatError.fromWire(listed.error);
    return listed.bounds;
  }

  close(): Promise<void> {
    this.#supply.close();
    for (const runner of this.#runners) runner.dispose();
    for (const thread of this.#threads) thread.terminate();
    this.#ending.close();
    return Promise.resolve();
  }

  #startThread(): RunnerThread {
    let slowTimer: ReturnType<typeof setTimeout> | undefined = undefined;
    let loadTimer: ReturnType<typeof setTimeout> | undefined = undefined;
    const clearTimers = () => {
      clearTimeout(slowTimer);
      clearTimeout(loadTimer);
    };
    const thread: RunnerThread = new RunnerThread(this.#options, this.#start, () => {
      this.#threads.delete(thread);
      clearTimers();
    });
    this.#threads.add(thread);
    slowTimer = setTimeout(() => {
      this.#onSlowLoading(
        `A pipeline thread is still loading after ${this.#slowAfterMs / 1_000} s. With ` +
          "`deno run --check` Deno checks the types of each thread's modules when it first loads them: " +
          "run `deno check` beforehand, and `deno run` without --check",
      );
    }, this.#slowAfterMs);
    loadTimer = setTimeout(() => {
      const seconds = this.#loadTimeoutMs / 1_000;
      this.#end(thread, "no pipeline", `its thread has not loaded within ${seconds} s`);
    }, this.#loadTimeoutMs);
    thread.loaded.then(clearTimers, clearTimers);
    return thread;
  }

  /** Returns a thread to the supply if it can dispose of its pipeline in time. */
  async #giveBack(thread: RunnerThread, name = "a pipeline"): Promise<void> {
    const isRetired = await thread.retire();
    if (!thread.isAlive) return; // its port is closed, so it cannot be watched
    if (!isRetired) return this.#end(thread, name);
    this.#supply.giveBack(thread);
    this.#endIfOccupied(thread, name);
  }

  /**
   * Ends a thread on which no pipeline may start. One that still runs a pipeline or an awaited listing
   * is kept until that is over.
   */
  #endIfOccupied(thread: RunnerThread, what: string): void {
    if (!thread.isOccupied || thread.listings > 0 || !this.#supply.withdraw(thread)) return;
    if (thread.isAlive) this.#end(thread, what);
  }

  /** Ends a thread that may stay busy, and watches it until it has ended. */
  #end(thread: RunnerThread, what: string, why?: string): void {
    const watching = this.#ending.watch(
      thread.port,
      what,
      this.#runawayAfterMs,
      thread.isLoaded,
    );
    thread.terminate(watching, why);
  }
}

/** How a runner gives up its thread. */
interface ThreadUse {
  /** Cancels the wait for a thread. */
  cancel(): void;
  /** Gives the thread back. Resolves when it has disposed of the pipeline, or has ended. */
  release(thread: RunnerThread): Promise<void>;
}

class ThreadRunner implements Runner {
  readonly #thread: Promise<RunnerThread>;
  readonly #started: Promise<RunnerThread>;
  readonly #use: ThreadUse;
  #splitsPort: MessagePort | undefined;
  #stepsPort: MessagePort | undefined;
  readonly #pending = new Fifo<PromiseWithResolvers<StepAnswer>>();
  /** The memory of earlier elements, which goes back to the thread with the next request. */
  #spent: ArrayBuffer[] = [];
  readonly #python: PythonPool;
  #disposed = false;
  bytesRead = 0;

  constructor(
    thread: Promise<RunnerThread>,
    settings: RunnerSettings,
    splits: RunnerSplits,
    python: PythonPool,
    use: ThreadUse,
  ) {
    this.#thread = thread;
    this.#python = python;
    this.#use = use;
    this.#started = thread.then((thread) => this.#start(thread, settings, splits));
    this.#started.catch(() => {});
  }

  async #start(
    thread: RunnerThread,
    settings: RunnerSettings,
    splits: RunnerSplits,
  ): Promise<RunnerThread> {
    if (this.#disposed) return thread;
    // A channel instead of comlink's proxy, because it is certain to be closed with the runner.
    const { port1, port2 } = new MessageChannel();
    this.#splitsPort = port1;
    comlink.expose(wireSplits(splits, this.#python), port1);
    const steps = new MessageChannel();
    this.#stepsPort = steps.port1;
    steps.port1.onmessage = ({ data }: MessageEvent<StepAnswer>) =>
      this.#pending.shift()?.resolve(data);
    await thread.call((control) =>
      control.start(
        settings,
        comlink.transfer(port2, [port2]),
        comlink.transfer(steps.port2, [steps.port2]),
      )
    );
    return thread;
  }

  async next(ownStep?: OwnStep, wish?: CompressionWish): Promise<RunnerOutcome> {
    if (this.#disposed) return { kind: "end" };
    const thread = await this.#started;
    if (this.#disposed) return { kind: "end" };
    const spent = this.#spent;
    this.#spent = [];
    const answered = Promise.withResolvers<StepAnswer>();
    this.#pending.push(answered);
    this.#stepsPort!.postMessage({ only: ownStep, wish, spent } satisfies StepRequest, spent);
    const answer = await thread.orDeath(answered.promise);
    if ("error" in answer) throw LeatError.fromWire(answer.error);
    this.bytesRead = answer.bytesRead;
    return answer.outcome;
  }

  recycle(buffer: ArrayBuffer): void {
    if (!this.#disposed && this.#spent.length < SPENT_MAX) this.#spent.push(buffer);
  }

  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#spent = [];
    this.#splitsPort?.close();
    this.#python.close();
    this.#use.cancel();
    const released = this.#thread.then((thread) => this.#use.release(thread), () => {});
    if (this.#pending.length === 0) this.#stepsPort?.close();
    else released.then(() => this.#endSteps());
  }

  /** Ends the open steps. The thread has disposed of the pipeline or has ended, and answers no more. */
  #endSteps(): void {
    this.#stepsPort?.close();
    const end = { outcome: { kind: "end" }, bytesRead: this.bytesRead } as const;
    while (this.#pending.length > 0) this.#pending.shift()!.resolve(end);
  }
}

/** One thread. Every call to it settles. */
class RunnerThread implements Supplied {
  /** The number of listings of splits that run on it and are awaited. */
  listings = 0;
  /** The number of listings that are no longer awaited, but may still run. */
  abandoned = 0;
  /**
   * Whether it keeps modules that pipelines imported. If their files change, a pipeline that started
   * there would run the old functions, and the same pipeline on a new thread the new ones.
   */
  keepsModules = false;
  /** Whether it has loaded. Until then no user function runs on it. */
  isLoaded = false;
  readonly port: MessagePort;
  readonly #end: () => void;
  readonly #control: comlink.Remote<RunnerThreadControl>;
  readonly #ready: Promise<unknown>;
  readonly #death = new AbortRace();
  readonly #onDeath: () => void;

  /** @param onDeath Called when it has ended. */
  constructor(options: WorkerStorage, start: StartThread, onDeath: () => void) {
    this.#onDeath = onDeath;
    const { port1, port2 } = new MessageChannel();
    this.port = port1;
    try {
      this.#end = start(import.meta.resolve("./runner_thread.ts"), "leat-runner", port2, (why) => {
        this.#die(`its thread died: ${why}`);
      });
    } catch (error) {
      port1.close();
      port2.close();
      throw error;
    }
    this.#control = comlink.wrap<RunnerThreadControl>(port1);
    this.#ready = this.call((control) => control.configure(options), Promise.resolve());
    this.#ready.then(() => this.isLoaded = true, () => {});
  }

  get isAlive(): boolean {
    return !this.#death.isAborted;
  }

  /** Whether no pipeline may start on it: an abandoned listing runs there, or it keeps modules. */
  get isOccupied(): boolean {
    return this.abandoned > 0 || this.keepsModules;
  }

  /** Whether a listing that is awaited runs on it. */
  get isShared(): boolean {
    return this.listings > 0;
  }

  /** Resolves when the thread has loaded. Rejects if it dies first. */
  get loaded(): Promise<unknown> {
    return this.#ready;
  }

  /** Calls the thread. Rejects with `unavailable` if it dies: a bare comlink call would hang. */
  async call<T>(
    use: (control: comlink.Remote<RunnerThreadControl>) => PromiseLike<T>,
    after: Promise<unknown> = this.#ready,
  ): Promise<T> {
    await this.#death.race(after);
    return await this.#death.race(use(this.#control));
  }

  /** Awaits an answer of the thread; rejects with `unavailable` if the thread dies first. */
  orDeath<T>(promised: Promise<T>): Promise<T> {
    return this.#death.race(promised);
  }

  /** Makes the thread dispose of its pipeline. Returns false if it does not within the time limit. */
  async retire(): Promise<boolean> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), RETIRE_TIMEOUT_MS);
    });
    const retired = this.call((control) => control.retire()).then((keepsModules) => {
      this.keepsModules = keepsModules;
      return true;
    });
    try {
      return await Promise.race([retired, late]);
    } catch {
      return false;
    } finally {
      clearTimeout(timer);
    }
  }

  /** @param ready Resolves when the thread's port may be closed. Default: at once. */
  terminate(ready?: Promise<void>, why = "its thread was terminated"): void {
    this.#die(why, ready);
  }

  #die(why: string, ready?: Promise<void>): void {
    if (!this.isAlive) return;
    this.#end();
    if (ready === undefined) this.port.close();
    else ready.then(() => this.port.close());
    this.#onDeath();
    this.#death.abort(new LeatError("unavailable", `The runner is gone: ${why}`));
  }
}
