/**
 * References to actors. A reference is plain data: it survives msgpack, structured clone and the
 * journal, and says nothing about how the actor is reached.
 *
 * @module
 */

declare const PROTOCOL: unique symbol;

/**
 * Names an actor: the node that runs it, its path there and, when fenced, its incarnation.
 *
 * Without `incarnation` a reference is a name: whoever lives at the path now is meant. With one it
 * is fenced: a message for an earlier life is answered with `failed_precondition`, never obeyed.
 *
 * @typeParam P the protocol the actor speaks (see {@linkcode Protocol}); never present at run time.
 */
export interface Ref<P = unknown> {
  /** The node's name. For a node that listens on a socket this is its URL. */
  readonly node: string;
  /** The path on the node, such as `/worker/tasks/3`. */
  readonly path: string;
  /** 64 random bits drawn at node start, in hexadecimal, and a counter: `9f…c1-4`. */
  readonly incarnation?: string;
  readonly [PROTOCOL]?: P;
}

/** A reference that names one life of an actor. */
export type FencedRef<P = unknown> = Ref<P> & { readonly incarnation: string };

/** The name of an actor, whichever life it is in. */
export function nameOf<P>(ref: Ref<P>): Ref<P> {
  return { node: ref.node, path: ref.path };
}

/** Keys kept; beyond it they are made anew. */
const KEYS_MAX = 4_096;

/** By node and path: to join the two, and to hash what comes of it, takes longer than to look it up. */
const keys = new Map<string, Map<string, string>>();
let keysCount = 0;

/** What stands for the name of an actor in a map. */
export function keyOf({ node, path }: Ref): string {
  let ofNode = keys.get(node);
  const known = ofNode?.get(path);
  if (known !== undefined) return known;
  if (ofNode === undefined || keysCount >= KEYS_MAX) {
    if (keysCount >= KEYS_MAX) {
      keys.clear();
      keysCount = 0;
    }
    keys.set(node, ofNode = new Map());
  }
  const key = `${node} ${path}`;
  ofNode.set(path, key);
  keysCount++;
  return key;
}

/** Whether two references name the same actor, and the same life where both say which. */
export function sameActor(left: Ref, right: Ref): boolean {
  if (left.node !== right.node || left.path !== right.path) return false;
  return left.incarnation === undefined || right.incarnation === undefined ||
    left.incarnation === right.incarnation;
}

/** A reference as people read it in messages: `node/path#incarnation`. */
export function formatRef(ref: Ref): string {
  const life = ref.incarnation === undefined ? "" : `#${ref.incarnation}`;
  return `${ref.node}${ref.path}${life}`;
}
