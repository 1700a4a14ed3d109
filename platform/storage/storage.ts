/** Files on this machine, behind URLs, or in object stores, by the scheme of their paths. */

import { LeatError } from "../../core/error.ts";
import { shownPath, shownText } from "../../core/shown_text.ts";
import { definedFields, isPlainObject } from "../../core/tree.ts";
import { optionsOf } from "../../data/check.ts";
import type { Files, OpenFile } from "../../data/host.ts";
import type { ServiceCredentials } from "../nodes/client_homes.ts";
import { DenoFiles, fileUrlPattern, pathOfFileUrl, schemeOf, withStorageLatency } from "./files.ts";
import { HttpClient, isHeader, type RequestOptions } from "./http_client.ts";
import type { HttpOptions, MayFollow } from "./http_files.ts";
import type { ImageLimits } from "../media/images.ts";
import type { RetryTiming } from "./retries.ts";
import {
  checkS3Options,
  readEnv,
  requireObject,
  type S3Options,
  s3Settings,
} from "./s3_settings.ts";

/** Options of far storage. Plain data, so that it can be sent to threads. */
export interface StorageOptions {
  /** The store of `s3://bucket/key`. Default: from the environment, if the program may read it. */
  readonly s3?: S3Options;
  /**
   * The store of `gs://bucket/key`: Google's S3-compatible interface with HMAC keys. It uses
   * nothing from the environment. Default: public buckets.
   */
  readonly gs?: S3Options;
  /** Files behind `http:` and `https:` URLs. */
  readonly http?: HttpOptions;
  /** Timeouts and retries. */
  readonly requests?: RequestOptions;
}

/**
 * Refuses unknown names, and values of another type. The values of `requests` are checked where they
 * are used.
 * @param what What messages call the options.
 * @throws {LeatError} `invalid_argument`.
 */
export function checkStorageOptions(what: string, options: StorageOptions): void {
  requireObject(what, options);
  const checkNames = optionsOf<StorageOptions>(what, {
    s3: true,
    gs: true,
    http: true,
    requests: true,
  });
  const { s3, gs, http, requests } = checkNames(options);
  checkS3Options(`${what}.s3`, s3);
  checkS3Options(`${what}.gs`, gs);
  checkHttpOptions(`${what}.http`, http);
  const checkRequests = optionsOf<RequestOptions>(`${what}.requests`, {
    timeoutMs: true,
    attemptsMax: true,
    backoffMs: true,
    backoffMsMax: true,
  });
  checkRequests(requests);
}

/** Messages do not show values, which may be secrets. */
function checkHttpOptions(what: string, options: HttpOptions | undefined): void {
  requireObject(what, options);
  const { headers = {} } = optionsOf<HttpOptions>(what, { headers: true })(options);
  if (!isPlainObject(headers) || !Object.values(headers).every(isPlainObject)) {
    throw refusedHeaders(what, "must be an object that has an object of headers for each origin");
  }
  const origins = new Set<string>();
  for (const [key, named] of Object.entries(headers)) {
    const origin = originOf(key);
    if (origin === undefined) {
      const given = `are given per origin, such as "https://host", not for "${shownPath(key)}"`;
      throw refusedHeaders(what, given);
    }
    if (origins.has(origin)) throw refusedHeaders(what, `of ${origin} are given twice; join them`);
    origins.add(origin);
    for (const [name, value] of Object.entries(named)) checkHeader(what, origin, name, value);
  }
}

function checkHeader(what: string, origin: string, name: string, value: unknown): void {
  if (value === undefined) return;
  if (name.toLowerCase() === "range") {
    const ours = "Each request has a range of its own; leave it out";
    throw refusedHeaders(what, `of ${origin} must not have "${name}". ${ours}`);
  }
  if (isHeader(name, value)) return;
  throw refusedHeaders(
    what,
    `of ${origin}: "${
      shownText(name)
    }" must have a name and a text that HTTP allows, without line ends`,
  );
}

/** The origin that a URL names, if it has no user, path or query. */
function originOf(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) return undefined;
  return url.href === `${url.origin}/` ? url.origin : undefined;
}

function refusedHeaders(what: string, message: string): LeatError {
  return new LeatError("invalid_argument", `${what}: headers ${message}`);
}

/** How the pipelines of a worker reach files and other services, and the limits of their images. */
export interface WorkerStorage extends ImageLimits {
  /** How far storage is reached. Default: from the worker's environment. */
  readonly storage?: StorageOptions | undefined;
  /** Delay added to every open and read of a file, in ms, to simulate far storage. Default 0. */
  readonly storageLatencyMs?: number | undefined;
  /**
   * Credentials of the services that pipelines read from, by address, because pipelines contain no
   * tokens. Default: none.
   */
  readonly services?: ServiceCredentials | undefined;
}

/** The files of a worker's pipelines. For `mayFollow` see {@linkcode MayFollow}. */
export function workerFiles(
  { storage, storageLatencyMs = 0 }: WorkerStorage,
  mayFollow?: MayFollow,
): Files {
  const files = new StorageFiles(storage, undefined, mayFollow);
  return storageLatencyMs === 0 ? files : withStorageLatency(files, storageLatencyMs);
}

/** The default endpoint of `gs:` files. */
export const GOOGLE_ENDPOINT = "https://storage.googleapis.com";

/**
 * Files by path:
 *
 * - a plain path, or a `file:` URL: this machine (`--allow-read`);
 * - `http:` and `https:` URLs, read by ranges (`--allow-net`);
 * - `s3://bucket/key`: an S3-compatible store (`--allow-net`), signed if there are credentials;
 *   `gs://bucket/key` likewise. A key is literal, not percent-encoded.
 *
 * Far files are read ahead, at most 16 MiB each. Requests that fail with transient errors are retried.
 * Reading a far file that changes meanwhile fails with `failed_precondition`.
 */
export class StorageFiles implements Files {
  readonly #options: StorageOptions;
  readonly #http: HttpClient;
  readonly #mayFollow: MayFollow | undefined;
  readonly #local = new DenoFiles();
  /** The files of each far scheme, created on first use. */
  readonly #kinds = new Map<string, Promise<Files>>();

  /**
   * @param timing Timers and random numbers for the waits between attempts. Default: the machine's.
   * @param mayFollow See {@linkcode MayFollow}. Object stores' redirects are never followed.
   */
  constructor(options: StorageOptions = {}, timing?: RetryTiming, mayFollow?: MayFollow) {
    checkStorageOptions("storage", options);
    this.#options = options;
    this.#mayFollow = mayFollow;
    this.#http = new HttpClient(options.requests, timing);
  }

  /**
   * Opens a file.
   * @param signal cancels reading from far storage.
   * @param firstBytes the size of a far file's first range.
   * @throws {LeatError} `not_found`, `permission_denied`, `unavailable`; `unimplemented` for an
   * unknown scheme.
   */
  async open(path: string, signal?: AbortSignal, firstBytes?: number): Promise<OpenFile> {
    const scheme = schemeOf(path);
    if (scheme === undefined) return await this.#local.open(path);
    if (scheme === "file") return await this.#local.open(pathOfFileUrl(path));
    return await (await this.#filesOf(scheme, path)).open(path, signal, firstBytes);
  }

  /** Lists the files that match a glob pattern, sorted by code units. HTTP has no globs. */
  async list(pattern: string, signal?: AbortSignal): Promise<string[]> {
    const scheme = schemeOf(pattern);
    if (scheme === undefined) return await this.#local.list(pattern, signal);
    if (scheme === "file") {
      const { local, urlOf } = fileUrlPattern(pattern);
      return (await this.#local.list(local, signal)).map(urlOf).sort();
    }
    return await (await this.#filesOf(scheme, pattern)).list(pattern, signal);
  }

  #filesOf(scheme: string, path: string): Promise<Files> {
    const kind = scheme === "https" ? "http" : scheme;
    return this.#kinds.getOrInsertComputed(kind, () => {
      const files = this.#make(kind, path);
      files.catch(() => this.#kinds.delete(kind));
      return files;
    });
  }

  async #make(kind: string, path: string): Promise<Files> {
    const { s3 = {}, gs = {}, http } = this.#options;
    switch (kind) {
      case "http": {
        const { httpFiles } = await import("./http_files.ts");
        return httpFiles(this.#http, http, this.#mayFollow);
      }
      case "s3":
        return await loadS3Files("s3", s3Settings(s3, readEnv), this.#http);
      case "gs": {
        const settings = s3Settings(
          { endpoint: GOOGLE_ENDPOINT, region: "auto", ...definedFields(gs) },
          () => undefined,
        );
        return await loadS3Files("gs", settings, this.#http);
      }
    }
    throw new LeatError(
      "unimplemented",
      `Cannot read ${
        shownPath(path)
      }: the scheme "${kind}:" is unknown. Known are plain paths, file:, http:, https:, s3: and gs:.`,
    );
  }
}

/** Loaded lazily: signing and XML take longer to load than everything else. */
async function loadS3Files(...args: Parameters<typeof import("./s3_files.ts").s3Files>) {
  const { s3Files } = await import("./s3_files.ts");
  return s3Files(...args);
}
