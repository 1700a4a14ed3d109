/**
 * Waiting for a dispatcher that was not heard of before.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { DispatcherProtocol } from "../dispatcher/protocol.ts";
import { formatRef, type Ref } from "../runtime/ref.ts";
import type { AskOptions } from "../runtime/actor.ts";

/** How long one request to the dispatcher may go unanswered before it is sent again, in ms. */
export const ATTEMPT_MS = 1_000;
/** How long the first answer of the dispatcher may take unless somebody has said so, in ms. */
export const FIRST_ANSWER_TIMEOUT_MS = 10_000;

/**
 * Asks a dispatcher that has not answered before.
 *
 * @throws LeatError `unavailable` with the address and what to look at when nobody answers; whatever
 * the dispatcher refuses with.
 */
export async function firstAnswer<A>(
  dispatcher: Ref<DispatcherProtocol>,
  timeoutMs: number,
  ask: (patience: AskOptions) => Promise<A>,
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
