/** The parent's handle of a confined process, which runs one pipeline of a worker or a trainer. */
import { shownLines, shownUrls } from "../../core/shown_text.ts";
import { fieldsOf } from "../../core/tree.ts";
import { AbortRace } from "../../core/abort_race.ts";
import { LeatError, type LeatErrorCode } from "../../core/error.ts";
import { givenBy, type RunnerSplits, type RunnerUsage } from "../../actors/worker/runner/runner.ts";
import type { FramePool } from "../../transport/codec.ts";
import { bodyBytes } from "../../transport/limits.ts";
import { Payload } from "../../transport/payload.ts";
import { UNTRUSTED_ENVELOPE_BYTES_MAX } from "../../transport/process/link.ts";
import { SLOT_BYTES_MAX, SLOTS } from "../../transport/process/slots.ts";
import { type ChildEnd, ChildProcess, ranOutOfMemory } from "../process/child_process.ts";
import type { GrantedPython } from "../python/granted_python.ts";
import type { PythonPool } from "../python/python_pool.ts";
import { ByteGate } from "./byte_gate.ts";
import type { FetchedModules } from "./modules/fetched_modules.ts";
import {
  CONFINED_ASK_BYTES_MAX,
  Edge,
  type EdgeMethods,
  explainsEnd,
  HOST_READ_BYTES_MAX,
  hostRequestTooLarge,
  plainError,
} from "./edge.ts";
import { permissionFlags, type SandboxGrants } from "./grants.ts";
import type { ReadingTask } from "../../data/service/reading_task.ts";
import type { HostProcesses, TaskHost } from "./host/host_processes.ts";
import type { KernelGuards } from "./guards/kernel_guards.ts";
import type { ConfinedStart } from "./runner_program.ts";
import type { Supplied } from "../supply.ts";
import { isCount } from "../../core/count.ts";
import { ReportedUsage } from "./reported_usage.ts";
import { unexpected } from "./untrusted_answers.ts";

export interface ProcessOptions {
  readonly grants: SandboxGrants;
  readonly hosts: HostProcesses;
  readonly modules: FetchedModules;
  readonly python: GrantedPython;
  readonly storageLatencyMs: number;
  readonly loadTimeoutMs?: number;
  /** Called with the kernel guards of the process, before user functions run in it. */
  readonly onGuarded: (guards: KernelGuards) => void;
  readonly onEnded: (process: ConfinedProcess) => void;
  /** Provides the memory for elements of the process. Default: new memory. */
  readonly pool?: FramePool;
  /** What error messages suggest when a limit is exceeded. Default: options of a worker. */
  readonly remedies?: LimitRemedies;
  /** Methods that the process may call in addition to those of every runner. Default: none. */
  readonly methods?: EdgeMethods;
  /** Whether an idle process keeps this program alive. Default `true`; otherwise only open requests do. */
  readonly keepsProgram?: boolean;
}

/** What error messages suggest when a limit is exceeded; each is the end of a sentence. */
interface LimitRemedies {
  readonly memory: string;
  readonly stall: string;
}

const WORKER_REMEDIES: LimitRemedies = {
  memory: "a worker with a larger --function-heap-mib and --function-memory-mib allows more",
  stall: "a worker with a larger --function-timeout-ms allows more",
};

/** Time limit for loading a process, in ms. */
const LOAD_TIMEOUT_MS = 120_000;
/** How often within the stall timeout a runner is pinged, to check that it still yields. */
const STALL_CHECKS = 8;
/** Limit of a runner's open files. Its link and its program need about 20. */
const OPEN_FILES_MAX = 1_024;
const MIB = 2 ** 20;
/** What V8 says if it gets no memory for a thread, namely for the code that it will generate there. */
const THREAD_WITHOUT_MEMORY = "virtual memory for CodeRange";
/** The limits can be low: while the link is full, `#answerLarge` delays large answers. */
const LINK_LIMITS = { highWaterBytes: MIB, lowWaterBytes: MIB / 4 };
/** Limit of a runner's requests per second: many times what a pipeline needs. */
const ASKS_PER_SECOND_MAX = 50_000;
/** Limit of concurrent large answers of a kind: each core can decode an image while another is sent. */
const LARGE_ANSWERS_MAX = navigator.hardwareConcurrency + 1;
/**
 * Limit of the bytes of concurrent reads of far files, and of those that wait to be sent: as many as
 * a runner's 64 requests for 1 MiB.
 */
const READS_BYTES_MAX = 64 * MIB;
/** Answers of any length, which are rare, and of which only one is computed at a time. */
const LONG_ANSWERS: ReadonlySet<unknown> = new Set(["list", "serviceDataset"]);

export class ConfinedProcess implements Supplied {
  readonly loaded: Promise<unknown>;
  readonly #usage: ReportedUsage;
  readonly #options: ProcessOptions;
  readonly #child: ChildProcess;
  readonly #edge: Edge;
  readonly #death = new AbortRace();
  #host: TaskHost | undefined;
  #forTask: ReadingTask | undefined;
  #owner: string | undefined;
  #python: PythonPool | undefined;
  #splits: RunnerSplits | undefined;
  /** Large answers by kind: what waits for a trainer, a service or Python delays no image. */
  readonly #large = {
    decode: new ByteGate(LARGE_ANSWERS_MAX),
    serviceNext: new ByteGate(LARGE_ANSWERS_MAX),
    read: new ByteGate(LARGE_ANSWERS_MAX),
    python: new ByteGate(LARGE_ANSWERS_MAX),
    module: new ByteGate(LARGE_ANSWERS_MAX),
  };
  readonly #reads = new ByteGate(READS_BYTES_MAX);
  readonly #longAnswers = new ByteGate(1);
  #hostRequestBytes = 0;
  #openRequests = 0;
  #stallCheck: ReturnType<typeof setInterval> | undefined;
  /** When the process last responded, for the stall timeout. */
  #respondedMs = 0;

  constructor(options: ProcessOptions) {
    this.#options = options;
    const { grants, storageLatencyMs } = options;
    this.#usage = new ReportedUsage({
      startMs: performance.now(),
      cores: navigator.hardwareConcurrency,
      memoryBytesMax: grants.memoryBytesMax,
    });
    this.#child = new ChildProcess({
      name: "runner",
      program: import.meta.resolve("./runner_program.ts"),
      flags: [
        ...permissionFlags(grants),
        `--v8-flags=--max-old-space-size=${Math.floor(grants.heapBytesMax / MIB)}`,
      ],
      limits: {
        readable: grants.readable.map(({ realPath }) => realPath),
        writable: grants.writable.map(({ realPath }) => realPath),
        allowsNetwork: grants.net.length > 0,
        memoryBytesMax: grants.memoryBytesMax,
        // No limit if pipelines may write to folders (`--allow-write`): those files may be larger.
        ...(grants.writable.length === 0 ? { fileBytesMax: SLOTS * SLOT_BYTES_MAX } : {}),
        openFilesMax: OPEN_FILES_MAX,
      },
      link: {
        envelopeBytesMax: UNTRUSTED_ENVELOPE_BYTES_MAX,
        limits: LINK_LIMITS,
        ...(options.pool === undefined ? {} : { pool: options.pool }),
      },
    });
    const methods = { ...this.#methods(), ...options.methods };
    this.#edge = new Edge(this.#child.link, this.#child.local, methods, {
      asksPerSecondMax: ASKS_PER_SECOND_MAX,
      askBytesMax: CONFINED_ASK_BYTES_MAX,
    });
    // If the edge closes, the process is killed: how it exits says more about the cause than the
    // end of its pipes.
    this.#edge.closed.then((why) => this.#closed(why));
    this.#child.ended.then((end) => {
      this.#die(this.#errorOf(end));
      options.onEnded(this);
    });
    const start: ConfinedStart = {
      readable: grants.readable.map(({ realPath }) => realPath),
      imports: grants.imports,
      storageLatencyMs,
    };
    this.loaded = this.#load(start);
    this.loaded.catch(() => {});
  }

  /** Whether the process still accepts requests. */
  get isAlive(): boolean {
    return !this.#death.isAborted;
  }

  /** The resource usage that the process has reported. */
  get usage(): RunnerUsage {
    return this.#usage.usage;
  }

  /** Records the resource usage that the process has reported. */
  recordUsage(usage: RunnerUsage): void {
    this.#usage.report(usage, performance.now());
  }

  /**
   * Sets the source of the pipeline's splits, the task for which its host reads services, and the
   * identity for which it calls Python functions. Before this call the process gets no splits.
   */
  serve(splits: RunnerSplits, forTask?: ReadingTask, owner?: string): void {
    this.#splits = splits;
    this.#owner = owner;
    this.#forTask = forTask;
    this.#host?.assign(forTask);
  }

  /**
   * Sends a request to the process. Call this after the process has loaded.
   * @throws {LeatError} the error that the process answers. If the process dies, `details.reason` is
   * `"runner_died"`, with `deadline_exceeded` if it was killed because a function did not yield,
   * `resource_exhausted` if it ran out of memory, and `unavailable` otherwise.
   */
  async ask(method: string, args?: unknown): Promise<unknown> {
    if (this.#openRequests++ === 0) this.#beginAsking();
    try {
      return await this.#edge.askUntil(this.#death, method, args);
    } finally {
      if (--this.#openRequests === 0) this.#stopAsking();
    }
  }

  /** Kills the process, whatever it is doing. Resolves when it has ended. Idempotent. */
  async terminate(): Promise<void> {
    this.#die(runnerGone("unavailable", "it was ended"));
    this.#child.ref();
    await this.#child.ended;
  }

  #beginAsking(): void {
    this.#child.ref();
    this.#watch();
  }

  #stopAsking(): void {
    clearInterval(this.#stallCheck);
    this.#release();
  }

  /** Lets this program end, unless requests are open or `keepsProgram` is set. */
  #release(): void {
    const { keepsProgram = true } = this.#options;
    if (!keepsProgram && this.#openRequests === 0 && this.isAlive) this.#child.unref();
  }

  async #load(start: ConfinedStart): Promise<void> {
    const { loadTimeoutMs = LOAD_TIMEOUT_MS } = this.#options;
    const timer = setTimeout(() => {
      this.#die(
        new LeatError(
          "unavailable",
          `A process for a pipeline has not loaded its program within ${loadTimeoutMs / 1_000} ` +
            "s, and no function has run in it; the machine may be overloaded",
        ),
      );
    }, loadTimeoutMs);
    try {
      // The answer can be trusted, because no user function has run in the process yet.
      this.#options.onGuarded(
        await this.#edge.askUntil(this.#death, "start", start) as KernelGuards,
      );
      this.#release();
    } finally {
      clearTimeout(timer);
    }
  }

  #methods(): EdgeMethods {
    return {
      split: async (request) => {
        const { source, repetition } = fieldsOf(request);
        if (!isCount(source) || !isCount(repetition)) throw unexpected("a request for a split");
        return await this.#splits?.next(source, repetition) ?? null;
      },
      total: async (source) => {
        if (!isCount(source)) throw unexpected("a request for a number of splits");
        return await this.#splits?.total(source) ?? 0;
      },
      read: async (request) => {
        const { split, from } = fieldsOf(request);
        if (!isCount(split) || !isCount(from)) throw unexpected("a request for elements");
        const read = async () => new Payload(await givenBy(this.#splits, split, from));
        return await this.#answerLarge(this.#large.read, read);
      },
      module: async (url) => {
        if (typeof url !== "string" || !URL.canParse(url)) {
          throw unexpected("a request for a module");
        }
        return await this.#answerLarge(this.#large.module, () => this.#options.modules.get(url));
      },
      python: async (request) => {
        const { file, name, calls } = fieldsOf(request);
        const isCall = typeof file === "string" && typeof name === "string";
        if (!isCall || !(calls instanceof Payload)) throw unexpected("a call of a Python function");
        const python = this.#python ??= this.#options.python.open(this.#owner);
        const call = () => python.run({ file, name, calls: calls.bytes });
        return await this.#answerLarge(this.#large.python, call);
      },
      host: async (request) => {
        const { method, args } = fieldsOf(request);
        if (typeof method !== "string") throw unexpected("a request to its host");
        const byteLength = bodyBytes(args);
        if (this.#hostRequestBytes + byteLength > CONFINED_ASK_BYTES_MAX) {
          throw hostRequestTooLarge(`this one of ${byteLength} bytes`);
        }
        this.#hostRequestBytes += byteLength;
        try {
          return await this.#askHost(method, args);
        } finally {
          this.#hostRequestBytes -= byteLength;
        }
      },
    };
  }

  #askHost(method: string, args: unknown): Promise<unknown> {
    const host = this.#host ??= this.#options.hosts.open(this.#forTask);
    const send = () => host.ask(method, args);
    if (method === "decode" || method === "serviceNext") {
      return this.#answerLarge(this.#large[method], send);
    }
    if (LONG_ANSWERS.has(method)) return this.#longAnswers.run(1, () => this.#whenReady(send));
    return method === "read" ? this.#reads.run(readBytesOf(args), () => this.#read(send)) : send();
  }

  /** Reads ahead of a runner, because far storage is slow; but not without end. */
  async #read<T>(send: () => Promise<T>): Promise<T> {
    if (this.#edge.bufferedBytes >= READS_BYTES_MAX) await this.#edge.ready();
    return await send();
  }

  /** Computes an answer only when the link has space for more. */
  async #whenReady<T>(compute: () => Promise<T>): Promise<T> {
    await this.#edge.ready();
    return await compute();
  }

  /** Computes a large answer when both its kind and the link have space for it. */
  #answerLarge<T>(gate: ByteGate, compute: () => Promise<T>): Promise<T> {
    return gate.run(1, () => this.#whenReady(compute));
  }

  /** Checks, while an answer is due, that the process still yields to its event loop. */
  #watch(): void {
    const { stallTimeoutMs } = this.#options.grants;
    const everyMs = stallTimeoutMs / STALL_CHECKS;
    this.#respondedMs = performance.now();
    let dueMs = this.#respondedMs + everyMs;
    let isPinging = false;
    this.#stallCheck = setInterval(() => {
      // Time in which this thread was blocked does not count against the process.
      const nowMs = performance.now();
      this.#respondedMs = Math.min(nowMs, this.#respondedMs + Math.max(0, nowMs - dueMs));
      dueMs = nowMs + everyMs;
      if (nowMs - this.#respondedMs > stallTimeoutMs) {
        return this.#die(stalled(stallTimeoutMs, this.#remedies.stall));
      }
      if (isPinging) return;
      isPinging = true;
      this.#edge.ask("ping").then(() => {
        isPinging = false;
        this.#respondedMs = performance.now();
      }, () => {});
    }, everyMs);
  }

  #errorOf(end: ChildEnd): LeatError {
    const { code, signal, stderrTail } = end;
    const { heapBytesMax, memoryBytesMax } = this.#options.grants;
    if (ranOutOfMemory(end)) {
      const who = stderrTail.includes(THREAD_WITHOUT_MEMORY)
        ? "a function started a thread, for which V8 reserves half a GiB, and"
        : "its pipeline";
      return runnerGone(
        "resource_exhausted",
        `${who} took more memory than ${heapBytesMax / MIB} MiB of JavaScript values or ` +
          `${memoryBytesMax / MIB} MiB in all; ${this.#remedies.memory}`,
      );
    }
    if (signal !== null) return runnerGone("unavailable", `its process was ended by ${signal}`);
    const text = shownLines(shownUrls(withoutStack(stderrTail)));
    const why = text === "" ? "" : `: ${text}`;
    return runnerGone("unavailable", `its process ended by itself (exit code ${code})${why}`);
  }

  get #remedies(): LimitRemedies {
    return this.#options.remedies ?? WORKER_REMEDIES;
  }

  /**
   * Kills the process. If an error on this side has closed the edge, that is the reason. Otherwise the
   * exit, which soon follows, tells the reason.
   */
  #closed(why: LeatError): void {
    if (explainsEnd(why)) {
      const plain = LeatError.fromWire(plainError(why.toWire()));
      this.#die(runnerGone("internal", plain.message, plain));
    }
    this.#child.kill();
  }

  #die(error: LeatError): void {
    if (this.#death.isAborted) return;
    this.#death.abort(error);
    clearInterval(this.#stallCheck);
    this.#child.kill();
    this.#edge.close(error);
    this.#host?.close();
    this.#python?.close();
    this.#splits = undefined;
  }
}

/** The most bytes that a read of a far file may answer. */
function readBytesOf(args: unknown): number {
  const { bytesMax } = fieldsOf(args);
  return isCount(bytesMax) ? Math.min(bytesMax, HOST_READ_BYTES_MAX) : HOST_READ_BYTES_MAX;
}

function stalled(stallTimeoutMs: number, remedy: string): LeatError {
  return runnerGone(
    "deadline_exceeded",
    `a function ran for more than ${stallTimeoutMs / 1_000} s without yielding, as an endless ` +
      `loop does; ${remedy}`,
  );
}

/** The error of a runner whose process has ended or was killed. */
function runnerGone(code: LeatErrorCode, why: string, cause?: LeatError): LeatError {
  return new LeatError(code, `The runner is gone: ${why}`, {
    details: { reason: "runner_died" },
    ...(cause === undefined ? {} : { cause }),
  });
}

/**
 * The output of a process without error stacks, the line of this program that Deno quotes before
 * them, and file URLs, which reveal paths of this machine.
 */
function withoutStack(output: string): string {
  return output.replace(/(\n[^\n]*\n *\^)?\n +at [^]*$/, "").replace(/\bfile:\/\/\S+/g, "…").trim();
}
