/** The text of `Loader.explain()` in Python: statistics of the operators, and what was offloaded. */
import type { Dataset, OffloadProgress } from "../../mod.ts";
import { offloadProgress } from "../../mod.ts";
import type { Explanation } from "../../data/explanation.ts";
import { offloadOf } from "../../data/operators/offload.ts";

/**
 * Renders the text.
 * @param explanation That of the running iterator of `dataset`.
 */
export function explained(dataset: Dataset<unknown>, explanation: Explanation): string {
  const text = String(explanation);
  if (offloadOf(dataset.node) === undefined) return text;
  const { plan, ...progress } = offloadProgress(dataset);
  return [text, shares(progress), ...(plan === undefined ? [] : [plan.explain()])].join("\n\n");
}

/** Renders `Workers prepared 30 of 120 elements; now they run p'3 for 25 % of the data.` */
function shares({ local, remote, candidate, ratio, lastFailure }: OffloadProgress): string {
  const all = local.elements + remote.elements;
  const now = candidate == null || ratio === 0
    ? "now they prepare nothing"
    : `now they run ${candidate} for ${Math.round(100 * ratio)} % of the data`;
  const failed = lastFailure === undefined ? "" : ` Last failure of the service: ${lastFailure}.`;
  return `Workers prepared ${remote.elements} of ${all} elements; ${now}.${failed}`;
}
