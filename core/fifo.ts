/** A first-in first-out queue whose `shift` does not move the other items. */

const COMPACT_AT = 1024;

export class Fifo<T> {
  /** Not shortened when emptied, because most queues fill again. */
  #items: (T | undefined)[] = [];
  #head = 0;
  #tail = 0;

  get length(): number {
    return this.#tail - this.#head;
  }

  /** The item that `shift` would give. */
  get first(): T | undefined {
    return this.#items[this.#head];
  }

  push(item: T): void {
    this.#items[this.#tail++] = item;
  }

  shift(): T | undefined {
    if (this.#head === this.#tail) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head++] = undefined;
    if (this.#head === this.#tail) {
      if (this.#items.length > COMPACT_AT) this.#items = [];
      this.#head = this.#tail = 0;
    } else if (this.#head >= COMPACT_AT && this.#head * 2 > this.#tail) {
      this.#items = this.#items.slice(this.#head, this.#tail);
      this.#tail -= this.#head;
      this.#head = 0;
    }
    return item;
  }

  /** The items from the first on. */
  *[Symbol.iterator](): Generator<T, undefined> {
    for (let at = this.#head; at < this.#tail; at++) yield this.#items[at] as T;
  }

  clear(): void {
    this.#items = [];
    this.#head = this.#tail = 0;
  }
}
