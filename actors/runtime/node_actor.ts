/**
 * `/node`, the actor every node has: starts, stops and lists actors at another node's request. It is
 * how a cache is placed on another thread or host than the task it serves.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { Access } from "./access.ts";
import type { Actor, ActorContext } from "./actor.ts";
import { anything, checksOf, fencedRef, list, nothing, object, optional, text } from "./checks.ts";
import type { ActorInfo } from "./inspection.ts";
import type { FencedRef, Ref } from "./ref.ts";
import type { ActorKind } from "./system.ts";
import type { Timer } from "./world.ts";

/** The name of the actor at each node's top level. */
export const NODE_ACTOR_NAME = "node";

/** What to start. */
export interface SpawnRequest {
  readonly kind: string;
  readonly name: string;
  readonly config: unknown;
  /**
   * Whom it serves: it is stopped when that life has ended, or could not be reached for {@linkcode
   * OWNER_LOST_MS}. Default: it stays until it is stopped.
   */
  readonly owner?: FencedRef;
}

/** How long an owner may be out of reach, in ms, and how often it is looked for. */
export const OWNER_LOST_MS = 60_000;
const OWNER_RETRY_MS = 5_000;
/**
 * A watch that lasts so long has found its target: finding that it is out of reach takes less. It is
 * made anew then, as the news that it ended may have been lost.
 */
const OWNER_FOUND_MS = 20_000;

/** What `/node` can be asked. */
export interface NodeProtocol {
  /**
   * Starts a top-level actor of a kind this node offers. An owner that asks once more, because it has
   * not heard the answer, is answered with the actor that it has, whatever the config says now.
   *
   * @throws `not_found`, `already_exists`.
   */
  spawn(request: SpawnRequest): FencedRef;
  /** Stops a top-level actor that was started through here. */
  stop(request: { readonly name: string }): null;
  /** Lists the living actors. */
  list(request: null): ActorInfo[];
  /** Tells which of these lives have ended, by their incarnations. */
  ended(request: { readonly lives: readonly Life[] }): string[];
}

/** One life of an actor of a node that is known. */
export type Life = Pick<FencedRef, "path" | "incarnation">;

/** A reference to the `/node` of a node. */
export function nodeActorOf(node: string): Ref<NodeProtocol> {
  return { node, path: `/${NODE_ACTOR_NAME}` };
}

/** What was started through here. */
interface Started {
  readonly kind: string;
  readonly owner: FencedRef | undefined;
  /** Looks for its owner no more. */
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
        if (living !== undefined && known !== undefined && isAgain(known, { kind, owner })) {
          return living;
        }
        const ref = root.spawn({ ...made(kind, kinds[kind]!, config), name, kind });
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

/** What a kind makes of a config, which another node has sent. */
function made(kind: string, make: ActorKind, config: unknown): ReturnType<ActorKind> {
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
  // Of those that it has answered a node asks whether they may ask again.
  ended: ["worker", "client", "viewer"],
};

/** Whether the same life asks for the same. Nobody knows that of one that has not said who it is. */
function isAgain(known: Omit<Started, "forget">, asked: Omit<Started, "forget">): boolean {
  return known.kind === asked.kind && known.owner !== undefined &&
    known.owner.incarnation === asked.owner?.incarnation;
}

/**
 * Calls `lost` when the owner's life has ended. One that only cannot be reached may be back: a link
 * that breaks takes nothing from the actors at its ends.
 */
function watchOwner(context: ActorContext, owner: FencedRef, lost: () => void): () => void {
  const { world } = context;
  let lostAtMs: number | undefined;
  let timer: Timer | undefined;
  let unwatch = () => {};
  const end = () => {
    timer?.cancel();
    unwatch();
  };
  const look = () => {
    end();
    timer = context.timer(OWNER_FOUND_MS, () => {
      lostAtMs = undefined;
      look();
    });
    unwatch = context.watch(owner, ({ code }) => {
      timer?.cancel();
      lostAtMs ??= world.nowMs();
      if (code !== "unavailable" || world.nowMs() - lostAtMs >= OWNER_LOST_MS) return lost();
      timer = context.timer(OWNER_RETRY_MS, look);
    });
  };
  look();
  return end;
}
