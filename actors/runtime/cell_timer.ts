/** The timers of an actor, which end with it. */
import type { Timer } from "./world.ts";

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

  /** It has fired, or never will. */
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
