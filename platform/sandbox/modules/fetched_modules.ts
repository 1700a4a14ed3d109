/**
 * Fetches modules for confined processes from hosts that the operator of a worker has granted. If
 * Deno imported them, redirects could not be checked. A process may request any URL, so the host of
 * each redirect is checked before it is contacted, and the memory for modules is bounded.
 */
import { LeatError, withShownUrls } from "../../../core/error.ts";
import { shownPath } from "../../../core/shown_text.ts";
import { hostOf } from "../grants.ts";

const REDIRECTS_MAX = 10;
/** Limit of the bytes of a module's text. */
const MODULE_BYTES_MAX = 16 * 2 ** 20;
const URL_CHARS_MAX = 8 * 1024;
/** How many characters of a URL that is too long an error message quotes. */
const URL_CHARS_SHOWN = 200;
/** Limit of the characters of cached URLs, media types and texts. */
const KEPT_CHARS_MAX = 64 * 2 ** 20;
/** Limit of cached modules. */
const KEPT_MODULES_MAX = 10_000;
/** Limit of the bytes in transit for all processes of the worker together. */
const COMING_BYTES_MAX = 256 * 2 ** 20;
/** Time limit for a module, in ms. */
const FETCH_TIMEOUT_MS = 60_000;

export interface FetchedModule {
  /** The URL after all redirects, without a fragment. */
  readonly url: string;
  /** The media type that the host sent, in lower case and without parameters; empty if none. */
  readonly mediaType: string;
  readonly text: string;
}

interface ModuleLimits {
  /** Limit of the characters of cached URLs, media types and texts. Default 64 Mi. */
  readonly charsMax?: number;
  /** Limit of cached modules. Default 10,000. */
  readonly modulesMax?: number;
  /** Limit of the bytes in transit; a module that exceeds it is refused. Default 256 MiB. */
  readonly comingBytesMax?: number;
}

/** Fetches modules, and caches them so that tasks get the same text. The oldest are dropped first. */
export class FetchedModules {
  readonly #granted: readonly string[];
  readonly #charsMax: number;
  readonly #modulesMax: number;
  readonly #comingBytesMax: number;
  /** The cached modules by requested URL without its fragment, the oldest first. */
  readonly #kept = new Map<string, FetchedModule>();
  readonly #coming = new Map<string, Promise<FetchedModule>>();
  readonly #closing = new AbortController();
  #keptChars = 0;
  #comingBytes = 0;

  /** @param granted Hosts; without a port all ports are granted, and `*.` grants all subdomains. */
  constructor(
    granted: readonly string[],
    {
      charsMax = KEPT_CHARS_MAX,
      modulesMax = KEPT_MODULES_MAX,
      comingBytesMax = COMING_BYTES_MAX,
    }: ModuleLimits = {},
  ) {
    this.#comingBytesMax = comingBytesMax;
    this.#charsMax = charsMax;
    this.#modulesMax = modulesMax;
    this.#granted = granted.map((host) => host.toLowerCase());
  }

  /**
   * Resolves to the module at a URL, whose fragment is ignored.
   * @throws {LeatError} `permission_denied` if the URL or a redirect is not on a granted host;
   * `not_found` if there is no such module; `unavailable` if the host does not send it;
   * `invalid_argument` if a URL is too long; `resource_exhausted` if the module is too large, or if
   * too many bytes are in transit.
   */
  async get(requested: string): Promise<FetchedModule> {
    const url = urlOf(requested);
    const kept = this.#kept.get(url);
    if (kept !== undefined) return kept;
    return await this.#coming.getOrInsertComputed(
      url,
      () => this.#fetch(url).finally(() => this.#coming.delete(url)),
    );
  }

  close(): void {
    this.#closing.abort(new LeatError("cancelled", "The runners have been closed"));
  }

  async #fetch(requested: string): Promise<FetchedModule> {
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(FETCH_TIMEOUT_MS)]);
    let url = requested;
    for (let i = 0; i <= REDIRECTS_MAX; i++) {
      this.#requireGranted(url);
      const response = await answerOf(url, signal);
      const next = response.status >= 300 && response.status < 400
        ? response.headers.get("location")
        : null;
      if (next === null) return this.#keep(requested, await this.#moduleOf(url, response));
      await response.body?.cancel();
      url = urlOf(next, url);
    }
    throw new LeatError(
      "unavailable",
      `Cannot import ${shownPath(requested)}: it has more than ${REDIRECTS_MAX} redirects`,
    );
  }

  async #moduleOf(url: string, response: Response): Promise<FetchedModule> {
    if (!response.ok) {
      await response.body?.cancel();
      const code = response.status === 404 || response.status === 410 ? "not_found" : "unavailable";
      throw new LeatError(
        code,
        `Cannot import ${shownPath(url)}: its host answers ${response.status}`,
      );
    }
    const [mediaType = ""] = (response.headers.get("content-type") ?? "").split(";");
    const text = await this.#textOf(url, response);
    return { url, mediaType: mediaType.trim().toLowerCase(), text };
  }

  async #textOf(url: string, response: Response): Promise<string> {
    const decoder = new TextDecoder();
    let text = "";
    let bytes = 0;
    try {
      for await (const chunk of response.body ?? []) {
        bytes += chunk.byteLength;
        this.#comingBytes += chunk.byteLength;
        if (bytes > MODULE_BYTES_MAX) throw tooLarge(url, "the module has", MODULE_BYTES_MAX);
        if (this.#comingBytes > this.#comingBytesMax) {
          throw tooLarge(url, "at this time the worker fetches", this.#comingBytesMax);
        }
        text += decoder.decode(chunk, { stream: true });
      }
    } catch (error) {
      throw error instanceof LeatError ? error : notSent(url, error);
    } finally {
      this.#comingBytes -= bytes;
    }
    return text + decoder.decode();
  }

  #requireGranted(url: string): void {
    const isWeb = /^https?:/.test(url);
    const host = isWeb ? hostOf(url) : shownPath(url);
    if (isWeb && this.#granted.some((granted) => isOf(host, granted))) return;
    throw new LeatError("permission_denied", `Requires import access to "${host}"`);
  }

  #keep(requested: string, module: FetchedModule): FetchedModule {
    this.#kept.set(requested, module);
    this.#keptChars += charsOf(requested, module);
    for (const [url, oldest] of this.#kept) {
      if (this.#keptChars <= this.#charsMax && this.#kept.size <= this.#modulesMax) break;
      this.#kept.delete(url);
      this.#keptChars -= charsOf(url, oldest);
    }
    return module;
  }
}

/** Normalizes a URL as for a request, and removes its fragment. */
function urlOf(text: string, base?: string): string {
  const url = text.length > URL_CHARS_MAX ? undefined : URL.parse(text, base);
  if (url === null) {
    throw new LeatError("invalid_argument", `Cannot import ${shownPath(text)}: it is no valid URL`);
  }
  if (url !== undefined) url.hash = "";
  if (url !== undefined && url.href.length <= URL_CHARS_MAX) return url.href;
  throw new LeatError(
    "invalid_argument",
    `Cannot import ${
      shownPath(text).slice(0, URL_CHARS_SHOWN)
    }…: its URL has more than ${URL_CHARS_MAX} ` +
      "characters; give the module a shorter one",
  );
}

function charsOf(requested: string, { url, mediaType, text }: FetchedModule): number {
  return requested.length + url.length + mediaType.length + text.length;
}

function isOf(host: string, granted: string): boolean {
  const name = host.slice(0, host.lastIndexOf(":"));
  if (granted.startsWith("*.")) return [host, name].some((it) => it.endsWith(granted.slice(1)));
  return granted === host || granted === name;
}

async function answerOf(url: string, signal: AbortSignal): Promise<Response> {
  try {
    return await fetch(url, { redirect: "manual", signal });
  } catch (error) {
    throw notSent(url, error);
  }
}

/** The error of a request or a body that broke or took too long. */
function notSent(url: string, error: unknown): LeatError {
  const cause = withShownUrls(error);
  const { message } = LeatError.from(cause);
  return new LeatError("unavailable", `Cannot import ${shownPath(url)}: ${message}`, { cause });
}

function tooLarge(url: string, what: string, bytesMax: number): LeatError {
  return new LeatError(
    "resource_exhausted",
    `Cannot import ${shownPath(url)}: ${what} more than ${bytesMax / 2 ** 20} MiB`,
  );
}
