/** Element numbers. Consumer i of n reads the elements whose number modulo n is i. */
import { rowsIn } from "../../../data/deterministic/remainder.ts";
import type { Own } from "../../worker/protocol.ts";
import { decoded } from "../feed.ts";
import type { Placed } from "./arrived_split.ts";

/** Where counting begins. */
export interface Numbering {
  /** The number of the first element of the split at which the stream resumes. */
  readonly first: number;
  /** Rows in a batch; null if splits leave no rows over. */
  readonly batchSize: number | null;
  /** Rows that earlier splits left over, and that wait to fill a batch. */
  readonly carriedRows: number;
}

/** Counts elements along the stream, split by split. */
export class StreamNumbers {
  readonly #batchSize: number;
  #first: number;
  #carriedRows: number;
  /** How many whole elements the current split has; undefined until its left-over rows arrive. */
  #elements: number | undefined;

  constructor({ first, batchSize, carriedRows }: Numbering) {
    this.#first = first;
    this.#batchSize = batchSize ?? Infinity;
    this.#carriedRows = carriedRows;
  }

  /**
   * Tells a worker the number of the current split's first element, so that it sends only elements
   * of this consumer.
   * @param sequence The current split's position in the order.
   */
  ownFrom(sequence: number): Own {
    return { sequence, number: this.#first };
  }

  /**
   * Returns an item's number, and whether it is or completes an element; the end of a split does
   * not, nor do elements that belong to other consumers. Call this for all items, in the order of
   * the stream.
   */
  count(item: Placed): { readonly number: number; readonly isElement: boolean } {
    const { place: { index } } = item;
    switch (item.kind) {
      case "remainder":
        this.#elements = index;
        this.#carriedRows += rowsIn(decoded(item).element);
        return { number: this.#first + index, isElement: this.#fillsBatch };
      case "split_end":
        this.#first += this.#elements ?? index;
        this.#elements = undefined;
        // A remainder has fewer rows than a batch, so it completes at most one batch.
        if (this.#fillsBatch) {
          this.#carriedRows -= this.#batchSize;
          this.#first++;
        }
        return { number: this.#first, isElement: false };
      default:
        return { number: this.#first + index, isElement: item.kind !== "passed" };
    }
  }

  /** Whether the rows left over by splits fill a batch. */
  get #fillsBatch(): boolean {
    return this.#carriedRows >= this.#batchSize;
  }
}
