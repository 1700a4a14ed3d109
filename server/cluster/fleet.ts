/** The nodes of a fleet. */
import type { NodeId } from "../../actors/runtime/link.ts";
import type { LeatError } from "../../core/error.ts";

/** Where a node runs, which decides how messages reach it. */
export type Carrier = "inline" | "thread" | "websocket";

export interface FleetNode {
  readonly id: NodeId;
  readonly carrier: Carrier;
  /** Resolves with the reason if the node ends without being asked to. */
  readonly died: Promise<LeatError>;
  /** Stops its actors gracefully, then the node. */
  stop(): Promise<void>;
  /** Ends the node like a crash, without notifying others. */
  kill(): Promise<void>;
}
