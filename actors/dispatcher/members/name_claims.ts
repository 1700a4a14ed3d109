/**
 * Handles a worker that claims the name of another. A live holder keeps its name: otherwise two
 * workers would take the name from each other for ever. So the dispatcher asks the holder whether
 * it lives. If the ask fails or times out, the holder counts as gone.
 */
import { LeatError } from "../../../core/error.ts";
import type { ActorContext } from "../../runtime/actor.ts";
import { RareLog } from "../../runtime/rare_log.ts";
import { type FencedRef, formatRef } from "../../runtime/ref.ts";
import type { WorkerProtocol } from "../../worker/protocol.ts";

/** A holder that gives no answer for this long, in ms, counts as gone. Claimants wait longer. */
const ANSWER_TIMEOUT_MS = 2_000;
/** The question is repeated after this time, in ms, because it may have been lost. */
const ANSWER_ATTEMPT_MS = 500;

type WorkerRef = FencedRef<WorkerProtocol>;

/** Checks that the holder of a claimed name is gone. */
export class NameClaims {
  readonly #context: ActorContext;
  readonly #log: RareLog;

  constructor(context: ActorContext) {
    this.#context = context;
    this.#log = new RareLog(context.world);
  }

  /**
   * Resolves when the holder has ended or cannot be reached.
   * @throws {LeatError} `unavailable` while it answers.
   */
  async expectGone(name: string, holder: WorkerRef, claimant: WorkerRef): Promise<void> {
    if (!await this.#answers(holder, claimant)) return;
    const remedy = "Give each worker a name of its own (--name)";
    this.#log.note(
      name,
      `Two workers have the name "${name}": the one at ${holder.node} works, and the one at ` +
        `${claimant.node} waits until the first ends. ${remedy}`,
    );
    throw new LeatError(
      "unavailable",
      `The worker "${name}" at ${formatRef(holder)} is alive, and ${formatRef(claimant)} must ` +
        `wait until it ends: only one worker can have a name at a time. ${remedy}`,
    );
  }

  async #answers(holder: WorkerRef, claimant: WorkerRef): Promise<boolean> {
    const limits = { timeoutMs: ANSWER_TIMEOUT_MS, attemptMs: ANSWER_ATTEMPT_MS };
    try {
      await this.#context.ask(holder, "nameWanted", { by: claimant.node }, limits);
      return true;
    } catch (error) {
      const failure = LeatError.from(error);
      if (this.#context.signal.aborted) {
        // The question failed because this dispatcher is ending: the claimant must retry.
        throw new LeatError("unavailable", "The dispatcher is stopping", { cause: failure });
      }
      return false;
    }
  }
}
