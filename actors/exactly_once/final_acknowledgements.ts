/**
 * The end of a source whose worker drains: it waits until its readers have acknowledged all answers.
 * An answer may be lost, so it sends `askAgain` to readers that have not done so. They repeat their
 * requests.
 */
import { LeatError } from "../../core/error.ts";
import type { ActorContext } from "../runtime/actor.ts";
import { sleep } from "../runtime/timers.ts";
import type { Awaited, Repeats } from "./repeats.ts";

/** Pause before `askAgain` is sent to all of them, in ms; doubles each time up to the maximum. */
const PAUSE_MIN_MS = 100;
const PAUSE_MAX_MS = 2_000;
const CALL_TIMEOUT_MS = 2_000;
/** Reasons for which a reader's node refuses requests to an actor that has ended. */
const GONE: readonly unknown[] = ["no_such_actor", "stale_incarnation"];

interface FinalAcknowledgementsOptions {
  readonly context: ActorContext;
  readonly repeats: Repeats;
  /** How long to wait for a reader that does not answer, in ms. */
  readonly acknowledgedWithinMs: number;
  /** Called after each acknowledgement, and when no readers remain to wait for. */
  readonly onChange?: () => void;
}

export class FinalAcknowledgements {
  readonly #options: FinalAcknowledgementsOptions;
  #isCalling = false;

  constructor(options: FinalAcknowledgementsOptions) {
    this.#options = options;
  }

  /** Returns true if no reader is waited for. Otherwise starts to send `askAgain`. */
  settle(): boolean {
    if (this.#awaited.length === 0) return true;
    if (!this.#isCalling) {
      this.#isCalling = true;
      this.#options.context.run(() => this.#callAll());
    }
    return false;
  }

  get #awaited(): readonly Awaited[] {
    return this.#options.repeats.awaited(this.#options.acknowledgedWithinMs);
  }

  /**
   * Pauses, then sends `askAgain` to all readers that are waited for, until there are none. Usually
   * only answers are in transit, and the first pause is enough.
   */
  async #callAll(): Promise<void> {
    for (let pauseMs = PAUSE_MIN_MS;; pauseMs = Math.min(PAUSE_MAX_MS, 2 * pauseMs)) {
      const awaited = this.#awaited;
      if (awaited.length === 0) break;
      const longestMs = Math.max(...awaited.map((one) => this.#leftMs(one)));
      await sleep(this.#options.context, Math.min(pauseMs, longestMs));
      await Promise.all(this.#awaited.map((one) => this.#call(one)));
    }
    this.#isCalling = false;
    this.#options.onChange?.();
  }

  #leftMs({ untilMs }: Awaited): number {
    return Math.max(0, untilMs - this.#options.context.world.nowMs());
  }

  async #call(awaited: Awaited): Promise<void> {
    const { context, repeats, onChange } = this.#options;
    const timeoutMs = Math.min(CALL_TIMEOUT_MS, this.#leftMs(awaited));
    try {
      const { acknowledged } = await context.ask(awaited.asker, "askAgain", null, { timeoutMs });
      if (acknowledged === undefined) repeats.leave(awaited.reader);
      else repeats.acknowledge(awaited.reader, acknowledged);
    } catch (error) {
      const { code, details } = LeatError.from(error);
      if (code === "cancelled") throw error;
      // An unreachable reader may come back. Then it repeats its requests.
      if (!GONE.includes(details?.["reason"])) return;
      repeats.leave(awaited.reader);
    }
    onChange?.();
  }
}
