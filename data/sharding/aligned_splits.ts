/**
 * Splits of several aligned datasets. All of them read the same splits, so elements at the same
 * position stay together in every task.
 */
import type { END } from "../iterator.ts";
import type { DatasetNode } from "../node.ts";
import { IndexedNode } from "../operators/sources/indexed.ts";
import {
  isReplicated,
  isSplittable,
  type Split,
  type SplitReader,
  type SplitSource,
} from "./splits.ts";

/**
 * The source whose n-th element becomes the n-th element of the graph: an indexed or endless source;
 * `undefined` if there is none.
 */
export function alignedSource(node: DatasetNode): DatasetNode | undefined {
  const { division } = node;
  if (division === "element" || division === "position") return alignedSource(node.inputs[0]!);
  const isAligned = isSplittable(node) && node.isAligned === true;
  return isAligned || node instanceof IndexedNode || isReplicated(node) ? node : undefined;
}

/** Gives every split of `reader` to each of `count` sources. */
export class AlignedSplits implements SplitSource {
  readonly #reader: SplitReader;
  /** The splits that at least one source has not taken yet. */
  readonly #splits: Promise<Split | typeof END>[] = [];
  /** The number of the first of these splits. */
  #first = 0;
  /** How many splits each source has taken. */
  readonly #taken: number[];

  constructor(reader: SplitReader, count: number) {
    this.#reader = reader;
    this.#taken = Array<number>(count).fill(0);
  }

  next(source: number): Promise<Split | typeof END> {
    const position = this.#taken[source]!++ - this.#first;
    if (position === this.#splits.length) {
      const split = this.#reader.next();
      // If the source is disposed, nobody handles a rejection.
      split.catch(() => {});
      this.#splits.push(split);
    }
    const split = this.#splits[position]!;
    if (Math.min(...this.#taken) > this.#first) {
      this.#splits.shift();
      this.#first++;
    }
    return split;
  }

  total(): Promise<number> {
    return this.#reader.total();
  }
}
