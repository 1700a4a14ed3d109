/**
 * Whether functions in this process get the same objects that the pipeline gives. A function may
 * keep one, in a module's variables or the state of a `scan()`, and its memory must then not be
 * reused.
 */
import type { DatasetNode } from "../node.ts";
import { ShardingPolicy } from "../sharding/sharding_policy.ts";
import { NodeFunction } from "./call.ts";

/** True unless it is certain that no function does. */
export function areElementsSeen(node: DatasetNode): boolean {
  const { division, inputs, attributes } = node;
  // A batch is a new element: functions below got its rows.
  if (division === "rows") return false;
  if (division === "served" && !node.isSetting) {
    // Workers run a service's functions, on other copies. A DETERMINISTIC reader runs some here.
    if (attributes["processingMode"] !== ShardingPolicy.DETERMINISTIC) return false;
    if (inputs.length === 0) return true;
  }
  return Object.values(attributes).some((value) => value instanceof NodeFunction) ||
    inputs.some(areElementsSeen);
}
