/** `flatMap`: the elements of the datasets that a function makes, one dataset after the other. */
import type { Captures } from "../../udf/user_function.ts";
import type { FunctionOptions } from "../../dataset_types.ts";
import { optionsOf } from "../../check.ts";
import { Call, NodeFunction } from "../../udf/call.ts";
import type { IteratorContext } from "../../context.ts";
import { type HeldElements, heldFrom } from "../../elements/held.ts";
import { END } from "../../iterator.ts";
import { type Attributes, type DatasetNode, registerNode } from "../../node.ts";
import { checkSpec, type ElementSpec } from "../../elements/spec.ts";
import { SpecCheck } from "../../elements/spec_check.ts";
import { AGAIN } from "../../iterators/stepping.ts";
import { Opened, type OpenedState } from "../combining/opened.ts";
import { ElementwiseIterator } from "../elementwise.ts";
import { UnaryNode } from "../unary.ts";

/** Options of `flatMap` and `scan`. */
export interface FlatMapOptions<C extends Captures> extends FunctionOptions<C> {
  /**
   * The spec of the resulting elements, for `elementSpec` and the dtypes of batches. Default:
   * unknown.
   */
  readonly spec?: ElementSpec;
}

export class FlatMapNode extends UnaryNode {
  static readonly options = optionsOf<FlatMapOptions<Captures>>("flatMap", {
    spec: true,
    captures: true,
  });
  override readonly division = "split";
  override readonly adviceFacts = { opensDatasets: true } as const;
  readonly fn: NodeFunction;
  readonly check: SpecCheck | undefined;
  override readonly elementSpec: ElementSpec;

  /** `spec`: the declared spec of the elements of the datasets that `fn` makes. */
  constructor(input: DatasetNode, fn: NodeFunction, spec?: ElementSpec) {
    super("flatMap", input);
    this.fn = fn;
    this.elementSpec = checkSpec("flatMap", spec);
    this.check = SpecCheck.of(this.elementSpec);
  }

  /** The dataset that `fn` returns may draw, also if the function itself does not. */
  override get drawsNumbers(): boolean {
    return true;
  }

  override get attributes(): Attributes {
    return { fn: this.fn, spec: this.elementSpec };
  }

  override makeIterator(context: IteratorContext): FlatMapIterator {
    return new FlatMapIterator(context, this);
  }
}

registerNode("flatMap", {
  fromWire: (a, [input]) =>
    new FlatMapNode(input!, NodeFunction.among(a, "fn"), a.spec as ElementSpec),
});

interface FlatMapState {
  readonly current: OpenedState | null;
  readonly calls: number;
}

class FlatMapIterator extends ElementwiseIterator {
  readonly #call: Call;
  readonly #check: SpecCheck | undefined;
  #current: Opened | undefined;

  constructor(context: IteratorContext, { fn, check }: FlatMapNode) {
    super(context);
    this.#check = check;
    this.#call = new Call(fn, context);
  }

  override step(): unknown {
    if (this.#current === undefined) return super.step();
    const element = this.#current.iterator.next();
    return element instanceof Promise
      ? this.arrival(element).then((element) => this.#inner(element))
      : this.#inner(element);
  }

  #inner(element: unknown): unknown {
    if (element === END) {
      this.#close();
      return AGAIN;
    }
    if (this.#check === undefined || this.#check.fits(element)) return this.stats.gave(element);
    throw this.stats.failed(this.#check.failure(element, "flatMap: an element of its datasets"));
  }

  protected override accept(outer: unknown): unknown {
    if (outer === END) return END;
    const held = heldFrom(this.input, outer);
    const made = this.#call.one(outer);
    return made instanceof Promise
      ? made.then((element) => this.#open(held, element))
      : this.#open(held, made);
  }

  #open(outer: HeldElements, made: unknown): typeof AGAIN {
    const { index } = this.#call;
    if (!this.disposed) {
      this.#current = new Opened(this.#call, index - 1, outer, made, this.context);
    }
    return AGAIN;
  }

  protected override async ownState(): Promise<FlatMapState> {
    const current = await this.#current?.save() ?? null;
    return { current, calls: this.#call.index };
  }

  protected override async restoreOwn(state: unknown): Promise<void> {
    const { current, calls } = state as FlatMapState;
    this.#call.resume(calls);
    if (current === null) return;
    this.#current = await Opened.restore(current, this.#call, this.input, this.context);
  }

  #close(): void {
    this.#current?.iterator.dispose();
    this.#current = undefined;
  }

  protected override release(): void {
    this.#close();
    super.release();
  }
}
