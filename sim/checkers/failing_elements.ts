/**
 * Elements that fail on purpose. The error of each names it. So a loop that gets the error counts it as
 * the element, and checkers expect it as they expect the others.
 */
import { LeatError } from "../../core/error.ts";
import type { Dataset } from "../../data/dataset.ts";
import type { ElementAnswer } from "../../actors/worker/protocol.ts";
import { decodeMessage } from "../../transport/codec.ts";

/** An element with a number: itself, the first of several, or its place in a stream. */
type Numbered = number | readonly [number, ...unknown[]] | { readonly place: number };

/** What a loop is fed in place of an element. */
type Taken = Extract<ElementAnswer, { readonly kind: "element" | "error" }>;

/** One of so many elements fails. */
const FAILING_EVERY = 7;
/** The number of the first that fails. */
const FAILING_FIRST = 3;

/** Makes some elements fail. */
export function withFailures<T extends Numbered>(dataset: Dataset<T>): Dataset<T> {
  const every = FAILING_EVERY;
  const first = FAILING_FIRST;
  return dataset.map((element, { every, first }) => {
    const known: Numbered = element;
    const number = typeof known === "number" ? known : "place" in known ? known.place : known[0];
    if (number % every !== first) return element;
    throw new Error(
      `This element fails on purpose: <${JSON.stringify(element, ["stream", "place"])}>`,
    );
  }, { captures: { every, first } });
}

/** Returns the element that failed on purpose with this message; `undefined` for another failure. */
export function failedWith(message: string): unknown {
  const text = /fails on purpose: <(.*)>/.exec(message)?.[1];
  return text === undefined ? undefined : JSON.parse(text);
}

/** Returns the element that failed on purpose. @throws another error as it is. */
export function failedElement(error: unknown): unknown {
  const element = failedWith(LeatError.from(error).message);
  if (element === undefined) throw error;
  return element;
}

/** Returns the element that an answer brings, whole or failed; `undefined` if it brings none. */
export function elementOf(answer: ElementAnswer | null): unknown {
  if (answer?.kind === "element") return decodeMessage(answer.element.bytes);
  return answer?.kind === "error" ? failedWith(answer.error.message) : undefined;
}

/** Returns the element that a loop was fed, whole or failed. @throws an error of another cause. */
export function takenElement(fed: Taken): unknown {
  return fed.kind === "element"
    ? decodeMessage(fed.element.bytes)
    : failedElement(LeatError.fromWire(fed.error));
}
