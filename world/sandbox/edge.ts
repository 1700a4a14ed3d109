/**
 * Asks over a port between two threads of which one may be run by a stranger.
 *
 * comlink is not used here: its exposing side follows any path of properties that a message names,
 * `constructor` included, which lets whoever holds the port run code on that side. Here a message
 * names one of a few methods, and what else comes ends the edge.
 *
 * @module
 */
import { LeatError, type WireError } from "../../core/error.ts";
import { isPlainObject } from "../../core/tree.ts";

/** Asks under way in one direction; further ones wait on the side that makes them. */
export const EDGE_ASKS_MAX = 64;

/** Longest message of an error that crosses an edge, in characters. */
const ERROR_CHARS_MAX = 64 * 1024;

/** Answers asks. What comes as `args` is plain data that anybody may have written. */
export type EdgeMethods = Readonly<Record<string, (args: unknown) => unknown>>;

/** A value with the buffers in it that move instead of being copied. */
export class Moved {
  constructor(readonly value: unknown, readonly buffers: ArrayBuffer[]) {}
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

/** One end of an edge. The other end holds the other port. */
export class Edge {
  /** Bound once: nobody who changes `MessagePort.prototype` later gets hold of the port. */
  readonly #post: (message: unknown, buffers: ArrayBuffer[]) => void;
  readonly #close: () => void;
  readonly #methods: ReadonlyMap<string, (args: unknown) => unknown>;
  readonly #onBroken: (error: LeatError) => void;
  readonly #pending = new Map<number, Pending>();
  readonly #waiting: Waiting[] = [];
  #asked = 0;
  #answering = 0;
  #closed: LeatError | undefined;

  /**
   * @param onBroken Called once if the other side sends what no edge sends; nothing is heard after.
   */
  constructor(
    port: MessagePort,
    methods: EdgeMethods,
    onBroken: (error: LeatError) => void = () => {},
  ) {
    this.#post = port.postMessage.bind(port);
    this.#close = port.close.bind(port);
    this.#methods = new Map(Object.entries(methods));
    this.#onBroken = onBroken;
    port.onmessage = (event) => this.#receive(event.data);
    port.onmessageerror = () => this.#break("a message that cannot be read");
  }

  /**
   * Asks the other side.
   *
   * @throws {LeatError} what the other side answers; the error of `close()` if the edge is closed first.
   */
  ask(method: string, args?: unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#closed !== undefined) return reject(this.#closed);
      const pending = { resolve, reject };
      if (this.#pending.size < EDGE_ASKS_MAX) this.#send(method, args, pending);
      else this.#waiting.push({ method, args, pending });
    });
  }

  /** Closes the port; asks without an answer are rejected. Idempotent. */
  close(error: LeatError = new LeatError("cancelled", "The edge was closed")): void {
    if (this.#closed !== undefined) return;
    this.#closed = error;
    this.#close();
    for (const pending of this.#pending.values()) pending.reject(error);
    for (const { pending } of this.#waiting) pending.reject(error);
    this.#pending.clear();
    this.#waiting.length = 0;
  }

  #send(method: string, args: unknown, pending: Pending): void {
    const ask = ++this.#asked;
    try {
      if (args instanceof Moved) this.#post({ ask, method, args: args.value }, args.buffers);
      else this.#post({ ask, method, args }, []);
    } catch (error) {
      return pending.reject(LeatError.from(error, "invalid_argument"));
    }
    this.#pending.set(ask, pending);
  }

  #receive(message: unknown): void {
    if (this.#closed !== undefined) return;
    if (!isPlainObject(message)) return this.#break("a message that is no plain object");
    if (Object.hasOwn(message, "ask")) this.#asks(message);
    else this.#answers(message);
  }

  #asks({ ask, method, args }: Record<string, unknown>): void {
    const answer = typeof method === "string" ? this.#methods.get(method) : undefined;
    if (typeof ask !== "number" || answer === undefined) {
      return this.#break(
        `an ask for ${typeof method === "string" ? method.slice(0, 80) : typeof method}`,
      );
    }
    if (this.#answering >= EDGE_ASKS_MAX) return this.#break("more asks at a time than allowed");
    this.#answering++;
    this.#answer(ask, answer, args);
  }

  async #answer(ask: number, method: (args: unknown) => unknown, args: unknown): Promise<void> {
    try {
      const value = await method(args);
      if (value instanceof Moved) this.#reply({ answer: ask, value: value.value }, value.buffers);
      else this.#reply({ answer: ask, value }, []);
    } catch (error) {
      this.#reply({ answer: ask, error: LeatError.from(error).toWire() }, []);
    } finally {
      this.#answering--;
    }
  }

  #reply(message: unknown, buffers: ArrayBuffer[]): void {
    if (this.#closed === undefined) this.#post(message, buffers);
  }

  #answers({ answer, value, error }: Record<string, unknown>): void {
    const pending = typeof answer === "number" ? this.#pending.get(answer) : undefined;
    if (typeof answer !== "number" || pending === undefined) {
      return this.#break("an answer that nobody waits for");
    }
    this.#pending.delete(answer);
    if (error === undefined) pending.resolve(value);
    else pending.reject(LeatError.fromWire(plainError(error)));
    const next = this.#waiting.shift();
    if (next !== undefined) this.#send(next.method, next.args, next.pending);
  }

  #break(by: string): void {
    const error = new LeatError("internal", `The other thread broke the rules of its edge: ${by}`);
    this.close(error);
    this.#onBroken(error);
  }
}

// A function that could change it would be handed every edge.
Object.freeze(Edge.prototype);

/** An error as the other side describes it, in a form and size that can travel on. */
export function plainError(error: unknown): WireError {
  const wire = LeatError.fromWire(error as WireError).toWire();
  return bounded(wire);
}

function bounded({ code, message, stack, details, cause }: WireError): WireError {
  return {
    code,
    message: message.slice(0, ERROR_CHARS_MAX),
    ...(stack === undefined ? {} : { stack: stack.slice(0, ERROR_CHARS_MAX) }),
    ...(details === undefined || !isSmall(details) ? {} : { details }),
    ...(cause === undefined ? {} : { cause: bounded(cause) }),
  };
}

function isSmall(details: Record<string, unknown>): boolean {
  const text = JSON.stringify(
    details,
    (_, value) => typeof value === "bigint" ? `${value}` : value,
  );
  return text.length <= ERROR_CHARS_MAX;
}
