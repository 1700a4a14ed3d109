/** Sources whose elements are computed from an index. Their base class reads them by splits. */
import { LeatError } from "../../../core/error.ts";
import type { IteratorContext } from "../../context.ts";
import type { Host } from "../../host.ts";
import { ElementIterator, END, NO_BLOCK, type Pulled, type Token } from "../../iterator.ts";
import { DatasetNode } from "../../node.ts";
import type { OperatorMeter } from "../../iterators/stats.ts";
import {
  cutRuns,
  readsSplitsError,
  type Split,
  type SplitReader,
  type Splittable,
} from "../../sharding/splits.ts";
import { wholeState } from "../../checkpoint/whole_state.ts";

/** A source of a known number of elements. */
export abstract class IndexedNode extends DatasetNode implements Splittable {
  override readonly division = "split";

  constructor(kind: string, inputs: readonly DatasetNode[] = []) {
    super(kind, inputs);
  }

  override tokenAt(index: number): Token {
    return index;
  }

  listSplits(_host: Host, multiple: number): Promise<Split[]> {
    return Promise.resolve(cutRuns(this.cardinality, multiple));
  }
}

/** Walks a source by index, or through the splits that the task is assigned. */
export abstract class IndexedIterator extends ElementIterator {
  protected position = 0;
  protected stop: number;
  protected readonly stats: OperatorMeter;
  protected readonly context: IteratorContext;
  readonly #splits: SplitReader | undefined;

  constructor(context: IteratorContext, count: number) {
    super();
    this.stats = context.stats;
    this.context = context;
    this.#splits = context.openSplits();
    this.stop = this.#splits === undefined ? count : 0;
  }

  /** The element at an index. If it throws, that element has failed. */
  protected abstract at(index: number): unknown;

  override next(): Pulled<unknown> {
    if (this.position >= this.stop) return this.beyond();
    const element = this.at(this.position++);
    return element instanceof Promise
      ? this.context.waitFor(element).then((element) => this.stats.gave(element))
      : this.stats.gave(element);
  }

  /** Called at the end of a split or the source: continues in the next split, or gives the end. */
  protected beyond(): Pulled<unknown> {
    return this.#splits === undefined || this.disposed ? END : this.#nextSplit(this.#splits);
  }

  override token(): number {
    return this.position - 1;
  }

  override again(token: Token): unknown {
    return this.at(token as number);
  }

  protected override saveState(): Promise<unknown> {
    if (this.#splits !== undefined) throw readsSplitsError();
    return Promise.resolve({ position: this.position });
  }

  protected override restoreState(state: unknown): Promise<void> {
    const { position } = wholeState(state) as { position: number };
    if (!Number.isSafeInteger(position) || position < 0) {
      throw new LeatError(
        "invalid_argument",
        `A saved position must be an integer of at least 0, got ${position}.`,
      );
    }
    this.position = position;
    return Promise.resolve();
  }

  async #nextSplit(splits: SplitReader): Promise<unknown> {
    for (;;) {
      const split = await this.context.waitFor(splits.next());
      if (split === END || this.disposed) return END;
      this.position = split.start;
      this.stop = split.stop;
      if (this.position < this.stop) return this.next();
    }
  }

  protected override release(): void {
    this.stop = this.position;
  }
}

/** Gives blocks of elements that are computed at once. */
export abstract class BlockIterator extends IndexedIterator {
  override next(): Pulled<unknown> {
    try {
      return super.next();
    } catch (error) {
      throw this.stats.failed(error);
    }
  }

  override nextBlock(into: unknown[], count: number): number {
    const first = this.position;
    const length = Math.min(count, this.stop - first);
    if (length <= 0) return NO_BLOCK;
    let given = 0;
    try {
      for (; given < length; given++) into[given] = this.at(first + given);
    } catch {
      if (given === 0) return NO_BLOCK; // `next()` reports it
    }
    this.position = first + given;
    this.stats.gaveBlock(into, given);
    return given;
  }
}
