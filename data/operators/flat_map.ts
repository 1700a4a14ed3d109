/**
 * `flatMap`: the elements of the datasets that a function makes, one dataset after the other.
 */
import { LeatError } from "../../core/error.ts";
import { Call, NodeFunction } from "../call.ts";
import { show } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { type ElementIterator, END, type Pulled } from "../iterator.ts";
import {
  type Attributes,
  type DatasetNode,
  nodeOf,
  registerNode,
  UNKNOWN_CARDINALITY,
} from "../node.ts";
import { checkSpec, type ElementSpec } from "../spec.ts";
import { AGAIN, stepOn, type Stepping } from "../stepping.ts";
import { UnaryIterator, UnaryNode } from "./unary.ts";

export class FlatMapNode extends UnaryNode {
  readonly fn: NodeFunction;
  readonly #spec: ElementSpec;

  /** `spec`: what the datasets that `fn` makes give, where the user says so. */
  constructor(input: DatasetNode, fn: NodeFunction, spec?: ElementSpec) {
    super("flatMap", input);
    this.fn = fn;
    this.#spec = checkSpec("flatMap", spec);
  }

  override get attributes(): Attributes {
    return { fn: this.fn, spec: this.#spec };
  }

  override get elementSpec(): ElementSpec {
    return this.#spec;
  }

  override get cardinality(): number {
    return this.input.cardinality === 0 ? 0 : UNKNOWN_CARDINALITY;
  }

  override makeIterator(context: IteratorContext): FlatMapIterator {
    return new FlatMapIterator(context, this.fn);
  }
}

registerNode("flatMap", {
  fromWire: (a, [input]) =>
    new FlatMapNode(input!, NodeFunction.among(a, "fn"), a.spec as ElementSpec),
});

/** Opens the dataset that a function made of an element. */
export function openMade(made: unknown, call: Call, context: IteratorContext): ElementIterator {
  const node = nodeOf(made);
  if (node === undefined) {
    throw new LeatError(
      "invalid_argument",
      `${context.stats.operator}: the function must return a Dataset, got ${show(made)}`,
    );
  }
  return context.nested(node, call.nestedLuck()).makeIterator();
}

class FlatMapIterator extends UnaryIterator implements Stepping {
  readonly #call: Call;
  #current: ElementIterator | undefined;

  constructor(context: IteratorContext, fn: NodeFunction) {
    super(context);
    this.#call = new Call(fn, context);
  }

  override next(): Pulled<unknown> {
    return stepOn(this, this.context.pacer);
  }

  step(): unknown {
    if (this.#current !== undefined) {
      const element = this.#current.next();
      return element instanceof Promise ? this.#innerLater(element) : this.#inner(element);
    }
    const outer = this.input.next();
    return outer instanceof Promise ? this.#outerLater(outer) : this.#outer(outer);
  }

  #inner(element: unknown): unknown {
    if (element === END) {
      this.#close();
      return AGAIN;
    }
    this.stats.elements++;
    return element;
  }

  #outer(outer: unknown): unknown {
    if (outer === END || this.disposed) return END;
    const made = this.#call.one(outer);
    return made instanceof Promise ? this.#openLater(made) : this.#open(made);
  }

  #open(made: unknown): typeof AGAIN {
    if (!this.disposed) this.#current = openMade(made, this.#call, this.context);
    return AGAIN;
  }

  async #innerLater(pending: Promise<unknown>): Promise<unknown> {
    return this.#inner(await pending);
  }

  async #outerLater(pending: Promise<unknown>): Promise<unknown> {
    return this.#outer(await this.arrival(pending));
  }

  async #openLater(pending: Promise<unknown>): Promise<unknown> {
    return this.#open(await pending);
  }

  #close(): void {
    this.#current?.dispose();
    this.#current = undefined;
  }

  protected override release(): void {
    this.#close();
    super.release();
  }
}
