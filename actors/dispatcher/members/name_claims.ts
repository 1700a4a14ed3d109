/**
 * Workers that ask for the name of another: one that lives keeps it, and the other waits. Two that are
 * started again whenever they end would take one name from each other for ever.
 *
 * Whether it lives is asked of it: a process that has ended is known by its closed link or its address,
 * where nobody answers; a machine that is gone does not answer in time.
 *
 * @module
 */
import { LeatError } from "../../../core/error.ts";
import type { ActorContext } from "../../runtime/actor.ts";
import { type FencedRef, formatRef } from "../../runtime/ref.ts";
import type { WorkerProtocol } from "../../worker/protocol.ts";

/** Who has not answered in so long is gone, in ms: whoever asks for its name waits longer for an answer. */
const ANSWER_TIMEOUT_MS = 2_000;
/** After how long it is asked again, in ms: the question may have been lost. */
const ANSWER_ATTEMPT_MS = 500;

type WorkerRef = FencedRef<WorkerProtocol>;

/** See the module. */
export class NameClaims {
  readonly #context: ActorContext;
  /** Whose claim has been logged, by name. */
  readonly #logged = new Map<string, string>();

  constructor(context: ActorContext) {
    this.#context = context;
  }

  /**
   * Resolves when the life that has the name is over, or cannot be reached.
   *
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
      `The worker "${name}" at ${formatRef(holder)} lives, and ${
        formatRef(claimant)
      } has to wait ` +
        `until it ends: one life of a name can work at a time. ${remedy}`,
    );
  }

  async #answers(holder: WorkerRef, claimant: WorkerRef): Promise<boolean> {
    const patience = { timeoutMs: ANSWER_TIMEOUT_MS, attemptMs: ANSWER_ATTEMPT_MS };
    try {
      await this.#context.ask(holder, "nameWanted", { by: claimant.node }, patience);
      return true;
    } catch (error) {
      const failure = LeatError.from(error);
      if (this.#context.signal.aborted) {
        // Whatever the end of this life makes of the ask: the claimant is not refused.
        throw new LeatError("unavailable", "The dispatcher ends", { cause: failure });
      }
      return false;
    }
  }
}
