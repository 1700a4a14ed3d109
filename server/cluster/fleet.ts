/** Fleets: nodes of this thread, on threads, or behind sockets, which all reach each other. */
import type { NodeId } from "../../actors/runtime/link.ts";
import type { ActorSystem } from "../../actors/runtime/system.ts";
import type { LogLevel } from "../../actors/runtime/world.ts";
import type { LeatError } from "../../core/error.ts";
import type { ThreadNode } from "../../transport/thread_node.ts";
import type { Role } from "../roles.ts";

/** Where a node runs, which decides how messages reach it. */
export type Carrier = "inline" | "thread" | "websocket";

export interface FleetNode {
  readonly id: NodeId;
  readonly carrier: Carrier;
  /** Settles with the reason if it ends without being asked to. */
  readonly died: Promise<LeatError>;
  /** Stops its actors in order, then the node. */
  stop(): Promise<void>;
  /** Ends it like a crash, without notifying anyone. */
  kill(): Promise<void>;
}

export interface Fleet {
  /** The node of the calling thread, where clients run. */
  readonly home: ActorSystem;
  /** Starts a node with a role. It is called `name`; for `websocket`, by its URL. */
  start(carrier: Carrier, name: string, role: Role): Promise<FleetNode>;
  /** A node has ended for good: requests to it fail with `error`, unless it is restarted. */
  giveUp(node: string, error: LeatError): void;
  /** Where the node with that name runs, if it does. */
  carrierOf(node: string): Carrier | undefined;
  /** Starts a thread next to them, with a node that the module's `setup` creates from `config`. */
  startThread(name: string, module: string, config: unknown): Promise<ThreadNode>;
  /** Stops every running node. */
  close(): Promise<void>;
}

export interface FleetOptions {
  readonly logLevel?: LogLevel | "off";
}
