/** Files behind `http:` and `https:` URLs, read by ranges. */

import { LeatError } from "../../core/error.ts";
import { shownPath } from "../../core/shown_text.ts";
import { definedFields } from "../../core/tree.ts";
import { type Files, FIRST_BYTES_FOR_SIZE } from "../../data/host.ts";
import { FarFile } from "./far_file.ts";
import { FarObject, type FarSource } from "./far_object.ts";
import { type HttpClient, type HttpRequest, refusalOf } from "./http_client.ts";

/** Whether a redirect to a URL may be followed. Default: always. A sandbox allows granted roots. */
export type MayFollow = (target: string) => boolean;

type RequestHeaders = Readonly<Record<string, string>> & { readonly range: string };

/** Options of files over HTTP. */
export interface HttpOptions {
  /**
   * Headers per origin (`"https://host"`, without a path), such as `authorization`. They are sent to
   * that origin only, and not to the targets of its redirects to other origins.
   */
  readonly headers?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/**
 * Files by URL. Redirects are followed. Content is not decompressed, even with a `Content-Encoding`.
 *
 * Needs `--allow-net` for the host, and for the targets of redirects. Opening a file throws
 * `not_found`, `permission_denied` (also if the program may not connect, or not follow a redirect),
 * `unavailable`, or `failed_precondition` for invalid answers of the server.
 *
 * @param mayFollow Called before each redirect is followed.
 */
export function httpFiles(
  client: HttpClient,
  { headers: perOrigin = {} }: HttpOptions = {},
  mayFollow: MayFollow = () => true,
): Files {
  const entries = Object.entries(perOrigin);
  const headersOf = new Map(
    entries.map(([origin, headers]) => [new URL(origin).origin, definedFields(headers)]),
  );
  const requestOf = (name: string, url: URL, headers: RequestHeaders): HttpRequest => ({
    ...{ name, url: url.href, headers },
    redirected: (target) => {
      if (!mayFollow(target.href)) throw redirectDenied(name, target);
      const { range } = headers;
      return requestOf(name, target, target.origin === url.origin ? headers : { range });
    },
  });
  const sourceOf = (path: string): FarSource => {
    const url = parse(path);
    const headers = headersOf.get(url.origin) ?? {};
    const name = shownPath(path);
    return {
      name,
      request: (range) => requestOf(name, url, { ...headers, range }),
      refusal: async (request, answer) => refusalOf(request, answer, await answer.reason()),
    };
  };
  const files: Files = {
    async open(path, signal, firstBytes) {
      return await FarFile.open(new FarObject(client, sourceOf(path)), signal, firstBytes);
    },
    /** Returns the URL itself if the file exists, because HTTP has no listing. */
    async list(pattern, signal) {
      const { pathname } = parse(pattern);
      if (/[*[\]{}]|%7B|%7D/i.test(pathname)) {
        throw new LeatError(
          "unimplemented",
          `Cannot list ${
            shownPath(pattern)
          }: HTTP has no listing of files. Name the files one by one.`,
        );
      }
      return await listOne(files, pattern, signal);
    },
  };
  return files;
}

/** Uses the words of Deno's permission errors: a worker derives the operator's remedy from them. */
function redirectDenied(name: string, target: URL): LeatError {
  return new LeatError(
    "permission_denied",
    `Cannot read ${name}: its server redirects out of what is granted: Requires read access to ` +
      `"${shownPath(target.href)}"`,
  );
}

/** Lists a path without wildcards: the path itself if the file exists. */
export async function listOne(
  files: Files,
  path: string,
  signal: AbortSignal | undefined,
): Promise<string[]> {
  try {
    (await files.open(path, signal, FIRST_BYTES_FOR_SIZE)).close();
    return [path];
  } catch (error) {
    if (LeatError.from(error).code === "not_found") return [];
    throw error;
  }
}

function parse(path: string): URL {
  const url = URL.parse(path);
  if (url !== null) return url;
  throw new LeatError("invalid_argument", `Cannot read ${shownPath(path)}: it is no valid URL.`);
}
