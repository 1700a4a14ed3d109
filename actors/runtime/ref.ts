/** References to actors: plain data, which does not say how the actor is reached. */

declare const PROTOCOL: unique symbol;

/** The location of an actor: a node, a path there and, when fenced, an incarnation. */
export interface ActorAddress {
  /** The node's name. For a node that listens on a socket this is its URL. */
  readonly node: string;
  /** The path on the node, such as `/worker/task-3-9f…`. */
  readonly path: string;
  /** 64 random bits drawn at node start, in hexadecimal, and a counter: `9f…c1-4`. */
  readonly incarnation?: string;
}

/**
 * Names an actor: node, path and, when fenced, incarnation; messages for an earlier incarnation are
 * refused with `failed_precondition`.
 * @typeParam P the protocol; never present at run time.
 */
export interface Ref<P = unknown> extends ActorAddress {
  readonly [PROTOCOL]?: P;
}

/** A reference that names one incarnation of an actor. */
export type FencedRef<P = unknown> = Ref<P> & { readonly incarnation: string };

/** The name of an actor in all its incarnations. */
export function nameOf<P>(ref: Ref<P>): Ref<P> {
  return { node: ref.node, path: ref.path };
}

/** Limit of the cached keys. At the limit the cache is emptied. */
const KEYS_MAX = 4_096;

/** Keys by node, then path. To join and hash the two takes longer than this lookup. */
const keys = new Map<string, Map<string, string>>();
let keysCount = 0;

/** A map key for the name of an actor. */
export function keyOf({ node, path }: Ref): string {
  let byPath = keys.get(node);
  const known = byPath?.get(path);
  if (known !== undefined) return known;
  if (byPath === undefined || keysCount >= KEYS_MAX) {
    if (keysCount >= KEYS_MAX) {
      keys.clear();
      keysCount = 0;
    }
    keys.set(node, byPath = new Map());
  }
  const key = `${node} ${path}`;
  byPath.set(path, key);
  keysCount++;
  return key;
}

/** Whether two references name the same actor, and the same incarnation where both have one. */
export function sameActor(left: Ref, right: Ref): boolean {
  if (left.node !== right.node || left.path !== right.path) return false;
  return left.incarnation === undefined || right.incarnation === undefined ||
    left.incarnation === right.incarnation;
}

/** A reference in messages: `node/path#incarnation`. */
export function formatRef(ref: Ref): string {
  const incarnation = ref.incarnation === undefined ? "" : `#${ref.incarnation}`;
  return `${ref.node}${ref.path}${incarnation}`;
}
