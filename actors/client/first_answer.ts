/** Sends a client's first requests to a dispatcher, which may not answer, or may refuse at first. */
import { LeatError } from "../../core/error.ts";
import { dispatcherError, type DispatcherProtocol, TO_FOLLOW } from "../dispatcher/protocol.ts";
import type { AnswerOf, RequestOf } from "../runtime/protocol.ts";
import { formatRef, type Ref } from "../runtime/ref.ts";
import type { AskOptions } from "../runtime/actor.ts";

/** How long one request to the dispatcher may go unanswered before it is sent again, in ms. */
export const ATTEMPT_MS = 1_000;
/** Default time limit for the dispatcher's first answer, in ms. */
export const FIRST_ANSWER_TIMEOUT_MS = 10_000;
/** How many other readers of its stream a client follows before it gives up joining. */
const FOLLOWED_MAX = 16;

/**
 * Sends a request to a dispatcher that has not answered before.
 * @throws LeatError `unavailable`, with the address and a hint, when there is no answer; otherwise
 * the dispatcher's refusal: for a quota that stays used up, once the time is over.
 */
export async function firstAnswer<A>(
  dispatcher: Ref<DispatcherProtocol>,
  timeoutMs: number,
  ask: (askOptions: AskOptions) => Promise<A>,
): Promise<A> {
  try {
    return await ask({ timeoutMs, attemptMs: ATTEMPT_MS, isIdempotent: true });
  } catch (error) {
    const failure = dispatcherError(dispatcher, error);
    if (failure.code !== "deadline_exceeded" && failure.code !== "unavailable") throw failure;
    const { cause } = failure;
    // The request was repeated, since it might have been accepted later. A dispatcher did answer.
    if (cause instanceof LeatError && cause.code === "resource_exhausted") throw cause;
    throw new LeatError(
      "unavailable",
      `No dispatcher answered at ${dispatcher.node} within ${timeoutMs} ms (${failure.message}); ` +
        "check the address, and that a dispatcher runs there",
      { cause: failure, details: { dispatcher: formatRef(dispatcher) } },
    );
  }
}

type OpenRequest = RequestOf<DispatcherProtocol, "openIteration">;
type OpenAnswer = AnswerOf<DispatcherProtocol, "openIteration">;

/**
 * Asks to join. If the client would replace other readers of the stream, the dispatcher refuses with
 * the id of the newest of them (`follows`). The client repeats the request with this id, and again if
 * the dispatcher then names another.
 * @throws LeatError any other refusal of the dispatcher; `aborted` after {@linkcode FOLLOWED_MAX} readers.
 */
export async function joinIteration(
  request: OpenRequest,
  ask: (request: OpenRequest) => Promise<OpenAnswer>,
): Promise<OpenAnswer> {
  let asked = request;
  for (let followed = 0;; followed++) {
    try {
      return await ask(asked);
    } catch (error) {
      const { reason, follows } = LeatError.from(error).details ?? {};
      const isNews = reason === TO_FOLLOW && typeof follows === "number" &&
        follows !== asked.follows;
      if (!isNews) throw error;
      if (followed === FOLLOWED_MAX) throw manyReaders(request, follows, error);
      asked = { ...request, follows };
    }
  }
}

function manyReaders({ jobName }: OpenRequest, newest: number, cause: unknown): LeatError {
  const job = jobName === undefined ? "a job" : `job "${jobName}"`;
  return new LeatError(
    "aborted",
    `Cannot take ${job} over: the dispatcher named ${
      FOLLOWED_MAX + 1
    } other readers in turn, the ` +
      `last of them client ${newest}; end the other programs that read the stream, and start again`,
    { cause },
  );
}
