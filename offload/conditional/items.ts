/** The items of splits, which both sides of the conditional operator give, each with its position. */
import type { END } from "../../data/iterator.ts";

/** The position of an item. It does not depend on the side that produced the item. */
export interface ItemPlace {
  /** The split's position in the order of splits. */
  readonly sequence: number;
  /** The split's index in its table. */
  readonly split: number;
  /** The item's number within the split, from 0. */
  readonly index: number;
}

export type Item =
  & { readonly place: ItemPlace }
  & (
    | { readonly kind: "element"; readonly element: unknown }
    | { readonly kind: "error"; readonly error: unknown }
    /** The last rows of the split, which do not fill a batch. */
    | { readonly kind: "remainder"; readonly rows: unknown }
    | { readonly kind: "split_end" }
  );

/** Local CPUs, or the workers of a service. */
export interface Side {
  /**
   * Since when the side could give more items than were requested. Workers could if they have sent
   * such items; local CPUs, if they have prepared ahead as many as they may, or have no split left:
   * they may take some over. Undefined if the side could not.
   */
  readonly aheadSinceMs: number | undefined;
  /** Whether `next()` would answer at once. */
  readonly isReady: boolean;
  /**
   * The next item; `END` after the last split. One call at a time.
   * @throws {ReadingFailure} when the side cannot continue.
   */
  next(): Promise<Item | typeof END>;
  /** Stops producing at once. */
  dispose(): void;
}
