/** Local files: positioned reads, globs, and a wrapper that simulates the latency of far storage. */

import { isAbsolute } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { LeatError, type LeatErrorCode } from "../../core/error.ts";
import { shownPath } from "../../core/shown_text.ts";
import { TIMER_MS_MAX } from "../../data/check.ts";
import { escapeGlob, type Files, type OpenFile } from "../../data/host.ts";
import { systemCode } from "../system_codes.ts";

/** The codes of system errors. Other errors have the code of their class, or `unknown`. */
const CODE_OF_ERRNO: Readonly<Record<string, LeatErrorCode>> = {
  EMFILE: "resource_exhausted",
  ENFILE: "resource_exhausted",
  ENOMEM: "resource_exhausted",
  ENOSPC: "resource_exhausted",
  EDQUOT: "resource_exhausted",
  EROFS: "permission_denied",
  EINVAL: "invalid_argument",
  EISDIR: "invalid_argument",
  ENOTDIR: "not_found",
  ENAMETOOLONG: "invalid_argument",
  ELOOP: "invalid_argument",
  EIO: "data_loss",
  ESTALE: "unavailable",
  ETIMEDOUT: "unavailable",
};

/**
 * The files that this process may read.
 *
 * Files are opened and read synchronously. If the data is in the page cache, this takes less time and
 * less CPU than Deno's thread pool. A slow disk blocks only this thread, and pipelines run on threads
 * of their own.
 */
export class DenoFiles implements Files {
  /**
   * Opens a regular file.
   * @throws {LeatError} `not_found`, `permission_denied`, `resource_exhausted` (too many open
   * files), or `invalid_argument` for a folder, pipe or device; the message names the path and the
   * system's error.
   */
  // deno-lint-ignore require-await -- errors are rejections
  async open(path: string): Promise<OpenFile> {
    let file: Deno.FsFile | undefined;
    try {
      // Checked first, because opening a pipe would block until a writer opens it.
      const { isFile, isDirectory } = Deno.statSync(path);
      if (!isFile) {
        const what = isDirectory ? "a folder" : "neither a file nor a folder";
        throw new LeatError("invalid_argument", `Cannot read ${path}: it is ${what}.`);
      }
      file = Deno.openSync(path);
      return openedFile(path, file, file.statSync().size);
    } catch (error) {
      file?.close();
      throw fileError(`Cannot open ${path}${startOf(path)}`, error);
    }
  }

  /**
   * The files that match a glob pattern, sorted by code units: `*`, `?`, `[a-z]`, `[!a-z]`,
   * `{a,b}`, `**` for any depth, and `\\` before a literal character. A name that begins with a dot
   * matches only a pattern that begins with a dot.
   * @throws {LeatError} if a folder cannot be read, because the list would be incomplete;
   * `invalid_argument` for a pattern that is too long, or whose braces expand to too many.
   */
  async list(pattern: string, signal?: AbortSignal): Promise<string[]> {
    try {
      // Loaded lazily: many programs list no files.
      const { listGlob } = await import("./glob_walk.ts");
      return await listGlob(pattern, signal);
    } catch (error) {
      throw fileError(`Cannot list ${pattern}`, error);
    }
  }
}

/** Where a relative path starts: on a worker, not where the pipeline's author expects it. */
function startOf(path: string): string {
  return isAbsolute(path)
    ? ""
    : ", a relative path that starts at the current folder of its process";
}

function openedFile(path: string, opened: Deno.FsFile, sizeBytes: number): OpenFile {
  let file: Deno.FsFile | undefined = opened;
  let position = 0;
  return {
    sizeBytes,
    read: (into, offset) => {
      if (file === undefined) {
        throw new LeatError("failed_precondition", `Cannot read ${path}: it was closed.`);
      }
      try {
        if (offset !== position) position = file.seekSync(offset, Deno.SeekMode.Start);
        const count = file.readSync(into) ?? 0;
        position += count;
        return count;
      } catch (error) {
        throw fileError(`Cannot read ${path} at byte ${offset}`, error);
      }
    },
    close: () => {
      file?.close();
      file = undefined;
    },
  };
}

/** Adds `latencyMs` to opens, reads and listings. The delays of concurrent calls overlap. */
export function withStorageLatency(files: Files, latencyMs: number): Files {
  if (!(latencyMs >= 0 && latencyMs <= TIMER_MS_MAX)) {
    throw new LeatError(
      "invalid_argument",
      `A storage latency is a number of milliseconds from 0 to ${TIMER_MS_MAX}, not ${latencyMs}.`,
    );
  }
  const delay = (signal?: AbortSignal) =>
    sleep(latencyMs, undefined, signal === undefined ? {} : { signal });
  return {
    async open(path, signal, firstBytes) {
      await delay(signal);
      const file = await files.open(path, signal, firstBytes);
      return {
        sizeBytes: file.sizeBytes,
        tag: file.tag,
        read: async (into, offset) => {
          await delay();
          return await file.read(into, offset);
        },
        expect: (start, stop) => file.expect?.(start, stop),
        close: () => file.close(),
      };
    },
    async list(pattern, signal) {
      await delay(signal);
      return await files.list(pattern, signal);
    },
  };
}

/** The scheme of a URL; `undefined` for a local path, `C:/…` included. `file:` needs no `//`. */
export function schemeOf(path: string): string | undefined {
  const [scheme] = /^(?:file(?=:)|[a-z][a-z0-9+.-]+(?=:\/\/))/i.exec(path) ?? [];
  if (scheme === undefined) requireLocalName(path);
  return scheme?.toLowerCase();
}

/**
 * Refuses a misspelt URL with secrets, such as `https:user:password@host/file`. As a local name it
 * would be shown with its secrets.
 */
export function requireLocalName(path: string): void {
  const shown = shownPath(path);
  if (shown === path) return;
  throw new LeatError(
    "invalid_argument",
    `${shown} is neither a URL nor a local path: write a URL as scheme://host/path, and begin a local ` +
      `path whose name looks like a URL with "./".`,
  );
}

/**
 * The path of a `file:` URL; wildcards and escapes of a pattern are kept.
 * @throws {LeatError} `invalid_argument` for a URL of another host, or one that is malformed.
 */
export function pathOfFileUrl(url: string): string {
  const literal = url.replace(/[?#\\]/g, encodeURIComponent);
  try {
    if (!/^file:\//i.test(url)) throw new TypeError("its path is not absolute");
    return fileURLToPath(literal);
  } catch (cause) {
    throw new LeatError(
      "invalid_argument",
      `${url} names no file of this machine (${LeatError.from(cause).message}): write ` +
        "file:///path, without a host, or the path alone.",
      { cause },
    );
  }
}

/** A glob pattern that is a `file:` URL, as a pattern of local paths. */
interface FileUrlPattern {
  readonly local: string;
  /** The URL of a file that matches. It begins as the pattern does, up to the first wildcard's folder. */
  urlOf(path: string): string;
}

/**
 * Percent-encoded characters are no wildcards.
 * @throws {LeatError} as {@linkcode pathOfFileUrl}.
 */
export function fileUrlPattern(pattern: string): FileUrlPattern {
  pathOfFileUrl(pattern); // refuses it under the name that the user knows
  const literal = /^(?:[^\\*?[{]|\\.)*/s.exec(pattern)![0];
  const cut = literal === pattern ? pattern.length : literal.lastIndexOf("/") + 1;
  const start = pattern.slice(0, cut).replace(/\\(.)/gs, "$1");
  const folder = pathOfFileUrl(start);
  const escaped = pattern.slice(cut).replace(/%(?=[0-7])/g, "%5C%");
  return {
    local: escapeGlob(folder) + pathOfFileUrl(`file:///${escaped}`).slice(1),
    urlOf: (path) =>
      start + encodeURI(path.slice(folder.length)).replace(/[?#]/g, encodeURIComponent),
  };
}

/** Converts a system error about a file into an error that names the operation. */
export function fileError(what: string, error: unknown): LeatError {
  if (error instanceof LeatError) return error;
  const { code: classCode, message } = LeatError.from(error);
  const errno = systemCode(error);
  const code = errno === undefined ? undefined : CODE_OF_ERRNO[errno];
  return new LeatError(code ?? classCode, `${what}: ${message}.`, { cause: error });
}
