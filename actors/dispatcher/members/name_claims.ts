/**
 * Handles a worker that claims another's name. A live holder keeps its name; otherwise two restarting
 * workers would take it from each other for ever. So the dispatcher asks the holder. If the connection
 * is closed or no answer comes in time, the holder counts as gone.
 */
import { LeatError } from "../../../core/error.ts";
import type { ActorContext } from "../../runtime/actor.ts";
import { type FencedRef, formatRef } from "../../runtime/ref.ts";
import type { WorkerProtocol } from "../../worker/protocol.ts";

/** A holder without an answer for this long, in ms, counts as gone. Claimants wait longer than that. */
const ANSWER_TIMEOUT_MS = 2_000;
/** Pause before the question is repeated, in ms, as it may have been lost. */
const ANSWER_ATTEMPT_MS = 500;

type WorkerRef = FencedRef<WorkerProtocol>;

/** Checks that the holder of a claimed name is gone. */
export class NameClaims {
  readonly #context: ActorContext;
  readonly #logged = new Map<string, string>();

  constructor(context: ActorContext) {
    this.#context = context;
  }

  /**
   * Resolves when the holder has ended or cannot be reached.
   * @throws {LeatError} `unavailable` while it answers.
   */
  async expectGone(name: string, holder: WorkerRef, claimant: WorkerRef): Promise<void> {
    if (!await this.#answers(holder, claimant)) {
      this.#logged.delete(name);
      return;
    }
    const remedy = "Give each worker a name of its own (--name)";
    if (this.#logged.get(name) !== claimant.incarnation) {
      this.#logged.set(name, claimant.incarnation);
      this.#context.world.log(
        "warn",
        `Two workers want to be "${name}": the one at ${holder.node} works, and the one at ` +
          `${claimant.node} waits until it ends. ${remedy}`,
      );
    }
    throw new LeatError(
      "unavailable",
      `The worker "${name}" at ${formatRef(holder)} lives, and ${formatRef(claimant)} has to ` +
        `wait until it ends: only one worker of a name can work at a time. ${remedy}`,
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
        // Even if this dispatcher's end fails the question, the claimant must retry.
        throw new LeatError("unavailable", "The dispatcher ends", { cause: failure });
      }
      return false;
    }
  }
}
