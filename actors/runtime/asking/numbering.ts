/** Numbers of envelopes: the sender counts per target, the receiver drops what is not newer. */
import { Recent } from "./recent.ts";

/** Targets that a sender counts separately, the last used ones; other counts are folded together. */
const TARGETS_KEPT = 2_048;
/** Senders that a receiver remembers, the last heard ones; others are forgotten. */
const SENDERS_KEPT = 16_384;

/** Counts what one actor sends to each target, from 1. */
export class SendNumbers {
  /** At least every count ever folded away, so that numbers never decrease (a gap is harmless). */
  #floor = 0;
  readonly #last = new Recent<number>(TARGETS_KEPT, (counts) => {
    for (const count of counts) this.#floor = Math.max(this.#floor, count);
  });

  next(target: string): number {
    const next = (this.#last.get(target) ?? this.#floor) + 1;
    this.#last.set(target, next);
    return next;
  }
}

/** Remembers the newest number of each sender. */
export class ReceiveMarks {
  readonly #marks = new Recent<number>(SENDERS_KEPT);

  /** Takes an envelope's number; returns how many are missing before it, or -1 if it is old. */
  accept(source: string, number: number): number {
    const last = this.#marks.get(source);
    if (last !== undefined && number <= last) return -1;
    this.#marks.set(source, number);
    return last === undefined ? 0 : number - last - 1;
  }

  /** The sender has ended: any late envelope of it counts as old. */
  close(source: string): void {
    this.#marks.set(source, Infinity);
  }
}
