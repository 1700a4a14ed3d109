/**
 * What becomes of a request that an element source, or the way to it, refuses.
 *
 * @module
 */
import type { LeatError } from "../../core/error.ts";
import type { ElementAnswer } from "../worker/protocol.ts";

/**
 * What a source's refusal is for whoever reads. What was too large for its way, or was handed over to
 * somebody before, is the error of one element; beyond any other no element can be had from there.
 */
export function refusedAnswer(refusal: LeatError): ElementAnswer {
  const isOfOne = refusal.code === "aborted" || refusal.details?.["bytesMax"] !== undefined;
  return { kind: "error", error: refusal.toWire(), ...(isOfOne ? {} : { isFinal: true }) };
}
