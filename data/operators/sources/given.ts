/**
 * `given`: elements that a task's reader sends to the task, split by split. It replaces a source that
 * only the reader can read, or that it reads faster (p'1 of the FastFlow paper, section 4.2).
 */
import { LeatError, type WireError } from "../../../core/error.ts";
import { checkInteger } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import { ElementIterator, END, type Pulled } from "../../iterator.ts";
import { ReadingFailure } from "../../iterators/reading_failure.ts";
import { type Attributes, DatasetNode, registerNode, UNKNOWN_CARDINALITY } from "../../node.ts";
import {
  cutFiles,
  readsSplitsError,
  type Split,
  type SplitReader,
  type Splittable,
} from "../../sharding/splits.ts";

/** Some consecutive elements of a split. */
export interface GivenElements {
  /** The elements, and the errors of those that failed. */
  readonly items: readonly ({ readonly element: unknown } | { readonly error: WireError })[];
  /** Whether the split ends with them. */
  readonly isLast: boolean;
}

/** A source whose elements come from the reader; split i is the reader's split i. */
export class GivenNode extends DatasetNode implements Splittable {
  override readonly division = "split";
  override readonly elementSpec: undefined = undefined;
  /** How many splits there are. */
  readonly total: number;

  constructor(total: number) {
    super("given", []);
    this.total = checkInteger("given", "total", total, 0);
  }

  override get attributes(): Attributes {
    return { total: this.total };
  }

  override get cardinality(): number {
    return this.total === 0 ? 0 : UNKNOWN_CARDINALITY;
  }

  listSplits(): Promise<Split[]> {
    return Promise.resolve(cutFiles(this.total));
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    return new GivenIterator(context, this.total);
  }
}

registerNode("given", { fromWire: (a) => new GivenNode(a.total as number) });

class GivenIterator extends ElementIterator {
  readonly #context: IteratorContext;
  readonly #total: number;
  readonly #splits: SplitReader | undefined;
  #split = 0;
  /** How many elements of the split were received. */
  #received = 0;
  #items: GivenElements["items"] = [];
  #at = 0;
  /** The elements after `#items`; undefined after the end of a split. */
  #following: Promise<GivenElements> | undefined;

  constructor(context: IteratorContext, total: number) {
    super();
    this.#context = context;
    this.#total = total;
    this.#splits = context.openSplits();
  }

  override next(): Pulled<unknown> {
    if (this.disposed || this.#total === 0) return END;
    return this.#at < this.#items.length ? this.#take() : this.#more();
  }

  protected override saveState(): Promise<unknown> {
    if (this.#splits !== undefined) throw readsSplitsError();
    return Promise.resolve(null);
  }

  protected override restoreState(): Promise<void> {
    return Promise.resolve();
  }

  protected override release(): void {
    [this.#items, this.#following] = [[], undefined];
  }

  #take(): unknown {
    const item = this.#items[this.#at++]!;
    const { stats } = this.#context;
    if ("error" in item) throw stats.failed(LeatError.fromWire(item.error));
    return stats.gave(item.element);
  }

  async #more(): Promise<unknown> {
    const splits = this.#splits;
    if (splits === undefined) throw onlyInTask();
    while (this.#at >= this.#items.length) {
      if (this.#following === undefined) {
        const split = await this.#context.waitFor(splits.next());
        if (split === END || this.disposed) return END;
        this.#split = split.start;
        this.#received = 0;
        this.#request(splits);
      }
      const { items, isLast } = await this.#context.waitFor(this.#following!);
      if (this.disposed) return END;
      this.#received += items.length;
      [this.#items, this.#at, this.#following] = [items, 0, undefined];
      // Requested ahead: the reader sends them while the pipeline works on `items`.
      if (!isLast) this.#request(splits);
    }
    return this.#take();
  }

  #request(splits: SplitReader): void {
    this.#following = splits.read(this.#split, this.#received).catch((error) => {
      // This is not the error of an element, because the reader still has the elements.
      throw ReadingFailure.of(error);
    });
    this.#following.catch(() => {});
  }
}

function onlyInTask(): LeatError {
  return new LeatError(
    "failed_precondition",
    "given: only a task of a service can read what its reader sends",
  );
}
