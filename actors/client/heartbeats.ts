/** What a client does with a heartbeat that has no answer. */
import { LeatError } from "../../core/error.ts";

/**
 * The answer to a heartbeat; undefined if it did not arrive. The client then sends a new heartbeat.
 * `aborted`: a link lost the answer, and the dispatcher's node had not kept it for the repeated
 * request.
 * @throws {LeatError} the dispatcher's refusal.
 */
export async function answerIfArrived<A>(asked: Promise<A>): Promise<A | undefined> {
  try {
    return await asked;
  } catch (error) {
    const failure = LeatError.from(error);
    const isLost = failure.code === "unavailable" || failure.code === "deadline_exceeded" ||
      failure.code === "aborted";
    if (!isLost) throw failure;
    return undefined;
  }
}
