/** Remembers the newest values of each owner, up to a number of bytes. */

/**
 * Limit of the bytes remembered for one owner. Above it, the owner's oldest entries are dropped.
 */
const OWNER_BYTES_MAX = 32 * 2 ** 20;
/**
 * Limit of the bytes remembered for all. Above it, the largest owner's oldest entries are dropped.
 */
const ALL_BYTES_MAX = 128 * 2 ** 20;

interface Entry<V> {
  readonly value: V;
  bytes: number;
}

interface Owned<V> {
  /** Oldest first. */
  readonly entries: Map<string, Entry<V>>;
  bytes: number;
}

/**
 * Values by key. Limits apply per owner, so that no owner displaces the values of a smaller one.
 */
export class Remembered<V> implements Iterable<[key: string, value: V]> {
  readonly #ownerOf: (key: string) => string;
  readonly #owners = new Map<string, Owned<V>>();
  readonly #max: { readonly ownerBytes: number; readonly allBytes: number };
  #bytes = 0;

  constructor(
    ownerOf: (key: string) => string,
    max = { ownerBytes: OWNER_BYTES_MAX, allBytes: ALL_BYTES_MAX },
  ) {
    this.#ownerOf = ownerOf;
    this.#max = max;
  }

  get(key: string): V | undefined {
    return this.#entryOf(key)?.value;
  }

  /** The bytes counted for an entry; 0 if there is none. */
  bytesOf(key: string): number {
    return this.#entryOf(key)?.bytes ?? 0;
  }

  /** Sets a value, which becomes the newest of its owner. */
  set(key: string, value: V, bytes: number): void {
    const owner = this.#ownerOf(key);
    this.#delete(owner, key);
    const owned = this.#owners.getOrInsert(owner, { entries: new Map(), bytes: 0 });
    owned.entries.set(key, { value, bytes });
    this.#add(owned, bytes);
    this.#trim(owner);
  }

  /** A value has grown. */
  grow(key: string, bytes: number): void {
    const owner = this.#ownerOf(key);
    const owned = this.#owners.get(owner);
    const entry = owned?.entries.get(key);
    if (owned === undefined || entry === undefined) return;
    entry.bytes += bytes;
    this.#add(owned, bytes);
    this.#trim(owner);
  }

  /** The oldest of an owner come first. */
  *[Symbol.iterator](): IterableIterator<[key: string, value: V]> {
    for (const { entries } of this.#owners.values()) {
      for (const [key, { value }] of entries) yield [key, value];
    }
  }

  #entryOf(key: string): Entry<V> | undefined {
    return this.#owners.get(this.#ownerOf(key))?.entries.get(key);
  }

  #trim(owner: string): void {
    const { ownerBytes, allBytes } = this.#max;
    while ((this.#owners.get(owner)?.bytes ?? 0) > ownerBytes) this.#dropOldest(owner);
    while (this.#bytes > allBytes) {
      const owners = [...this.#owners];
      const [largest] = owners.reduce((most, other) =>
        other[1].bytes > most[1].bytes ? other : most
      );
      this.#dropOldest(largest);
    }
  }

  #dropOldest(owner: string): void {
    const [oldest] = this.#owners.get(owner)!.entries.keys();
    this.#delete(owner, oldest!);
  }

  #delete(owner: string, key: string): void {
    const owned = this.#owners.get(owner);
    const entry = owned?.entries.get(key);
    if (owned === undefined || entry === undefined) return;
    owned.entries.delete(key);
    this.#add(owned, -entry.bytes);
    if (owned.entries.size === 0) this.#owners.delete(owner);
  }

  #add(owned: Owned<V>, bytes: number): void {
    owned.bytes += bytes;
    this.#bytes += bytes;
  }
}
