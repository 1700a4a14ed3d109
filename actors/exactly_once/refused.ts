/** The result of a request that an element source, or the connection to it, refuses. */
import type { LeatError } from "../../core/error.ts";
import type { ElementAnswer } from "../worker/protocol.ts";

/**
 * What a refusal means: the error of one element if that was too large, or went to another thread;
 * after any other the source gives no more elements.
 */
export function refusedAnswer(refusal: LeatError): ElementAnswer {
  const isOfOne = refusal.code === "aborted" || refusal.details?.["bytesMax"] !== undefined;
  return { kind: "error", error: refusal.toWire(), ...(isOfOne ? {} : { isFinal: true }) };
}
