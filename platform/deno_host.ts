/** The host of pipelines on Deno: clock, timers, entropy, files, images, sound and modules. */

import { clearTimeout, setImmediate, setTimeout } from "node:timers";
import { LeatError } from "../core/error.ts";
import { optionsOf } from "../data/check.ts";
import type { AudioCodec, Files, Host, ImageCodec, NewFiles, PythonRunner } from "../data/host.ts";
import { installCrc32c } from "../data/formats/tfrecord/crc32c.ts";
import type { ForeignRunners } from "../data/foreign/foreign_runners.ts";
import { Audio } from "./media/audio.ts";
import { type ForeignLimits, foreignProcesses } from "./sandbox/foreign/foreign_processes.ts";
import { Images } from "./media/images.ts";
import type { PythonPool } from "./python/python_pool.ts";
import { loadCrc32cAddon } from "./storage/crc32c_addon.ts";
import { DenoNewFiles } from "./storage/new_files.ts";
import type { MayFollow } from "./storage/http_files.ts";
import type {
  FunctionThreads,
  OpenFunction,
  OpenSegment,
  Segment,
} from "../data/threads/function_threads.ts";
import { FunctionPool } from "./threads/function_pool.ts";
import {
  StorageFiles,
  type StorageOptions,
  workerFiles,
  type WorkerStorage,
} from "./storage/storage.ts";

installCrc32c(loadCrc32cAddon);

/** The threads of this process that call user functions. */
const processPool = new FunctionPool(navigator.hardwareConcurrency);

/** Options of a {@linkcode DenoHost}. */
export interface DenoHostOptions {
  /** How files are read. Default: from this machine and far storage, with `storage`. */
  readonly files?: Files;
  /** How the default files reach far storage. Default: from the environment. */
  readonly storage?: StorageOptions;
  /** How images are decoded. Default: new {@linkcode Images}. */
  readonly images?: ImageCodec;
  /** How sound is decoded. Default: WAV, on the calling thread. */
  readonly audio?: AudioCodec;
  /** The interpreter of Python functions; false refuses them. Default `python3`. */
  readonly python?: string | false;
  /**
   * The pool that calls Python functions. Default: processes of `python`.
   *
   * @ignore
   */
  readonly pythonPool?: PythonPool;
  /**
   * Whether functions of pipelines may run on other threads of this process. Default: true, but false
   * if `images` or `audio` is given, because other threads do not have these codecs. With `files` or
   * `storage`, a `prefetch` with `thread` runs on the thread of its pipeline, which has these files.
   */
  readonly threads?: boolean;
  /**
   * See `Host.sharesBatches`.
   *
   * @ignore
   */
  readonly sharesBatches?: boolean;
  /** Limits of the processes that run functions from outside this program's build. */
  readonly foreign?: ForeignLimits;
}

const checkNames = optionsOf<DenoHostOptions>("DenoHost", {
  files: true,
  storage: true,
  images: true,
  audio: true,
  python: true,
  pythonPool: true,
  threads: true,
  sharesBatches: true,
  foreign: true,
});

/**
 * A host on Deno's own facilities. Creating a host needs no permission, but using it does: local files
 * need `--allow-read`, far storage needs `--allow-net`, and {@linkcode Images} lists what images need.
 *
 * @example
 * ```ts
 * import { DenoHost } from "./deno_host.ts";
 * import { installHost } from "../data/host.ts";
 * installHost(new DenoHost());
 * ```
 */
export class DenoHost implements Host {
  /** Files on this machine and in far storage. */
  readonly files: Files;
  /** New files on this machine. */
  readonly newFiles: NewFiles = new DenoNewFiles();
  /** Decodes JPEG, PNG and WebP. */
  readonly images: ImageCodec;
  /** Decodes WAV. */
  readonly audio: AudioCodec;
  /** @ignore */
  readonly foreignRunners: ForeignRunners;
  /** @ignore */
  readonly python: PythonRunner | undefined;
  /** @ignore */
  readonly threads: FunctionThreads | undefined;
  /** @ignore */
  readonly sharesBatches: boolean | undefined;
  /**
   * Whether a module was imported. This thread keeps it as it was, even if its file changes.
   *
   * @ignore
   */
  hasImported = false;

  /** Creates a host, which opens nothing before its first use. */
  constructor(options: DenoHostOptions = {}) {
    checkNames(options);
    this.files = options.files ?? new StorageFiles(options.storage);
    this.images = options.images ?? new Images();
    this.audio = options.audio ?? new Audio();
    this.foreignRunners = foreignProcesses(options.foreign);
    const { python = "python3", pythonPool } = options;
    if (python !== false) this.python = lazyPython(pythonPool ?? python);
    const { images, audio, threads = images === undefined && audio === undefined } = options;
    const hasOwnFiles = options.files !== undefined || options.storage !== undefined;
    if (threads) this.threads = new HostThreads(processPool, python, hasOwnFiles);
    this.sharesBatches = options.sharesBatches;
  }

  nowMs(): number {
    return performance.now();
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const abort = () => {
        clearTimeout(timer);
        reject(signal!.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", abort);
        resolve();
      }, ms);
      signal?.addEventListener("abort", abort, { once: true });
    });
  }

  /** `setImmediate`: a `MessageChannel` is no faster, and starves timers and I/O. */
  yield(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  entropy64(): bigint {
    return crypto.getRandomValues(new BigUint64Array(1))[0]!;
  }

  /** Prints to the console. */
  warn(message: string): void {
    console.warn(message);
  }

  importModule(url: string): Promise<Record<string, unknown>> {
    this.hasImported = true;
    return import(url);
  }
}

/** The threads of this process, for the pipelines of one host. */
class HostThreads implements FunctionThreads {
  readonly #pool: FunctionPool;
  readonly #python: string | false;
  readonly #hasOwnFiles: boolean;

  /** @param hasOwnFiles Whether they may open no files, because they lack those of the host. */
  constructor(pool: FunctionPool, python: string | false, hasOwnFiles: boolean) {
    this.#pool = pool;
    this.#python = python;
    this.#hasOwnFiles = hasOwnFiles;
  }

  get count(): number {
    return this.#pool.count;
  }

  get isWarm(): boolean {
    return this.#pool.isWarm;
  }

  open(...[fn, limits]: Parameters<FunctionThreads["open"]>): OpenFunction {
    return this.#pool.open(fn, limits);
  }

  openSegment(segment: Segment): Promise<OpenSegment> {
    if (!this.#hasOwnFiles) return this.#pool.openSegment(segment, this.#python);
    const why =
      "It cannot run on another thread: that thread lacks `files` and `storage` of this host.";
    return Promise.reject(new LeatError("failed_precondition", why));
  }
}

/**
 * Loads the code for Python functions at the first call, because most pipelines have none.
 * @param processes The interpreter, or the pool that calls the functions.
 */
function lazyPython(processes: string | PythonPool): PythonRunner {
  let loading: Promise<PythonRunner> | undefined;
  const load = async () => {
    const { PythonCalls } = await import("./python/python_calls.ts");
    if (typeof processes !== "string") return new PythonCalls(processes);
    const { PythonProcesses } = await import("./python/python_processes.ts");
    return new PythonCalls(new PythonProcesses(processes).open());
  };
  return { call: async (...call) => await (await (loading ??= load())).call(...call) };
}

/** Creates the host of a worker's pipelines. `mayFollow` limits the redirects of far files. */
export function workerHost(
  storage: WorkerStorage,
  { mayFollow, files = workerFiles(storage, mayFollow), ...options }:
    & { readonly mayFollow?: MayFollow }
    & Pick<DenoHostOptions, "files" | "pythonPool" | "sharesBatches"> = {},
): DenoHost {
  return new DenoHost({
    ...options,
    files,
    images: new Images(storage),
    threads: false,
  });
}
