/**
 * Files wherever they are: on this machine, behind URLs, in object stores. What a path begins with says where.
 */

import { fileURLToPath, pathToFileURL } from "node:url";
import { LeatError } from "../core/error.ts";
import type { Files, OpenFile } from "../data/host.ts";
import type { ServiceCredentials } from "./client_homes.ts";
import { DenoFiles, type FileStats, withStorageLatency } from "./files.ts";
import { HttpClient, type RequestOptions } from "./http_client.ts";
import type { HttpOptions, MayFollow } from "./http_files.ts";
import type { ImageLimits } from "./images.ts";
import type { RetryTiming } from "./retries.ts";
import { readEnv, type S3Options, s3Settings } from "./s3_settings.ts";

/** How far storage is reached. Plain data, so that it can be handed to threads. */
export interface StorageOptions {
  /** The store of `s3://bucket/key`. Default: what the environment says, if the program may read it. */
  readonly s3?: S3Options;
  /**
   * The store of `gs://bucket/key`: Google's, by the interface that it shares with S3, and its HMAC keys. Nothing of it comes from
   * the environment. Default: public buckets.
   */
  readonly gs?: S3Options;
  /** Files behind `http:` and `https:` URLs. */
  readonly http?: HttpOptions;
  /** How patient requests are. */
  readonly requests?: RequestOptions;
}

/** How the pipelines of a worker reach files and other services, and what their images may take. */
export interface WorkerStorage extends ImageLimits {
  /** How far storage is reached. Default: as the worker's environment says. */
  readonly storage?: StorageOptions | undefined;
  /** Delay added to every open and read of a file, in ms: storage that is farther than it is. Default 0. */
  readonly storageLatencyMs?: number | undefined;
  /**
   * What opens the services that pipelines begin with, by their addresses: tokens do not travel with
   * pipelines. Default: nothing.
   */
  readonly services?: ServiceCredentials | undefined;
}

/**
 * The files of a worker's pipelines.
 *
 * @param mayFollow See {@linkcode MayFollow}.
 */
export function workerFiles(
  { storage, storageLatencyMs = 0 }: WorkerStorage,
  mayFollow?: MayFollow,
): Files {
  const files = new StorageFiles(storage, undefined, mayFollow);
  return storageLatencyMs === 0 ? files : withStorageLatency(files, storageLatencyMs);
}

/** Where `gs:` files are. */
export const GOOGLE_ENDPOINT = "https://storage.googleapis.com";

/** Files of one kind of storage, which counts what it reads. */
type CountingFiles = Files & { stats(): FileStats };

/**
 * Files by path:
 *
 * - a plain path, or a `file:` URL: this machine (`--allow-read`);
 * - `http:` and `https:` URLs, read by ranges (`--allow-net`);
 * - `s3://bucket/key`: an S3-compatible store (`--allow-net`), signed where there are credentials; `gs://bucket/key` likewise. A key is
 *   written as it is, not percent-encoded.
 *
 * Far files are read ahead, at most 16 MiB each; requests that fail for the moment are made again for a while. A file that changes while
 * it is read fails with `failed_precondition`.
 *
 * @example
 * ```ts
 * import { installHost } from "../data/host.ts";
 * import { DenoHost } from "./deno_host.ts";
 *
 * const s3 = { endpoint: "http://127.0.0.1:9000", accessKeyId: "key", secretAccessKey: "secret" };
 * installHost(new DenoHost({ storage: { s3 } }));
 * ```
 */
export class StorageFiles implements Files {
  readonly #options: StorageOptions;
  readonly #http: HttpClient;
  readonly #mayFollow: MayFollow | undefined;
  readonly #local = new DenoFiles();
  /** By scheme; what is never read costs nothing. */
  readonly #kinds = new Map<string, Promise<CountingFiles>>();
  readonly #made: CountingFiles[] = [this.#local];

  /**
   * @param timing the clock and the random numbers of the waits between attempts; default: the machine's.
   * @param mayFollow See {@linkcode MayFollow}. Object stores are never followed.
   */
  constructor(options: StorageOptions = {}, timing?: RetryTiming, mayFollow?: MayFollow) {
    this.#options = options;
    this.#mayFollow = mayFollow;
    this.#http = new HttpClient(options.requests, timing);
  }

  /** What was read so far, wherever it is. */
  stats(): FileStats {
    const sum = { bytesRead: 0, reads: 0, opens: 0 };
    for (const files of this.#made) {
      const { bytesRead, reads, opens } = files.stats();
      sum.bytesRead += bytesRead;
      sum.reads += reads;
      sum.opens += opens;
    }
    return sum;
  }

  /**
   * Opens a file.
   *
   * @param signal gives up on far storage.
   * @throws {LeatError} `not_found`, `permission_denied`, `unavailable`; `unimplemented` for a scheme that nobody knows.
   */
  async open(path: string, signal?: AbortSignal): Promise<OpenFile> {
    const scheme = schemeOf(path);
    if (scheme === undefined) return await this.#local.open(path);
    if (scheme === "file") return await this.#local.open(localPath(path));
    return await (await this.#filesOf(scheme, path)).open(path, signal);
  }

  /** The files that match a glob pattern, sorted by code units. Behind `http:` URLs there are no globs. */
  async list(pattern: string, signal?: AbortSignal): Promise<string[]> {
    const scheme = schemeOf(pattern);
    if (scheme === undefined) return await this.#local.list(pattern, signal);
    if (scheme === "file") {
      const paths = await this.#local.list(localPath(pattern), signal);
      return paths.map((path) => pathToFileURL(path).href).sort();
    }
    return await (await this.#filesOf(scheme, pattern)).list(pattern, signal);
  }

  #filesOf(scheme: string, path: string): Promise<CountingFiles> {
    const kind = scheme === "https" ? "http" : scheme;
    let files = this.#kinds.get(kind);
    if (files === undefined) {
      files = this.#make(kind, path);
      this.#kinds.set(kind, files);
      files.then((made) => this.#made.push(made), () => this.#kinds.delete(kind));
    }
    return files;
  }

  async #make(kind: string, path: string): Promise<CountingFiles> {
    const { s3 = {}, gs = {}, http } = this.#options;
    switch (kind) {
      case "http": {
        const { HttpFiles } = await import("./http_files.ts");
        return new HttpFiles(this.#http, http, this.#mayFollow);
      }
      case "s3":
        return await s3Files("s3", s3Settings(s3, readEnv), this.#http);
      case "gs": {
        const settings = s3Settings({ endpoint: GOOGLE_ENDPOINT, region: "auto", ...gs }, noEnv);
        return await s3Files("gs", settings, this.#http);
      }
    }
    throw new LeatError(
      "unimplemented",
      `Cannot read ${path}: nothing here knows "${kind}:". Known are plain paths, file:, http:, https:, s3: and gs:.`,
    );
  }
}

/** Imported when first needed: signing and XML take longer to load than all the rest. */
async function s3Files(...args: ConstructorParameters<typeof import("./s3_files.ts").S3Files>) {
  const { S3Files } = await import("./s3_files.ts");
  return new S3Files(...args);
}

function noEnv(): undefined {
  return undefined;
}

/** The scheme of a URL; `undefined` for a path, `C:/…` included. */
function schemeOf(path: string): string | undefined {
  return /^([a-z][a-z0-9+.-]+):\/\//i.exec(path)?.[1]?.toLowerCase();
}

/** The path that a `file:` URL stands for; wildcards and escapes of a pattern are kept. */
function localPath(url: string): string {
  const literal = url.replace(/[?#\\]/g, (char) => encodeURIComponent(char));
  try {
    return fileURLToPath(literal);
  } catch (cause) {
    throw new LeatError("invalid_argument", `Cannot read ${url}: it is no valid file: URL.`, {
      cause,
    });
  }
}
