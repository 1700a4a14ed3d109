/**
 * Whether functions in this process get the very elements that a pipeline gives. A function may keep an
 * element, in a module's variables or the state of a `scan()`: the memory must then not be reused.
 */
import type { DatasetNode } from "../node.ts";
import { ShardingPolicy } from "../sharding/sharding_policy.ts";
import { NodeFunction } from "./call.ts";

/** True unless it is certain that none does. */
export function areElementsSeen(node: DatasetNode): boolean {
  const { division, inputs, attributes } = node;
  // A batch is a new element: functions below got its rows.
  if (division === "rows") return false;
  if (division === "served" && !node.isSetting) {
    // A service's functions run in workers, on other copies. A DETERMINISTIC reader runs some of them here.
    if (attributes["processingMode"] !== ShardingPolicy.DETERMINISTIC) return false;
    if (inputs.length === 0) return true;
  }
  return Object.values(attributes).some((value) => value instanceof NodeFunction) ||
    inputs.some(areElementsSeen);
}
