/** HTTP requests to far storage, with timeouts. An error's code says whether to retry. */

import { innermostCause, LeatError, type LeatErrorCode, withShownUrls } from "../../core/error.ts";
import { shownText } from "../../core/shown_text.ts";
import { TIMER_MS_MAX } from "../../data/check.ts";
import { Retries, type RetryOptions, type RetryTiming } from "./retries.ts";

/** Timeouts and retries of requests to far storage. */
export interface RequestOptions extends RetryOptions {
  /**
   * Limit of the time without received bytes, before or during the answer, in ms. After it the request
   * is repeated. Default 30,000; at most 2,147,483,647.
   */
  readonly timeoutMs?: number;
}

/** A request. The method is GET. */
export interface HttpRequest {
  /** The name of the file or listing in messages, without secrets. */
  readonly name: string;
  readonly url: string;
  readonly headers: HeadersInit;
  /** Makes the request for a redirect's target; throws if forbidden. Default: none is followed. */
  readonly redirected?: (target: URL) => HttpRequest;
  /** Makes the request to send in place of this one if the answer says so. Default: none is. */
  readonly moved?: (answer: Response) => Promise<HttpRequest | undefined>;
}

const TIMEOUT_MS = 30_000;

/** Limit of redirects in a row, as in browsers. */
const REDIRECTS_MAX = 20;
const REDIRECT_STATUSES: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Limit of the bytes that are read of an error page. */
export const REFUSAL_BYTES_MAX = 64 * 1024;

/** The bytes that are allocated for a body whose length is unknown. */
const COLLECTED_BYTES_MIN = 16 * 1024;

/** Limit of the characters of an error page that an error message quotes. */
const REFUSAL_SHOWN_MAX = 200;

/** Whether a header can be sent. Errors of the standard classes would show its value, a secret perhaps. */
export function isHeader(name: string, value: unknown): value is string {
  if (typeof value !== "string") return false;
  try {
    new Headers([[name, value]]);
    return true;
  } catch {
    return false;
  }
}

/** Sends requests, and retries them. */
export class HttpClient {
  readonly retries: Retries;
  readonly #timeoutMs: number;

  constructor(options: RequestOptions = {}, timing?: RetryTiming) {
    const { timeoutMs = TIMEOUT_MS, ...retries } = options;
    if (!(timeoutMs > 0 && timeoutMs <= TIMER_MS_MAX)) {
      throw new LeatError(
        "invalid_argument",
        `timeoutMs is a number of milliseconds above 0, at most ${TIMER_MS_MAX}, not ${timeoutMs}`,
      );
    }
    this.#timeoutMs = timeoutMs;
    this.retries = new Retries(retries, timing);
  }

  /**
   * Sends a request, and those that its answers lead to. Resolves with the head of the last answer,
   * whatever its status. The caller reads the body to the end, or cancels the answer.
   * @throws {LeatError} `permission_denied` if the program may not connect there, `cancelled` once
   * the signal is aborted, `unavailable` if the host cannot be reached or times out,
   * `failed_precondition` for too many redirects, or one to a URL that is neither `http:` nor `https:`.
   */
  async send(request: HttpRequest, signal: AbortSignal): Promise<HttpAnswer> {
    const liveness = new Liveness(this.#timeoutMs, signal);
    let current = request;
    try {
      for (let redirects = 0;; redirects++) {
        const { url, headers } = current;
        // If Deno followed redirects, the headers would go to any host.
        const response = await fetch(url, { headers, redirect: "manual", signal: liveness.signal });
        liveness.received();
        const next = await nextOf(current, response);
        if (next === undefined) return new HttpAnswer(current, response, liveness);
        await response.body?.cancel();
        if (redirects >= REDIRECTS_MAX) throw tooManyRedirects(request);
        current = next;
      }
    } catch (error) {
      liveness.end();
      throw requestError(current, liveness, error);
    }
  }
}

/** An answer: its head, and its body as it arrives. */
export class HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly #request: HttpRequest;
  readonly #response: Response;
  readonly #liveness: Liveness;

  constructor(request: HttpRequest, response: Response, liveness: Liveness) {
    this.status = response.status;
    this.headers = response.headers;
    this.#request = request;
    this.#response = response;
    this.#liveness = liveness;
  }

  /** The body; call it once. A broken connection throws `unavailable`. */
  async *chunks(): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of this.#response.body ?? []) {
        this.#liveness.received();
        yield chunk;
      }
    } catch (error) {
      throw requestError(this.#request, this.#liveness, error);
    } finally {
      this.cancel();
    }
  }

  /** The whole body; `undefined` if it is larger than `bytesMax`. */
  async collect(bytesMax: number): Promise<Uint8Array | undefined> {
    let bytes = new Uint8Array(0);
    let count = 0;
    for await (const chunk of this.chunks()) {
      const end = count + chunk.length;
      if (end > bytesMax) return undefined;
      if (end > bytes.length) {
        const room = Math.max(end, 2 * bytes.length, COLLECTED_BYTES_MIN);
        bytes = new Uint8Array(bytes.buffer.transfer(Math.min(room, bytesMax)));
      }
      // Copied at once: a chunk of one byte keeps a buffer of kilobytes alive.
      bytes.set(chunk, count);
      count = end;
    }
    return bytes.subarray(0, count);
  }

  /**
   * Returns the server's reason for a refusal: its page, or "" if the page is large or cannot be read.
   * Removes secrets of the request's URL and headers.
   */
  async reason(): Promise<string> {
    try {
      const page = new TextDecoder().decode(await this.collect(REFUSAL_BYTES_MAX));
      return withoutSecretsOf(this.#request, page);
    } catch {
      return ""; // the status suffices
    }
  }

  /** Releases the connection; idempotent. */
  cancel(): void {
    this.#liveness.end();
  }
}

/**
 * Makes the error for an answer's status.
 * @param reason the server's reason, if known.
 * @param remedy a sentence that tells the user what to do.
 */
export function refusalOf(
  { name }: HttpRequest,
  { status, headers }: HttpAnswer,
  reason: string,
  remedy = "",
): LeatError {
  const code = codeOfStatus(status);
  const quoted = shownText(reason.replace(/\s+/g, " ").trim().slice(0, REFUSAL_SHOWN_MAX));
  const message = `Cannot read ${name}: the server answered ` +
    `${status}${quoted === "" ? "" : ` (${quoted})`}.${remedy === "" ? "" : ` ${remedy}`}`;
  const retryAfterMs = retryAfterMsOf(headers);
  return new LeatError(code, message, {
    details: { status, ...(retryAfterMs >= 0 ? { retryAfterMs } : {}) },
  });
}

/** `NaN` if the server requests no time. */
function retryAfterMsOf(headers: Headers): number {
  const requested = headers.get("retry-after") ?? "none";
  const seconds = Number(requested);
  if (seconds >= 0) return seconds * 1000;
  // A date is one of the server's clock, which may differ from this machine's.
  const nowMs = Date.parse(headers.get("date") ?? "") || Date.now();
  return Math.max(0, Date.parse(requested) - nowMs);
}

function codeOfStatus(status: number): LeatErrorCode {
  switch (status) {
    case 401:
    case 403:
    case 407:
      return "permission_denied";
    case 404:
    case 410:
      return "not_found";
    case 408:
    case 425:
    case 429:
      return "unavailable";
    case 501:
      return "unimplemented";
  }
  return status >= 500 ? "unavailable" : "failed_precondition";
}

/** The request that an answer leads to; `undefined` for an answer to read. */
async function nextOf(request: HttpRequest, response: Response): Promise<HttpRequest | undefined> {
  const { redirected, moved } = request;
  const target = redirected && targetOf(request, response);
  return target === undefined ? await moved?.(response) : redirected!(target);
}

/** The target of a redirect; `undefined` for other responses. */
function targetOf({ name, url }: HttpRequest, response: Response): URL | undefined {
  const location = response.headers.get("location");
  if (!REDIRECT_STATUSES.has(response.status) || location === null) return undefined;
  const target = URL.parse(location, url);
  if (target !== null && /^https?:$/.test(target.protocol)) return withUser(target, new URL(url));
  throw new LeatError(
    "failed_precondition",
    `Cannot read ${name}: its server redirects to a URL that is neither http: nor https:.`,
  );
}

/** A target of the same origin gets the user and password of the URL that redirects, as in browsers. */
function withUser(target: URL, { origin, username, password }: URL): URL {
  if (target.origin === origin && target.username === "" && target.password === "") {
    target.username = username;
    target.password = password;
  }
  return target;
}

function tooManyRedirects({ name }: HttpRequest): LeatError {
  return new LeatError(
    "failed_precondition",
    `Cannot read ${name}: its server sends more than ${REDIRECTS_MAX} redirects in a row.`,
  );
}

/** Aborts a request when no bytes arrive within a timeout, or when the caller cancels the request. */
class Liveness {
  readonly ms: number;
  readonly #outer: AbortSignal;
  readonly #controller = new AbortController();
  readonly #end = () => this.end();
  #timer: ReturnType<typeof setTimeout> | undefined;
  hasTimedOut = false;

  constructor(ms: number, outer: AbortSignal) {
    this.ms = ms;
    this.#outer = outer;
    outer.addEventListener("abort", this.#end, { once: true });
    if (outer.aborted) this.end();
    else this.received();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isCancelled(): boolean {
    return this.#outer.aborted;
  }

  /** Restarts the timeout, because bytes have arrived. */
  received(): void {
    clearTimeout(this.#timer);
    if (this.signal.aborted) return;
    this.#timer = setTimeout(() => {
      this.hasTimedOut = true;
      this.end();
    }, this.ms);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#outer.removeEventListener("abort", this.#end);
    this.#controller.abort();
  }
}

function requestError({ name, url }: HttpRequest, liveness: Liveness, thrown: unknown): LeatError {
  if (thrown instanceof LeatError) return thrown;
  const error = withShownUrls(thrown);
  if (liveness.isCancelled) {
    return new LeatError("cancelled", `Reading ${name} was cancelled.`, { cause: error });
  }
  if (liveness.hasTimedOut) {
    const message = `Cannot read ${name}: no bytes arrived for ${liveness.ms} ms.`;
    return new LeatError("unavailable", message, { cause: error });
  }
  const { code, message } = LeatError.from(error, "unavailable");
  if (code === "permission_denied") {
    const host = /"([^"]+)"/.exec(message)?.[1] ?? new URL(url).host;
    return new LeatError(
      code,
      `Cannot read ${name}: this program may not connect to ${host}; run it with --allow-net=${host}.`,
      { cause: error },
    );
  }
  return new LeatError("unavailable", `Cannot read ${name}: ${causeOf(error)}.`, { cause: error });
}

/** The root cause without its URL, because the message names the file already. */
function causeOf(error: unknown): string {
  const { message } = LeatError.from(innermostCause(error));
  return message.replace(/ (for url \(\S*\)|from \S+ for \S+ \(\S*\))(?=:|$)/, "");
}

/** Shorter parts of a URL, such as a version number, do not count as secrets. */
const SECRET_CHARS_MIN = 6;

/**
 * Removes a URL's user, password and query values, and the values of headers, from a text. A page may
 * escape those of a URL as HTML, JSON or URLs do, so their words are removed one by one, too.
 */
function withoutSecretsOf({ url, headers }: HttpRequest, text: string): string {
  const { username, password, search } = new URL(url);
  const names = [username, password].flatMap((name) => [name, decoded(name)]);
  const values = [search, ...search.slice(1).split(/[&=]/)]
    .flatMap((value) => [value, decoded(value.replaceAll("+", " "))]);
  const words = [...names, ...values].flatMap((part) => part.split(/[^a-z0-9]+/i));
  const sent = [...new Headers(headers)].flatMap(([, value]) => partsOfHeader(value));
  const hidden = [...names, ...[...values, ...words, ...sent].filter(isSecret)]
    .filter((part) => part !== "")
    // The longest first: a part may be the beginning of a longer one.
    .sort((a, b) => b.length - a.length);
  if (hidden.length === 0) return text;
  return text.replaceAll(new RegExp(hidden.map(RegExp.escape).join("|"), "gi"), "…");
}

/** The value, its parts without their names, and what comes before a slash, such as the id of a key. */
function partsOfHeader(value: string): string[] {
  const parts = value.split(/[\s,]+/).map((part) => part.replace(/^[\w-]+=/, ""));
  return [value, ...parts, ...parts.map((part) => part.split("/")[0]!)];
}

function isSecret({ length }: string): boolean {
  return length >= SECRET_CHARS_MIN;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
