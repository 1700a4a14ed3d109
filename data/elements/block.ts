/**
 * Blocks: several elements read from an input by one call, which saves a call per element and operator.
 * Only inputs that need not wait give blocks.
 */
import { invalidArgument } from "../check.ts";
import { type ElementIterator, END } from "../iterator.ts";

/** Elements read from an input and not processed yet, in order. */
export class InputBlock {
  /** Starts with a non-number, because an array of numbers that later holds other values is slower. */
  readonly items: unknown[] = [END];
  /** The index of the next element, and the end of the elements. */
  at = 0;
  end = 0;
  /** The index at which a loop over the block has to stop; 0 once the block is cleared. */
  stop = 0;

  get isEmpty(): boolean {
    return this.at === this.end;
  }

  /** Reads up to `count` elements into the empty block. Returns what `nextBlock()` returns. */
  read(input: ElementIterator, count: number): number {
    this.clear();
    const read = input.nextBlock(this.items, count);
    if (read > 0) this.end = read;
    return read;
  }

  get rest(): unknown[] {
    return this.items.slice(this.at, this.end);
  }

  /** Puts saved elements into the empty block. @throws LeatError if `elements` is not an array. */
  put(elements: readonly unknown[]): void {
    // The state may be damaged, and an object with any `length` would pass the loop below.
    if (!Array.isArray(elements)) throw invalidArgument("restore", "elements", "a list", elements);
    this.clear();
    for (let i = 0; i < elements.length; i++) this.items[i] = elements[i];
    this.end = elements.length;
  }

  /** Removes and returns the next element, which must exist. */
  shift(): unknown {
    return this.items[this.at++];
  }

  /** Drops all references to elements, so that they can be collected. */
  clear(): void {
    const { items, end } = this;
    // If the last element is a number, usually all are, and numbers keep no memory alive. A loop,
    // because `fill()` would turn the array into one of unboxed numbers.
    if (typeof items[end - 1] !== "number") { for (let i = 0; i < end; i++) items[i] = undefined; }
    this.at = this.end = this.stop = 0;
  }
}
