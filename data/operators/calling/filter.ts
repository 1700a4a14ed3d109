/** `filter`: the elements for which a predicate holds. */
import type { Captures } from "../../udf/user_function.ts";
import type { FunctionOptions } from "../../dataset_types.ts";
import { LeatError } from "../../../core/error.ts";
import { NodeFunction } from "../../udf/call.ts";
import { checkOptionalBoolean, optionsOf, show } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import { type ElementIterator, END, type Pulled, type Token } from "../../iterator.ts";
import { type Attributes, type DatasetNode, registerNode } from "../../node.ts";
import type { LoopKind } from "../../optimizer/fused_loop.ts";
import { AUTOTUNE, checkParallelCalls } from "../../parallelism.ts";
import { AGAIN, stepOn, type Stepping } from "../../iterators/stepping.ts";
import { CallingIterator } from "./calling.ts";
import { ParallelCalls } from "./parallel_calls.ts";
import { ElementsOfInputNode } from "../unary.ts";

/** Options of `filter`. */
export interface FilterOptions<C extends Captures> extends FunctionOptions<C> {
  /** Limit of the calls at once, up to 1024, or `AUTOTUNE`. Default 1, and 32 for `python(…)`. */
  readonly numParallelCalls?: number | undefined;
  /** Whether parallel calls keep the order of elements. Default: as `withOptions` says (true). */
  readonly deterministic?: boolean | undefined;
}

/** The options without the captures, which belong to the function. */
export type FilterAttributes = Omit<FilterOptions<Captures>, "captures">;

export class FilterNode extends ElementsOfInputNode {
  static readonly options = optionsOf<FilterOptions<Captures>>("filter", {
    numParallelCalls: true,
    deterministic: true,
    captures: true,
  });
  override readonly division = "split";
  override readonly adviceFacts = { callsSideBySide: true } as const;
  readonly predicate: NodeFunction;
  readonly options: FilterAttributes;

  constructor(input: DatasetNode, predicate: NodeFunction, options: FilterAttributes = {}) {
    super("filter", input);
    this.predicate = predicate;
    const { numParallelCalls = predicate.callsByDefault } = options;
    this.options = {
      numParallelCalls: checkParallelCalls("filter", numParallelCalls),
      deterministic: checkOptionalBoolean("filter", "deterministic", options.deterministic),
    };
  }

  override get attributes(): Attributes {
    return { predicate: this.predicate, ...this.options };
  }

  override get loopKind(): LoopKind | undefined {
    return this.options.numParallelCalls === undefined ? "filter" : undefined;
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    const { numParallelCalls, deterministic = context.deterministic } = this.options;
    if (numParallelCalls === undefined) return new FilterIterator(context, this.predicate);
    return new ParallelFilterIterator(context, this.predicate, numParallelCalls, deterministic);
  }
}

registerNode("filter", {
  fromWire: (a, [input]) => new FilterNode(input!, NodeFunction.among(a, "predicate"), a),
});

class FilterIterator extends CallingIterator implements Stepping {
  override readonly kind = "filter";

  override next(): Pulled<unknown> {
    return stepOn(this, this.context.pacer);
  }

  step(): unknown {
    if (this.hasFirst) return this.takeFirst();
    const element = this.pull();
    return element instanceof Promise
      ? this.arrival(element).then((element) => this.#judge(element))
      : this.#judge(element);
  }

  override deferResult(element: unknown, verdict: unknown): boolean {
    this.defer({ failed: false, value: this.#settle(element, this.call.settle(verdict)) });
    return true;
  }

  protected override tokenOf(_index: number, inputToken: Token | undefined): Token | undefined {
    return inputToken;
  }

  override again(token: Token): unknown {
    return this.input.again(token);
  }

  #judge(element: unknown): unknown {
    if (element === END || this.disposed) return END;
    const verdict = this.call.one(element);
    if (!(verdict instanceof Promise)) return this.#decide(element, verdict);
    this.waits();
    return this.#settle(element, verdict);
  }

  protected override conclude(element: unknown, verdict: unknown): unknown {
    const decided = decide(element, verdict);
    return decided === AGAIN ? AGAIN : this.stats.gave(decided);
  }

  protected override widen(): ParallelCalls {
    return new ParallelFilterIterator(
      ...[this.context, this.fn, AUTOTUNE, true, undefined, this.input] as const,
    );
  }

  #decide(element: unknown, verdict: unknown): unknown {
    try {
      return this.conclude(element, verdict);
    } catch (error) {
      throw this.stats.failed(error);
    }
  }

  async #settle(element: unknown, verdict: unknown): Promise<unknown> {
    return this.#decide(element, await verdict);
  }
}

class ParallelFilterIterator extends ParallelCalls {
  override token(): Token | undefined {
    return this.given.token;
  }

  override again(token: Token): unknown {
    return this.input.again(token);
  }

  protected override conclude(element: unknown, verdict: unknown): unknown {
    return decide(element, verdict);
  }
}

/** The result for an element, given the predicate's answer. */
function decide(element: unknown, verdict: unknown): unknown {
  if (typeof verdict === "boolean") return verdict ? element : AGAIN;
  throw new LeatError(
    "invalid_argument",
    `filter: the function must return true or false, got ${show(verdict)}`,
  );
}
