/** Rule `groupAndBatchFusion`: a window that becomes one batch is stacked without a pipeline for it. */
import type { DatasetNode } from "../../node.ts";
import { GatheringNode } from "../../operators/batching/gathering.ts";
import { FromNode } from "../../operators/sources/from.ts";
import { nameOf, type Rule } from "../rule.ts";

export const groupAndBatchFusion: Rule = {
  name: "groupAndBatchFusion",
  describe(site) {
    const { kind } = site.node;
    if (kind === "bucketBySequenceLength") {
      return `${nameOf(site)} stacks each bucket directly: so none needs a pipeline of its own.`;
    }
    if (kind !== "groupByWindow") return;
    return `${nameOf(site)} stacks a window directly if its function only batches it: so such a ` +
      "window needs no pipeline of its own.";
  },
};

/**
 * The only element of a dataset made of a window, in an array, if it is a batch of the whole window.
 * Otherwise, and if making it fails, undefined: the operators then run, and report the errors.
 */
export function onlyBatchOf(made: DatasetNode | undefined): [batch: unknown] | undefined {
  if (!(made instanceof GatheringNode)) return undefined;
  const [window] = made.inputs;
  return window instanceof FromNode ? made.stack(window.elements) : undefined;
}
