/**
 * `shard`: every n-th element.
 */
import { checkInteger } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { END, type Pulled } from "../iterator.ts";
import { type Attributes, type DatasetNode, registerNode } from "../node.ts";
import type { ElementSpec } from "../spec.ts";
import { AGAIN, stepOn, type Stepping } from "../stepping.ts";
import { UnaryIterator, UnaryNode } from "./unary.ts";

export class ShardNode extends UnaryNode {
  readonly numShards: number;
  readonly index: number;

  constructor(input: DatasetNode, numShards: unknown, index: unknown) {
    super("shard", input);
    this.numShards = checkInteger("shard", "numShards", numShards, 1);
    this.index = checkInteger("shard", "index", index, 0, this.numShards - 1);
  }

  override get attributes(): Attributes {
    return { numShards: this.numShards, index: this.index };
  }

  override get elementSpec(): ElementSpec {
    return this.input.elementSpec;
  }

  override get cardinality(): number {
    const all = this.input.cardinality;
    if (all < 0 || all === Infinity) return all;
    return Math.max(0, Math.ceil((all - this.index) / this.numShards));
  }

  override makeIterator(context: IteratorContext): ShardIterator {
    return new ShardIterator(context, this);
  }
}

registerNode("shard", { fromWire: (a, [input]) => new ShardNode(input!, a.numShards, a.index) });

class ShardIterator extends UnaryIterator implements Stepping {
  readonly #numShards: number;
  /** How many elements are passed over before the next one of this shard. */
  #until: number;

  constructor(context: IteratorContext, { numShards, index }: ShardNode) {
    super(context);
    this.#numShards = numShards;
    this.#until = index;
  }

  override next(): Pulled<unknown> {
    return stepOn(this, this.context.pacer);
  }

  step(): unknown {
    const element = this.input.next();
    return element instanceof Promise ? this.#later(element) : this.#pass(element);
  }

  #pass(element: unknown): unknown {
    if (element === END) return END;
    if (this.#until-- > 0) return AGAIN;
    this.#until = this.#numShards - 1;
    this.stats.elements++;
    return element;
  }

  async #later(pending: Promise<unknown>): Promise<unknown> {
    return this.#pass(await this.arrival(pending));
  }
}
