/** Files behind `http:` and `https:` URLs, read by ranges. */

import { LeatError } from "../../core/error.ts";
import type { Files, OpenFile } from "../../data/host.ts";
import { FarFile } from "./far_file.ts";
import { FarObject, type FarSource, type FileCounts } from "./far_object.ts";
import type { FileStats } from "./files.ts";
import { type HttpClient, type HttpRequest, refusalOf } from "./http_client.ts";

/** Whether a redirect to a URL may be followed. Default: any. Workers pass their grants. */
export type MayFollow = (target: string) => boolean;

type OwnHeaders = Readonly<Record<string, string>> & { readonly range: string };

/** Options of files over HTTP. */
export interface HttpOptions {
  /**
   * Headers per origin (`"https://host"`), such as `authorization`: sent to that origin only, also
   * after a redirect.
   */
  readonly headers?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/**
 * Files by URL. Redirects are followed; content that a server stores compressed arrives compressed.
 *
 * Needs `--allow-net` for the host, and for the targets of redirects.
 */
export class HttpFiles implements Files {
  readonly #client: HttpClient;
  readonly #headers: ReadonlyMap<string, Readonly<Record<string, string>>>;
  readonly #mayFollow: MayFollow;
  readonly #counts: FileCounts = { bytesRead: 0, reads: 0, opens: 0 };

  /** @param mayFollow Called before each redirect is followed. */
  constructor(client: HttpClient, options: HttpOptions = {}, mayFollow: MayFollow = () => true) {
    this.#client = client;
    this.#mayFollow = mayFollow;
    const entries = Object.entries(options.headers ?? {});
    this.#headers = new Map(entries.map(([origin, headers]) => [originOf(origin), headers]));
  }

  /** A copy of the counts; a read is one request. */
  stats(): FileStats {
    return { ...this.#counts };
  }

  /**
   * Opens the file at a URL.
   * @throws {LeatError} `not_found`, `permission_denied` (also if the program may not connect, or
   * not follow a redirect), `unavailable`, or `failed_precondition` for invalid answers of the
   * server.
   */
  async open(path: string, signal?: AbortSignal): Promise<OpenFile> {
    const file = await FarFile.open(
      new FarObject(this.#client, this.#source(path), this.#counts),
      signal,
    );
    this.#counts.opens++;
    return file;
  }

  /** Returns the URL itself if it is a file: HTTP has no listing. */
  async list(pattern: string, signal?: AbortSignal): Promise<string[]> {
    const { pathname } = parse(pattern);
    if (/[*[\]{}]|%7B|%7D/i.test(pathname)) {
      throw new LeatError(
        "unimplemented",
        `Cannot list ${shown(pattern)}: HTTP has no listing of files. Name the files one by one.`,
      );
    }
    return await listOne(this, pattern, signal);
  }

  #source(path: string): FarSource {
    const url = parse(path);
    const headers = this.#headers.get(url.origin) ?? {};
    const name = shown(path);
    return {
      name,
      request: (range) => this.#request(name, url, { ...headers, range }),
      refusal: async (request, answer) => refusalOf(request, answer, await answer.reason()),
    };
  }

  #request(name: string, url: URL, headers: OwnHeaders): HttpRequest {
    return {
      ...{ name, url: url.href, headers },
      redirected: (target) => {
        if (!this.#mayFollow(target.href)) throw leadsOut(name, target);
        const { range } = headers;
        return this.#request(name, target, target.origin === url.origin ? headers : { range });
      },
    };
  }
}

/** Uses the words of Deno's denials, from which a worker derives how its operator can grant it. */
function leadsOut(name: string, target: URL): LeatError {
  return new LeatError(
    "permission_denied",
    `Cannot read ${name}: its server redirects out of what is granted: Requires read access to ` +
      `"${shown(target.href)}"`,
  );
}

/** Lists a path without wildcards, if it names a file. */
export async function listOne(
  files: Files,
  path: string,
  signal: AbortSignal | undefined,
): Promise<string[]> {
  try {
    (await files.open(path, signal)).close();
    return [path];
  } catch (error) {
    if (LeatError.from(error).code === "not_found") return [];
    throw error;
  }
}

function parse(path: string): URL {
  const url = URL.parse(path);
  if (url !== null) return url;
  throw new LeatError("invalid_argument", `Cannot read ${shown(path)}: it is no valid URL.`);
}

function originOf(text: string): string {
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol)) return url.origin;
  throw new LeatError(
    "invalid_argument",
    `Headers are given per origin, such as "https://host", not for "${text}".`,
  );
}

/** A URL for messages to other machines, without password and query, which may hold a signature. */
function shown(path: string): string {
  return path.replace(/^([a-z]+:\/\/)[^/?#]*@/i, "$1").replace(/[?#].*$/s, "?…");
}
