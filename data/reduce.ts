/** `reduce`: folds a whole dataset into one value. */
import { LeatError } from "../core/error.ts";
import { optionsOf } from "./check.ts";
import type { FunctionOptions } from "./dataset_types.ts";
import { Call, type NodeFunction } from "./udf/call.ts";
import { type IterationOptions, rootContext } from "./dataset_iterator.ts";
import { END } from "./iterator.ts";
import type { DatasetNode } from "./node.ts";
import { toldOf } from "./iterators/reading_failure.ts";
import type { Captures } from "./udf/user_function.ts";

/** Checks the names of `reduce`'s options. */
export const reduceOptions = optionsOf<FunctionOptions<Captures>>("reduce", { captures: true });

/**
 * Runs a graph to its end, calling `fn(state, element)`. The first error ends it.
 * `invalid_argument` for a graph known to be endless.
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
      "reduce: an endless dataset is never reduced; take(n) of it",
    );
  }
  const context = rootContext(node, options);
  const { pacer } = context;
  const elements = context.makeIterator();
  const call = new Call(fn, context);
  let state = initial;
  try {
    for (;;) {
      const pulled = elements.next();
      const element = pulled instanceof Promise ? await pulled : pulled;
      if (element === END) return state;
      const next = call.two(state, element);
      state = next instanceof Promise ? await next : next;
      if (pacer.due()) await pacer.yield();
    }
  } catch (error) {
    throw toldOf(error);
  } finally {
    elements.dispose();
    await context.close();
  }
}
