/** Repeated requests for an element that is in production or was given. */
import { LeatError } from "../../core/error.ts";
import type { ElementAnswer } from "../worker/protocol.ts";

/** One shared error: capturing a stack takes longer than answering, and loss may be frequent. */
export const REQUEST_REPEATED = new LeatError(
  "aborted",
  "The request for this element was repeated",
);

/** An answer in production. */
export class Pending {
  /** The answer to the latest request for the element. */
  latest = Promise.withResolvers<ElementAnswer>();

  /** Refuses the earlier request, because an element can be transferred only once. */
  repeat(): Promise<ElementAnswer> {
    this.latest.reject(REQUEST_REPEATED);
    this.latest = Promise.withResolvers<ElementAnswer>();
    return this.latest.promise;
  }
}

/**
 * The answer to give again.
 * @throws {LeatError} `aborted` if its element was transferred to the client's thread already.
 */
export function repeatable(answer: ElementAnswer): ElementAnswer {
  if (!("element" in answer)) return answer;
  const buffer = answer.element.bytes.buffer;
  if (buffer instanceof ArrayBuffer && buffer.detached) {
    throw new LeatError("aborted", "This element was transferred to the client's thread before");
  }
  return answer;
}
