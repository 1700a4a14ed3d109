/** `groupByWindow`: elements gathered by key into windows, each window made into a dataset. */
import type { Dataset } from "../../dataset.ts";
import type { Captures, UserFunction } from "../../udf/user_function.ts";
import type { Extra, FunctionOptions } from "../../dataset_types.ts";
import { Call, NodeFunction } from "../../udf/call.ts";
import { checkInteger, optionsOf } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import { type Attributes, type DatasetNode, facade, registerNode } from "../../node.ts";
import { FromNode } from "../sources/from.ts";
import { type Grouping, GroupingIterator } from "./grouping.ts";
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

  /** The dataset that `reduce` returns may draw, also if the function itself does not. */
  override get drawsNumbers(): boolean {
    return true;
  }

  override get attributes(): Attributes {
    return { key: this.key, reduce: this.reduce, windowSize: this.windowSize };
  }

  override makeIterator(context: IteratorContext): GroupingIterator {
    return new GroupingIterator(context, windowsOf(context, this));
  }
}

registerNode("groupByWindow", {
  fromWire: (a, [input]) =>
    new GroupByWindowNode(
      input!,
      NodeFunction.among(a, "key"),
      NodeFunction.among(a, "reduce", 2),
      a.windowSize as number | NodeFunction,
    ),
});

/** Windows that a function makes into datasets. */
function windowsOf(
  context: IteratorContext,
  { key, reduce, windowSize, inputs }: GroupByWindowNode,
): Grouping {
  const keyCall = new Call(key, context, { name: "key" });
  const reduceCall = Call.further(reduce, "reduce", context);
  const size = windowSize instanceof NodeFunction
    ? Call.further(windowSize, "windowSize", context)
    : windowSize;
  const { elementSpec } = inputs[0]!;
  const datasetOf = (elements: readonly unknown[]) =>
    facade().wrap(new FromNode(elements, elementSpec));
  const nodeOf = (dataset: unknown) =>
    dataset instanceof Promise
      ? dataset.then((dataset) => nodeMadeBy(dataset, context))
      : nodeMadeBy(dataset, context);
  return {
    calls: [keyCall, reduceCall, size].filter((call) => call instanceof Call),
    keyOf: (element) => keyCall.one(element),
    sizeOf: (key) => size instanceof Call ? size.one(key) : size,
    make: (_number, key, elements) => nodeOf(reduceCall.two(key, datasetOf(elements))),
    makeAgain: (number, key, elements) =>
      nodeOf(reduceCall.againTwo(number, key, datasetOf(elements))),
    randomState: (number) => reduceCall.nestedRandomState(number),
  };
}
