/**
 * Starts the host processes of confined runners, one per runner. A host process decodes images with
 * native libraries, and reads object stores and services. It runs no user functions. A fault in a
 * library ends one host process, and fails only what its runner decodes then, and its open services.
 */
import { AbortRace } from "../../../core/abort_race.ts";
import { LeatError } from "../../../core/error.ts";
import type { ReadingTask } from "../../../data/service/reading_task.ts";
import { GOOGLE_ENDPOINT, type StorageOptions, type WorkerStorage } from "../../storage/storage.ts";
import { turboLibraryPath } from "../../media/jpeg/turbo_library.ts";
import { readEnv, S3_VARIABLES, type S3Options, s3Settings } from "../../storage/s3_settings.ts";
import { type ChildEnd, ChildProcess, ranOutOfMemory } from "../../process/child_process.ts";
import { Edge, explainsEnd, HOST_GONE, plainError } from "../edge.ts";
import { hostOf, type ReachedByHost, type SandboxGrants } from "../grants.ts";
import type { HostStart } from "./host_program.ts";
import { type Supplied, Supply, type SupplyOptions } from "../../supply.ts";

const LOADING_MAX = 2;
/** Time limit for loading a host process, in ms: one that never loads would occupy a place of the few. */
const LOAD_TIMEOUT_MS = 120_000;
/** Limit of a host process's open files, which are its connections and the files that it reads. */
const OPEN_FILES_MAX = 4_096;

interface HostOptions extends Pick<SupplyOptions, "onRetry" | "retryMinMs"> {
  /** Starts the process of a host. */
  readonly startChild?: typeof startChild;
  /** Whether the processes keep this program alive. Default `true`; otherwise whoever asks them must. */
  readonly keepsProgram?: boolean;
}

/** Starts host processes, one per runner. */
export class HostProcesses {
  readonly #grants: SandboxGrants;
  readonly #storage: WorkerStorage;
  readonly #options: HostOptions;
  readonly #alive = new Set<HostProcess>();
  /** Created on first use, because most pipelines need no host. */
  #supply: Supply<HostProcess> | undefined;
  #isClosed = false;

  constructor(grants: SandboxGrants, storage: WorkerStorage, options: HostOptions = {}) {
    this.#grants = grants;
    this.#storage = storage;
    this.#options = options;
  }

  /** @param forTask The runner's task, which reads services as a client. Left out: it has none. */
  open(forTask?: ReadingTask): TaskHost {
    return new TaskHost((signal) => this.#take(signal), forTask);
  }

  /** Resolves when all processes have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#supply?.close();
    await Promise.all([...this.#alive].map((host) => host.terminate()));
  }

  #take(signal: AbortSignal): Promise<HostProcess> {
    if (this.#isClosed) throw new LeatError("cancelled", "The runners have been closed");
    const { startChild: start = startChild, keepsProgram = true, ...retries } = this.#options;
    this.#supply ??= new Supply(() => {
      const child = start(this.#grants, this.#storage);
      if (!keepsProgram) child.unref();
      const onEnded = () => this.#alive.delete(host);
      const host = new HostProcess(this.#grants, this.#storage, onEnded, child);
      this.#alive.add(host);
      return host;
    }, { ...retries, loadingMax: LOADING_MAX });
    // No request of the runner has failed yet: the machine may have a process for it a little later.
    return this.#supply.takePatiently(signal);
  }
}

/** The host of one runner. If its process dies, the next request starts another. */
export class TaskHost {
  readonly #take: (signal: AbortSignal) => Promise<HostProcess>;
  #forTask: ReadingTask | undefined;
  #process: Promise<HostProcess> | undefined;
  readonly #closing = new AbortController();

  /** @param take Starts a process; the signal ends the wait for it. */
  constructor(take: (signal: AbortSignal) => Promise<HostProcess>, forTask?: ReadingTask) {
    this.#take = take;
    this.#forTask = forTask;
  }

  /** Sets the task for which services are read from now on: a process may list before it has one. */
  assign(forTask: ReadingTask | undefined): void {
    this.#forTask = forTask;
    if (this.#process !== undefined) this.#use(this.#process);
  }

  /**
   * @throws {LeatError} the error of the host's answer, `unavailable` if its process dies first, or
   * `cancelled` after `close()`.
   */
  async ask(method: string, args: unknown): Promise<unknown> {
    const { signal } = this.#closing;
    if (signal.aborted) throw new LeatError("cancelled", "The runner has ended");
    const process = await this.#living();
    if (signal.aborted) process.terminate();
    return await process.ask("serve", { method, args });
  }

  /** The process, or another one if it has died since the last request. */
  async #living(): Promise<HostProcess> {
    const last = this.#process;
    if (last !== undefined && !(await last).isAlive && this.#process === last) {
      this.#process = undefined;
    }
    return await (this.#process ?? this.#use(this.#take(this.#closing.signal)));
  }

  /** Uses a process from now on. If it cannot be started, the next request tries again. */
  #use(started: Promise<HostProcess>): Promise<HostProcess> {
    const used = started.then((process) => this.#assigned(process));
    used.catch(() => {
      if (this.#process === used) this.#process = undefined;
    });
    return this.#process = used;
  }

  /** Tells a process the task. If it dies meanwhile, the next request takes another one. */
  async #assigned(process: HostProcess): Promise<HostProcess> {
    if (this.#forTask === undefined) return process;
    await process.ask("assign", this.#forTask).catch((error) => {
      if (process.isAlive) throw error;
    });
    return process;
  }

  close(): void {
    this.#closing.abort();
    this.#process?.then((process) => process.terminate(), () => {});
  }
}

export class HostProcess implements Supplied {
  readonly loaded: Promise<unknown>;
  readonly #child: HostChild;
  readonly #edge: Edge;
  readonly #death = new AbortRace();

  constructor(
    grants: SandboxGrants,
    storage: WorkerStorage,
    onEnded: () => void,
    child: HostChild,
    loadTimeoutMs: number = LOAD_TIMEOUT_MS,
  ) {
    const { far, net, memoryBytesMax } = grants;
    this.#child = child;
    this.#edge = new Edge(child.link, child.local, {});
    this.#edge.closed.then((why) => {
      // Without such a reason, how the process exits says more than the end of its pipes.
      if (explainsEnd(why)) {
        const plain = LeatError.fromWire(plainError(why.toWire()));
        this.#death.abort(gone(plain.message, plain));
      }
      child.kill();
    });
    child.ended.then((end) => {
      this.#death.abort(endOf(end, memoryBytesMax));
      this.#edge.close();
      onEnded();
    });
    const start: HostStart = { far, net, storage, memoryBytesMax };
    this.loaded = this.#load(start, loadTimeoutMs);
    this.loaded.catch(() => {});
  }

  get isAlive(): boolean {
    return !this.#death.isAborted && !this.#edge.isClosed;
  }

  ask(method: string, args: unknown): Promise<unknown> {
    return this.#edge.askUntil(this.#death, method, args);
  }

  async #load(start: HostStart, timeoutMs: number): Promise<void> {
    const timer = setTimeout(() => {
      this.#death.abort(gone(`it has not loaded within ${timeoutMs / 1_000} s`));
      this.#child.kill();
    }, timeoutMs);
    try {
      await this.ask("start", start);
    } finally {
      clearTimeout(timer);
    }
  }

  async terminate(): Promise<void> {
    this.#death.abort(new LeatError("unavailable", "The host of a runner was ended"));
    this.#child.ref();
    this.#child.kill();
    await this.#child.ended;
  }
}

/** The process of a host. */
export type HostChild = Pick<ChildProcess, "link" | "local" | "ended" | "kill" | "ref" | "unref">;

function startChild(grants: SandboxGrants, storage: WorkerStorage): HostChild {
  const hosts = hostsOfHost(grants, storage.storage);
  const allowsNetwork = hosts.length > 0;
  // The process may read only environment variables that this program may read itself.
  const variables = S3_VARIABLES.filter((variable) => readEnv(variable) !== undefined);
  return new ChildProcess({
    name: "host",
    program: import.meta.resolve("./host_program.ts"),
    flags: [
      ...[jpegLibraryFlag(), "--allow-read"],
      ...hosts.map((host) => `--allow-net=${host}`),
      ...(variables.length > 0 ? [`--allow-env=${variables.join(",")}`] : []),
    ],
    limits: {
      readable: ["/etc/alpine-release"],
      writable: [],
      allowsNetwork,
      memoryBytesMax: grants.memoryBytesMax,
      openFilesMax: OPEN_FILES_MAX,
    },
    hasEnvironment: allowsNetwork,
  });
}

/** The flag that allows FFI, only for the file of libjpeg-turbo if that is a separate file. */
function jpegLibraryFlag(): string {
  const path = turboLibraryPath();
  return path === undefined || path.includes(",") ? "--allow-ffi" : `--allow-ffi=${path}`;
}

function endOf(end: ChildEnd, memoryBytesMax: number): LeatError {
  const { code, signal, stderrTail } = end;
  if (ranOutOfMemory(end)) {
    return gone(
      `it took more memory than ${memoryBytesMax / 2 ** 20} MiB; a worker with a larger ` +
        "--function-memory-mib allows more",
      new LeatError("resource_exhausted", stderrTail.trim()),
    );
  }
  const how = signal === null ? `with exit code ${code}` : `by ${signal}`;
  return gone(`it ended ${how}${stderrTail.trim() === "" ? "" : `: ${stderrTail.trim()}`}`);
}

function gone(why: string, cause?: LeatError): LeatError {
  return new LeatError(
    // Never the code of the cause: with another process, the same request may succeed.
    "unavailable",
    `The process that decodes images and reads far files for a runner is gone: ${why}`,
    { details: { reason: HOST_GONE }, ...(cause === undefined ? {} : { cause }) },
  );
}

/** Amazon's host names contain a bucket and a region, and a bucket may redirect to another region. */
const AMAZON_HOSTS = ["*.amazonaws.com:443", "*.amazonaws.com.cn:443"];

/**
 * The hosts of a runner's roots and granted services, as values of Deno's `--allow-net`. Deno denies
 * the host process all other hosts, even after a fault in it or in a native library.
 */
export function hostsOfHost(
  { far, net }: ReachedByHost,
  storage: StorageOptions = {},
): string[] {
  return [...new Set([...net, ...far.flatMap((root) => hostsOf(root, storage))])];
}

function hostsOf(root: string, { s3, gs }: StorageOptions): string[] {
  const url = URL.parse(root);
  switch (url?.protocol) {
    case "http:":
    case "https:":
      return [hostOf(root)];
    case "s3:":
      return storeHosts(s3Endpoint(s3), url.host);
    case "gs:":
      return storeHosts(new URL(gs?.endpoint ?? GOOGLE_ENDPOINT), url.host);
    default:
      return [];
  }
}

/** The hosts of an object store. A request names the bucket in its path or in its host. */
function storeHosts(endpoint: URL | undefined, bucket: string): string[] {
  if (endpoint === undefined) return AMAZON_HOSTS;
  const host = hostOf(endpoint.href);
  return endpoint.hostname.startsWith("[") ? [host] : [host, `${bucket}.${host}`];
}

function s3Endpoint(options: S3Options = {}): URL | undefined {
  try {
    return s3Settings(options, readEnv).endpoint;
  } catch (error) {
    // The open that follows reports invalid settings.
    if (error instanceof LeatError) return undefined;
    throw error;
  }
}
