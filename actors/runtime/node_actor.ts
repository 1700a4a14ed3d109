/**
 * `/node`, the actor every node has: starts, stops and lists actors at another node's request. It is
 * how a cache is placed on another thread or host than the task it serves.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { Actor, ActorContext } from "./actor.ts";
import type { ActorInfo } from "./inspection.ts";
import type { FencedRef, Ref } from "./ref.ts";
import type { ActorKind } from "./system.ts";

/** The name of the actor at each node's top level. */
export const NODE_ACTOR_NAME = "node";

/** What `/node` can be asked. */
export interface NodeProtocol {
  /** Starts a top-level actor of a kind this node offers. @throws `not_found`, `already_exists`. */
  spawn(
    request: { readonly kind: string; readonly name: string; readonly config: unknown },
  ): FencedRef;
  /** Stops a top-level actor that was started through here. */
  stop(request: { readonly name: string }): null;
  /** Lists the living actors. */
  list(request: null): ActorInfo[];
}

/** A reference to the `/node` of a node. */
export function nodeActorOf(node: string): Ref<NodeProtocol> {
  return { node, path: `/${NODE_ACTOR_NAME}` };
}

interface Options {
  readonly kinds: Readonly<Record<string, ActorKind>>;
  readonly root: ActorContext;
  readonly list: () => ActorInfo[];
}

/** Makes the actor behind {@linkcode nodeActorOf}. */
export function createNodeActor(
  _context: ActorContext<NodeProtocol>,
  { kinds, root, list }: Options,
): Actor<NodeProtocol> {
  const started = new Set<string>();
  return {
    handlers: {
      spawn({ kind, name, config }) {
        if (!Object.hasOwn(kinds, kind)) {
          const known = Object.keys(kinds).join(", ") || "none";
          throw new LeatError(
            "not_found",
            `This node starts no actors of kind "${kind}" (it starts: ${known})`,
          );
        }
        const ref = root.spawn({ ...kinds[kind]!(config), name, kind });
        started.add(name);
        return ref;
      },
      async stop({ name }) {
        if (started.delete(name)) await root.stopChild(name);
        return null;
      },
      list: () => list(),
    },
  };
}
