/** `shard`: every n-th element. */
import { LeatError } from "../../core/error.ts";
import { checkInteger } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { END, type Token } from "../iterator.ts";
import {
  type Attributes,
  type Changeable,
  type DatasetNode,
  registerNode,
  UNKNOWN_CARDINALITY,
} from "../node.ts";
import { SHARD_HINT } from "../sharding/sharding_policy.ts";
import { AGAIN } from "../iterators/stepping.ts";
import type { NoOp } from "../optimizer/no_op.ts";
import { PassingIterator } from "./elementwise.ts";
import { ElementsOfInputNode } from "./unary.ts";

export class ShardNode extends ElementsOfInputNode {
  override readonly division = "whole";
  override readonly needsWholeInput = true;
  readonly numShards: number;
  readonly index: number;

  /** If `numShards` is `SHARD_HINT`, the index may be any integer. */
  constructor(input: DatasetNode, numShards: unknown, index: unknown) {
    super("shard", input);
    const isHint = numShards === SHARD_HINT;
    this.numShards = isHint ? SHARD_HINT : checkInteger("shard", "numShards", numShards, 1);
    this.index = isHint
      ? checkInteger("shard", "index", index, Number.MIN_SAFE_INTEGER)
      : checkInteger("shard", "index", index, 0, this.numShards - 1);
  }

  override get attributes(): Attributes {
    return { numShards: this.numShards, index: this.index };
  }

  override fieldsOfInput(wanted: readonly string[] | undefined): readonly string[] | undefined {
    return wanted;
  }

  override changeableInput(own: Changeable): Changeable {
    return own;
  }

  override get cardinality(): number {
    const all = this.input.cardinality;
    if (all <= 0 || all === Infinity) return all;
    if (this.numShards === SHARD_HINT) return UNKNOWN_CARDINALITY;
    return Math.max(0, Math.ceil((all - this.index) / this.numShards));
  }

  override tokenAt(index: number): Token | undefined {
    return this.input.tokenAt(index * this.numShards + this.index);
  }

  override get noOp(): NoOp | undefined {
    return this.numShards === 1 ? { fields: { until: 0 } } : undefined;
  }

  /** @throws {LeatError} `failed_precondition` for a hint that no HINT job has replaced. */
  override makeIterator(context: IteratorContext): ShardIterator {
    if (this.numShards === SHARD_HINT) {
      throw new LeatError(
        "failed_precondition",
        `shard: SHARD_HINT can only be used in a dataset that is distributed with processingMode: "HINT"`,
      );
    }
    return new ShardIterator(context, this);
  }
}

registerNode("shard", { fromWire: (a, [input]) => new ShardNode(input!, a.numShards, a.index) });

class ShardIterator extends PassingIterator {
  readonly #numShards: number;
  /** How many elements are skipped before the next one of this shard. */
  #until: number;

  constructor(context: IteratorContext, { numShards, index }: ShardNode) {
    super(context);
    this.#numShards = numShards;
    this.#until = index;
  }

  protected override accept(element: unknown): unknown {
    if (element === END) return END;
    if (this.#until-- > 0) return AGAIN;
    this.#until = this.#numShards - 1;
    return this.stats.gave(element);
  }

  protected override ownState(): object {
    return { until: this.#until };
  }

  protected override restoreOwn(state: unknown): void {
    this.#until = (state as { until: number }).until;
  }
}
