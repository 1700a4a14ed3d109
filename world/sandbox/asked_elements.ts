/**
 * The elements of an iterator at the other end of an edge, which a stranger may run.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { isPlainObject } from "../../core/tree.ts";
import type { RemoteElements, RemoteStep } from "../../data/foreign_runners.ts";
import { ReadingFailure } from "../../data/reading_failure.ts";
import { decodeMessage } from "../../transport/codec.ts";
import { Payload } from "../../transport/payload.ts";
import { plainError } from "./edge.ts";
import { unexpected } from "./untrusted_answers.ts";

/** Asks the other side. */
export type AskOther = (method: string, args: unknown) => Promise<unknown>;

/** See the module. What the other side answers is plain data, or refused. */
export class AskedElements implements RemoteElements {
  readonly #ask: AskOther;
  readonly #iterator: number;

  constructor(ask: AskOther, iterator: number) {
    this.#ask = ask;
    this.#iterator = iterator;
  }

  async next(): Promise<RemoteStep> {
    return stepOf(await this.#call("iteratorNext"));
  }

  async again(token: unknown): Promise<unknown> {
    return elementOf(await this.#call("iteratorAgain", token));
  }

  async save(): Promise<Uint8Array> {
    const state = await this.#call("iteratorSave");
    if (state instanceof Uint8Array) return state;
    throw unexpected("a saved iterator");
  }

  async restore(state: Uint8Array): Promise<void> {
    await this.#call("iteratorRestore", state);
  }

  close(): void {
    this.#call("iteratorClose").catch(() => {}); // the other side may be gone
  }

  #call(method: string, argument?: unknown): Promise<unknown> {
    return this.#ask(method, { iterator: this.#iterator, argument });
  }
}

function stepOf(answer: unknown): RemoteStep {
  const step = isPlainObject(answer) ? answer : {} as Record<string, unknown>;
  const { kind, frame, error, isFinal, isShare, shared } = step;
  if (shared !== undefined && !(shared instanceof Uint8Array)) throw unexpected("a shared state");
  const news = shared === undefined ? {} : { shared };
  switch (kind) {
    case "element":
      return { kind, element: elementOf(frame), ...news };
    case "end":
      return { kind, ...(isShare === true ? { isShare } : {}), ...news };
    case "error": {
      const told = LeatError.fromWire(plainError(error));
      return { kind, error: isFinal === true ? new ReadingFailure(told) : told };
    }
  }
  throw unexpected("a step");
}

function elementOf(frame: unknown): unknown {
  if (frame instanceof Payload) return decodeMessage(frame.bytes);
  throw unexpected("an element");
}
