/** `/node`, which every node has: starts, stops and lists actors at other nodes' requests. */
import { LeatError } from "../../../core/error.ts";
import type { Access } from "../access.ts";
import type { Actor, ActorContext } from "../actor.ts";
import { anything, checksOf, fencedRef, list, nothing, object, optional, text } from "../checks.ts";
import type { ActorInfo } from "../inspection.ts";
import { isUnknownNode } from "../link.ts";
import type { FencedRef, Ref } from "../ref.ts";
import type { ActorKind } from "../system.ts";
import type { Timer } from "../world.ts";

/** The name of the actor at each node's top level. */
export const NODE_ACTOR_NAME = "node";

export interface SpawnRequest {
  readonly kind: string;
  readonly name: string;
  readonly config: unknown;
  /**
   * The actor's owner: the actor stops when its owner has ended, or was unreachable for {@linkcode
   * OWNER_LOST_MS}. Default: it runs until it is stopped.
   */
  readonly owner?: FencedRef;
}

/** How long an owner may be unreachable, in ms, and how often the node tries to reach it. */
export const OWNER_LOST_MS = 60_000;
const OWNER_RETRY_MS = 5_000;
/**
 * A watch that lasts this long, in ms, has reached its target. It is then renewed, because the message
 * that the target has ended may have been lost.
 */
const OWNER_FOUND_MS = 20_000;

export interface NodeProtocol {
  /**
   * Starts a top-level actor of an offered kind. A repeated request of its owner returns the same.
   * @throws `not_found`, `already_exists`.
   */
  spawn(request: SpawnRequest): FencedRef;
  /** Stops a top-level actor that `spawn` started. */
  stop(request: { readonly name: string }): null;
  list(request: null): ActorInfo[];
  /** Returns those of the given incarnations that have ended. */
  ended(request: { readonly lives: readonly Life[] }): string[];
}

/** One incarnation of an actor of a known node. */
export type Life = Pick<FencedRef, "path" | "incarnation">;

export function nodeActorOf(node: string): Ref<NodeProtocol> {
  return { node, path: `/${NODE_ACTOR_NAME}` };
}

/** An actor that `spawn` started. */
interface Started {
  readonly kind: string;
  readonly owner: FencedRef | undefined;
  /** Stops watching its owner. */
  readonly forget: () => void;
}

interface Options {
  readonly kinds: Readonly<Record<string, ActorKind>>;
  readonly root: ActorContext;
  readonly list: () => ActorInfo[];
  readonly isEnded: (life: Life) => boolean;
}

/** Makes the actor behind {@linkcode nodeActorOf}. */
export function createNodeActor(
  context: ActorContext<NodeProtocol>,
  { kinds, root, list, isEnded }: Options,
): Actor<NodeProtocol> {
  const started = new Map<string, Started>();

  const stop = async (name: string) => {
    const known = started.get(name);
    if (known === undefined) return;
    started.delete(name);
    known.forget();
    await root.stopChild(name);
  };

  return {
    checks,
    access,
    handlers: {
      spawn({ kind, name, config, owner }) {
        if (!Object.hasOwn(kinds, kind)) {
          const known = Object.keys(kinds).join(", ") || "none";
          throw new LeatError(
            "not_found",
            `This node starts no actors of kind "${kind}" (it starts: ${known})`,
          );
        }
        const known = started.get(name);
        const living = root.child(name);
        if (living !== undefined && known !== undefined && isRepeated(known, { kind, owner })) {
          return living;
        }
        const ref = root.spawn({ ...makeActor(kind, kinds[kind]!, config), name, kind });
        known?.forget();
        const lost = () => context.run(() => stop(name));
        const forget = owner === undefined ? () => {} : watchOwner(context, owner, lost);
        started.set(name, { kind, owner, forget });
        return ref;
      },
      async stop({ name }) {
        await stop(name);
        return null;
      },
      list: () => list(),
      ended: ({ lives }) => lives.filter(isEnded).map(({ incarnation }) => incarnation),
    },
  };
}

/** Makes an actor of a kind from a config that another node has sent. */
function makeActor(kind: string, make: ActorKind, config: unknown): ReturnType<ActorKind> {
  try {
    return make(config);
  } catch (cause) {
    const { message } = LeatError.from(cause);
    const what = `This node cannot start a "${kind}" with that config: ${message}`;
    throw new LeatError("invalid_argument", what, { cause });
  }
}

const checks = checksOf<NodeProtocol>()({
  spawn: object({ kind: text, name: text, config: anything, owner: optional(fencedRef) }),
  stop: object({ name: text }),
  list: nothing,
  ended: object({ lives: list(object({ path: text, incarnation: text })) }),
});

const access: Access<NodeProtocol> = {
  spawn: [],
  stop: [],
  list: [],
  // A node that keeps answers asks which of their askers have ended.
  ended: ["worker", "client", "viewer"],
};

/** Whether the same owner repeats a request. False for requests without an owner. */
function isRepeated(known: Omit<Started, "forget">, asked: Omit<Started, "forget">): boolean {
  return known.kind === asked.kind && known.owner !== undefined &&
    known.owner.incarnation === asked.owner?.incarnation;
}

/** Calls `lost` when the owner has ended, or was unreachable for {@linkcode OWNER_LOST_MS}. */
function watchOwner(context: ActorContext, owner: FencedRef, lost: () => void): () => void {
  const { world } = context;
  let lostAtMs: number | undefined;
  let timer: Timer | undefined;
  let unwatch = () => {};
  const end = () => {
    timer?.cancel();
    unwatch();
  };
  const renew = () => {
    end();
    timer = context.timer(OWNER_FOUND_MS, () => {
      lostAtMs = undefined;
      renew();
    });
    unwatch = context.watch(owner, (error, end) => {
      timer?.cancel();
      const isUnreachable = error.code === "unavailable" || isUnknownNode(error);
      // A refused watch says that the owner's node is there, but not whether the owner is.
      const isRefused = end === "lost" && !isUnreachable;
      if (!isRefused) {
        lostAtMs ??= world.nowMs();
        if (!isUnreachable || world.nowMs() - lostAtMs >= OWNER_LOST_MS) return lost();
      }
      timer = context.timer(OWNER_RETRY_MS, renew);
    });
  };
  renew();
  return end;
}
