/** Reads an iterator at the other end of an edge. The process there may be hostile. */
import { fieldsOf } from "../../../core/tree.ts";
import { ownBytes } from "../../../core/bytes.ts";
import { LeatError } from "../../../core/error.ts";
import type { Outcome } from "../../../data/elements/answer.ts";
import type { RemoteElements, RemoteStep } from "../../../data/foreign/foreign_runners.ts";
import { decodeElement } from "../../../transport/element.ts";
import { Payload } from "../../../transport/payload.ts";
import { plainError } from "../edge.ts";
import { unexpected } from "../untrusted_answers.ts";

/** Sends a request to the other side. */
export type AskOther = (method: string, args: unknown) => Promise<unknown>;

/** Returns the elements of a remote iterator. Malformed answers are refused. */
export function askedElements(
  ask: AskOther,
  iterator: number,
  onClose: () => void = () => {},
): RemoteElements {
  const call = (method: string, argument?: unknown) => ask(method, { iterator, argument });
  return {
    next: async () => stepOf(await call("iteratorNext")),
    again: async (token) => elementOf(await call("iteratorAgain", token)),
    save: async () => {
      const state = await call("iteratorSave");
      if (state instanceof Uint8Array) return ownBytes(state);
      throw unexpected("a saved iterator");
    },
    restore: async (state) => void await call("iteratorRestore", state),
    close: () => {
      call("iteratorClose").catch(() => {}); // the other process may have ended
      onClose();
    },
  };
}

function stepOf(answer: unknown): RemoteStep {
  const { kind, frame, answers, error, isShare, shared } = fieldsOf(answer);
  if (shared !== undefined && !(shared instanceof Uint8Array)) throw unexpected("a shared state");
  const news = shared === undefined ? {} : { shared };
  switch (kind) {
    case "elements": {
      const elements = elementOf(frame);
      if (!Array.isArray(elements) || elements.length === 0) throw unexpected("elements");
      return {
        kind: "answers",
        answers: elements.map((value) => ({ failed: false, value })),
        ...news,
      };
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

function answerOf(answer: unknown): Outcome {
  const { frame, error } = fieldsOf(answer);
  return frame === undefined
    ? { failed: true, value: errorOf(error) }
    : { failed: false, value: elementOf(frame) };
}

function errorOf(error: unknown): LeatError {
  return LeatError.fromWire(plainError(error));
}

function elementOf(frame: unknown): unknown {
  if (frame instanceof Payload) return decodeElement(ownBytes(frame.bytes));
  throw unexpected("an element");
}
