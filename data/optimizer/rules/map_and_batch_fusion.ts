/** Rule `mapAndBatchFusion`: numbers go from the function to the memory of the batch. */
import { nameOf, type Rule } from "../rule.ts";

export const mapAndBatchFusion: Rule = {
  name: "mapAndBatchFusion",
  describe(site) {
    const [input] = site.inputs;
    if (site.node.kind !== "batch" || input?.node.loopKind === undefined) return;
    return `${nameOf(input)} writes numbers directly to the batches of ${nameOf(site)}: so they ` +
      "need no memory of their own.";
  },
};
