/**
 * Files in S3-compatible stores: `s3://bucket/key`.
 */

// @ts-types="@types/picomatch"
import picomatch from "picomatch";
import { LeatError } from "../core/error.ts";
import type { Files, OpenFile } from "../data/host.ts";
import { FarFile } from "./far_file.ts";
import { FarObject, type FileCounts } from "./far_object.ts";
import type { FileStats } from "./files.ts";
import { type Glob, LISTED_FILES_MAX, parseGlob, tooManyFiles, unescape } from "./glob.ts";
import type { HttpClient } from "./http_client.ts";
import { listOne } from "./http_files.ts";
import { S3Client } from "./s3_client.ts";
import type { S3Settings } from "./s3_settings.ts";

/**
 * The objects of a store. A key is written as it is, not percent-encoded.
 *
 * Needs `--allow-net` for the store's host.
 *
 * @example
 * ```ts
 * import { HttpClient } from "./http_client.ts";
 * import { S3Files } from "./s3_files.ts";
 * import { readEnv, s3Settings } from "./s3_settings.ts";
 *
 * const settings = s3Settings({ endpoint: "http://127.0.0.1:9000" }, readEnv);
 * console.log(new S3Files("s3", settings, new HttpClient()).stats());
 * ```
 */
export class S3Files implements Files {
  readonly #scheme: string;
  readonly #http: HttpClient;
  readonly #store: S3Client;
  readonly #counts: FileCounts = { bytesRead: 0, reads: 0, opens: 0 };

  /** @param scheme that of its paths: `"s3"`, or another store's. */
  constructor(scheme: string, settings: S3Settings, http: HttpClient) {
    this.#scheme = scheme;
    this.#http = http;
    this.#store = new S3Client(scheme, settings, http);
  }

  /** A copy of the counts; a read is one request for bytes of an object. */
  stats(): FileStats {
    return { ...this.#counts };
  }

  /**
   * Opens an object.
   *
   * @throws {LeatError} `not_found`, `permission_denied` (by the store, or because the program may not connect to it), `unavailable`.
   */
  async open(path: string, signal?: AbortSignal): Promise<OpenFile> {
    const { bucket, key } = this.#parse(path);
    const source = this.#store.source(bucket, key);
    const file = await FarFile.open(new FarObject(this.#http, source, this.#counts), signal);
    this.#counts.opens++;
    return file;
  }

  /**
   * The objects that match a glob pattern, sorted by code units. The pattern means what it does for local files; objects whose keys end
   * with a slash stand for folders, and are none.
   */
  async list(pattern: string, signal = new AbortController().signal): Promise<string[]> {
    const { bucket, key } = this.#parse(pattern);
    const glob = parseGlob(key);
    const root = `${this.#scheme}://${bucket}/`;
    if (glob.glob === "") return await listOne(this, root + glob.start, signal);
    const matches = picomatch(glob.glob);
    const found: string[] = [];
    for await (const key of this.#keys(bucket, literalPrefix(glob), signal)) {
      if (key.endsWith("/") || !matches(key.slice(glob.folder.length))) continue;
      if (found.length >= LISTED_FILES_MAX) throw tooManyFiles();
      found.push(root + key);
    }
    return found.sort();
  }

  async *#keys(bucket: string, prefix: string, signal: AbortSignal): AsyncGenerator<string> {
    let token: string | undefined;
    do {
      const page = await this.#store.list(bucket, prefix, token, signal);
      yield* page.keys;
      token = page.next;
    } while (token !== undefined);
  }

  #parse(path: string): { bucket: string; key: string } {
    const [, bucket, key] = /^[a-z0-9]+:\/\/([A-Za-z0-9._-]+)\/(.+)$/s.exec(path) ?? [];
    if (bucket !== undefined && key !== undefined) return { bucket, key };
    throw new LeatError(
      "invalid_argument",
      `Cannot read ${path}: a path is ${this.#scheme}://BUCKET/KEY, with a bucket's name of letters, digits, ".", "_" and "-".`,
    );
  }
}

/** All that the keys a pattern matches are certain to begin with. */
function literalPrefix({ folder, glob }: Glob): string {
  const [literal = ""] = /^(\\.|[^\\*?[\]{}()!+@|])*/s.exec(glob) ?? [];
  return folder + unescape(literal);
}
