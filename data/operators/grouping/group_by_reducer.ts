/** `groupByReducer`: one element for each key, folded from all elements with that key. */
import type { Captures, UserFunction } from "../../udf/user_function.ts";
import type { FlatMapOptions } from "../calling/flat_map.ts";
import type { Extra } from "../../dataset_types.ts";
import { optionsOf } from "../../check.ts";
import { LeatError } from "../../../core/error.ts";
import { then } from "../../../core/then.ts";
import { Call, NodeFunction } from "../../udf/call.ts";
import type { IteratorContext } from "../../context.ts";
import { END } from "../../iterator.ts";
import { type Attributes, type DatasetNode, registerNode } from "../../node.ts";
import { checkSpec, type ElementSpec } from "../../elements/spec.ts";
import { AGAIN } from "../../iterators/stepping.ts";
import { SpecCheck } from "../../elements/spec_check.ts";
import { ElementwiseIterator } from "../elementwise.ts";
import { checkKey } from "./grouping.ts";
import { UnaryNode } from "../unary.ts";

export interface ReducerFunctions {
  readonly key: NodeFunction;
  readonly init: NodeFunction;
  readonly reduce: NodeFunction;
  /** Without it, the states are the elements. */
  readonly finalize: NodeFunction | undefined;
}

/** Options of `groupByReducer`. */
export interface GroupByReducerOptions<T, S, R, C extends Captures> extends FlatMapOptions<C> {
  /** The key of an element: an integer. */
  readonly key: UserFunction<(element: T, extra: Extra<C>) => number | bigint | Promise<number>>;
  /** The state of a key before its first element. */
  readonly init: UserFunction<(key: number, extra: Extra<C>) => S | Promise<S>>;
  /** The state after an element. It must not change the state it is given. */
  readonly reduce: UserFunction<(state: S, element: T, extra: Extra<C>) => S | Promise<S>>;
  /** The element made of the last state of a key. Default: the state itself. */
  readonly finalize?: UserFunction<(state: S, key: number, extra: Extra<C>) => R | Promise<R>>;
}

export class GroupByReducerNode extends UnaryNode {
  static readonly options = optionsOf<GroupByReducerOptions<unknown, unknown, unknown, Captures>>(
    "groupByReducer",
    { key: true, init: true, reduce: true, finalize: true, spec: true, captures: true },
  );
  override readonly division = "whole";
  override readonly needsWholeInput = true;
  readonly functions: ReducerFunctions;
  readonly check: SpecCheck | undefined;
  override readonly elementSpec: ElementSpec;

  /** `spec`: the declared spec of the resulting elements. */
  constructor(input: DatasetNode, functions: ReducerFunctions, spec?: ElementSpec) {
    super("groupByReducer", input);
    if (input.cardinality === Infinity) {
      throw new LeatError(
        "invalid_argument",
        "groupByReducer: the input is endless, so no key is ever complete; use take(n) before, or " +
          "groupByWindow",
      );
    }
    this.functions = functions;
    this.elementSpec = checkSpec("groupByReducer", spec);
    this.check = SpecCheck.of(this.elementSpec);
  }

  override get attributes(): Attributes {
    return { ...this.functions, spec: this.elementSpec };
  }

  override makeIterator(context: IteratorContext): GroupByReducerIterator {
    return new GroupByReducerIterator(context, this.functions, this.check);
  }
}

registerNode("groupByReducer", {
  fromWire: (a, [input]) => {
    const functions = {
      key: NodeFunction.among(a, "key"),
      init: NodeFunction.among(a, "init"),
      reduce: NodeFunction.among(a, "reduce", 2),
      finalize: a.finalize === undefined ? undefined : NodeFunction.among(a, "finalize", 2),
    };
    return new GroupByReducerNode(input!, functions, a.spec as ElementSpec);
  },
});

interface GroupByReducerState {
  readonly states: readonly (readonly [key: number, state: unknown])[];
  /** How many calls of each function were begun. */
  readonly calls: readonly number[];
}

/** Reads its input to the end, then gives the result of each key in increasing order. */
class GroupByReducerIterator extends ElementwiseIterator {
  readonly #key: Call;
  readonly #init: Call;
  readonly #reduce: Call;
  readonly #finalize: Call | undefined;
  readonly #check: SpecCheck | undefined;
  readonly #states = new Map<number, unknown>();
  /** The keys still to be given, the lowest last; set once the input was read. */
  #left: number[] | undefined;

  constructor(
    context: IteratorContext,
    { key, init, reduce, finalize }: ReducerFunctions,
    check: SpecCheck | undefined,
  ) {
    super(context);
    this.#check = check;
    this.#key = new Call(key, context, { name: "key" });
    this.#init = Call.further(init, "init", context);
    this.#reduce = Call.further(reduce, "reduce", context);
    this.#finalize = finalize && Call.further(finalize, "finalize", context);
  }

  get #calls(): Call[] {
    return [this.#key, this.#init, this.#reduce, this.#finalize].filter((call) => !!call);
  }

  /** An element whose function fails leaves the state of its key unchanged. */
  protected override accept(element: unknown): unknown {
    if (element === END) return this.#give();
    return then(
      this.#key.one(element),
      (key) => this.#add(checkKey("groupByReducer", key), element),
    );
  }

  #add(key: number, element: unknown): unknown {
    const before = this.#states.has(key) ? this.#states.get(key) : this.#init.one(key);
    return then(before, (before) =>
      then(this.#reduce.two(before, element), (state) => {
        this.#states.set(key, state);
        return AGAIN;
      }));
  }

  #give(): unknown {
    this.#left ??= [...this.#states.keys()].sort((a, b) => b - a);
    const key = this.#left.pop();
    if (key === undefined) return END;
    const state = this.#states.get(key);
    this.#states.delete(key);
    const given = this.#finalize === undefined ? state : this.#finalize.two(state, key);
    return then(given, (given) => {
      if (this.#check === undefined || this.#check.fits(given)) return this.stats.gave(given);
      throw this.#check.failure(given, `groupByReducer: the element of key ${key}`);
    });
  }

  protected override ownState(): GroupByReducerState {
    return { states: [...this.#states], calls: this.#calls.map((call) => call.index) };
  }

  protected override restoreOwn(saved: unknown): void {
    const { states, calls } = saved as GroupByReducerState;
    this.#calls.forEach((call, i) => call.resume(calls[i]!));
    for (const [key, state] of states) this.#states.set(key, state);
  }

  protected override release(): void {
    super.release();
    this.#states.clear();
    this.#left = [];
  }
}
