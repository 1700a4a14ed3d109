/**
 * `filter`: the elements for which a predicate holds.
 */
import { LeatError } from "../../core/error.ts";
import type { InputBlock } from "../block.ts";
import { NodeFunction } from "../call.ts";
import { show } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { END, type Pulled } from "../iterator.ts";
import { type Attributes, type DatasetNode, registerNode, UNKNOWN_CARDINALITY } from "../node.ts";
import type { ElementSpec } from "../spec.ts";
import { AGAIN, stepOn, type Stepping } from "../stepping.ts";
import { CallingIterator } from "./calling.ts";
import { UnaryNode } from "./unary.ts";

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

class FilterIterator extends CallingIterator implements Stepping {
  override next(): Pulled<unknown> {
    return stepOn(this, this.context.pacer);
  }

  step(): unknown {
    const outcome = this.takeOutcome();
    if (outcome !== undefined) {
      if (outcome.failed) throw outcome.value;
      return outcome.value;
    }
    const element = this.pull();
    return element instanceof Promise ? this.#later(element) : this.#judge(element);
  }

  protected override callBlock(block: InputBlock, into: unknown[]): number {
    const { call } = this;
    const { fn, extra } = call;
    const { items, at } = block;
    const indexAtStart = call.index - at;
    let kept = 0;
    try {
      for (let i = at; i < block.stop; i++) {
        call.index = indexAtStart + i + 1;
        const element = items[i];
        const verdict = fn(element, extra);
        if (verdict === true) into[kept++] = element;
        else if (verdict !== false) {
          this.leave({ failed: false, value: this.#settle(element, call.settle(verdict)) });
          break;
        }
      }
    } catch (error) {
      this.leave({ failed: true, value: call.failure(error) });
    }
    block.at = Math.min(call.index - indexAtStart, block.end);
    this.stats.elements += kept;
    return kept;
  }

  #judge(element: unknown): unknown {
    if (element === END || this.disposed) return END;
    const verdict = this.call.one(element);
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
