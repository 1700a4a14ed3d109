/**
 * HTTP requests to far storage: silence ends them, and whatever goes wrong is told as a `LeatError` that says whether to ask again.
 */

import { LeatError, type LeatErrorCode } from "../core/error.ts";
import { Retries, type RetryOptions, type RetryTiming } from "./retries.ts";

/** How patient requests to far storage are. */
export interface RequestOptions extends RetryOptions {
  /** Longest silence, before the answer or amid its body, in ms; then the request is made again. Default 30,000. */
  readonly timeoutMs?: number;
}

/** What is asked for. The method is GET. */
export interface HttpRequest {
  /** The file or listing as messages name it: no secret is in it. */
  readonly name: string;
  readonly url: string;
  readonly headers: HeadersInit;
  /**
   * What is asked for where the server redirects to; it throws where that may not be. Without it a
   * redirect is an answer like any other.
   */
  readonly redirected?: (target: URL) => HttpRequest;
}

const TIMEOUT_MS = 30_000;

/** How many redirects in a row are followed, as many as browsers follow. */
const REDIRECTS_MAX = 20;
/** The answers that lead elsewhere. */
const REDIRECT_STATUSES: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Most that is read of a page which says why a request failed. */
const REFUSAL_BYTES_MAX = 64 * 1024;

/** Longest part of such a page that a message repeats, in characters. */
const REFUSAL_SHOWN_MAX = 200;

/** Sends requests, and asks again. */
export class HttpClient {
  readonly retries: Retries;
  readonly #timeoutMs: number;

  constructor(options: RequestOptions = {}, timing?: RetryTiming) {
    const { timeoutMs = TIMEOUT_MS, ...retries } = options;
    if (!(timeoutMs > 0)) {
      throw new LeatError(
        "invalid_argument",
        `timeoutMs is a number of milliseconds above 0, not ${timeoutMs}`,
      );
    }
    this.#timeoutMs = timeoutMs;
    this.retries = new Retries(retries, timing);
  }

  /**
   * The head of the answer, whatever its status, after the redirects that the request follows. Its body is to be read to its end, or the answer cancelled.
   *
   * @throws {LeatError} `permission_denied` where the program may not connect there, `cancelled` once the signal is aborted,
   * `unavailable` where the host cannot be reached or says nothing in time, `failed_precondition` where redirects lead nowhere.
   */
  async send(request: HttpRequest, signal: AbortSignal): Promise<HttpAnswer> {
    const silence = new Silence(this.#timeoutMs, signal);
    let asked = request;
    try {
      for (let redirects = 0;; redirects++) {
        const { url, headers, redirected } = asked;
        // Deno itself would follow to any host, and take headers there.
        const response = await fetch(url, { headers, redirect: "manual", signal: silence.signal });
        silence.broken();
        const target = redirected === undefined ? undefined : targetOf(asked, response);
        if (target === undefined) return new HttpAnswer(asked, response, silence);
        await response.body?.cancel();
        if (redirects >= REDIRECTS_MAX) throw tooManyRedirects(request);
        asked = redirected!(target);
      }
    } catch (error) {
      silence.end();
      throw requestError(asked, silence, error);
    }
  }
}

/** What came back: its head, and its body as it arrives. */
export class HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly #request: HttpRequest;
  readonly #response: Response;
  readonly #silence: Silence;

  constructor(request: HttpRequest, response: Response, silence: Silence) {
    this.status = response.status;
    this.headers = response.headers;
    this.#request = request;
    this.#response = response;
    this.#silence = silence;
  }

  /** The body, once. It ends early where the peer says so; a connection that breaks throws `unavailable`. */
  async *chunks(): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of this.#response.body ?? []) {
        this.#silence.broken();
        yield chunk;
      }
    } catch (error) {
      throw requestError(this.#request, this.#silence, error);
    } finally {
      this.cancel();
    }
  }

  /** The whole body; `undefined` where it is larger than `bytesMax`. */
  async collect(bytesMax: number): Promise<Uint8Array | undefined> {
    const chunks: Uint8Array[] = [];
    let count = 0;
    for await (const chunk of this.chunks()) {
      if ((count += chunk.length) > bytesMax) return undefined;
      chunks.push(chunk);
    }
    const bytes = new Uint8Array(count);
    count = 0;
    for (const chunk of chunks) {
      bytes.set(chunk, count);
      count += chunk.length;
    }
    return bytes;
  }

  /** What the server says of its refusal: the beginning of its page, or nothing. */
  async reason(): Promise<string> {
    try {
      return new TextDecoder().decode(await this.collect(REFUSAL_BYTES_MAX));
    } catch {
      return ""; // the status says enough
    }
  }

  /** Lets go of the connection; idempotent. */
  cancel(): void {
    this.#silence.end();
  }
}

/**
 * The error that an answer's status stands for.
 *
 * @param reason what the server says, as far as it is known.
 * @param remedy a sentence for whoever is refused.
 */
export function refusalOf(
  { name }: HttpRequest,
  { status, headers }: HttpAnswer,
  reason: string,
  remedy = "",
): LeatError {
  const code = codeOfStatus(status);
  const said = reason.replace(/\s+/g, " ").trim().slice(0, REFUSAL_SHOWN_MAX);
  const message = `Cannot read ${name}: the server answered ${status}${
    said === "" ? "" : ` (${said})`
  }.${remedy === "" ? "" : ` ${remedy}`}`;
  const seconds = Number(headers.get("retry-after") ?? NaN);
  return new LeatError(code, message, {
    details: { status, ...(seconds >= 0 ? { retryAfterMs: seconds * 1000 } : {}) },
  });
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

/** Where a response redirects to; `undefined` where it does not. */
function targetOf({ name, url }: HttpRequest, response: Response): URL | undefined {
  const location = response.headers.get("location");
  if (!REDIRECT_STATUSES.has(response.status) || location === null) return undefined;
  const target = URL.parse(location, url);
  if (target !== null && /^https?:$/.test(target.protocol)) return target;
  throw new LeatError(
    "failed_precondition",
    `Cannot read ${name}: its server redirects to what is no http: or https: URL.`,
  );
}

function tooManyRedirects({ name }: HttpRequest): LeatError {
  return new LeatError(
    "failed_precondition",
    `Cannot read ${name}: it leads on through more than ${REDIRECTS_MAX} redirects.`,
  );
}

/** Ends a request when nothing was heard for a while, or when nobody wants it any more. */
class Silence {
  readonly ms: number;
  readonly #outer: AbortSignal;
  readonly #controller = new AbortController();
  readonly #end = () => this.end();
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Whether it lasted too long. */
  exceeded = false;

  constructor(ms: number, outer: AbortSignal) {
    this.ms = ms;
    this.#outer = outer;
    outer.addEventListener("abort", this.#end, { once: true });
    if (outer.aborted) this.end();
    else this.broken();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get unwanted(): boolean {
    return this.#outer.aborted;
  }

  /** Something was heard. */
  broken(): void {
    clearTimeout(this.#timer);
    if (this.signal.aborted) return;
    this.#timer = setTimeout(() => {
      this.exceeded = true;
      this.end();
    }, this.ms);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#outer.removeEventListener("abort", this.#end);
    this.#controller.abort();
  }
}

function requestError({ name, url }: HttpRequest, silence: Silence, error: unknown): LeatError {
  if (error instanceof LeatError) return error;
  if (silence.unwanted) {
    return new LeatError("cancelled", `Reading ${name} was given up.`, { cause: error });
  }
  if (silence.exceeded) {
    const message = `Cannot read ${name}: nothing was heard for ${silence.ms} ms.`;
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

/** What went wrong at the bottom, without the URL, which may hold a secret. */
function causeOf(error: unknown): string {
  let inner = error;
  while (inner instanceof Error && inner.cause instanceof Error) inner = inner.cause;
  return LeatError.from(inner).message.replace(/ ?for url \(.*?\)(?=:|$)/, "");
}
