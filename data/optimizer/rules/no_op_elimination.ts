/** Rule `noOpElimination`: operators that change nothing are left out. */
import { nameOf, type Rule } from "../rule.ts";

export const noOpElimination: Rule = {
  name: "noOpElimination",
  describe(site) {
    if (site.node.noOp === undefined) return;
    return `${nameOf(site)} changes nothing and is left out.`;
  },
};
