/**
 * Rule `deadTransformationElimination`: leaves out operators whose work an earlier one has done.
 */
import type { DatasetNode } from "../../node.ts";
import { isTransparent, nameOf, type Rule } from "../rule.ts";

/** The operator below, settings aside, if it is of the same kind. */
export function sameBelow<N extends DatasetNode>(node: N): N | undefined {
  let input = node.inputs[0];
  while (input !== undefined && isTransparent(input)) input = input.inputs[0];
  return input?.kind === node.kind ? input as N : undefined;
}

export const deadTransformationElimination: Rule = {
  name: "deadTransformationElimination",
  describe(site) {
    if (site.node.dead === undefined) return;
    return `${nameOf(site)} has no effect after another ${site.node.kind}, and is left out.`;
  },
};
