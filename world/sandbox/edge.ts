/**
 * Asks between two processes of which one may be run by a stranger: a message names one of a few
 * methods, and what else comes ends the edge.
 *
 * @module
 */
import { LeatError, type WireError } from "../../core/error.ts";
import { isPlainObject } from "../../core/tree.ts";

/** Asks under way in one direction; further ones wait on the side that makes them. */
export const EDGE_ASKS_MAX = 64;

/**
 * Asks of the other side whose answers have not been written; more end the edge. It is more than the
 * other side has open, which may hear of an answer before this side knows that it was written.
 */
export const ANSWERING_MAX = 2 * EDGE_ASKS_MAX;

/**
 * Longest ask of a confined process, in bytes, which is one for its host. The process's own program
 * refuses a longer one, so that one who sends it nevertheless breaks the edge.
 */
export const CONFINED_ASK_BYTES_MAX = 128 * 2 ** 20;

/** Longest message of an error that crosses an edge, in characters. */
const ERROR_CHARS_MAX = 12 * 1024;
/** How many causes of an error cross an edge. */
const ERROR_CAUSES_MAX = 8;

/** What carries the messages of an edge. */
export interface EdgeCarrier {
  /** The promise resolves when the message has been written, or never will be. */
  send(message: unknown): Promise<void>;
  /** Begins to deliver; called once. What `receive` throws closes the carrier. */
  start(receive: (message: unknown, byteLength: number) => void): void;
  close(why?: LeatError): void;
  readonly closed: Promise<LeatError>;
}

/**
 * Answers an ask. What comes as `args` is plain data that anybody may have written.
 *
 * @param byteLength How large the message was that it came in.
 */
export type EdgeMethod = (args: unknown, byteLength: number) => unknown;
export type EdgeMethods = Readonly<Record<string, EdgeMethod>>;

/** What an edge bounds. */
export interface EdgeOptions {
  /** Asks that the other side may make in a second; more end the edge. Default: any number. */
  readonly asksPerSecondMax?: number;
  /** How long an ask of the other side may be, in bytes; a longer one ends the edge. Default: any. */
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

/** One end of an edge. */
export class Edge {
  readonly #carrier: EdgeCarrier;
  readonly #methods: ReadonlyMap<string, EdgeMethod>;
  readonly #asksPerSecondMax: number;
  readonly #askBytesMax: number;
  /** The second in which the last ask came, and how many came in it. */
  #second = 0;
  #inSecond = 0;
  readonly #pending = new Map<number, Pending>();
  readonly #waiting: Waiting[] = [];
  #asked = 0;
  #answering = 0;
  #closed: LeatError | undefined;

  constructor(
    carrier: EdgeCarrier,
    methods: EdgeMethods,
    { asksPerSecondMax = Infinity, askBytesMax = Infinity }: EdgeOptions = {},
  ) {
    this.#carrier = carrier;
    this.#asksPerSecondMax = asksPerSecondMax;
    this.#askBytesMax = askBytesMax;
    this.#methods = new Map(Object.entries(methods));
    carrier.closed.then((why) => this.close(why));
    carrier.start((message, byteLength) => this.#receive(message, byteLength));
  }

  /**
   * Asks the other side.
   *
   * @throws {LeatError} what the other side answers; why the edge was closed, if it is closed first.
   */
  ask(method: string, args?: unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#closed !== undefined) return reject(this.#closed);
      const pending = { resolve, reject };
      if (this.#pending.size < EDGE_ASKS_MAX) this.#send(method, args, pending);
      else this.#waiting.push({ method, args, pending });
    });
  }

  get isClosed(): boolean {
    return this.#closed !== undefined;
  }

  /** Closes the carrier; asks without an answer are rejected. Idempotent. */
  close(error: LeatError = new LeatError("cancelled", "The edge was closed")): void {
    if (this.#closed !== undefined) return;
    this.#closed = error;
    this.#carrier.close(error);
    for (const pending of this.#pending.values()) pending.reject(error);
    for (const { pending } of this.#waiting) pending.reject(error);
    this.#pending.clear();
    this.#waiting.length = 0;
  }

  #send(method: string, args: unknown, pending: Pending): void {
    const ask = ++this.#asked;
    try {
      this.#carrier.send({ ask, method, args });
    } catch (error) {
      return pending.reject(LeatError.from(error, "invalid_argument"));
    }
    this.#pending.set(ask, pending);
  }

  #receive(message: unknown, byteLength: number): void {
    if (this.#closed !== undefined) return;
    if (!isPlainObject(message)) throw broken("a message that is no plain object");
    if (Object.hasOwn(message, "ask")) this.#asks(message, byteLength);
    else this.#answers(message);
  }

  #asks({ ask, method, args }: Record<string, unknown>, byteLength: number): void {
    const answer = typeof method === "string" ? this.#methods.get(method) : undefined;
    if (typeof ask !== "number" || answer === undefined) {
      throw broken(
        `an ask for ${typeof method === "string" ? method.slice(0, 80) : typeof method}`,
      );
    }
    if (byteLength > this.#askBytesMax) throw broken(`an ask of ${byteLength} bytes`);
    if (this.#answering >= ANSWERING_MAX) throw broken("more asks at a time than allowed");
    this.#countAsk();
    this.#answering++;
    this.#answer(ask, () => answer(args, byteLength));
  }

  #countAsk(): void {
    const second = Math.floor(performance.now() / 1_000);
    if (second !== this.#second) this.#inSecond = 0;
    this.#second = second;
    if (++this.#inSecond > this.#asksPerSecondMax) {
      throw broken("more asks in a second than allowed");
    }
  }

  /** An ask is open until its answer has been written: who reads no answers may ask no more. */
  async #answer(ask: number, method: () => unknown): Promise<void> {
    try {
      const value = await method();
      await this.#carrier.send({ answer: ask, value });
    } catch (error) {
      await this.#carrier.send({ answer: ask, error: bounded(LeatError.from(error).toWire()) });
    } finally {
      this.#answering--;
    }
  }

  #answers({ answer, value, error }: Record<string, unknown>): void {
    const pending = typeof answer === "number" ? this.#pending.get(answer) : undefined;
    if (typeof answer !== "number" || pending === undefined) {
      throw broken("an answer that nobody waits for");
    }
    this.#pending.delete(answer);
    if (error === undefined) pending.resolve(value);
    else pending.reject(LeatError.fromWire(plainError(error)));
    const next = this.#waiting.shift();
    if (next !== undefined) this.#send(next.method, next.args, next.pending);
  }
}

/** An error as the other side describes it, in a form and size that can travel on. */
export function plainError(error: unknown): WireError {
  return bounded(LeatError.fromWire(error as WireError).toWire());
}

function bounded(error: WireError, causes = ERROR_CAUSES_MAX): WireError {
  const { code, message, stack, details, cause } = error;
  return {
    code,
    message: message.slice(0, ERROR_CHARS_MAX).toWellFormed(),
    ...(stack === undefined ? {} : { stack: stack.slice(0, ERROR_CHARS_MAX).toWellFormed() }),
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

/** For an ask of a confined process that its host does not take. */
export function tooMuchAsked(what: string): LeatError {
  return new LeatError(
    "resource_exhausted",
    `A task may ask its host with at most ${CONFINED_ASK_BYTES_MAX / 2 ** 20} MiB at a time ` +
      `(CONFINED_ASK_BYTES_MAX), and this is more ${what}: decode fewer or smaller images at once`,
  );
}

function broken(by: string): LeatError {
  return new LeatError("internal", `The other process broke the rules of its edge: ${by}`);
}
