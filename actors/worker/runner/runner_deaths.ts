/**
 * Reports to the dispatcher that a runner died. The task starts no other runner before the dispatcher
 * has journaled the death. So work that kills its runners is stopped at last, even if workers or
 * the dispatcher restart.
 */
import { LeatError } from "../../../core/error.ts";
import {
  type DispatcherProtocol,
  TASK_ENDED,
  type TaskDefinition,
} from "../../dispatcher/protocol.ts";
import { dispatcherAnswers } from "../../dispatcher/protocol_check.ts";
import type { ActorContext } from "../../runtime/actor.ts";
import type { Ref } from "../../runtime/ref.ts";

/** How long one report may go unanswered before it is sent again, in ms. */
const ATTEMPT_MS = 2_000;

interface RunnerDeathsOptions {
  readonly context: ActorContext;
  readonly definition: TaskDefinition;
  readonly dispatcher: Ref<DispatcherProtocol>;
  /** How long one request waits while the dispatcher is away, in ms; then it is repeated. */
  readonly dispatcherTimeoutMs: number;
}

export class RunnerDeaths {
  readonly #options: RunnerDeathsOptions;
  #count = 0;

  constructor(options: RunnerDeathsOptions) {
    this.#options = options;
  }

  /**
   * Reports a death, and waits for the answer without limit. Returns whether the task may start
   * another runner; false if the task has ended.
   * @throws {LeatError} `cancelled` when the task is stopped.
   */
  async mayStartAfter(error: LeatError, place?: number): Promise<boolean> {
    const { context, definition: { taskId }, dispatcher, dispatcherTimeoutMs } = this.#options;
    // The rest of an error, such as its cause, is not kept.
    const { code, message } = error.toWire();
    const number = ++this.#count;
    const at = place === undefined ? {} : { place };
    const request = { taskId, number, ...at, error: { code, message } };
    const askOptions = {
      timeoutMs: dispatcherTimeoutMs,
      attemptMs: ATTEMPT_MS,
      isIdempotent: true,
    } as const;
    for (;;) {
      try {
        const answer = await context.ask(dispatcher, "runnerDied", request, askOptions);
        return dispatcherAnswers.runnerDied(answer, dispatcher.node).mayStart;
      } catch (thrown) {
        const { code, details } = LeatError.from(thrown);
        if (details?.["reason"] === TASK_ENDED) return false;
        if (code !== "deadline_exceeded" && code !== "unavailable") throw thrown;
      }
    }
  }
}
