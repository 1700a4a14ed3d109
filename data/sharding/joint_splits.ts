/**
 * Splits of several datasets side by side: all of them read the same ones, so that what stands at one
 * place in each stays together whichever task reads it.
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
 * The source that the n-th element of a graph is the n-th of: an indexed one, or one without end;
 * `undefined` where there is none.
 */
export function alignedSource(node: DatasetNode): DatasetNode | undefined {
  const { division } = node;
  if (division === "element" || division === "position") return alignedSource(node.inputs[0]!);
  const isJoint = isSplittable(node) && node.isJoint === true;
  return isJoint || node instanceof IndexedNode || isReplicated(node) ? node : undefined;
}

/** Hands every split of a reader to each of `count` sources. */
export class JointSplits implements SplitSource {
  readonly #reader: SplitReader;
  /** Those that some source has not taken yet… */
  readonly #splits: Promise<Split | typeof END>[] = [];
  /** …of which this is the number of the first. */
  #first = 0;
  /** How many each source has taken. */
  readonly #taken: number[];

  constructor(reader: SplitReader, count: number) {
    this.#reader = reader;
    this.#taken = Array<number>(count).fill(0);
  }

  next(source: number): Promise<Split | typeof END> {
    const place = this.#taken[source]!++ - this.#first;
    if (place === this.#splits.length) {
      const split = this.#reader.next();
      // A source that has been disposed does not take it.
      split.catch(() => {});
      this.#splits.push(split);
    }
    const split = this.#splits[place]!;
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
