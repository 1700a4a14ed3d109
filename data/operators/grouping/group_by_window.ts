/** `groupByWindow`: elements gathered by key into windows, each window made into a dataset. */
import type { Dataset } from "../../dataset.ts";
import type { Captures, UserFunction } from "../../udf/user_function.ts";
import type { Extra, FunctionOptions } from "../../dataset_types.ts";
import { Call, NodeFunction } from "../../udf/call.ts";
import { checkInteger, optionsOf } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import { type Attributes, type DatasetNode, facade, registerNode } from "../../node.ts";
import type { ElementSpec } from "../../elements/spec.ts";
import { FromNode } from "../sources/from.ts";
import { type Grouping, GroupingIterator } from "./grouping.ts";
import type { RandomStream } from "../../../core/philox.ts";
import { nodeMadeBy } from "../combining/opened.ts";
import { UnaryNode } from "../unary.ts";

/** Options of `groupByWindow`. */
export interface GroupByWindowOptions<T, R, C extends Captures> extends FunctionOptions<C> {
  /** The key of an element: an integer. */
  readonly key: UserFunction<(element: T, extra: Extra<C>) => number | bigint | Promise<number>>;
  /** Turns a window into a dataset. It may iterate the window several times. */
  readonly reduce: UserFunction<
    (key: number, window: Dataset<T>, extra: Extra<C>) => Dataset<R> | Promise<Dataset<R>>
  >;
  /** The number of elements that fill a window, or a function of the key that returns it. */
  readonly windowSize: number | UserFunction<(key: number, extra: Extra<C>) => number>;
}

export class GroupByWindowNode extends UnaryNode {
  static readonly options = optionsOf<GroupByWindowOptions<unknown, unknown, Captures>>(
    "groupByWindow",
    { key: true, reduce: true, windowSize: true, captures: true },
  );
  override readonly division = "split";
  override readonly elementSpec: undefined = undefined;
  override readonly adviceFacts = { opensDatasets: true } as const;
  readonly key: NodeFunction;
  readonly reduce: NodeFunction;
  readonly windowSize: number | NodeFunction;

  constructor(
    input: DatasetNode,
    key: NodeFunction,
    reduce: NodeFunction,
    windowSize: number | NodeFunction,
  ) {
    super("groupByWindow", input);
    this.key = key;
    this.reduce = reduce;
    this.windowSize = windowSize instanceof NodeFunction
      ? windowSize
      : checkInteger("groupByWindow", "windowSize", windowSize, 1);
  }

  override get attributes(): Attributes {
    return { key: this.key, reduce: this.reduce, windowSize: this.windowSize };
  }

  override makeIterator(context: IteratorContext): GroupingIterator {
    return new GroupingIterator(context, new Windows(context, this));
  }
}

registerNode("groupByWindow", {
  fromWire: (a, [input]) =>
    new GroupByWindowNode(
      input!,
      NodeFunction.among(a, "key"),
      NodeFunction.among(a, "reduce"),
      a.windowSize as number | NodeFunction,
    ),
});

/** Windows that a function makes into datasets. */
class Windows implements Grouping {
  readonly calls: readonly Call[];
  readonly #context: IteratorContext;
  readonly #spec: ElementSpec;
  readonly #key: Call;
  readonly #reduce: Call;
  readonly #size: number | Call;

  constructor(context: IteratorContext, { key, reduce, windowSize, inputs }: GroupByWindowNode) {
    this.#context = context;
    this.#spec = inputs[0]!.elementSpec;
    this.#key = new Call(key, context);
    this.#reduce = new Call(reduce, context);
    this.#size = windowSize instanceof NodeFunction ? new Call(windowSize, context) : windowSize;
    this.calls = [this.#key, this.#reduce, this.#size].filter((at) => at instanceof Call);
  }

  keyOf(element: unknown): unknown {
    return this.#key.one(element);
  }

  sizeOf(key: number): unknown {
    return this.#size instanceof Call ? this.#size.one(key) : this.#size;
  }

  make(_number: number, key: number, elements: readonly unknown[]): unknown {
    return this.#nodeOf(this.#reduce.two(key, this.#datasetOf(elements)));
  }

  makeAgain(number: number, key: number, elements: readonly unknown[]): unknown {
    return this.#nodeOf(this.#reduce.againTwo(number, key, this.#datasetOf(elements)));
  }

  randomState(number: number): () => RandomStream {
    return this.#reduce.nestedRandomState(number);
  }

  #datasetOf(elements: readonly unknown[]): unknown {
    return facade().wrap(new FromNode(elements, this.#spec));
  }

  #nodeOf(made: unknown): unknown {
    return made instanceof Promise
      ? made.then((made) => nodeMadeBy(made, this.#context))
      : nodeMadeBy(made, this.#context);
  }
}
