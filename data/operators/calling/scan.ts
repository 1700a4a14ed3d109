/** `scan`: applies a function to every element and a state that it passes on. */
import { copyTree, sharesMemory } from "../../../core/tree.ts";
import type { Captures } from "../../udf/user_function.ts";
import type { FlatMapOptions } from "./flat_map.ts";
import { Call, NodeFunction } from "../../udf/call.ts";
import { invalidArgument, optionsOf } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import { END } from "../../iterator.ts";
import { type Attributes, type DatasetNode, registerNode } from "../../node.ts";
import { checkSpec, type ElementSpec } from "../../elements/spec.ts";
import { keepMemory } from "../../elements/released.ts";
import { SpecCheck } from "../../elements/spec_check.ts";
import { ElementwiseIterator } from "../elementwise.ts";
import { OneToOneNode } from "../unary.ts";

export class ScanNode extends OneToOneNode {
  static readonly options = optionsOf<FlatMapOptions<Captures>>("scan", {
    spec: true,
    captures: true,
  });
  override readonly division = "whole";
  override readonly needsWholeInput = true;
  readonly initial: unknown;
  readonly fn: NodeFunction;
  readonly check: SpecCheck | undefined;
  override readonly elementSpec: ElementSpec;

  /** `spec`: the declared spec of the elements that `fn` returns. */
  constructor(input: DatasetNode, initial: unknown, fn: NodeFunction, spec?: ElementSpec) {
    super("scan", input);
    this.initial = initial;
    this.fn = fn;
    this.elementSpec = checkSpec("scan", spec);
    this.check = SpecCheck.of(this.elementSpec);
  }

  override get attributes(): Attributes {
    return { initial: this.initial, fn: this.fn, spec: this.elementSpec };
  }

  override makeIterator(context: IteratorContext): ScanIterator {
    return new ScanIterator(context, this);
  }
}

registerNode("scan", {
  fromWire: (a, [input]) =>
    new ScanNode(input!, a.initial, NodeFunction.among(a, "fn", 2), a.spec as ElementSpec),
});

class ScanIterator extends ElementwiseIterator {
  readonly #call: Call;
  readonly #check: SpecCheck | undefined;
  /** The state returned by the last call that did not fail. */
  #state: unknown;

  constructor(context: IteratorContext, { initial, fn, check }: ScanNode) {
    super(context);
    this.#check = check;
    this.#call = new Call(fn, context);
    this.#state = copyTree(initial);
  }

  protected override accept(element: unknown): unknown {
    if (element === END) return END;
    const answer = this.#call.two(this.#state, element);
    return answer instanceof Promise
      ? answer.then((answer) => this.#handOn(answer))
      : this.#handOn(answer);
  }

  #handOn(answer: unknown): unknown {
    if (!Array.isArray(answer) || answer.length !== 2) {
      throw invalidArgument("scan", "what the function returns", "[state, element]", answer);
    }
    const [state, element] = answer;
    if (this.#check?.fits(element) === false) {
      throw this.#call.failure(this.#check.failure(element));
    }
    keepMemory(state);
    // Who gets the element may change it in place.
    this.#state = sharesMemory(element, state) ? copyTree(state) : state;
    return this.stats.gave(element);
  }

  protected override ownState(): object {
    return { state: this.#state, calls: this.#call.index };
  }

  protected override restoreOwn(saved: unknown): void {
    const { state, calls } = saved as { state: unknown; calls: number };
    this.#state = state;
    this.#call.resume(calls);
  }
}
