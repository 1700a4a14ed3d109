/** Rule `mapParallelization`: functions that wait are called for several elements at once. */
import { nameOf, type Rule } from "../rule.ts";

export const mapParallelization: Rule = {
  name: "mapParallelization",
  describe(site) {
    if (site.node.loopKind === undefined) return;
    return `${nameOf(site)} makes several calls at once if its function waits, as with ` +
      "numParallelCalls: AUTOTUNE.";
  },
};
