/** The timers of an actor, which end with it, and functions that wait. */
import type { Timer, World } from "./world.ts";

type Timers = Pick<World, "timer">;

/** A timer of an actor. It stores its index in the actor's list: a set would hash each timer twice. */
export class CellTimer implements Timer {
  inner: Timer | undefined;
  readonly #list: CellTimer[];
  #at: number;

  constructor(list: CellTimer[]) {
    this.#list = list;
    this.#at = list.push(this) - 1;
  }

  cancel(): void {
    this.end();
    this.inner?.cancel();
  }

  /** Removes the timer from the list: it has fired, or is cancelled. */
  end(): void {
    if (this.#at < 0) return;
    const last = this.#list.pop()!;
    if (last !== this) {
      this.#list[this.#at] = last;
      last.#at = this.#at;
    }
    this.#at = -1;
  }
}

/** Resolves after `delayMs`. */
export function sleep(timers: Timers, delayMs: number): Promise<void> {
  return new Promise((resolve) => timers.timer(delayMs, resolve));
}

/** The pauses of a loop, one at a time. A call of `wake` ends the current one early. */
export class Sleep {
  #wake = () => {};

  /** Resolves after `delayMs`, or when woken. */
  begin(timers: Timers, delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = timers.timer(delayMs, resolve);
      this.#wake = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  /** Ends the current wait, if any. */
  wake(): void {
    this.#wake();
  }
}
