/** A window over a stream, bounded in bytes, with reader pointers (paper section 3.5, figure 5). */

interface Item<T> {
  readonly value: T;
  readonly bytes: number;
}

interface Read<T> {
  readonly value: T;
  /** How many items the reader missed before this one, because they had left the window. */
  readonly skipped: number;
}

/**
 * Limit of the readers remembered. The reader idle for longest is forgotten: it restarts at the
 * back.
 */
export const READERS_MAX = 4_096;

/** The newest part of a stream. */
export class SlidingWindow<T> {
  #bytesMax: number;
  /** Index in the stream of the item at the back. */
  #back = 0;
  #items: (Item<T> | undefined)[] = [];
  /** Index in `#items` of the item at the back. */
  #head = 0;
  #bytes = 0;
  #skipped = 0;
  /** By reader, the stream index of its next item. The reader idle for longest comes first. */
  readonly #pointers = new Map<string, number>();

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytesMax(): number {
    return this.#bytesMax;
  }

  /** Bytes of the items in the window. */
  get bytes(): number {
    return this.#bytes;
  }

  get length(): number {
    return this.#items.length - this.#head;
  }

  get readers(): number {
    return this.#pointers.size;
  }

  /** Items that readers missed because the window had moved on, over all readers. */
  get skipped(): number {
    return this.#skipped;
  }

  /** Evicts items from the back until the new one fits or the window is empty, then adds it. */
  push(value: T, bytes: number): void {
    this.#evictTo(this.#bytesMax - bytes);
    this.#items.push({ value, bytes });
    this.#bytes += bytes;
  }

  /** Changes the limit. Evicts items from the back until the rest fits, but keeps the newest. */
  resize(bytesMax: number): void {
    this.#bytesMax = bytesMax;
    this.#evictTo(bytesMax, 1);
  }

  /** The reader's next item; undefined if it has read all. A new reader starts at the back. */
  read(reader: string): Read<T> | undefined {
    const pointer = this.#pointers.get(reader) ?? this.#back;
    const index = Math.max(pointer, this.#back);
    const item = this.#items[this.#head + index - this.#back];
    if (item === undefined) return undefined;
    this.#pointers.delete(reader);
    if (this.#pointers.size >= READERS_MAX) this.#forgetOldest();
    this.#pointers.set(reader, index + 1);
    const skipped = index - pointer;
    this.#skipped += skipped;
    return { value: item.value, skipped };
  }

  /** Whether the reader has read the newest item. */
  atFront(reader: string): boolean {
    return (this.#pointers.get(reader) ?? this.#back) >= this.#back + this.length;
  }

  #evictTo(bytes: number, lengthMin = 0): void {
    while (this.length > lengthMin && this.#bytes > bytes) this.#evict();
  }

  #evict(): void {
    const item = this.#items[this.#head]!;
    this.#items[this.#head++] = undefined;
    this.#back++;
    this.#bytes -= item.bytes;
    if (this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
  }

  #forgetOldest(): void {
    for (const reader of this.#pointers.keys()) {
      this.#pointers.delete(reader);
      return;
    }
  }
}
