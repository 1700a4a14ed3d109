/**
 * The files of one worker: of n workers, worker i reads the files i, i + n, …
 */
import { LeatError } from "../../core/error.ts";
import { checkInteger } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { type ElementIterator, END, type Pulled } from "../iterator.ts";
import { type Attributes, type DatasetNode, registerNode, UNKNOWN_CARDINALITY } from "../node.ts";
import { SameElementsNode, UnaryIterator } from "../operators/unary.ts";
import { ReadingFailure } from "../reading_failure.ts";
import type { Shard } from "../sharding_policy.ts";

/** A worker's share of a dataset of names. It differs from `shard` in that there must be one for each. */
export class FileShardNode extends SameElementsNode implements Shard {
  readonly index: number;
  readonly count: number;

  constructor(input: DatasetNode, count: unknown, index: unknown) {
    super("shardFiles", input);
    this.count = checkInteger("shardFiles", "count", count, 1);
    this.index = checkInteger("shardFiles", "index", index, 0, this.count - 1);
  }

  override get attributes(): Attributes {
    return { count: this.count, index: this.index };
  }

  override get cardinality(): number {
    const all = this.input.cardinality;
    return all < 0 ? UNKNOWN_CARDINALITY : Math.ceil((all - this.index) / this.count);
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    return new FileShardIterator(context, this);
  }
}

registerNode("shardFiles", {
  fromWire: (a, [input]) => new FileShardNode(input!, a.count, a.index),
});

/** Knows all names before it gives the first. */
class FileShardIterator extends UnaryIterator {
  readonly #shard: Shard;
  readonly #names: unknown[] = [];
  /** How many names there are in all; `undefined` as long as not all of them have come. */
  #total: number | undefined;
  #position = 0;
  /** There are too few: nothing can be read, which is not the end of the data. */
  #failure: ReadingFailure | undefined;

  constructor(context: IteratorContext, shard: Shard) {
    super(context);
    this.#shard = shard;
  }

  override next(): Pulled<unknown> {
    if (this.#failure !== undefined) throw this.#failure;
    return this.#total === undefined ? this.#gather() : this.#give();
  }

  /** The input is read from its beginning again. */
  protected override saveState(): Promise<number> {
    return Promise.resolve(this.#position);
  }

  protected override restoreState(state: unknown): Promise<void> {
    this.#position = state as number;
    return Promise.resolve();
  }

  async #gather(): Promise<unknown> {
    const { index, count } = this.#shard;
    let total = 0;
    for (;;) {
      const name = await this.input.next();
      if (this.disposed) return END;
      if (name === END) break;
      if (total++ % count === index) this.#names.push(name);
    }
    this.#total = total;
    if (total >= count) return this.#give();
    this.#names.length = 0;
    const error = new LeatError(
      "invalid_argument",
      `FILE sharding: the dataset has ${total} files, which is not enough for the required ${count} ` +
        `shards/workers. Use DATA or DYNAMIC, or as many workers as there are files`,
    );
    throw this.#failure = ReadingFailure.of(this.stats.failed(error));
  }

  #give(): unknown {
    if (this.#position >= this.#names.length) return END;
    return this.stats.gave(this.#names[this.#position++]);
  }
}
