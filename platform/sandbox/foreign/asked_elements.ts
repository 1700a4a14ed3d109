/** The elements of an iterator at the other end of an edge. The process there may be hostile. */
import { LeatError } from "../../../core/error.ts";
import { isPlainObject } from "../../../core/tree.ts";
import type { Answer } from "../../../data/elements/answer.ts";
import type { RemoteElements, RemoteStep } from "../../../data/foreign/foreign_runners.ts";
import { decodeMessage } from "../../../transport/codec.ts";
import { Payload } from "../../../transport/payload.ts";
import { plainError } from "../edge.ts";
import { unexpected } from "../untrusted_answers.ts";

/** Sends a request to the other side. */
export type AskOther = (method: string, args: unknown) => Promise<unknown>;

/** The elements of a remote iterator. Answers that are not plain data are refused. */
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
  const step = isPlainObject(answer) ? answer : NOTHING;
  const { kind, frame, answers, error, isShare, shared } = step;
  if (shared !== undefined && !(shared instanceof Uint8Array)) throw unexpected("a shared state");
  const news = shared === undefined ? {} : { shared };
  switch (kind) {
    case "elements": {
      const elements = elementOf(frame);
      if (!Array.isArray(elements) || elements.length === 0) throw unexpected("elements");
      return { kind: "answers", answers: elements.map(given), ...news };
    }
    case "answers":
      if (!Array.isArray(answers) || answers.length === 0) throw unexpected("answers");
      return { kind, answers: answers.map(answerOf), ...news };
    case "end":
      return { kind, ...(isShare === true ? { isShare } : {}), ...news };
    case "failure":
      return { kind, error: errorOf(error) };
  }
  throw unexpected("a step");
}

const NOTHING: Readonly<Record<string, unknown>> = {};

function answerOf(answer: unknown): Answer {
  const { frame, error } = isPlainObject(answer) ? answer : NOTHING;
  return frame === undefined
    ? { failed: true, value: errorOf(error) }
    : { failed: false, value: elementOf(frame) };
}

function given(value: unknown): Answer {
  return { failed: false, value };
}

function errorOf(error: unknown): LeatError {
  return LeatError.fromWire(plainError(error));
}

function elementOf(frame: unknown): unknown {
  if (frame instanceof Payload) return decodeMessage(frame.bytes);
  throw unexpected("an element");
}
