/**
 * The numbers of the elements of a stream, as several consumers share them out: of n consumers the one
 * with index i has those whose number leaves i when divided by n.
 *
 * @module
 */
import { rowsIn } from "../../data/ordered/split_run.ts";
import { decodeMessage } from "../../transport/codec.ts";
import type { Payload } from "../../transport/payload.ts";
import type { ElementAnswer, Own, Place } from "../worker/protocol.ts";

/** Where counting begins. */
export interface Numbering {
  /** The number of the first element of the split that the stream goes on with. */
  readonly first: number;
  /** How many rows a batch has; null: no rows are left over by splits. */
  readonly batchSize: number | null;
  /** Rows of earlier splits that wait for others to fill a batch. */
  readonly carriedRows: number;
}

type Counted = ElementAnswer & { readonly place: Place };

/** Counts along the stream, split by split. */
export class StreamNumbers {
  readonly #batchSize: number;
  #first: number;
  #rows: number;
  /** Elements of the split that is counted, once its remainder or its end has come. */
  #elements: number | undefined;

  constructor({ first, batchSize, carriedRows }: Numbering) {
    this.#first = first;
    this.#batchSize = batchSize ?? Infinity;
    this.#rows = carriedRows;
  }

  /** What is a consumer's own of the split that is counted now. */
  ownOf(sequence: number): Own {
    return { sequence, number: this.#first };
  }

  /**
   * The number of what is next of that split, and whether an element comes of it. After its end the
   * split that follows is counted.
   */
  count(item: Counted): { readonly number: number; readonly isElement: boolean } {
    const { place: { index } } = item;
    switch (item.kind) {
      case "remainder":
        this.#elements = index;
        this.#rows += rowsOf(item.element);
        return { number: this.#first + index, isElement: this.#isBatch };
      case "split_end":
        this.#first += this.#elements ?? index;
        this.#elements = undefined;
        // A remainder has fewer rows than a batch: it completes one at most, as the last of its split.
        if (this.#isBatch) {
          this.#rows -= this.#batchSize;
          this.#first++;
        }
        return { number: this.#first, isElement: false };
      default:
        return { number: this.#first + index, isElement: item.kind !== "passed" };
    }
  }

  /** Whether the rows that splits have left over fill a batch. */
  get #isBatch(): boolean {
    return this.#rows >= this.#batchSize;
  }
}

function rowsOf(remainder: Payload): number {
  return rowsIn(decodeMessage(remainder.bytes));
}
