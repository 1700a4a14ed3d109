/**
 * The end of a task that drains: it has given all that it will, and waits until its readers have said
 * that it has arrived. An answer may have been lost on its way, and its reader would ask again only when
 * it has been patient for long; so whoever has said nothing is called, and asks again at once.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { Awaited, Repeats } from "../elements/repeats.ts";
import type { ActorContext } from "../runtime/actor.ts";

/** Before readers are called, and then called again, in ms; doubles each time up to the maximum. */
const PAUSE_MIN_MS = 100;
const PAUSE_MAX_MS = 2_000;
/** How long a call may take, in ms. */
const CALL_TIMEOUT_MS = 2_000;
/** With what its own node refuses what is asked of an actor that has ended. */
const GONE: readonly unknown[] = ["no_such_actor", "stale_incarnation"];

/** What {@linkcode LastCalls} needs. */
export interface LastCallsOptions {
  readonly context: ActorContext;
  readonly repeats: Repeats;
  /** How long a reader that is silent is waited for, in ms. */
  readonly acknowledgedWithinMs: number;
  /** Called when nobody may be waited for any more. */
  readonly onChange: () => void;
}

export class LastCalls {
  readonly #options: LastCallsOptions;
  #isCalling = false;

  constructor(options: LastCallsOptions) {
    this.#options = options;
  }

  /** Whether nobody is waited for any more. Who is will be called until it has all, or is given up. */
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

  /** As a rule there is nothing to wait for but what is on its way, which a pause is long enough for. */
  async #callAll(): Promise<void> {
    for (let pauseMs = PAUSE_MIN_MS;; pauseMs = Math.min(PAUSE_MAX_MS, 2 * pauseMs)) {
      const awaited = this.#awaited;
      if (awaited.length === 0) break;
      await this.#pause(Math.min(pauseMs, Math.max(...awaited.map((one) => this.#leftMs(one)))));
      await Promise.all(this.#awaited.map((one) => this.#call(one)));
    }
    this.#isCalling = false;
    this.#options.onChange();
  }

  #leftMs({ untilMs }: Awaited): number {
    return Math.max(0, untilMs - this.#options.context.world.nowMs());
  }

  #pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.#options.context.timer(delayMs, resolve));
  }

  async #call(awaited: Awaited): Promise<void> {
    const { context, repeats, onChange } = this.#options;
    const timeoutMs = Math.min(CALL_TIMEOUT_MS, this.#leftMs(awaited));
    try {
      const { acknowledged } = await context.ask(awaited.asker, "askAgain", null, { timeoutMs });
      if (acknowledged === undefined) repeats.leave(awaited.clientId);
      else repeats.acknowledge(awaited.clientId, acknowledged);
    } catch (error) {
      const { code, details } = LeatError.from(error);
      if (code === "cancelled") throw error;
      // Who cannot be reached may be later, and an older client knows no such call and asks by itself.
      if (!GONE.includes(details?.["reason"])) return;
      repeats.leave(awaited.clientId);
    }
    onChange();
  }
}
