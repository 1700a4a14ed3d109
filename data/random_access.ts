/** Random access: gives an element by its index, without reading those before it. */
import { LeatError } from "../core/error.ts";
import { checkInteger } from "./check.ts";
import { requireWhole } from "./elements/spec_check.ts";
import { rootContext } from "./root_context.ts";
import type { IterationOptions } from "./iteration_options.ts";
import type { DatasetNode } from "./node.ts";

/** Refuses a graph without random access. */
export function checkRandomAccess(operator: string, node: DatasetNode): DatasetNode {
  const { cardinality } = node;
  if (cardinality >= 0 && cardinality < Infinity && node.tokenAt(0) !== undefined) return node;
  throw new LeatError(
    "failed_precondition",
    `${operator}: ${node.kind} has no random access; range, from, fromTensors and fromTensorSlices ` +
      "have it, and map, take, skip, shard, repeat(n), zip, concatenate, enumerate, prefetch and " +
      "globalShuffle over these. shuffle() needs no random access.",
  );
}

/**
 * Element `index` of a graph. Errors: `out_of_range` if there is none, `failed_precondition` for a
 * graph without random access, or the element's own error.
 */
export async function elementAt(
  node: DatasetNode,
  index: number,
  options: IterationOptions,
): Promise<unknown> {
  const { cardinality } = checkRandomAccess("at", node);
  if (checkInteger("at", "index", index, Number.MIN_SAFE_INTEGER) < 0 || index >= cardinality) {
    throw new LeatError("out_of_range", `at: element ${index} of a dataset of ${cardinality}`);
  }
  const context = rootContext(node, options);
  const elements = context.makeIterator();
  try {
    const element = await elements.again(node.tokenAt(index));
    requireWhole(element, context.stats);
    return element;
  } finally {
    elements.dispose();
    await context.close();
  }
}
