/** Rules `noOpElimination` and `deadTransformationElimination`: operators that are left out. */
import type { DatasetNode } from "../node.ts";
import type { Rules } from "./options.ts";

/**
 * How to make, from its input's state, the state that a left-out operator would have saved. The two
 * may differ, but the operator gives the same elements after both.
 */
export interface NoOp {
  /** The operator's own fields; its input's state is added as `input`. */
  readonly fields: Readonly<Record<string, unknown>>;
  /**
   * What its input resumes from, if the operator ran and saved `state`. Default: the input's state,
   * which is enough for an operator that holds no elements.
   */
  readonly inputOf?: (state: { readonly input: unknown }) => unknown;
}

/** The operator's `NoOp` if one of these rules leaves it out. */
export function leftOutBy(node: DatasetNode, rules: Rules): NoOp | undefined {
  return (rules.has("noOpElimination") ? node.noOp : undefined) ??
    (rules.has("deadTransformationElimination") ? node.dead : undefined);
}
