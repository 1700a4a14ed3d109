/** `takeWhile`: the elements before the first that does not satisfy a predicate. */
import type { Captures } from "../udf/user_function.ts";
import type { FunctionOptions } from "../dataset_types.ts";
import { Call, NodeFunction } from "../udf/call.ts";
import { invalidArgument, optionsOf } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { END } from "../iterator.ts";
import { type Attributes, type DatasetNode, registerNode } from "../node.ts";
import { PassingIterator } from "./elementwise.ts";
import { ElementsOfInputNode } from "./unary.ts";

export class TakeWhileNode extends ElementsOfInputNode {
  static readonly options = optionsOf<FunctionOptions<Captures>>("takeWhile", { captures: true });
  override readonly division = "whole";
  override readonly needsWholeInput = true;
  readonly predicate: NodeFunction;

  constructor(input: DatasetNode, predicate: NodeFunction) {
    super("takeWhile", input);
    this.predicate = predicate;
  }

  override get attributes(): Attributes {
    return { predicate: this.predicate };
  }

  override makeIterator(context: IteratorContext): TakeWhileIterator {
    return new TakeWhileIterator(context, this.predicate);
  }
}

registerNode("takeWhile", {
  fromWire: (a, [input]) => new TakeWhileNode(input!, NodeFunction.among(a, "predicate")),
});

class TakeWhileIterator extends PassingIterator {
  readonly #call: Call;

  constructor(context: IteratorContext, predicate: NodeFunction) {
    super(context);
    this.#call = new Call(predicate, context);
  }

  protected override accept(element: unknown): unknown {
    if (element === END) return END;
    const verdict = this.#call.one(element);
    return verdict instanceof Promise
      ? verdict.then((verdict) => this.#decide(element, verdict))
      : this.#decide(element, verdict);
  }

  #decide(element: unknown, verdict: unknown): unknown {
    if (typeof verdict !== "boolean") {
      throw invalidArgument("takeWhile", "what the function returns", "true or false", verdict);
    }
    if (!verdict) {
      this.dispose();
      return END;
    }
    return this.stats.gave(element);
  }

  protected override ownState(): object {
    return { calls: this.#call.index };
  }

  protected override restoreOwn(state: unknown): void {
    this.#call.resume((state as { calls: number }).calls);
  }
}
