/**
 * Blocks: elements that an iterator read of its input at once. Between operators that answer at once
 * they save a call per element and operator.
 */
import { type ElementIterator, END } from "../iterator.ts";

/** What was read of an input and is not dealt with yet, in order. */
export class InputBlock {
  /** It holds anything from the start, because arrays that turn out to hold more than numbers are slower. */
  readonly items: unknown[] = [END];
  /** The next element to deal with, and where there are no more. */
  at = 0;
  end = 0;
  /** Where dealing with several at once has to stop; 0 from the moment the block is cleared. */
  stop = 0;

  get isEmpty(): boolean {
    return this.at === this.end;
  }

  /** Reads up to `count` elements into the empty block. Answers as `nextBlock()`. */
  read(input: ElementIterator, count: number): number {
    this.clear();
    const read = input.nextBlock(this.items, count);
    if (read > 0) this.end = read;
    return read;
  }

  /** What is left in it. */
  get rest(): unknown[] {
    return this.items.slice(this.at, this.end);
  }

  /** Puts elements into the empty block. */
  put(elements: readonly unknown[]): void {
    for (let i = 0; i < elements.length; i++) this.items[i] = elements[i];
    this.end = elements.length;
  }

  /** Takes the next element out; there is one. */
  shift(): unknown {
    return this.items[this.at++];
  }

  /** Forgets the elements, so that none is kept in memory for having been here. */
  clear(): void {
    const { items, end } = this;
    // Numbers hold nothing in memory, and elements of one dataset are mostly of one type. Not by
    // `fill()`, which turns the array into one of unboxed numbers.
    if (typeof items[end - 1] !== "number") { for (let i = 0; i < end; i++) items[i] = undefined; }
    this.at = this.end = this.stop = 0;
  }
}
