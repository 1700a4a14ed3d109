/** Waits for the first answer of a dispatcher. */
import { LeatError } from "../../core/error.ts";
import type { DispatcherProtocol } from "../dispatcher/protocol.ts";
import { formatRef, type Ref } from "../runtime/ref.ts";
import type { AskOptions } from "../runtime/actor.ts";

/** How long one request to the dispatcher may go unanswered before it is sent again, in ms. */
export const ATTEMPT_MS = 1_000;
/** Default time limit for the dispatcher's first answer, in ms. */
export const FIRST_ANSWER_TIMEOUT_MS = 10_000;

/**
 * Sends a request to a dispatcher that has not answered before.
 * @throws LeatError `unavailable`, with the address and a hint, when there is no answer; otherwise
 * the dispatcher's refusal.
 */
export async function firstAnswer<A>(
  dispatcher: Ref<DispatcherProtocol>,
  timeoutMs: number,
  ask: (askOptions: AskOptions) => Promise<A>,
): Promise<A> {
  try {
    return await ask({ timeoutMs, attemptMs: ATTEMPT_MS });
  } catch (error) {
    const failure = LeatError.from(error);
    if (failure.code !== "deadline_exceeded" && failure.code !== "unavailable") throw failure;
    throw new LeatError(
      "unavailable",
      `No dispatcher answered at ${dispatcher.node} within ${timeoutMs} ms (${failure.message}); ` +
        `check the address, and that \`deno task dispatcher\` runs there`,
      { cause: failure, details: { dispatcher: formatRef(dispatcher) } },
    );
  }
}
