/**
 * What the thread that starts nodes and the threads they run on say to each other, by comlink. No
 * envelope goes this way.
 *
 * @module
 */
import type { ActorKind, ActorSystem } from "../actors/runtime/system.ts";
import type { Supervision } from "../actors/runtime/actor.ts";
import type { Connector, NodeId } from "../actors/runtime/link.ts";
import type { FencedRef } from "../actors/runtime/ref.ts";
import type { World } from "../actors/runtime/world.ts";
import { LeatError, type WireError } from "../core/error.ts";
import type { LinkLimits } from "./limits.ts";
import type { StartThread } from "./start_thread.ts";

/**
 * What the module of a node exports as `setup`: it says what runs there. It is called once on the
 * node's own thread.
 */
export type NodeSetup = (context: NodeContext) => NodeParts | Promise<NodeParts>;

/** What a {@linkcode NodeSetup} is told. */
export interface NodeContext {
  readonly node: string;
  readonly world: World;
  /** What whoever started the node passed on, by structured clone. */
  readonly config: unknown;
  /** Starts a thread for the node, which ends with it. */
  readonly startThread: StartThread;
  /** Ends the node's thread as a crash would; whoever started the node hears why. */
  readonly endNode: (reason: LeatError) => void;
}

/** What makes a node out of an empty thread. */
export interface NodeParts {
  /** The actors that can be started there. Default none. */
  readonly kinds?: Readonly<Record<string, ActorKind>>;
  /** How the node treats its top-level actors. */
  readonly supervision?: Supervision;
  /** Opens links to nodes whose name begins with one of these schemes, such as `ws`. */
  readonly connectors?: Readonly<Record<string, Connector>>;
  /** Runs when the node is there; its actors may be started here. */
  started?(system: ActorSystem): void | Promise<void>;
  /** Runs after the actors have stopped. */
  stopped?(): void | Promise<void>;
}

/** What starts a node on a thread; structured clone copies it. */
export interface NodeStart {
  readonly name: string;
  /** The module's URL. */
  readonly module: string;
  readonly config: unknown;
  /** For the thread's world. */
  readonly world: unknown;
  readonly limits: Partial<LinkLimits>;
}

/** An answer across threads; comlink would turn an error into another one without its code. */
export type Outcome<T> = { readonly value: T } | { readonly error: WireError };

/** What a node's thread can be told. */
export interface ThreadControl {
  /** `introductions` leads to a {@linkcode Introducer}. */
  start(start: NodeStart, introductions: MessagePort): Promise<Outcome<NodeId>>;
  /** A node that wants to talk to this one has the other end of `port`. */
  connect(remote: NodeId, port: MessagePort): void;
  /** A node this one was joined with is gone. */
  gone(remote: NodeId, error: WireError): void;
  spawn(kind: string, name: string, config: unknown): Promise<Outcome<FencedRef>>;
  stop(): Promise<Outcome<null>>;
}

/** What the threads can ask of the one that started them. */
export interface Introducer {
  /** Joins the asking node, `local`, with another: the answer holds one end of a channel. */
  introduce(local: NodeId, node: string): Promise<Outcome<Introduction>>;
  /**
   * Starts a thread for the asking node below the hub's own: below another one Deno takes a second to
   * do so. Answers when it has ended, with the reason. The asker chooses `id`.
   */
  runThread(id: number, program: string, name: string, port: MessagePort): Promise<string>;
  /** Ends such a thread. */
  endThread(id: number): void;
  /** Ends the asking node's own thread, for the reason given. */
  endNode(reason: WireError): void;
}

/** A node one can talk to from now on. */
export interface Introduction {
  readonly remote: NodeId;
  readonly port: MessagePort;
}

/** What the function gives, as an {@linkcode Outcome}. */
export async function outcomeOf<T>(fn: () => T | Promise<T>): Promise<Outcome<T>> {
  try {
    return { value: await fn() };
  } catch (error) {
    return { error: LeatError.from(error, "internal").toWire() };
  }
}

/** What the outcome holds. @throws LeatError the one it holds. */
export function valueOf<T>(outcome: Outcome<T>): T {
  if ("error" in outcome) throw LeatError.fromWire(outcome.error);
  return outcome.value;
}
