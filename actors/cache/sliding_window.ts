/**
 * A window over a stream, bounded in bytes, with a pointer for each reader (paper section 3.5 and
 * figure 5).
 *
 * @module
 */

interface Item<T> {
  readonly value: T;
  readonly bytes: number;
}

/** Readers remembered; beyond it the one longest silent is forgotten, and starts over at the back. */
const READERS_MAX = 4_096;

/**
 * The newest part of a stream.
 *
 * @example
 * ```ts
 * import { SlidingWindow } from "./sliding_window.ts";
 *
 * const window = new SlidingWindow<string>(2);
 * for (const batch of ["B3", "B4", "B5"]) window.push(batch, 1);
 * window.read("slow"); // "B4": B3 has fallen off the back
 * ```
 */
export class SlidingWindow<T> {
  readonly bytesMax: number;
  /** Absolute index in the stream of the item at the back. */
  #back = 0;
  #items: (Item<T> | undefined)[] = [];
  /** Position of the item at the back within `#items`. */
  #head = 0;
  #bytes = 0;
  #skipped = 0;
  readonly #pointers = new Map<string, number>();

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  /** Bytes of the items in the window. */
  get bytes(): number {
    return this.#bytes;
  }

  get length(): number {
    return this.#items.length - this.#head;
  }

  /** Items that readers missed because the window had moved on, over all readers. */
  get skipped(): number {
    return this.#skipped;
  }

  /** Adds the newest item, first evicting from the back until it fits. */
  push(value: T, bytes: number): void {
    while (this.length > 0 && this.#bytes + bytes > this.bytesMax) this.#evict();
    this.#items.push({ value, bytes });
    this.#bytes += bytes;
  }

  /**
   * The item a reader points to; its pointer moves on. A new reader starts at the back.
   *
   * @returns `undefined` when the reader has read the newest item already.
   */
  read(reader: string): T | undefined {
    const pointer = this.#pointers.get(reader);
    const index = Math.max(pointer ?? this.#back, this.#back);
    if (pointer !== undefined) this.#skipped += index - pointer;
    this.#pointers.delete(reader);
    if (this.#pointers.size >= READERS_MAX) this.#forgetOldest();
    const item = this.#items[this.#head + index - this.#back];
    this.#pointers.set(reader, item === undefined ? index : index + 1);
    return item?.value;
  }

  /** Whether the reader has read the newest item. */
  atFront(reader: string): boolean {
    return (this.#pointers.get(reader) ?? this.#back) >= this.#back + this.length;
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
