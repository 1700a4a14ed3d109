/** Sets by a key. */

/** A set exists while it has members. The members are in the order in which they were added. */
export class KeyedSets<K, T> {
  readonly #sets = new Map<K, Set<T>>();

  add(key: K, member: T): void {
    this.#sets.getOrInsertComputed(key, () => new Set()).add(member);
  }

  delete(key: K, member: T): void {
    const set = this.#sets.get(key);
    set?.delete(member);
    if (set?.size === 0) this.#sets.delete(key);
  }

  /** The members of a key; an empty set if there are none. */
  get(key: K): ReadonlySet<T> {
    return this.#sets.get(key) ?? NOTHING;
  }
}

/** An empty set. */
// deno-lint-ignore no-explicit-any -- it is one of anything
export const NOTHING: ReadonlySet<any> = new Set();

/** Drops the oldest entries beyond `sizeMax`. */
export function trimOldest<K, V>(map: Map<K, V>, sizeMax: number): void {
  for (const key of map.keys()) {
    if (map.size <= sizeMax) return;
    map.delete(key);
  }
}
