/** Runs pipelines with untrusted functions, each in a confined process. */
import type { LeatError } from "../../core/error.ts";
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
  RunnerUsage,
} from "../../actors/worker/runner/runner.ts";
import { FramePool } from "../../transport/codec.ts";
import type { WorkerStorage } from "../storage/storage.ts";
import { GrantedPython } from "../python/granted_python.ts";
import { storeCompiledRunner } from "./compiled_runner.ts";
import { ConfinedProcess, type ProcessOptions } from "./confined_process.ts";
import { FetchedModules } from "./modules/fetched_modules.ts";
import type { SandboxGrants } from "./grants.ts";
import type { KernelGuards } from "./guards/kernel_guards.ts";
import { HostProcesses } from "./host/host_processes.ts";
import { LOADING_MAX, Supply } from "../supply.ts";
import { splitBoundsOf, steppedOf } from "./untrusted_answers.ts";

/** How long a process that has listed a graph's splits waits for the graph's task, in ms. */
const LISTED_MS_MAX = 2_000;

export interface ConfinedRunnersOptions {
  /** Limit of processes that load at the same time. Default: the number of cores, at most 8. */
  readonly loadingMax?: number;
  /** Time limit for loading a process, in ms. Default two minutes. */
  readonly loadTimeoutMs?: number;
  /** How long a process that has listed a graph's splits waits for the graph's task, in ms. Default 2 s. */
  readonly listedMsMax?: number;
  /** Called when no process could be started for a pipeline, which is tried again. */
  readonly onRetry?: (error: LeatError) => void;
  /** Called once if the kernel lacks Landlock or the filter of system calls. */
  readonly onGuardMissing?: (guards: KernelGuards) => void;
}

export class ConfinedRunners implements RunnerFactory {
  readonly #hosts: HostProcesses;
  readonly #modules: FetchedModules;
  readonly #processes = new Set<ConfinedProcess>();
  readonly #supply: Supply<ConfinedProcess>;
  /** Memory for the elements of all processes. Each use overwrites a whole buffer, so no data leaks. */
  readonly #pool = new FramePool();
  readonly #listedMsMax: number;
  #storing: Promise<void> | undefined;
  /** A process that has listed a graph's splits, and so has loaded when the graph's task starts. */
  #listed:
    | {
      readonly graph: Uint8Array;
      readonly process: ConfinedProcess;
      readonly timer: ReturnType<typeof setTimeout>;
    }
    | undefined;
  /** The resource usage of ended processes. */
  readonly #ended = { cpuSeconds: 0 };

  constructor(
    grants: SandboxGrants,
    storage: WorkerStorage = {},
    {
      loadingMax = LOADING_MAX,
      loadTimeoutMs,
      listedMsMax = LISTED_MS_MAX,
      onGuardMissing = () => {},
      onRetry,
    }: ConfinedRunnersOptions = {},
  ) {
    this.#listedMsMax = listedMsMax;
    let isReported = false;
    const { storageLatencyMs = 0 } = storage;
    this.#hosts = new HostProcesses(grants, storage, { onRetry });
    this.#modules = new FetchedModules(grants.imports);
    const options: ProcessOptions = {
      ...{ grants, hosts: this.#hosts, storageLatencyMs, modules: this.#modules },
      pool: this.#pool,
      python: new GrantedPython(grants.python, grants.stallTimeoutMs),
      ...(loadTimeoutMs === undefined ? {} : { loadTimeoutMs }),
      onGuarded: (guards) => {
        if (isReported || guards.landlock > 0 && guards.callFilter) return;
        isReported = true;
        onGuardMissing(guards);
      },
      onEnded: (process) => {
        this.#processes.delete(process);
        this.#ended.cpuSeconds += process.usage.cpuSeconds;
      },
    };
    this.#supply = new Supply(() => {
      const process = new ConfinedProcess(options);
      // Compiled code is stored only after the first process has loaded: storing would delay that.
      this.#storing ??= process.loaded.then(storeCompiledRunner, () => {});
      this.#processes.add(process);
      return process;
    }, { loadingMax, onRetry });
  }

  get processes(): number {
    return this.#processes.size;
  }

  get usage(): RunnerUsage {
    let { cpuSeconds } = this.#ended;
    let memoryBytes = 0;
    for (const { usage } of this.#processes) {
      cpuSeconds += usage.cpuSeconds;
      memoryBytes += usage.memoryBytes;
    }
    return { cpuSeconds, memoryBytes };
  }

  start(settings: RunnerSettings, splits: RunnerSplits, caller?: RunnerCaller): Runner {
    const disposing = new AbortController();
    const process = this.#takeListed(settings.graph) ??
      this.#supply.takePatiently(disposing.signal, caller);
    return new ConfinedRunner(process, disposing, settings, splits, caller?.owner, this.#pool);
  }

  async listSplits(
    graph: Uint8Array,
    signal?: AbortSignal,
    caller?: RunnerCaller,
  ): Promise<SplitBounds> {
    const process = await this.#supply.take(signal, caller);
    const stop = () => process.terminate();
    signal?.addEventListener("abort", stop, { once: true });
    try {
      const bounds = splitBoundsOf(await process.ask("listSplits", graph));
      this.#keepListed(graph, process);
      return bounds;
    } catch (error) {
      process.terminate();
      throw error;
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  }

  /** Keeps a process for the graph's task. This is safe, because listing splits calls no user function. */
  #keepListed(graph: Uint8Array, process: ConfinedProcess): void {
    this.#dropListed();
    const timer = setTimeout(() => this.#dropListed(), this.#listedMsMax);
    this.#listed = { graph, process, timer };
  }

  #takeListed(graph: Uint8Array): Promise<ConfinedProcess> | undefined {
    const listed = this.#listed;
    if (listed === undefined || !equalBytes(graph, listed.graph)) return undefined;
    this.#listed = undefined;
    clearTimeout(listed.timer);
    return listed.process.isAlive ? Promise.resolve(listed.process) : undefined;
  }

  #dropListed(): void {
    clearTimeout(this.#listed?.timer);
    this.#listed?.process.terminate();
    this.#listed = undefined;
  }

  /** Resolves when all processes have ended. */
  async close(): Promise<void> {
    this.#supply.close();
    this.#dropListed();
    this.#modules.close();
    await Promise.all([...this.#processes].map((process) => process.terminate()));
    await this.#storing;
    await this.#hosts.close();
  }
}

class ConfinedRunner implements Runner {
  readonly #disposing: AbortController;
  readonly #process: Promise<ConfinedProcess>;
  readonly #started: Promise<ConfinedProcess>;
  /** Whether several threads share the memory of elements. */
  readonly #isShared: boolean;
  readonly #pool: FramePool;
  bytesRead = 0;

  constructor(
    process: Promise<ConfinedProcess>,
    disposing: AbortController,
    settings: RunnerSettings,
    splits: RunnerSplits,
    owner: string | undefined,
    pool: FramePool,
  ) {
    this.#pool = pool;
    this.#isShared = settings.shared;
    this.#process = process;
    this.#disposing = disposing;
    this.#started = this.#process.then(async (process) => {
      process.serve(splits, settings.forTask, owner);
      await process.ask("run", { ...settings, shared: false });
      return process;
    });
    this.#started.catch(() => {});
  }

  async next(ownStep?: OwnStep, wish?: CompressionWish): Promise<RunnerOutcome> {
    if (this.#isDisposed) return { kind: "end" };
    const process = await this.#started;
    if (this.#isDisposed) return { kind: "end" };
    const { outcome, bytesRead, usage } = steppedOf(
      await process.ask("next", { only: ownStep, wish }),
    );
    this.bytesRead = bytesRead;
    if (usage !== undefined) process.recordUsage(usage);
    return this.#isShared && "frame" in outcome
      ? { ...outcome, frame: this.#shared(outcome.frame) }
      : outcome;
  }

  recycle(buffer: ArrayBuffer): void {
    this.#pool.give(buffer);
  }

  dispose(): void {
    this.#disposing.abort();
    this.#process.then((process) => process.terminate(), () => {});
  }

  get #isDisposed(): boolean {
    return this.#disposing.signal.aborted;
  }

  /** Copies a frame to memory that threads share. */
  #shared(frame: Uint8Array): Uint8Array {
    const copy = new Uint8Array(new SharedArrayBuffer(frame.byteLength));
    copy.set(frame);
    if (frame.buffer instanceof ArrayBuffer) this.recycle(frame.buffer);
    return copy;
  }
}

function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}
