/** Rule `shuffleAndRepeatFusion`: the buffer of the next repetition fills while the last one empties. */
import { type DatasetNode, inPreOrder } from "../../node.ts";
import { isTransparent, nameOf, type Rule } from "../rule.ts";

/** Whether the input of `repeat` may be opened again before its last repetition has ended. */
export function mayOverlap(input: DatasetNode): boolean {
  if (isTransparent(input)) return mayOverlap(input.inputs[0]!);
  return input.kind === "shuffle" &&
    inPreOrder(input).every(({ division }) => division !== "served" && division !== "stored");
}

export const shuffleAndRepeatFusion: Rule = {
  name: "shuffleAndRepeatFusion",
  describe(site) {
    const [input] = site.inputs;
    if (site.node.kind !== "repeat" || input === undefined || !mayOverlap(input.node)) return;
    return `${nameOf(site)} fills the buffer of ${nameOf(input)} for the next repetition while ` +
      "it empties: so the consumer need not wait for a full buffer.";
  },
};
