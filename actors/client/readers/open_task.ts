/** A task that an ordered reader reads, with its state. */
import type { TaskSource } from "../../dispatcher/protocol.ts";
import type { ActorContext } from "../../runtime/actor.ts";
import type { Timer } from "../../runtime/world.ts";
import type { TaskFetcher } from "./task_fetcher.ts";

/**
 * The pause before a task is asked again for a split that it did not have, in ms; doubles up to the
 * maximum. The task gets such a split only if another task loses it.
 */
const LATER_MIN_MS = 20;
const LATER_MAX_MS = 320;

export class OpenTask {
  readonly task: TaskSource;
  readonly fetcher: TaskFetcher;
  inFlight = 0;
  /** Whether the task has no more elements for any reader, or does not exist any more. */
  ended = false;
  /** The last answer said that the task has no split up to this one. -1: it may have any. */
  lackedUpTo = -1;
  inRing = false;
  /** The consumers of which the task was told that they have left. */
  readonly toldLeft = new Set<number>();
  /** Runs until the task may be asked again for the splits that it lacked. */
  #pause: Timer | undefined;
  #pauseMs = LATER_MIN_MS;

  constructor(task: TaskSource, fetcher: TaskFetcher) {
    this.task = task;
    this.fetcher = fetcher;
  }

  resetPause(): void {
    this.#pauseMs = LATER_MIN_MS;
  }

  /**
   * Begins a pause, unless one runs.
   * @param onEnd Called when the task may be asked again.
   */
  pause(context: Pick<ActorContext, "timer">, onEnd: () => void): void {
    if (this.#pause !== undefined) return;
    this.#pause = context.timer(this.#pauseMs, () => {
      this.#pause = undefined;
      this.lackedUpTo = -1;
      onEnd();
    });
    this.#pauseMs = Math.min(2 * this.#pauseMs, LATER_MAX_MS);
  }

  /** Ends the pause, because the task may now have the splits that it lacked. */
  endPause(): void {
    this.#pause?.cancel();
    this.#pause = undefined;
    this.#pauseMs = LATER_MIN_MS;
    this.lackedUpTo = -1;
  }
}
