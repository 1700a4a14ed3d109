/**
 * Texts of modules from hosts that the operator of a worker has granted, fetched for confined processes,
 * whose own imports would not tell them where a redirect has led. A process may ask for any URL: each
 * one on the way is looked at before its host hears of it. What is kept of modules is bounded, whatever
 * their URLs are.
 *
 * @module
 */
import { LeatError } from "../../../core/error.ts";
import { hostOf } from "../grants.ts";

/** How many redirects in a row are followed. */
const REDIRECTS_MAX = 10;
/** Longest text of a module, in bytes. */
const MODULE_BYTES_MAX = 16 * 2 ** 20;
/** Longest URL, in characters. */
const URL_CHARS_MAX = 8 * 1024;
/** How much of one that is longer a message repeats, in characters. */
const URL_CHARS_SHOWN = 200;
/** How much is kept for the tasks to come, in characters: URLs, media types and texts. */
const KEPT_CHARS_MAX = 64 * 2 ** 20;
/** How many modules are kept for the tasks to come. */
const KEPT_MODULES_MAX = 10_000;
/** How much may be on its way together, for all processes of the worker, in bytes. */
const COMING_BYTES_MAX = 256 * 2 ** 20;
/** How long a module may take to come, in ms. */
const FETCH_TIMEOUT_MS = 60_000;

/** The text of a remote module. */
export interface FetchedModule {
  /** Where it is, after all redirects, without a fragment. */
  readonly url: string;
  /** The media type that its host gives it, in small letters and without parameters; empty if none. */
  readonly mediaType: string;
  readonly text: string;
}

/** How much memory modules may take. */
export interface ModuleLimits {
  /** What is kept: characters of URLs, media types and texts. Default 64 Mi. */
  readonly charsMax?: number;
  /** How many modules are kept. Default 10,000. */
  readonly modulesMax?: number;
  /** What is on its way, in bytes of texts; beyond it a module is refused. Default 256 MiB. */
  readonly comingBytesMax?: number;
}

/** See the module. What has come stays, so that tasks find the same in it; where it is too much, the oldest goes. */
export class FetchedModules {
  readonly #granted: readonly string[];
  readonly #charsMax: number;
  readonly #modulesMax: number;
  readonly #comingBytesMax: number;
  /** By the URL that was asked for, without its fragment; the oldest first. */
  readonly #kept = new Map<string, FetchedModule>();
  readonly #coming = new Map<string, Promise<FetchedModule>>();
  readonly #closing = new AbortController();
  #keptChars = 0;
  #comingBytes = 0;

  /** @param granted Hosts: with a port, or for all of theirs; `*.` before one is for all below it. */
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
   * The module at a URL, whose fragment is no part of what is asked for.
   *
   * @throws {LeatError} `permission_denied` where it, or what it redirects to, is on no granted host; `not_found` where
   * there is none; `unavailable` where its host does not give it; `invalid_argument` where a URL is too long;
   * `resource_exhausted` where it is too large, or too much comes at a time.
   */
  async get(asked: string): Promise<FetchedModule> {
    const url = urlOf(asked);
    const kept = this.#kept.get(url);
    if (kept !== undefined) return kept;
    let coming = this.#coming.get(url);
    if (coming === undefined) {
      coming = this.#fetch(url).finally(() => this.#coming.delete(url));
      this.#coming.set(url, coming);
    }
    return await coming;
  }

  /** Gives up what is still to come. */
  close(): void {
    this.#closing.abort(new LeatError("cancelled", "The runners have been closed"));
  }

  async #fetch(asked: string): Promise<FetchedModule> {
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(FETCH_TIMEOUT_MS)]);
    let url = asked;
    for (let i = 0; i <= REDIRECTS_MAX; i++) {
      this.#requireGranted(url);
      const response = await answerOf(url, signal);
      const next = response.status >= 300 && response.status < 400
        ? response.headers.get("location")
        : null;
      if (next === null) return this.#keep(asked, await this.#moduleOf(url, response));
      await response.body?.cancel();
      url = urlOf(next, url);
    }
    throw new LeatError(
      "unavailable",
      `Cannot import ${asked}: it leads on through more than ${REDIRECTS_MAX} redirects`,
    );
  }

  async #moduleOf(url: string, response: Response): Promise<FetchedModule> {
    if (!response.ok) {
      await response.body?.cancel();
      const code = response.status === 404 || response.status === 410 ? "not_found" : "unavailable";
      throw new LeatError(code, `Cannot import ${url}: its host answers ${response.status}`);
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
        if (bytes > MODULE_BYTES_MAX) throw tooLarge(url, "it has", MODULE_BYTES_MAX);
        if (this.#comingBytes > this.#comingBytesMax) {
          throw tooLarge(url, "at this time this worker fetches", this.#comingBytesMax);
        }
        text += decoder.decode(chunk, { stream: true });
      }
    } finally {
      this.#comingBytes -= bytes;
    }
    return text + decoder.decode();
  }

  #requireGranted(url: string): void {
    const isWeb = /^https?:/.test(url);
    const host = isWeb ? hostOf(url) : url;
    if (isWeb && this.#granted.some((granted) => isOf(host, granted))) return;
    throw new LeatError("permission_denied", `Requires import access to "${host}"`);
  }

  #keep(asked: string, module: FetchedModule): FetchedModule {
    this.#kept.set(asked, module);
    this.#keptChars += charsOf(asked, module);
    for (const [url, oldest] of this.#kept) {
      if (this.#keptChars <= this.#charsMax && this.#kept.size <= this.#modulesMax) break;
      this.#kept.delete(url);
      this.#keptChars -= charsOf(url, oldest);
    }
    return module;
  }
}

/** A URL as its host is asked for it. */
function urlOf(text: string, base?: string): string {
  const url = text.length > URL_CHARS_MAX ? undefined : new URL(text, base);
  if (url !== undefined) url.hash = "";
  if (url !== undefined && url.href.length <= URL_CHARS_MAX) return url.href;
  throw new LeatError(
    "invalid_argument",
    `Cannot import ${text.slice(0, URL_CHARS_SHOWN)}…: its URL has more than ${URL_CHARS_MAX} ` +
      "characters; give the module a shorter one",
  );
}

function charsOf(asked: string, { url, mediaType, text }: FetchedModule): number {
  return asked.length + url.length + mediaType.length + text.length;
}

function isOf(host: string, granted: string): boolean {
  const name = host.slice(0, host.lastIndexOf(":"));
  if (granted.startsWith("*.")) return [host, name].some((it) => it.endsWith(granted.slice(1)));
  return granted === host || granted === name;
}

async function answerOf(url: string, signal: AbortSignal): Promise<Response> {
  try {
    return await fetch(url, { redirect: "manual", signal });
  } catch (cause) {
    const { message } = LeatError.from(cause);
    throw new LeatError("unavailable", `Cannot import ${url}: ${message}`, { cause });
  }
}

function tooLarge(url: string, what: string, bytesMax: number): LeatError {
  return new LeatError(
    "resource_exhausted",
    `Cannot import ${url}: ${what} more than ${bytesMax / 2 ** 20} MiB`,
  );
}
