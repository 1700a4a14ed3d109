/** Numbers of envelopes: the sender counts per target, and the receiver drops what is not newer. */

/**
 * A sender has a count for each of this many targets, the last used ones. Others share one count.
 */
const TARGETS_KEPT = 2_048;
/** A receiver remembers this many senders, the most recent ones. */
const SENDERS_KEPT = 16_384;

/** Counts what one actor sends to each target, from 1. */
export class SendNumbers {
  /**
   * The highest count that was forgotten. New targets start above it, so that numbers never
   * decrease. Gaps are harmless.
   */
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

  /** Notes an envelope's number. Returns how many are missing before it, or -1 if it is old. */
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

/** A map that keeps at least the last `count` names used, and at most twice as many. */
export class Recent<T> {
  readonly #count: number;
  readonly #onDropped: (values: Iterable<T>) => void;
  #used = new Map<string, T>();
  /** Entries not used since `#used` was created. */
  #older = new Map<string, T>();

  /** @param onDropped Receives the dropped values. */
  constructor(count: number, onDropped: (values: Iterable<T>) => void = () => {}) {
    this.#count = count;
    this.#onDropped = onDropped;
  }

  /** The value under the name; this is a use of it. */
  get(name: string): T | undefined {
    const used = this.#used.get(name);
    if (used !== undefined) return used;
    const before = this.#older.get(name);
    if (before !== undefined) {
      this.#older.delete(name);
      this.set(name, before);
    }
    return before;
  }

  set(name: string, value: T): void {
    if (this.#used.size >= this.#count && !this.#used.has(name)) {
      this.#onDropped(this.#older.values());
      this.#older = this.#used;
      this.#used = new Map();
    }
    this.#used.set(name, value);
  }
}
