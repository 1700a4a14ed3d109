/** Rule `mapVectorization`: a batchable function is called once for many elements. */
import type { DatasetNode } from "../../node.ts";
import { nameOf, type Rule } from "../rule.ts";

/** Whether the user has declared that the function of a `map` also works on batches. */
function isBatchable({ loopKind, attributes }: DatasetNode): boolean {
  return loopKind === "map" && attributes.batchable === true;
}

export const mapVectorization: Rule = {
  name: "mapVectorization",
  describe(site) {
    const [input] = site.inputs;
    if (site.node.kind !== "batch" || input === undefined || !isBatchable(input.node)) return;
    return `${nameOf(input)} calls its function once for many elements of ${nameOf(site)}, ` +
      "because it is batchable.";
  },
};
