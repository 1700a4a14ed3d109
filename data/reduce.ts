/** `reduce` and `getSingleElement`: one value of a whole dataset. */
import { LeatError } from "../core/error.ts";
import { then } from "../core/then.ts";
import { optionsOf } from "./check.ts";
import type { FunctionOptions } from "./dataset_types.ts";
import { Call, type NodeFunction } from "./udf/call.ts";
import { requireWhole } from "./elements/spec_check.ts";
import { rootContext } from "./root_context.ts";
import { openIterator } from "./dataset_iterator.ts";
import type { IterationOptions } from "./iteration_options.ts";
import type { DatasetNode } from "./node.ts";
import { userErrorOf } from "./iterators/reading_failure.ts";
import { takeAll } from "./iterators/take_all.ts";
import type { Captures } from "./udf/user_function.ts";

export const reduceOptions = optionsOf<FunctionOptions<Captures>>("reduce", { captures: true });

/**
 * Runs a graph to its end, and calls `fn(state, element)` for each element. The first error ends it.
 * Throws `invalid_argument` for a graph that is known to be endless.
 */
export async function reduceGraph(
  node: DatasetNode,
  initial: unknown,
  fn: NodeFunction,
  options: IterationOptions,
): Promise<unknown> {
  if (node.cardinality === Infinity) {
    throw new LeatError(
      "invalid_argument",
      "reduce: the dataset is endless; reduce take(n) of it",
    );
  }
  const context = rootContext(node, options);
  const elements = context.makeIterator();
  const call = new Call(fn, context.ofConsumer("reduce"));
  let state = initial;
  try {
    await takeAll(context, elements, (element) => {
      requireWhole(element, context.stats);
      return then(call.two(state, element), (next) => {
        state = next;
      });
    });
    return state;
  } catch (error) {
    throw userErrorOf(error);
  } finally {
    elements.dispose();
    await context.close();
  }
}

/** The only element of a graph, or its error. `invalid_argument` if there is none or more than one. */
export async function singleElementOf(
  node: DatasetNode,
  options: IterationOptions,
): Promise<unknown> {
  await using iterator = openIterator(node, options);
  const { done, value } = await iterator.next();
  if (done) throw new LeatError("invalid_argument", "getSingleElement: the dataset is empty");
  if ((await iterator.next()).done) return value;
  throw new LeatError(
    "invalid_argument",
    "getSingleElement: the dataset has more than one element; take(1) keeps the first",
  );
}
