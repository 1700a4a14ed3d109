/**
 * `enumerate`: elements with their numbers.
 */
import { checkInteger } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { END, type Pulled } from "../iterator.ts";
import { type Attributes, type DatasetNode, registerNode } from "../node.ts";
import { type ElementSpec, TensorSpec } from "../spec.ts";
import { UnaryIterator, UnaryNode } from "./unary.ts";

export class EnumerateNode extends UnaryNode {
  readonly start: number;

  constructor(input: DatasetNode, start: unknown = 0) {
    super("enumerate", input);
    this.start = checkInteger("enumerate", "start", start, Number.MIN_SAFE_INTEGER);
  }

  override get attributes(): Attributes {
    return { start: this.start };
  }

  override get elementSpec(): ElementSpec {
    return [new TensorSpec("float64", []), this.input.elementSpec];
  }

  override get cardinality(): number {
    return this.input.cardinality;
  }

  override splitMultiple(multiple: number): number {
    return multiple;
  }

  override makeIterator(context: IteratorContext): EnumerateIterator {
    return new EnumerateIterator(context, this.start);
  }
}

registerNode("enumerate", { fromWire: (a, [input]) => new EnumerateNode(input!, a.start) });

class EnumerateIterator extends UnaryIterator {
  #number: number;

  constructor(context: IteratorContext, start: number) {
    super(context);
    this.#number = start;
  }

  override next(): Pulled<unknown> {
    const element = this.input.next();
    return element instanceof Promise ? this.#later(element) : this.#pair(element);
  }

  async #later(pending: Promise<unknown>): Promise<unknown> {
    return this.#pair(await this.arrival(pending));
  }

  #pair(element: unknown): unknown {
    if (element === END) return END;
    this.stats.elements++;
    return [this.#number++, element];
  }
}
