/** Rules `noOpElimination` and `deadTransformationElimination`: operators that are left out. */
import type { DatasetNode } from "../node.ts";
import type { Rules } from "./options.ts";

/**
 * The state that an operator would have saved, made from its input's state. It may differ from that
 * state, but the operator continues equally from both.
 */
export interface NoOp {
  /** The operator's own fields; its input's state is added as `input`. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Present if one of these rules leaves the operator out. */
export function leftOutBy(node: DatasetNode, rules: Rules): NoOp | undefined {
  return (rules.has("noOpElimination") ? node.noOp : undefined) ??
    (rules.has("deadTransformationElimination") ? node.dead : undefined);
}
