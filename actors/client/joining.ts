/** Joining an iteration of a job. */
import { LeatError } from "../../core/error.ts";
import { type DispatcherProtocol, TO_FOLLOW } from "../dispatcher/protocol.ts";
import type { AnswerOf, RequestOf } from "../runtime/protocol.ts";

type OpenRequest = RequestOf<DispatcherProtocol, "openIteration">;
type OpenAnswer = AnswerOf<DispatcherProtocol, "openIteration">;

/**
 * Asks to join. Where that takes a stream over from other readers, the dispatcher requires the
 * client to confirm that it knows them; so the request is repeated, each time with the readers that
 * are there.
 * @throws LeatError any other refusal of the dispatcher.
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
