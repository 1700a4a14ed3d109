/**
 * Whether functions are given the elements of a pipeline themselves. A function may keep what it was
 * given, in a module's variables or in the state of a `scan()`: such memory must not be used again.
 */
import type { DatasetNode } from "../node.ts";
import { ShardingPolicy } from "../sharding/sharding_policy.ts";
import { NodeFunction } from "./call.ts";

/** True where that is not certain. */
export function areElementsSeen(node: DatasetNode): boolean {
  const { division, inputs, attributes } = node;
  // A batch is another element than those that functions below were given.
  if (division === "rows") return false;
  if (division === "served" && !node.isSetting) {
    // A service sends elements, and its functions have their own. A reader of splits runs some here.
    if (attributes["processingMode"] !== ShardingPolicy.DETERMINISTIC) return false;
    if (inputs.length === 0) return true;
  }
  return Object.values(attributes).some((value) => value instanceof NodeFunction) ||
    inputs.some(areElementsSeen);
}
