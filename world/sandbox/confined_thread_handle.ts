/**
 * A confined thread as the worker's own thread holds it: every call to it settles, and nothing that it
 * says is taken for more than data.
 *
 * @module
 */
import * as comlink from "comlink";
import { Ending } from "../../core/ending.ts";
import { LeatError } from "../../core/error.ts";
import { isPlainObject } from "../../core/tree.ts";
import type { RunnerSplits } from "../../actors/worker/runner.ts";
import type { ConfinedStart } from "./confined_thread.ts";
import { Edge, type EdgeMethods } from "./edge.ts";
import type { EndingThreads } from "../ending_threads.ts";
import type { FetchedModules } from "./fetched_modules.ts";
import { permissionsOf, programAccess, type SandboxGrants } from "./grants.ts";
import type { HostThread, HostThreads } from "./host_threads.ts";
import type { SuppliedThread } from "./thread_supply.ts";
import { isCount, unexpected } from "./untrusted_answers.ts";
import type { ThreadEnd, WardenControl } from "./warden_thread.ts";

/** How long a thread may take to load its program, in ms: one that never does would hold its task for ever. */
const LOAD_TIMEOUT_MS = 120_000;
/** How long a warden has to end its thread before it is ended itself, in ms, unless it is said. */
const STOP_TIMEOUT_MS = 5_000;
/** How often within the time allowed a thread is asked whether it still gives way. */
const STALL_CHECKS = 4;
/** A thread that ends what stalls tells so within this many times the time allowed; others never do. */
const STALL_PATIENCE = 1.5;

/** What a thread meets. */
export interface ThreadOptions {
  readonly grants: SandboxGrants;
  readonly hosts: HostThreads;
  readonly modules: FetchedModules;
  /** Delay added to every open and read of a file, in ms. */
  readonly storageLatencyMs: number;
  /** How long it may take to load its program, in ms. Default two minutes. */
  readonly loadTimeoutMs?: number;
  /** How long it has to end in order, in ms. Default five seconds. */
  readonly stopTimeoutMs?: number;
  /** Who sees to it that it ends. */
  readonly ending: EndingThreads;
  /** Called once it has been told to end. */
  readonly onEnded: (thread: ConfinedThread) => void;
}

/** Counts the threads of this process, so that an error can name one. */
let threads = 0;

/** See the module. It serves one pipeline: a function may have changed what others would run on. */
export class ConfinedThread implements SuppliedThread {
  readonly #number = ++threads;
  readonly #options: ThreadOptions;
  readonly #worker: Worker;
  readonly #warden: comlink.Remote<WardenControl>;
  readonly #control: Edge;
  /** Settles when the thread has loaded its program, which may take long on a busy machine, or never will. */
  readonly loaded: Promise<unknown>;
  /** The same, whatever else has ended it. */
  readonly #answers: Promise<unknown>;
  /** Settles when the thread has ended. */
  readonly #guarded: Promise<unknown>;
  readonly #death = new Ending();
  /** Leads to a port of the confined thread that is open as long as the thread is there. */
  readonly #lifePort: MessagePort;
  readonly #stopTimeoutMs: number;
  /** Within how long it has to end once it is told to, in ms. */
  #endsWithinMs: number;
  /** Before, no function runs on it. */
  #isLoaded = false;
  #name = "a listing";
  /** Where the confined thread will ask its host; listened to once it says that it is about to. */
  readonly #hostPort: MessagePort;
  #host: Promise<HostThread> | undefined;
  #splits: RunnerSplits | undefined;
  #asks = 0;
  #stallCheck: ReturnType<typeof setInterval> | undefined;
  #heardAtMs = 0;
  #stopped: Promise<void> | undefined;

  constructor(options: ThreadOptions) {
    this.#options = options;
    const { grants, storageLatencyMs } = options;
    const program = programAccess(grants);
    this.#worker = new Worker(new URL("./warden_thread.ts", import.meta.url), {
      type: "module",
      name: "leat-warden",
      deno: { permissions: permissionsOf(grants, program) },
    });
    this.#worker.addEventListener("error", (event) => {
      event.preventDefault();
      this.#die(new LeatError("unavailable", `The runner is gone: ${event.message}`));
    });
    const control = new MessageChannel();
    const host = new MessageChannel();
    const life = new MessageChannel();
    this.#hostPort = host.port1;
    this.#lifePort = life.port1;
    this.#stopTimeoutMs = options.stopTimeoutMs ?? STOP_TIMEOUT_MS;
    this.#endsWithinMs = grants.stallTimeoutMs * STALL_PATIENCE + this.#stopTimeoutMs;
    this.#control = new Edge(control.port1, this.#methods(), (error) => this.#die(error));
    this.#warden = comlink.wrap<WardenControl>(this.#worker);
    const start: ConfinedStart = {
      control: control.port2,
      host: host.port2,
      life: life.port2,
      readable: grants.readable.map(({ realPath }) => realPath),
      writable: grants.writable.map(({ realPath }) => realPath),
      program,
      storageLatencyMs,
      stallTimeoutMs: grants.stallTimeoutMs,
    };
    this.#guarded = this.#warden.guard(
      comlink.transfer(start, [start.control, start.host, start.life]),
      grants.heapBytesMax,
    )
      .then((end) => this.#errorOf(end), LeatError.from)
      .then((error) => this.#die(error));
    this.#answers = this.#load().catch(() => {});
    this.loaded = this.#death.before(this.#answers);
    this.loaded.catch(() => {});
  }

  /** Whether it can still be asked. */
  get isAlive(): boolean {
    return !this.#death.hasCome;
  }

  /**
   * Says which pipeline it is for, and where the pipeline's splits come from; before that there are
   * none.
   */
  serve(splits: RunnerSplits, name = "a pipeline"): void {
    this.#splits = splits;
    this.#name = name;
  }

  /**
   * Asks the thread, which has loaded.
   *
   * @throws {LeatError} what it answers; `unavailable` when it dies first, `resource_exhausted` when it does so for want of memory,
   * `deadline_exceeded` when it is ended because a function does not give way.
   */
  async ask(method: string, args?: unknown): Promise<unknown> {
    if (this.#asks++ === 0) this.#watch();
    try {
      return await this.#death.before(this.#control.ask(method, args));
    } finally {
      if (--this.#asks === 0) clearInterval(this.#stallCheck);
    }
  }

  /** Ends the thread, whatever it is doing. Idempotent. */
  terminate(): Promise<void> {
    return this.#stopped ??= this.#stop();
  }

  async #load(): Promise<void> {
    const { loadTimeoutMs = LOAD_TIMEOUT_MS } = this.#options;
    const late = setTimeout(() => {
      this.#die(
        new LeatError(
          "unavailable",
          `The runner is gone: its thread (number ${this.#number} of this process) has not loaded ` +
            `its program within ${loadTimeoutMs / 1_000} s, and no function has run on it; the ` +
            "machine may have too much to do; restart the worker if this goes on",
        ),
      );
    }, loadTimeoutMs);
    try {
      await this.#control.ask("ping");
      this.#isLoaded = true;
    } finally {
      clearTimeout(late);
    }
  }

  #methods(): EdgeMethods {
    return {
      split: async (request) => {
        if (!isPlainObject(request)) throw unexpected("an ask for a split");
        const { source, repetition } = request;
        if (!isCount(source) || !isCount(repetition)) throw unexpected("an ask for a split");
        return await this.#splits?.next(source, repetition) ?? null;
      },
      total: async (source) => {
        if (!isCount(source)) throw unexpected("an ask for a number of splits");
        return await this.#splits?.total(source) ?? 0;
      },
      module: async (url) => {
        if (typeof url !== "string" || !URL.canParse(url)) throw unexpected("an ask for a module");
        return await this.#options.modules.get(url);
      },
      exhausted: () => this.#die(this.#errorOf({ why: "memory", message: "" })),
      stalled: () => this.#die(stalled(this.#options.grants.stallTimeoutMs)),
      host: async () => {
        const { hosts } = this.#options;
        await (this.#host ??= hosts.serve(this.#hostPort, (why) => {
          this.#die(new LeatError("unavailable", `The runner's host is gone: ${why}`));
        }));
        return null;
      },
    };
  }

  /** While an answer is due, finds out whether the thread still gives way to its messages. */
  #watch(): void {
    const { stallTimeoutMs } = this.#options.grants;
    const everyMs = stallTimeoutMs / STALL_CHECKS;
    this.#heardAtMs = performance.now();
    let dueMs = this.#heardAtMs + everyMs;
    let asking = false;
    this.#stallCheck = setInterval(() => {
      // While this thread stood still it heard nobody: that time is not the other's.
      const nowMs = performance.now();
      this.#heardAtMs = Math.min(nowMs, this.#heardAtMs + Math.max(0, nowMs - dueMs));
      dueMs = nowMs + everyMs;
      if (nowMs - this.#heardAtMs > stallTimeoutMs * STALL_PATIENCE) {
        // It has not ended itself.
        this.#endsWithinMs = this.#stopTimeoutMs;
        return this.#die(stalled(stallTimeoutMs));
      }
      if (asking) return;
      asking = true;
      this.#control.ask("ping").then(() => {
        asking = false;
        this.#heardAtMs = performance.now();
      }, () => {});
    }, everyMs);
  }

  #errorOf({ why, message }: ThreadEnd): LeatError {
    switch (why) {
      case "memory":
        return new LeatError(
          "resource_exhausted",
          `The runner is gone: its functions took more memory than ${
            this.#options.grants.heapBytesMax / 2 ** 20
          } MiB of JavaScript values; a worker with a larger --function-heap-mib allows more`,
        );
      case "error":
        return new LeatError("unavailable", `The runner is gone: its thread died: ${message}`);
      case "exit":
        return new LeatError("unavailable", "The runner is gone: its thread ended by itself");
    }
  }

  #die(error: LeatError): void {
    this.#death.come(error);
    this.terminate();
  }

  async #stop(): Promise<void> {
    this.#death.come(new LeatError("unavailable", "The runner is gone: its thread was terminated"));
    clearInterval(this.#stallCheck);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => timer = setTimeout(resolve, this.#stopTimeoutMs));
    // One that is ended while it loads may leave a lock of Deno's held, at which all later ones would wait.
    await Promise.race([this.#answers, this.#guarded, late]);
    const { ending } = this.#options;
    await ending.watch(this.#lifePort, this.#name, this.#endsWithinMs, this.#isLoaded);
    this.#lifePort.close();
    this.#control.close();
    this.#hostPort.close();
    this.#host?.then((host) => this.#options.hosts.give(host)).catch(() => {});
    await Promise.race([this.#warden.stop(), late]);
    clearTimeout(timer);
    this.#worker.terminate();
    // Errors of threads that ended with this one may lead here, for as long as anybody has them.
    this.#splits = undefined;
    // Else comlink would hold all this for ever: its books lead to the worker, and that leads back here.
    this.#warden[comlink.releaseProxy]();
    this.#options.onEnded(this);
  }
}

function stalled(stallTimeoutMs: number): LeatError {
  return new LeatError(
    "deadline_exceeded",
    `The runner is gone: a function held its thread for more than ${stallTimeoutMs / 1_000} s ` +
      "without giving way, as an endless loop does; a worker with a larger --function-timeout-ms allows more",
  );
}
