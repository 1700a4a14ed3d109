/** Whether a pipeline gives its elements in one order, however often and in whatever process it runs. */
import { LeatError } from "../../core/error.ts";
import { givesOneStream, inOrder } from "../../data/deterministic/chain.ts";
import { type DatasetNode, inPreOrder } from "../../data/node.ts";
import { OffloadNode } from "../../data/operators/offload.ts";
import { OffloadPlan } from "../../offload/plan.ts";

/**
 * Whether a graph keeps its order, so that a number of elements is a position in it. Of services,
 * only those that keep their order can save a position at all.
 */
export function keepsOrder(node: DatasetNode): boolean {
  if (node instanceof OffloadNode) return hasOneOrder(node);
  if (node.division === "served") return true;
  return node.attributes["deterministic"] !== false && node.inputs.every(keepsOrder);
}

/**
 * The graph, set to keep its order: ranks without a service divide its elements by number.
 *
 * @throws {LeatError} `failed_precondition` for a service that gives each rank other elements, or
 * another order.
 */
export function sameOnRanks(root: DatasetNode): DatasetNode {
  const served = inPreOrder(root).find((node) => node.division === "served" && !hasOneOrder(node));
  if (served === undefined) return inOrder(root);
  const remedy = served instanceof OffloadNode
    ? "give offload deterministic: true and a plan { candidate, ratio } that the module states for " +
      "all ranks, and no operator before it deterministic: false"
    : 'distribute with "DETERMINISTIC" and no jobName, or give the service to leat.load';
  throw new LeatError(
    "failed_precondition",
    `${served.kind} may give each process other elements, or another order, so consumer= and the ` +
      `workers of a DataLoader cannot divide them by number: ${remedy}`,
  );
}

/** Whether what a service gives does not depend on the process that reads it, or on time. */
function hasOneOrder(node: DatasetNode): boolean {
  if (node instanceof OffloadNode) {
    const { deterministic, plan } = node.options;
    // Each process measures another plan.
    const isStated = plan !== undefined && !(plan instanceof OffloadPlan);
    return deterministic === true && isStated && node.inputs.every(keepsOrder);
  }
  return givesOneStream(node);
}
