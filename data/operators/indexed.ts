/**
 * Sources whose elements are computed from an index: what they share is reading by splits.
 */
import type { IteratorContext } from "../context.ts";
import type { Host } from "../host.ts";
import { ElementIterator, END, type Pulled } from "../iterator.ts";
import { DatasetNode } from "../node.ts";
import { cutRuns, type Split, type SplitReader, type Splittable } from "../splits.ts";

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
  protected position = 0;
  protected stop: number;
  readonly #splits: SplitReader | undefined;
  /** Where the run that is being read began, and how many elements the runs before it gave. */
  #start = 0;
  #givenBefore = 0;

  constructor(context: IteratorContext, count: number) {
    super();
    context.stats.countBy(() => this.#givenBefore + this.position - this.#start);
    this.#splits = context.openSplits();
    this.stop = this.#splits === undefined ? count : 0;
  }

  /** The element at an index. It may throw, which costs that element. */
  protected abstract at(index: number): unknown;

  override next(): Pulled<unknown> {
    return this.position < this.stop ? this.at(this.position++) : this.beyond();
  }

  /** What follows the run that was read: the next split, or the end. */
  protected beyond(): Pulled<unknown> {
    return this.#splits === undefined || this.disposed ? END : this.#nextSplit(this.#splits);
  }

  async #nextSplit(splits: SplitReader): Promise<unknown> {
    for (;;) {
      const split = await splits.next();
      if (split === END || this.disposed) return END;
      this.#givenBefore += this.position - this.#start;
      this.position = this.#start = split.start;
      this.stop = split.stop;
      if (this.position < this.stop) return this.next();
    }
  }

  protected override release(): void {
    this.stop = this.position;
  }
}
