/**
 * `map`: a function of every element, one at a time or several at once.
 */
import type { InputBlock } from "../block.ts";
import { NodeFunction } from "../call.ts";
import type { IteratorContext } from "../context.ts";
import { type ElementIterator, END, type Pulled } from "../iterator.ts";
import { type Attributes, type DatasetNode, registerNode } from "../node.ts";
import { checkParallelCalls } from "../parallelism.ts";
import { checkSpec, type ElementSpec } from "../spec.ts";
import { CallingIterator } from "./calling.ts";
import { ParallelCalls } from "./parallel_calls.ts";
import { UnaryNode } from "./unary.ts";

/** How `map` runs. */
export interface MapAttributes {
  /** At most this many calls at once; without it one call at a time. */
  readonly numParallelCalls?: number | undefined;
  /** Whether elements keep their order; default true. */
  readonly deterministic?: boolean | undefined;
  /** What the function returns, where the user says so. */
  readonly spec?: ElementSpec;
}

export class MapNode extends UnaryNode {
  readonly fn: NodeFunction;
  readonly options: MapAttributes;

  constructor(input: DatasetNode, fn: NodeFunction, options: MapAttributes = {}) {
    super("map", input);
    this.fn = fn;
    this.options = {
      numParallelCalls: checkParallelCalls("map", options.numParallelCalls),
      deterministic: options.deterministic,
      spec: checkSpec("map", options.spec),
    };
  }

  override get attributes(): Attributes {
    return { fn: this.fn, ...this.options };
  }

  override get elementSpec(): ElementSpec {
    return this.options.spec;
  }

  override get cardinality(): number {
    return this.input.cardinality;
  }

  override splitMultiple(multiple: number): number {
    return multiple;
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    const { numParallelCalls, deterministic = true } = this.options;
    if (numParallelCalls === undefined) return new MapIterator(context, this.fn);
    return new ParallelCalls(context, this.fn, numParallelCalls, deterministic);
  }
}

registerNode("map", {
  fromWire: (a, [input]) => new MapNode(input!, NodeFunction.among(a, "fn"), a as MapAttributes),
});

class MapIterator extends CallingIterator {
  constructor(context: IteratorContext, fn: NodeFunction) {
    super(context, fn);
    const { call } = this;
    context.stats.countBy(() => call.succeeded);
  }

  override next(): Pulled<unknown> {
    const outcome = this.takeOutcome();
    if (outcome !== undefined) {
      if (outcome.failed) throw outcome.value;
      return outcome.value;
    }
    const element = this.pull();
    if (element instanceof Promise) return this.#later(element);
    return element === END ? END : this.call.one(element);
  }

  protected override callBlock(block: InputBlock, into: unknown[]): number {
    const { call } = this;
    const { fn, extra } = call;
    const { items, at } = block;
    const indexAtStart = call.index - at;
    let i = at;
    try {
      for (; i < block.stop; i++) {
        call.index = indexAtStart + i + 1;
        const result = fn(items[i], extra);
        if (result instanceof Promise) {
          this.leave({ failed: false, value: call.settle(result) });
          break;
        }
        into[i - at] = result;
      }
    } catch (error) {
      this.leave({ failed: true, value: call.failure(error) });
    }
    block.at = Math.min(call.index - indexAtStart, block.end);
    return i - at;
  }

  async #later(pending: Promise<unknown>): Promise<unknown> {
    const element = await this.arrival(pending);
    return element === END || this.disposed ? END : this.call.one(element);
  }
}
