/**
 * `filter`: the elements for which a predicate holds.
 */
import { LeatError } from "../../core/error.ts";
import { Call, NodeFunction } from "../call.ts";
import { show } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { END, type Pulled } from "../iterator.ts";
import { type Attributes, type DatasetNode, registerNode, UNKNOWN_CARDINALITY } from "../node.ts";
import type { Pacer } from "../pacer.ts";
import type { ElementSpec } from "../spec.ts";
import { AGAIN, giveWay, stepLater, type Stepping } from "../stepping.ts";
import { UnaryIterator, UnaryNode } from "./unary.ts";

export class FilterNode extends UnaryNode {
  readonly predicate: NodeFunction;

  constructor(input: DatasetNode, predicate: NodeFunction) {
    super("filter", input);
    this.predicate = predicate;
  }

  override get attributes(): Attributes {
    return { predicate: this.predicate };
  }

  override get elementSpec(): ElementSpec {
    return this.input.elementSpec;
  }

  override get cardinality(): number {
    return this.input.cardinality === 0 ? 0 : UNKNOWN_CARDINALITY;
  }

  override makeIterator(context: IteratorContext): FilterIterator {
    return new FilterIterator(context, this.predicate);
  }
}

registerNode("filter", {
  fromWire: (a, [input]) => new FilterNode(input!, NodeFunction.among(a, "predicate")),
});

class FilterIterator extends UnaryIterator implements Stepping {
  readonly #call: Call;
  readonly #pacer: Pacer;

  constructor(context: IteratorContext, predicate: NodeFunction) {
    super(context);
    this.#call = new Call(predicate, context);
    this.#pacer = context.pacer;
  }

  /** The steps written out, because most elements of most pipelines come through here. */
  override next(): Pulled<unknown> {
    const call = this.#call;
    for (;;) {
      const element = this.input.next();
      if (element instanceof Promise) return stepLater(this, this.#pacer, this.#later(element));
      if (element === END) return END;
      let verdict: unknown;
      if (call.isPlain()) {
        try {
          verdict = call.fn(element, call.extra);
        } catch (error) {
          throw call.failure(error);
        }
      } else verdict = call.finish(element);
      if (verdict === true) {
        this.stats.elements++;
        return element;
      }
      if (verdict !== false) {
        const decided = this.#settle(element, call.settle(verdict));
        return stepLater(this, this.#pacer, decided);
      }
      if (this.#pacer.due()) return stepLater(this, this.#pacer, giveWay(this.#pacer));
    }
  }

  step(): unknown {
    const element = this.input.next();
    return element instanceof Promise ? this.#later(element) : this.#judge(element);
  }

  #judge(element: unknown): unknown {
    if (element === END || this.disposed) return END;
    const verdict = this.#call.one(element);
    return verdict instanceof Promise
      ? this.#settle(element, verdict)
      : this.#decide(element, verdict);
  }

  #decide(element: unknown, verdict: unknown): unknown {
    if (typeof verdict !== "boolean") throw noVerdict(verdict);
    if (!verdict) return AGAIN;
    this.stats.elements++;
    return element;
  }

  async #later(pending: Promise<unknown>): Promise<unknown> {
    return this.#judge(await this.arrival(pending));
  }

  async #settle(element: unknown, verdict: unknown): Promise<unknown> {
    return this.#decide(element, await verdict);
  }
}

function noVerdict(verdict: unknown): LeatError {
  return new LeatError(
    "invalid_argument",
    `filter: the function must return true or false, got ${show(verdict)}`,
  );
}
