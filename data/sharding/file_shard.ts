/** FILE sharding: of n workers, worker i reads the files i, i + n, … */
import { LeatError } from "../../core/error.ts";
import { checkInteger } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { type ElementIterator, END } from "../iterator.ts";
import { type Attributes, type DatasetNode, registerNode, UNKNOWN_CARDINALITY } from "../node.ts";
import { SameElementsNode, UnaryIterator } from "../operators/unary.ts";
import { ReadingFailure } from "../iterators/reading_failure.ts";
import type { Shard } from "./sharding_policy.ts";

/** A worker's share of a dataset of file names. Unlike `shard`, it fails with fewer names than workers. */
export class FileShardNode extends SameElementsNode implements Shard {
  override readonly division = "whole";
  override readonly needsWholeInput = true;
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

/**
 * Gives no name before it has read one for each worker, which shows that there are enough files.
 */
class FileShardIterator extends UnaryIterator {
  readonly #shard: Shard;
  /** How many names were read, those of other workers included. */
  #total = 0;
  /** This worker's name that was read and not given yet. */
  #held: { readonly name: unknown } | undefined;
  /** How many of this worker's names were given. */
  #position = 0;
  /** How many of this worker's names to skip first, after a restore. */
  #toSkip = 0;
  /** Set if there are too few files: then every `next()` fails. */
  #failure: ReadingFailure | undefined;

  constructor(context: IteratorContext, shard: Shard) {
    super(context);
    this.#shard = shard;
  }

  override async next(): Promise<unknown | typeof END> {
    if (this.#failure !== undefined) throw this.#failure;
    const { index, count } = this.#shard;
    for (;;) {
      const name = await this.input.next();
      if (this.disposed) return END;
      if (name === END) break;
      if (this.#total++ % count === index) this.#held = { name };
      if (this.#held === undefined || this.#total < count) continue;
      const given = this.#held.name;
      this.#held = undefined;
      if (this.#toSkip > 0) {
        this.#toSkip--;
        continue;
      }
      this.#position++;
      return this.stats.gave(given);
    }
    if (this.#total >= count) return END;
    throw this.#failure = ReadingFailure.of(this.stats.failed(this.#tooFew()));
  }

  /** The input's state is not saved: after a restore it is read from its beginning. */
  protected override saveState(): Promise<object> {
    return Promise.resolve(this.ownState());
  }

  protected override restoreState(state: unknown): Promise<void> {
    return Promise.resolve(this.restoreOwn(state));
  }

  protected override ownState(): object {
    return { position: this.#position };
  }

  protected override restoreOwn(state: unknown): void {
    this.#position = this.#toSkip = (state as { position: number }).position;
  }

  #tooFew(): LeatError {
    return new LeatError(
      "invalid_argument",
      `FILE sharding: the dataset has ${this.#total} files, which is not enough for the required ` +
        `${this.#shard.count} shards/workers. Use DATA or DYNAMIC, or as many workers as there are files`,
    );
  }
}
