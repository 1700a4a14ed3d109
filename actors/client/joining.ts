/**
 * Joining an iteration of a job.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { type DispatcherProtocol, TO_FOLLOW } from "../dispatcher/protocol.ts";
import type { AnswerOf, RequestOf } from "../runtime/protocol.ts";

type OpenRequest = RequestOf<DispatcherProtocol, "openIteration">;
type OpenAnswer = AnswerOf<DispatcherProtocol, "openIteration">;

/**
 * Asks to join. Where that takes a stream over from others, the dispatcher wants to hear that this client
 * knows of them: it is asked once more, and each time that others have come first.
 *
 * @throws LeatError whatever the dispatcher refuses with beside that.
 */
export async function joinIteration(
  request: OpenRequest,
  ask: (request: OpenRequest) => Promise<OpenAnswer>,
): Promise<OpenAnswer> {
  for (let asked = request;;) {
    try {
      return await ask(asked);
    } catch (error) {
      const { reason, follows } = LeatError.from(error).details ?? {};
      const isNews = reason === TO_FOLLOW && typeof follows === "number" &&
        follows !== asked.follows;
      if (!isNews) throw error;
      asked = { ...request, follows };
    }
  }
}
