/** `getSingleElement`: the element of a dataset that has one. */
import { LeatError } from "../core/error.ts";
import { type IterationOptions, openIterator } from "./dataset_iterator.ts";
import type { DatasetNode } from "./node.ts";

/** The only element of a graph. Errors: `invalid_argument` where there are none or several; or its own. */
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
