/** The answer to a request that may be repeated: while it is produced, and once it was given. */
import { LeatError } from "../../core/error.ts";
import type { ElementAnswer } from "../worker/protocol.ts";

/** One shared error: capturing a stack takes longer than answering, and loss may be frequent. */
const ASKED_AGAIN = new LeatError("aborted", "This element was asked for again");

/** An answer in production, with its latest requester. */
export class Pending {
  asked = Promise.withResolvers<ElementAnswer>();

  /** Refuses the earlier request of the element: its answer can be transferred only once. */
  again(): Promise<ElementAnswer> {
    this.asked.reject(ASKED_AGAIN);
    this.asked = Promise.withResolvers<ElementAnswer>();
    return this.asked.promise;
  }
}

/** An answer may have been transferred to the client's thread, which then has it already. */
export function repeatable(answer: ElementAnswer): ElementAnswer {
  if (!("element" in answer)) return answer;
  const buffer = answer.element.bytes.buffer;
  if (buffer instanceof ArrayBuffer && buffer.detached) {
    throw new LeatError("aborted", "This element was handed over to its client's thread before");
  }
  return answer;
}
