/**
 * Runners on confined threads: for pipelines whose functions may be anybody's.
 *
 * The running program needs `"unstable": ["worker-options"]` in its `deno.json`, or the flag
 * `--unstable-worker-options`: without it Deno ends the process when such a thread is made.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
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
import type { WorkerStorage } from "../storage.ts";
import { ConfinedThread } from "./confined_thread_handle.ts";
import type { SandboxGrants } from "./grants.ts";
import { HostThreads } from "./host_threads.ts";
import { splitTableOf, steppedOf } from "./untrusted_answers.ts";

/** Makes runners, each on a confined thread of its own. */
export class ConfinedRunners implements RunnerFactory {
  readonly #grants: SandboxGrants;
  readonly #storageLatencyMs: number;
  readonly #hosts: HostThreads;
  readonly #threads = new Set<ConfinedThread>();
  /** Started before it is needed: a thread takes Deno more than half a second. */
  #spare: ConfinedThread;
  #closed = false;

  constructor(grants: SandboxGrants, storage: WorkerStorage = {}) {
    this.#grants = grants;
    this.#storageLatencyMs = storage.storageLatencyMs ?? 0;
    this.#hosts = new HostThreads(grants, storage);
    this.#spare = this.#startThread();
  }

  start(settings: RunnerSettings, splits: RunnerSplits): Runner {
    const thread = this.#take();
    thread.serveSplits(splits);
    return new ConfinedRunner(thread, settings, () => this.#end(thread));
  }

  async listSplits(graph: Uint8Array): Promise<SplitTable> {
    const thread = this.#take();
    try {
      return splitTableOf(await thread.ask("listSplits", graph));
    } finally {
      this.#end(thread);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#threads].map((thread) => thread.terminate()));
    this.#hosts.close();
  }

  #take(): ConfinedThread {
    if (this.#closed) throw new LeatError("cancelled", "The runners have been closed");
    const spare = this.#spare;
    this.#spare = this.#startThread();
    if (spare.isAlive) return spare;
    this.#threads.delete(spare);
    return this.#startThread();
  }

  #startThread(): ConfinedThread {
    const thread = new ConfinedThread({
      grants: this.#grants,
      hosts: this.#hosts,
      storageLatencyMs: this.#storageLatencyMs,
    });
    this.#threads.add(thread);
    return thread;
  }

  async #end(thread: ConfinedThread): Promise<void> {
    await thread.terminate();
    this.#threads.delete(thread);
  }
}

/** A runner on a confined thread. */
class ConfinedRunner implements Runner {
  readonly #thread: ConfinedThread;
  readonly #started: Promise<unknown>;
  readonly #end: () => void;
  #disposed = false;
  bytesRead = 0;

  constructor(thread: ConfinedThread, settings: RunnerSettings, end: () => void) {
    this.#thread = thread;
    this.#end = end;
    this.#started = thread.ask("start", settings);
    this.#started.catch(() => {});
  }

  async next(only?: OwnStep, wish?: CompressionWish): Promise<RunnerOutcome> {
    if (this.#disposed) return { kind: "end" };
    await this.#started;
    if (this.#disposed) return { kind: "end" };
    const { outcome, bytesRead } = steppedOf(await this.#thread.ask("next", { only, wish }));
    this.bytesRead = bytesRead;
    return outcome;
  }

  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#end();
  }
}
