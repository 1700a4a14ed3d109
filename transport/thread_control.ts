/** The comlink calls between the hub's thread and the nodes' threads. They carry no envelopes. */
import type { ActorKind, ActorSystem } from "../actors/runtime/system.ts";
import type { Supervision } from "../actors/runtime/actor.ts";
import type { Connector, NodeId } from "../actors/runtime/link.ts";
import type { FencedRef } from "../actors/runtime/ref.ts";
import type { World } from "../actors/runtime/world.ts";
import { LeatError, type WireError } from "../core/error.ts";
import type { StartThread } from "./start_thread.ts";

/** The export `setup` of a node's module, called once on the node's thread. */
export type NodeSetup = (context: NodeContext) => NodeParts | Promise<NodeParts>;

/** The argument of a {@linkcode NodeSetup}. */
export interface NodeContext {
  readonly node: string;
  readonly world: World;
  /** The configuration from the creator of the node, by structured clone. */
  readonly config: unknown;
  /** Starts a thread for the node, which ends with it. */
  readonly startThread: StartThread;
  /** Ends the node's thread like a crash; the creator of the node receives the reason. */
  readonly endNode: (reason: LeatError) => void;
}

export interface NodeParts {
  /** The actors that can be started there. Default none. */
  readonly kinds?: Readonly<Record<string, ActorKind>>;
  /** How the node supervises its top-level actors. */
  readonly supervision?: Supervision;
  /** Opens links to nodes whose names have one of these schemes, such as `ws`. */
  readonly connectors?: Readonly<Record<string, Connector>>;
  /** Runs when the node exists; its actors may be started here. */
  started?(system: ActorSystem): void | Promise<void>;
  /** Runs after the actors have stopped. */
  stopped?(): void | Promise<void>;
}

/** Starts a node on a thread; sent by structured clone. */
export interface NodeStart {
  readonly name: string;
  readonly module: string;
  readonly config: unknown;
  /** Options of the thread's platform. */
  readonly world: unknown;
}

/** A result that crosses threads. If the call threw, comlink would lose the error's code. */
export type Outcome<T> = { readonly value: T } | { readonly error: WireError };

export interface ThreadControl {
  /** `introductions` leads to a {@linkcode Introducer}. */
  start(start: NodeStart, introductions: MessagePort): Promise<Outcome<NodeId>>;
  /** Attaches a link to `remote`, which has the other end of `port`. */
  connect(remote: NodeId, port: MessagePort): void;
  /** Closes the links to `remote`, which has ended. */
  gone(remote: NodeId, error: WireError): void;
  spawn(kind: string, name: string, config: unknown): Promise<Outcome<FencedRef>>;
  stop(): Promise<Outcome<null>>;
}

/** The interface that the creating thread offers to the nodes' threads. */
export interface Introducer {
  /** Connects the asking node, `local`, with `node`. The answer holds one end of a channel. */
  introduce(local: NodeId, node: string): Promise<Outcome<Introduction>>;
  /**
   * Starts a thread from the hub's thread: from a node's thread it would take a second. Resolves
   * when the thread ends.
   */
  runThread(id: number, program: string, name: string, port: MessagePort): Promise<string>;
  endThread(id: number): void;
  /** Ends the asking node's own thread, for the reason given. */
  endNode(reason: WireError): void;
}

/** A connection to another node. */
export interface Introduction {
  readonly remote: NodeId;
  readonly port: MessagePort;
}

/** The result of the function as an {@linkcode Outcome}. */
export async function outcomeOf<T>(fn: () => T | Promise<T>): Promise<Outcome<T>> {
  try {
    return { value: await fn() };
  } catch (error) {
    return { error: LeatError.from(error, "internal").toWire() };
  }
}

/** The value of an outcome. @throws LeatError the error of the outcome. */
export function valueOf<T>(outcome: Outcome<T>): T {
  if ("error" in outcome) throw LeatError.fromWire(outcome.error);
  return outcome.value;
}
