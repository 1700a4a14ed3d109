/** An actor system is one node: the actors of a thread or process, and its links to others. */
import type { LeatError } from "../../core/error.ts";
import type { AskOptions, ChildSpec, Supervision, WatchDown } from "./actor.ts";
import type { ActorInfo, HeldMessages, Observer } from "./inspection.ts";
import type { Link, NodeId } from "./link.ts";
import { ActorNode } from "./node/node.ts";
import type { Dialling } from "./node/router.ts";
import { createNodeActor, NODE_ACTOR_NAME, type NodeProtocol } from "./node/node_actor.ts";
import type { AnswerOf, MethodOf, RequestOf } from "./protocol.ts";
import type { FencedRef, Ref } from "./ref.ts";
import type { World } from "./world.ts";

/** Makes an actor from plain data, so that another node can start one here. */
// deno-lint-ignore no-explicit-any -- kinds speak different protocols
export type ActorKind = (config: any) => Omit<ChildSpec<any>, "name">;

/**
 * How to set up a node. Without `connector` only nodes with an attached link can be reached;
 * `mayDial` limits the addresses that untrusted nodes make it dial.
 */
export interface SystemOptions extends Dialling {
  /** The node's name, unique among its peers. If it listens on a socket: its URL. */
  readonly node: string;
  readonly world: World;
  /** What other nodes may start here through `/node`; default nothing. */
  readonly kinds?: Readonly<Record<string, ActorKind>>;
  /** How the node treats its top-level actors. */
  readonly supervision?: Supervision;
}

/**
 * One node of actors. Messages are delivered at most once, and in order between two actors. An ask
 * always ends, with an answer or an error.
 */
export class ActorSystem implements AsyncDisposable {
  readonly id: NodeId;
  readonly world: World;
  /** Resolves when the top-level actors died too often to be restarted. */
  readonly failed: Promise<LeatError>;
  readonly #node: ActorNode;

  constructor(options: SystemOptions) {
    this.world = options.world;
    this.#node = new ActorNode(options);
    this.id = this.#node.id;
    this.failed = this.#node.failed;
    const kinds = options.kinds ?? {};
    this.spawn<NodeProtocol>({
      name: NODE_ACTOR_NAME,
      create: (context) =>
        createNodeActor(context, {
          kinds,
          root: this.#node.root,
          list: () => this.actors(),
          isEnded: (life) => this.#node.isEnded(life),
        }),
    });
  }

  /** Starts a top-level actor. */
  spawn<P>(spec: ChildSpec<P>): FencedRef<P> {
    return this.#node.root.spawn(spec);
  }

  stopActor(name: string): Promise<void> {
    return this.#node.root.stopChild(name);
  }

  /** Sends from outside any actor. See `ActorContext.tell`. */
  tell<P, M extends MethodOf<P>>(target: Ref<P>, method: M, request: RequestOf<P, M>): void {
    this.#node.root.tell(target, method, request);
  }

  /** Asks from outside any actor. See `ActorContext.ask`. */
  ask<P, M extends MethodOf<P>>(
    target: Ref<P>,
    method: M,
    request: RequestOf<P, M>,
    options: AskOptions,
  ): Promise<AnswerOf<P, M>> {
    return this.#node.root.ask(target, method, request, options);
  }

  /** Watches from outside any actor. See `ActorContext.watch`. */
  watch(target: Ref, down: WatchDown): () => void {
    return this.#node.root.watch(target, down);
  }

  /** Adds a link to another node. */
  attach(link: Link): void {
    this.#node.router.attach(link);
  }

  get linkedNodes(): string[] {
    return this.#node.router.nodes;
  }

  /** Observes all events of the runtime on this node. Returns a function that stops it. */
  inspect(observer: Observer): () => void {
    return this.#node.inspector.observe(observer);
  }

  actors(): ActorInfo[] {
    return this.#node.actors();
  }

  /** The messages that this node holds now. */
  get held(): HeldMessages {
    return this.#node.held;
  }

  /** Stops all actors in reverse order of starting, then closes the links. */
  stop(): Promise<void> {
    return this.#node.stop();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}
