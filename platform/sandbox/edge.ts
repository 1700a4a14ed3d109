/**
 * Exchanges requests between two processes, one of which may be hostile. An envelope is a request for
 * one of a few methods, or an answer; any other envelope closes the edge. Each end has only one actor,
 * so the other side cannot reach any other part of this process.
 */
import type { AbortRace } from "../../core/abort_race.ts";
import { LeatError, type LeatErrorCode, type WireError } from "../../core/error.ts";
import { bodyBytes } from "../../transport/limits.ts";
import type { Envelope } from "../../actors/runtime/envelope.ts";
import type { Link, NodeId } from "../../actors/runtime/link.ts";
import type { FencedRef, Ref } from "../../actors/runtime/ref.ts";

/** Limit of open requests in one direction; further ones wait at the sender. */
export const EDGE_ASKS_MAX = 64;

/**
 * Limit of the other side's requests with unwritten answers; more close the edge. The limit is above
 * the sender's, because the sender may receive an answer before this side counts it as written.
 */
export const ANSWERING_MAX = 2 * EDGE_ASKS_MAX;
/** Limit of the bytes of the other side's open requests together, as a multiple of `askBytesMax`. */
const OPEN_BYTES_FACTOR = 4;

/** Limit of a confined process's request to its host, in bytes. Honest processes check it, too. */
export const CONFINED_ASK_BYTES_MAX = 128 * 2 ** 20;

/** Limit of the bytes of one read of a far file; a reader that needs more sends another request. */
export const HOST_READ_BYTES_MAX = 16 * 2 ** 20;

/** The `details.reason` of errors that say that the host process of an earlier request has ended. */
export const HOST_GONE = "host_gone";

/** Limit of the message of an error that crosses an edge, in characters. */
const ERROR_CHARS_MAX = 12 * 1024;
const ERROR_CAUSES_MAX = 8;

/** The only actor at each end. */
const PATH = "/edge";

/** Answers a request. `args` is untrusted plain data. */
type EdgeMethod = (args: unknown) => unknown;
export type EdgeMethods = Readonly<Record<string, EdgeMethod>>;

export interface EdgeOptions {
  /** Limit of the other side's requests per second; more close the edge. Default: none. */
  readonly asksPerSecondMax?: number;
  /** Limit of a request of the other side, in bytes; a longer one closes the edge. Default: none. */
  readonly askBytesMax?: number;
}

interface Pending {
  resolve(value: unknown): void;
  reject(error: LeatError): void;
}

interface Waiting {
  readonly method: string;
  readonly args: unknown;
  readonly pending: Pending;
}

/** The open link, and the addresses of the actors at its two ends. */
interface Opened {
  readonly link: Link;
  readonly source: FencedRef;
  readonly target: Ref;
}

export class Edge {
  /** Resolves to the reason when the edge is closed or its link has ended. */
  readonly closed: Promise<LeatError>;
  readonly #resolveClosed: (why: LeatError) => void;
  readonly #methods: ReadonlyMap<string, EdgeMethod>;
  readonly #asksPerSecondMax: number;
  readonly #askBytesMax: number;
  /** Bytes of the other side's open requests. */
  #openBytes = 0;
  #opened: Opened | undefined;
  /** The number of the last envelope, as each pair of actors counts them. */
  #number = 0;
  /** The second of the other side's last request, and the number of requests in that second. */
  #second = 0;
  #requestsInSecond = 0;
  readonly #pending = new Map<number, Pending>();
  readonly #waiting: Waiting[] = [];
  /** The id of the last request. */
  #lastId = 0;
  /** Requests of the other side with unwritten answers. */
  #unwritten = 0;
  #closed: LeatError | undefined;

  /** Requests wait until `link` is open, or fail if it fails. `local` is this process's id on the link. */
  constructor(
    link: Promise<Link>,
    local: NodeId,
    methods: EdgeMethods,
    { asksPerSecondMax = Infinity, askBytesMax = Infinity }: EdgeOptions = {},
  ) {
    this.#asksPerSecondMax = asksPerSecondMax;
    this.#askBytesMax = askBytesMax;
    this.#methods = new Map(Object.entries(methods));
    const { promise, resolve } = Promise.withResolvers<LeatError>();
    this.closed = promise;
    this.#resolveClosed = resolve;
    link.then((opened) => this.#open(opened, local), (error) => this.close(LeatError.from(error)));
  }

  get isClosed(): boolean {
    return this.#closed !== undefined;
  }

  /**
   * Sends a request.
   * @throws {LeatError} the error of the answer, or the reason if the edge is closed first.
   */
  ask(method: string, args?: unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#closed !== undefined) return reject(this.#closed);
      const pending = { resolve, reject };
      if (this.#opened !== undefined && this.#pending.size < EDGE_ASKS_MAX) {
        this.#send(this.#opened, method, args, pending);
      } else this.#waiting.push({ method, args, pending });
    });
  }

  /** Like `ask`, but if the edge closes, it rejects with `death`, which says why the process ended. */
  askUntil(death: AbortRace, method: string, args: unknown): Promise<unknown> {
    const answer = this.ask(method, args).catch((error) => {
      if (this.#closed !== undefined) return new Promise(() => {});
      throw error;
    });
    return death.race(answer);
  }

  /** Bytes that wait to be sent. */
  get bufferedBytes(): number {
    return this.#opened?.link.bufferedBytes ?? 0;
  }

  /** Resolves when the link has space, or is closed. */
  async ready(): Promise<void> {
    await this.#opened?.link.ready();
  }

  /** Closes the link; open requests are rejected. Idempotent. */
  close(error: LeatError = new LeatError("cancelled", "The edge was closed")): void {
    if (this.#closed !== undefined) return;
    this.#closed = error;
    this.#opened?.link.close(error);
    for (const pending of this.#pending.values()) pending.reject(error);
    for (const { pending } of this.#waiting) pending.reject(error);
    this.#pending.clear();
    this.#waiting.length = 0;
    this.#resolveClosed(error);
  }

  #open(link: Link, local: NodeId): void {
    if (this.#closed !== undefined) return link.close(this.#closed);
    const source = { node: local.node, path: PATH, incarnation: `${local.incarnation}-1` };
    const opened = { link, source, target: { node: link.remote.node, path: PATH } };
    this.#opened = opened;
    link.closed.then((why) => this.close(why));
    link.start((envelope) => this.#receive(envelope));
    this.#sendWaiting(opened);
  }

  /** Sends waiting requests up to the limit of open ones. A request that fails to be sent is not open. */
  #sendWaiting(opened: Opened): void {
    while (this.#waiting.length > 0 && this.#pending.size < EDGE_ASKS_MAX) {
      const { method, args, pending } = this.#waiting.shift()!;
      this.#send(opened, method, args, pending);
    }
  }

  /** Sends a request without a deadline: the other process may take any time. */
  #send(opened: Opened, method: string, args: unknown, pending: Pending): void {
    const id = ++this.#lastId;
    const { link, source, target } = opened;
    const number = ++this.#number;
    try {
      const body = args ?? null;
      link.send({ kind: "ask", source, target, number, id, method, body, timeoutMs: Infinity });
    } catch (error) {
      return pending.reject(LeatError.from(error, "invalid_argument"));
    }
    this.#pending.set(id, pending);
  }

  /** Handles an envelope. If this throws, the link closes. */
  #receive(envelope: Envelope): void {
    if (this.#closed !== undefined) return;
    switch (envelope.kind) {
      case "ask":
        return this.#receiveRequest(envelope.id, envelope.method, envelope.body);
      case "reply":
        return this.#takePending(envelope.id).resolve(envelope.body);
      case "failure":
        return this.#takePending(envelope.id).reject(
          LeatError.fromWire(plainError(envelope.error)),
        );
      default:
        throw broken(`a message of kind ${envelope.kind}`);
    }
  }

  #receiveRequest(id: number, method: string, args: unknown): void {
    const answer = this.#methods.get(method);
    if (answer === undefined) throw broken(`a request for ${method.slice(0, 80)}`);
    const byteLength = this.#askBytesMax === Infinity ? 0 : bodyBytes(args);
    if (byteLength > this.#askBytesMax) throw broken(`a request of ${byteLength} bytes`);
    if (this.#unwritten >= ANSWERING_MAX) throw broken("more open requests than allowed");
    this.#countRequest();
    this.#unwritten++;
    this.#openBytes += byteLength;
    const bytesMax = OPEN_BYTES_FACTOR * this.#askBytesMax;
    const call = this.#openBytes > bytesMax ? () => refuse(bytesMax) : () => answer(args);
    this.#answer(id, call).finally(() => this.#openBytes -= byteLength);
  }

  #countRequest(): void {
    const second = Math.floor(performance.now() / 1_000);
    if (second !== this.#second) this.#requestsInSecond = 0;
    this.#second = second;
    if (++this.#requestsInSecond > this.#asksPerSecondMax) {
      throw broken("more requests in a second than allowed");
    }
  }

  /** Answers a request, which stays open until the link has space: the other side must read answers. */
  async #answer(id: number, method: () => unknown): Promise<void> {
    try {
      await this.#sendAnswer(id, method);
      await this.ready();
    } catch (error) {
      // Not even the error could be sent.
      this.close(LeatError.from(error));
    } finally {
      this.#unwritten--;
    }
  }

  async #sendAnswer(id: number, method: () => unknown): Promise<void> {
    const { link, source, target } = this.#opened!;
    try {
      const body = await method() ?? null;
      link.send({ kind: "reply", source, target, number: ++this.#number, id, body });
    } catch (thrown) {
      const error = bounded(LeatError.from(thrown).toWire());
      link.send({ kind: "failure", source, target, number: ++this.#number, id, error });
    }
  }

  /** Removes the request that an answer settles, and sends a waiting one. */
  #takePending(id: number): Pending {
    const pending = this.#pending.get(id);
    if (pending === undefined) throw broken("an answer without a request");
    this.#pending.delete(id);
    this.#sendWaiting(this.#opened!);
    return pending;
  }
}

/**
 * Whether the reason of a closed edge says more than the end of the other process: this side closed
 * the edge because of an error, and did not see its pipes end between two messages.
 */
export function explainsEnd({ code }: LeatError): boolean {
  return OWN_CODES.has(code);
}

/** Codes of errors of the protocol, and of a full disk of slot files. */
const OWN_CODES: ReadonlySet<LeatErrorCode> = new Set<LeatErrorCode>([
  "internal",
  "invalid_argument",
  "data_loss",
  "resource_exhausted",
]);

/** Returns an error of the other side in a form and size that can be forwarded. */
export function plainError(error: unknown): WireError {
  return bounded(LeatError.fromWire(error as WireError).toWire());
}

function bounded(error: WireError, causes = ERROR_CAUSES_MAX): WireError {
  const { code, message, details, cause } = error;
  return {
    code,
    message: message.slice(0, ERROR_CHARS_MAX).toWellFormed(),
    ...(details === undefined || !isSmall(details) ? {} : { details }),
    ...(cause === undefined || causes === 0 ? {} : { cause: bounded(cause, causes - 1) }),
  };
}

function isSmall(details: Record<string, unknown>): boolean {
  const text = JSON.stringify(
    details,
    (_, value) => typeof value === "bigint" ? `${value}` : value,
  );
  return text.length <= ERROR_CHARS_MAX;
}

/** @throws {LeatError} always, because the open requests together are too large. */
function refuse(bytesMax: number): never {
  throw new LeatError(
    "resource_exhausted",
    `The open requests of a process have more than ${bytesMax / 2 ** 20} MiB together ` +
      "(OPEN_BYTES_FACTOR): make fewer or smaller calls at once",
  );
}

/** The error for a request of a confined process that exceeds the limit of requests to its host. */
export function hostRequestTooLarge(request: string): LeatError {
  return new LeatError(
    "resource_exhausted",
    `A task's open requests to its host have at most ${
      CONFINED_ASK_BYTES_MAX / 2 ** 20
    } MiB together ` +
      `(CONFINED_ASK_BYTES_MAX), and ${request} would exceed this: decode fewer or smaller images at once`,
  );
}

function broken(by: string): LeatError {
  return new LeatError("internal", `The other process violated its protocol: ${by}`);
}
