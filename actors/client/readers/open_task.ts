/** A task that an ordered reader asks, and what is known of it. */
import type { TaskSource } from "../../dispatcher/protocol.ts";
import type { ActorContext } from "../../runtime/actor.ts";
import type { Timer } from "../../runtime/world.ts";
import type { TaskFetcher } from "./task_fetcher.ts";

/**
 * The pause before a task that had nothing of a split is asked for it again, in ms; doubles up to
 * the maximum. The task gets such a split only if another task lost it.
 */
const LATER_MIN_MS = 20;
const LATER_MAX_MS = 320;

export class OpenTask {
  readonly task: TaskSource;
  readonly fetcher: TaskFetcher;
  inFlight = 0;
  /** It has no more for any reader, or does not exist any more. */
  ended = false;
  /** At the last answer it had nothing of the next splits up to this one; -1: it may have all. */
  lackedUpTo = -1;
  inRing = false;
  /** Runs until it is asked again for what it lacked. */
  #pause: Timer | undefined;
  #pauseMs = LATER_MIN_MS;

  constructor(task: TaskSource, fetcher: TaskFetcher) {
    this.task = task;
    this.fetcher = fetcher;
  }

  hasGiven(): void {
    this.#pauseMs = LATER_MIN_MS;
  }

  /** Begins a pause, unless one runs. @param onEnd is called when it may be asked again. */
  pause(context: Pick<ActorContext, "timer">, onEnd: () => void): void {
    if (this.#pause !== undefined) return;
    this.#pause = context.timer(this.#pauseMs, () => {
      this.#pause = undefined;
      this.lackedUpTo = -1;
      onEnd();
    });
    this.#pauseMs = Math.min(2 * this.#pauseMs, LATER_MAX_MS);
  }

  /** It may now have the splits that it lacked. */
  endPause(): void {
    this.#pause?.cancel();
    this.#pause = undefined;
    this.#pauseMs = LATER_MIN_MS;
    this.lackedUpTo = -1;
  }
}
