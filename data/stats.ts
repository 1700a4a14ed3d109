/**
 * What each operator of a running pipeline has done so far.
 */

import { byteSize } from "../core/tree.ts";

/** One operator's figures since the iterator was opened. Its iterators add to them in place. */
export class OperatorStats {
  /** The operator as the user wrote it: `"map"`. */
  readonly operator: string;
  /** Its number in the graph, in pre-order from the last operator (0). */
  readonly number: number;
  /** Elements given downstream. */
  elements = 0;
  /** Time spent in this operator's own user function, in milliseconds; sampled when calls are short. */
  selfMs = 0;
  /** Time this operator spent waiting for elements of its inputs, in milliseconds. */
  waitMs = 0;
  /** Bytes of elements held now: shuffle buffer, cache, prefetched elements. */
  bufferedBytes = 0;

  #live: (() => number) | undefined;

  constructor(operator: string, number: number) {
    this.operator = operator;
    this.number = number;
  }

  /**
   * Has the elements of the operator's newest iterator counted by it: for iterators that know their
   * number without counting, on whose way every increment would be felt.
   */
  countBy(live: () => number): void {
    this.elements += this.#live?.() ?? 0;
    this.#live = live;
  }

  /** The figures as they are now. */
  copy(): Readonly<OperatorStats> {
    const copy = new OperatorStats(this.operator, this.number);
    copy.elements = this.elements + (this.#live?.() ?? 0);
    copy.selfMs = this.selfMs;
    copy.waitMs = this.waitMs;
    copy.bufferedBytes = this.bufferedBytes;
    return copy;
  }
}

/** Estimates what a buffer of elements holds from one in `SAMPLE_EVERY` of them. */
export class BufferMeter {
  readonly #stats: OperatorStats;
  #seen = 0;
  #sampled = 0;
  #sampledBytes = 0;
  #bytes = 0;

  constructor(stats: OperatorStats) {
    this.#stats = stats;
  }

  /** The estimate for a buffer of the size last noted. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Counts an element that enters the buffer. */
  enters(element: unknown): void {
    if (this.#seen++ % SAMPLE_EVERY !== 0 && this.#sampled >= SAMPLES_FIRST) return;
    this.#sampled++;
    this.#sampledBytes += sizeOrZero(element);
  }

  /** Notes how many elements the buffer holds now. */
  holds(count: number): void {
    const bytes = this.#sampled === 0 ? 0 : Math.round(this.#sampledBytes / this.#sampled * count);
    this.#stats.bufferedBytes += bytes - this.#bytes;
    this.#bytes = bytes;
  }
}

const SAMPLES_FIRST = 4;
const SAMPLE_EVERY = 64;

/** Elements may be anything until they are batched; what has no size counts as none. */
function sizeOrZero(element: unknown): number {
  try {
    return byteSize(element);
  } catch {
    return 0;
  }
}

/** Per operator, in pre-order from the last one. A copy: it does not change any more. */
export type IteratorStats = readonly Readonly<OperatorStats>[];
