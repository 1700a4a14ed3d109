/** Runners on threads: a user function that spins or throws harms only its own thread. */
import * as comlink from "comlink";
import { Fifo } from "../../actors/runtime/fifo.ts";
import { AbortRace } from "../../core/abort_race.ts";
import { LeatError } from "../../core/error.ts";
import type { SplitBounds } from "../../data/sharding/split_table.ts";
import type {
  CompressionWish,
  OwnStep,
  Runner,
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
import { wireSplits } from "./wire_splits.ts";

/** Idle threads kept for the next task: each costs some memory, and Deno never frees all of it. */
const IDLE_THREADS_MAX = 4;
/** Time limit for a thread to dispose of its pipeline before it is terminated, in ms. */
const RETIRE_TIMEOUT_MS = 1_000;
/** How long after its termination a thread may run on before it counts as a runaway, in ms. */
const RUNAWAY_AFTER_MS = 120_000;

export interface RunnerThreadsOptions extends LateThreads {
  /** Starts the threads. Default: from the calling thread. */
  readonly start?: StartThread | undefined;
  /** How long a terminated thread may run on before it is a runaway, in ms. Default two minutes. */
  readonly runawayAfterMs?: number;
  /** Called for each thread that loads slowly, with advice. */
  readonly onSlowLoading?: (what: string) => void;
  /** After how long a thread counts as slow, in ms. Default ten seconds. */
  readonly slowAfterMs?: number;
  /** Time limit for loading, in ms; then tasks start on another thread. Default ten minutes. */
  readonly loadTimeoutMs?: number;
}

/** Limit of used buffers that wait to be sent back to the thread, which reuses them. */
const SPENT_MAX = 4;
/** After this time, in ms, a thread counts as slow to load. Even on a busy machine it takes far less. */
const SLOW_AFTER_MS = 10_000;
/** Time limit for loading a thread, in ms. */
const LOAD_TIMEOUT_MS = 600_000;

export class RunnerThreads implements RunnerFactory {
  readonly #options: WorkerStorage;
  readonly #start: StartThread;
  readonly #idle: RunnerThread[] = [];
  readonly #busy = new Set<RunnerThread>();
  readonly #runners = new Set<ThreadRunner>();
  readonly #ending: EndingThreads;
  readonly #runawayAfterMs: number;
  readonly #onSlowLoading: (what: string) => void;
  readonly #slowAfterMs: number;
  readonly #loadTimeoutMs: number;
  readonly #python = new PythonProcesses(PYTHON);
  #closed = false;

  constructor(
    options: WorkerStorage = {},
    {
      start = startThread,
      runawayAfterMs = RUNAWAY_AFTER_MS,
      onSlowLoading = () => {},
      slowAfterMs = SLOW_AFTER_MS,
      loadTimeoutMs = LOAD_TIMEOUT_MS,
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
    // Started early: a thread takes a tenth of a second or more to load.
    this.#idle.push(this.#startThread());
  }

  get runaways(): number {
    return this.#ending.runaways;
  }

  start(settings: RunnerSettings, splits: RunnerSplits): Runner {
    const thread = this.#take();
    const runner = new ThreadRunner(thread, settings, splits, this.#python.open(), () => {
      this.#runners.delete(runner);
      return this.#give(thread, settings.name);
    });
    this.#runners.add(runner);
    return runner;
  }

  /**
   * Lists on a thread of the pool, which stays available. If a pipeline starts there meanwhile, it waits
   * for the listing, whose splits it needs anyway.
   */
  async listSplits(graph: Uint8Array, signal?: AbortSignal): Promise<SplitBounds> {
    signal?.throwIfAborted();
    const thread = this.#take();
    this.#busy.delete(thread);
    this.#idle.push(thread);
    thread.listings++;
    // No pipeline may start on a thread that runs an abandoned listing, so this ends the thread. It
    // keeps a thread that runs a pipeline or another listing, and one that is still loading: nothing
    // runs there yet, and a new thread would have to load from the beginning.
    const giveUp = () => {
      thread.listings--;
      const isAbandoned = thread.listings === 0 && thread.isLoaded;
      if (isAbandoned && this.#idle.includes(thread)) this.#end(thread, "a listing");
    };
    signal?.addEventListener("abort", giveUp, { once: true });
    const listed = await thread.call((control) => {
      if (signal?.aborted) throw LeatError.from(signal.reason);
      return control.listSplits(graph);
    }).finally(() => {
      signal?.removeEventListener("abort", giveUp);
      if (signal?.aborted !== true) thread.listings--;
    });
    if (listed.error !== undefined) throw LeatError.fromWire(listed.error);
    return listed.bounds;
  }

  close(): Promise<void> {
    this.#closed = true;
    for (const runner of this.#runners) runner.dispose();
    for (const thread of [...this.#idle, ...this.#busy]) thread.terminate();
    this.#idle.length = 0;
    this.#busy.clear();
    this.#ending.close();
    return Promise.resolve();
  }

  #take(): RunnerThread {
    if (this.#closed) throw new LeatError("cancelled", "The runners have been closed");
    const thread = this.#idle.pop() ?? this.#startThread();
    this.#busy.add(thread);
    return thread;
  }

  #startThread(): RunnerThread {
    let slow: ReturnType<typeof setTimeout> | undefined = undefined;
    let late: ReturnType<typeof setTimeout> | undefined = undefined;
    const settled = () => {
      clearTimeout(slow);
      clearTimeout(late);
    };
    const thread: RunnerThread = new RunnerThread(this.#options, this.#start, () => {
      const at = this.#idle.indexOf(thread);
      if (at >= 0) this.#idle.splice(at, 1);
      settled();
    });
    slow = setTimeout(() => {
      this.#onSlowLoading(
        `A pipeline thread is still loading after ${this.#slowAfterMs / 1_000} s. With ` +
          "`deno run --check` Deno checks the types of each thread's modules when it first loads them: " +
          "run `deno check` beforehand, and `deno run` without --check",
      );
    }, this.#slowAfterMs);
    late = setTimeout(() => {
      this.#busy.delete(thread);
      const seconds = this.#loadTimeoutMs / 1_000;
      this.#end(thread, "no pipeline", `its thread has not loaded within ${seconds} s`);
    }, this.#loadTimeoutMs);
    thread.loaded.then(settled, settled);
    return thread;
  }

  /** Returns a thread to the pool if it can dispose of its pipeline in time. */
  async #give(thread: RunnerThread, name = "a pipeline"): Promise<void> {
    const clean = await thread.retire();
    this.#busy.delete(thread);
    if (!thread.isAlive) return; // with its port closed there is nothing left to watch
    if (!clean) this.#end(thread, name);
    else if (this.#closed || this.#idle.length >= IDLE_THREADS_MAX) thread.terminate();
    else this.#idle.push(thread);
  }

  /** Ends a thread that may be busy for long. */
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

class ThreadRunner implements Runner {
  readonly #thread: RunnerThread;
  readonly #started: Promise<void>;
  readonly #giveBack: () => Promise<void>;
  readonly #splitsPort: MessagePort;
  readonly #stepsPort: MessagePort;
  readonly #asked = new Fifo<PromiseWithResolvers<StepAnswer>>();
  /** Memory of earlier elements, which goes back to the thread with the next request. */
  #spent: ArrayBuffer[] = [];
  readonly #python: PythonPool;
  #disposed = false;
  bytesRead = 0;

  constructor(
    thread: RunnerThread,
    settings: RunnerSettings,
    splits: RunnerSplits,
    python: PythonPool,
    giveBack: () => Promise<void>,
  ) {
    this.#thread = thread;
    this.#python = python;
    this.#giveBack = giveBack;
    // Our own channel instead of comlink's proxy: it closes with the runner, whatever happens.
    const { port1, port2 } = new MessageChannel();
    this.#splitsPort = port1;
    comlink.expose(wireSplits(splits, python), port1);
    const steps = new MessageChannel();
    this.#stepsPort = steps.port1;
    steps.port1.onmessage = ({ data }: MessageEvent<StepAnswer>) =>
      this.#asked.shift()?.resolve(data);
    this.#started = thread.call((control) =>
      control.start(
        settings,
        comlink.transfer(port2, [port2]),
        comlink.transfer(steps.port2, [steps.port2]),
      )
    );
    this.#started.catch(() => {});
  }

  async next(only?: OwnStep, wish?: CompressionWish): Promise<RunnerOutcome> {
    if (this.#disposed) return { kind: "end" };
    await this.#started;
    if (this.#disposed) return { kind: "end" };
    const spent = this.#spent;
    this.#spent = [];
    const answered = Promise.withResolvers<StepAnswer>();
    this.#asked.push(answered);
    this.#stepsPort.postMessage({ only, wish, spent } satisfies StepRequest, spent);
    const answer = await this.#thread.orDeath(answered.promise);
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
    this.#splitsPort.close();
    this.#python.close();
    const isOver = this.#giveBack();
    if (this.#asked.length === 0) this.#stepsPort.close();
    else isOver.then(() => this.#endSteps());
  }

  /** Ends open steps: the thread has disposed of the pipeline or has ended, and answers no more. */
  #endSteps(): void {
    this.#stepsPort.close();
    const end = { outcome: { kind: "end" }, bytesRead: this.bytesRead } as const;
    while (this.#asked.length > 0) this.#asked.shift()!.resolve(end);
  }
}

/** One thread. Every call to it settles. */
class RunnerThread {
  /** The number of awaited listings of splits that run on it. */
  listings = 0;
  /** Whether it has loaded. Until then no user function runs on it. */
  isLoaded = false;
  readonly port: MessagePort;
  readonly #end: () => void;
  readonly #control: comlink.Remote<RunnerThreadControl>;
  readonly #ready: Promise<unknown>;
  readonly #death = new AbortRace();
  readonly #onDeath: () => void;

  /** @param onDeath Called once it has ended. */
  constructor(options: WorkerStorage, start: StartThread, onDeath: () => void) {
    this.#onDeath = onDeath;
    const { port1, port2 } = new MessageChannel();
    this.port = port1;
    this.#end = start(import.meta.resolve("./runner_thread.ts"), "leat-runner", port2, (why) => {
      this.#die(`its thread died: ${why}`);
    });
    this.#control = comlink.wrap<RunnerThreadControl>(port1);
    this.#ready = this.call((control) => control.configure(options), Promise.resolve());
    this.#ready.then(() => this.isLoaded = true, () => {});
  }

  get isAlive(): boolean {
    return !this.#death.isAborted;
  }

  /** Rejects if the thread dies first. */
  get loaded(): Promise<unknown> {
    return this.#ready;
  }

  /** Calls the thread; rejects with `unavailable` if it dies (a bare comlink call would hang). */
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

  /** Asks the thread to dispose of its pipeline; false when it does not within the time limit. */
  async retire(): Promise<boolean> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), RETIRE_TIMEOUT_MS);
    });
    try {
      return await Promise.race([this.call((control) => control.retire()).then(() => true), late]);
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
