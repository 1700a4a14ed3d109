/**
 * Sources whose elements are computed from an index: what they share is reading by splits.
 */
import type { IteratorContext } from "../context.ts";
import type { Host } from "../host.ts";
import { ElementIterator, END, type Pulled } from "../iterator.ts";
import { DatasetNode } from "../node.ts";
import { cutRuns, type Split, type SplitReader, type Splittable } from "../splits.ts";
import type { OperatorStats } from "../stats.ts";

/** A source of a known number of elements. */
export abstract class IndexedNode extends DatasetNode implements Splittable {
  constructor(kind: string) {
    super(kind, []);
  }

  listSplits(_host: Host, multiple: number): Promise<Split[]> {
    return Promise.resolve(cutRuns(this.cardinality, multiple));
  }
}

/** Walks a source from index to index, or through the splits that the task is handed. */
export abstract class IndexedIterator extends ElementIterator {
  readonly #stats: OperatorStats;
  readonly #splits: SplitReader | undefined;
  #position: number;
  #stop: number;

  constructor(context: IteratorContext, count: number) {
    super();
    this.#stats = context.stats;
    this.#splits = context.openSplits();
    this.#position = 0;
    this.#stop = this.#splits === undefined ? count : 0;
  }

  /** The element at an index. It may throw, which costs that element. */
  protected abstract at(index: number): unknown;

  override next(): Pulled<unknown> {
    if (this.#position < this.#stop) {
      const element = this.at(this.#position++);
      this.#stats.elements++;
      return element;
    }
    return this.#splits === undefined || this.disposed ? END : this.#nextSplit(this.#splits);
  }

  async #nextSplit(splits: SplitReader): Promise<unknown> {
    for (;;) {
      const split = await splits.next();
      if (split === END || this.disposed) return END;
      this.#position = split.start;
      this.#stop = split.stop;
      if (this.#position < this.#stop) return this.next();
    }
  }

  protected override release(): void {
    this.#stop = this.#position;
  }
}
