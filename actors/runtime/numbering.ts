/**
 * Numbers of envelopes: the sender counts per target, the receiver drops what is not newer.
 *
 * @module
 */

/** How many targets a sender counts apart; beyond it the longest unused count is folded away. */
const TARGETS_MAX = 4096;
/** How many senders a receiver remembers; beyond it the longest silent one is forgotten. */
const SENDERS_MAX = 16_384;

/** Counts what one actor sends to each target, from 1. */
export class SendNumbers {
  readonly #last = new Map<string, number>();
  /** At least every count ever folded away, so that numbers never fall back (a gap is harmless). */
  #floor = 0;

  next(target: string): number {
    const known = this.#last.get(target);
    if (known !== undefined) {
      this.#last.set(target, known + 1);
      return known + 1;
    }
    if (this.#last.size >= TARGETS_MAX) this.#fold();
    const first = this.#floor + 1;
    this.#last.set(target, first);
    return first;
  }

  #fold(): void {
    for (const [target, last] of this.#last) {
      this.#floor = Math.max(this.#floor, last);
      this.#last.delete(target);
      if (this.#last.size <= TARGETS_MAX / 2) return;
    }
  }
}

/** Remembers the newest number of each sender. */
export class ReceiveMarks {
  readonly #marks = new Map<string, number>();

  /**
   * Takes an envelope's number.
   *
   * @returns the count of envelopes missing before it, or -1 when it is not newer than the last.
   */
  accept(source: string, number: number): number {
    const last = this.#marks.get(source);
    if (last === undefined) {
      if (this.#marks.size >= SENDERS_MAX) this.#forgetOldest();
      this.#marks.set(source, number);
      return 0;
    }
    if (number <= last) return -1;
    this.#marks.set(source, number);
    return number - last - 1;
  }

  /** The sender has ended: whatever of it comes late is not newer. */
  close(source: string): void {
    // As if it were new: those that were silent for longer are forgotten before it.
    this.#marks.delete(source);
    this.accept(source, Infinity);
  }

  #forgetOldest(): void {
    for (const source of this.#marks.keys()) {
      this.#marks.delete(source);
      return;
    }
  }
}
