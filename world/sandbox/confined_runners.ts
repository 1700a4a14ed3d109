/**
 * Runners on confined threads: for pipelines whose functions may be anybody's.
 *
 * The running program needs `"unstable": ["worker-options"]` in its `deno.json`, or the flag
 * `--unstable-worker-options`: without it Deno ends the process when such a thread is made.
 *
 * @module
 */
import type { SplitTable } from "../../data/splits.ts";
import type {
  CompressionWish,
  OwnStep,
  Runner,
  RunnerFactory,
  RunnerOutcome,
  RunnerSettings,
  RunnerSplits,
} from "../../actors/worker/runner.ts";
import { EndingThreads, type LateThreads } from "../ending_threads.ts";
import type { WorkerStorage } from "../storage.ts";
import { ConfinedThread, type ThreadOptions } from "./confined_thread_handle.ts";
import { FetchedModules } from "./fetched_modules.ts";
import type { SandboxGrants } from "./grants.ts";
import { HostThreads } from "./host_threads.ts";
import { ThreadSupply } from "./thread_supply.ts";
import { splitTableOf, steppedOf } from "./untrusted_answers.ts";

/** Threads that load at a time: more than there are cores to load them would only hold each other up. */
const LOADING_MAX = Math.min(8, navigator.hardwareConcurrency);

/** How confined runners are set up, beside what they are granted. */
export interface ConfinedRunnersOptions extends LateThreads {
  /** Threads that load at a time. Default: as many as there are cores, at most 8. */
  readonly loadingMax?: number;
  /** How long one may take to load, in ms. Default two minutes. */
  readonly loadTimeoutMs?: number;
  /** How long one has to end in order, in ms. Default five seconds. */
  readonly stopTimeoutMs?: number;
}

/** Makes runners, each on a confined thread of its own. */
export class ConfinedRunners implements RunnerFactory {
  readonly #hosts: HostThreads;
  readonly #modules: FetchedModules;
  readonly #threads = new Set<ConfinedThread>();
  readonly #ending: EndingThreads;
  readonly #supply: ThreadSupply<ConfinedThread>;

  constructor(
    grants: SandboxGrants,
    storage: WorkerStorage = {},
    { loadingMax = LOADING_MAX, loadTimeoutMs, stopTimeoutMs, ...late }: ConfinedRunnersOptions =
      {},
  ) {
    const { storageLatencyMs = 0 } = storage;
    this.#hosts = new HostThreads(grants, storage);
    this.#modules = new FetchedModules(grants.imports);
    this.#ending = new EndingThreads(late);
    const options: ThreadOptions = {
      ending: this.#ending,
      ...{ grants, hosts: this.#hosts, storageLatencyMs },
      modules: this.#modules,
      ...(loadTimeoutMs === undefined ? {} : { loadTimeoutMs }),
      ...(stopTimeoutMs === undefined ? {} : { stopTimeoutMs }),
      onEnded: (thread) => this.#threads.delete(thread),
    };
    this.#supply = new ThreadSupply(() => {
      const thread = new ConfinedThread(options);
      this.#threads.add(thread);
      return thread;
    }, loadingMax);
  }

  /** How many threads were told to end and have not yet. */
  get ending(): number {
    return this.#ending.count;
  }

  get runaways(): number {
    return this.#ending.runaways;
  }

  start(settings: RunnerSettings, splits: RunnerSplits): Runner {
    return new ConfinedRunner(this.#supply, settings, splits);
  }

  async listSplits(graph: Uint8Array, signal?: AbortSignal): Promise<SplitTable> {
    const thread = await this.#supply.take(signal);
    signal?.addEventListener("abort", () => thread.terminate(), { once: true });
    try {
      return splitTableOf(await thread.ask("listSplits", graph));
    } finally {
      thread.terminate();
    }
  }

  async close(): Promise<void> {
    this.#supply.close();
    this.#modules.close();
    await Promise.all([...this.#threads].map((thread) => thread.terminate()));
    this.#ending.close();
    this.#hosts.close();
  }
}

/** A runner on a confined thread. */
class ConfinedRunner implements Runner {
  readonly #disposing = new AbortController();
  readonly #thread: Promise<ConfinedThread>;
  readonly #started: Promise<ConfinedThread>;
  bytesRead = 0;

  constructor(
    supply: ThreadSupply<ConfinedThread>,
    settings: RunnerSettings,
    splits: RunnerSplits,
  ) {
    this.#thread = supply.take(this.#disposing.signal);
    this.#started = this.#thread.then(async (thread) => {
      thread.serve(splits, settings.name);
      await thread.ask("start", settings);
      return thread;
    });
    this.#started.catch(() => {});
  }

  async next(only?: OwnStep, wish?: CompressionWish): Promise<RunnerOutcome> {
    if (this.#isDisposed) return { kind: "end" };
    const thread = await this.#started;
    if (this.#isDisposed) return { kind: "end" };
    const { outcome, bytesRead } = steppedOf(await thread.ask("next", { only, wish }));
    this.bytesRead = bytesRead;
    return outcome;
  }

  dispose(): void {
    this.#disposing.abort();
    this.#thread.then((thread) => thread.terminate(), () => {});
  }

  get #isDisposed(): boolean {
    return this.#disposing.signal.aborted;
  }
}
