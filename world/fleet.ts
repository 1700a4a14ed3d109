/**
 * Fleets: the nodes of a cluster on this host. Each node runs in the calling thread, on a thread of its
 * own, or behind a socket, and they reach each other whichever that is.
 *
 * @module
 */
import type { NodeId } from "../actors/runtime/link.ts";
import type { ActorSystem } from "../actors/runtime/system.ts";
import type { LogLevel } from "../actors/runtime/world.ts";
import type { LeatError } from "../core/error.ts";
import type { ThreadNode } from "../transport/thread_hub.ts";
import type { Role } from "./roles.ts";

/** Where a node runs, and so how messages reach it. */
export type Carrier = "inline" | "thread" | "websocket";

/** A node of a fleet. */
export interface FleetNode {
  readonly id: NodeId;
  readonly carrier: Carrier;
  /** Settles, with the reason, if it ends without having been told to. */
  readonly died: Promise<LeatError>;
  /** Stops its actors in order, then the node. */
  stop(): Promise<void>;
  /** Ends it as a crash would: nothing is said to anybody. */
  kill(): Promise<void>;
}

/** Starts nodes. */
export interface Fleet {
  /** The node of the calling thread: clients live here. */
  readonly home: ActorSystem;
  /** Starts a node with a role. `name` is its node's name, but for `websocket`, where that is its URL. */
  start(carrier: Carrier, name: string, role: Role): Promise<FleetNode>;
  /**
   * The node has ended for good: what is asked of it from the calling thread fails with `error`, and is
   * not asked again, unless it is started anew.
   */
  giveUp(node: string, error: LeatError): void;
  /** Where the node of that name runs, if it does. */
  carrierOf(node: string): Carrier | undefined;
  /** Starts a thread beside them, with a node that the module's `setup` makes of `config`. */
  startThread(name: string, module: string, config: unknown): Promise<ThreadNode>;
  /** Stops every node that still runs. */
  close(): Promise<void>;
}

/** How loud the nodes of a fleet are. */
export interface FleetOptions {
  readonly logLevel?: LogLevel | "off";
}
