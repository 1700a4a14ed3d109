/**
 * What each operator of a running pipeline has done so far.
 */

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
  /** Time this operator's consumer spent waiting for a promise it gave, in milliseconds. */
  waitMs = 0;
  /** Bytes of elements held now: shuffle buffer, cache, prefetched elements. */
  bufferedBytes = 0;

  constructor(operator: string, number: number) {
    this.operator = operator;
    this.number = number;
  }
}

/** Per operator, in pre-order from the last one. A copy: it does not change any more. */
export type IteratorStats = readonly Readonly<OperatorStats>[];
