/** Rule `noOpElimination`: operators that change nothing are left out. */
import type { DatasetNode } from "../../node.ts";
import type { Rules } from "../options.ts";
import { nameOf, type Rule } from "../rule.ts";

/** Whether the rule leaves the operator out. */
export function isLeftOut(node: DatasetNode, rules: Rules): boolean {
  return node.noOp !== undefined && rules.has("noOpElimination");
}

export const noOpElimination: Rule = {
  name: "noOpElimination",
  describe(site, rules) {
    if (!isLeftOut(site.node, rules)) return;
    return `${nameOf(site)} changes nothing and is left out.`;
  },
};
