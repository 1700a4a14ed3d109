/**
 * Calling: what `map` and `filter` have in common. They call their function on whole blocks of
 * elements where these and the results are there at once, and on one element at a time otherwise.
 */
import { InputBlock } from "../block.ts";
import { Call, type NodeFunction } from "../call.ts";
import type { IteratorContext } from "../context.ts";
import { NO_BLOCK, type Pulled } from "../iterator.ts";
import { UnaryIterator } from "./unary.ts";

/** What came of a call within a block that is for `next()` to answer. */
export interface Outcome {
  readonly failed: boolean;
  /** The error, or a promise. */
  readonly value: unknown;
}

/** The iterator of an operator that calls a function on every element. */
export abstract class CallingIterator extends UnaryIterator {
  protected readonly call: Call;
  readonly #block = new InputBlock();
  #outcome: Outcome | undefined;

  constructor(context: IteratorContext, fn: NodeFunction) {
    super(context);
    this.call = new Call(fn, context);
  }

  /**
   * Calls the function on the elements of `block` up to `block.stop`, which is looked at each time
   * since the function may dispose the iterator. Writes what comes of them to `into`, says how many,
   * and leaves `block.at` after the last one called.
   */
  protected abstract callBlock(block: InputBlock, into: unknown[]): number;

  override nextBlock(into: unknown[], count: number): number {
    const run = this.call.plainRun(count);
    if (run <= 0 || this.#outcome !== undefined) return NO_BLOCK;
    const block = this.#block;
    if (block.isEmpty) {
      const read = block.read(this.input, run);
      if (read <= 0) return read;
    }
    block.stop = Math.min(block.end, block.at + run);
    const given = this.callBlock(block, into);
    return this.disposed ? NO_BLOCK : given;
  }

  /** Leaves the answer about an element of a block to `next()`, since those before it come first. */
  protected leave(outcome: Outcome): void {
    if (!this.disposed) this.#outcome = outcome;
  }

  /** What a block has left to be answered by `next()`. */
  protected takeOutcome(): Outcome | undefined {
    const outcome = this.#outcome;
    this.#outcome = undefined;
    return outcome;
  }

  /** The next element of the input. */
  protected pull(): Pulled<unknown> {
    return this.#block.isEmpty ? this.input.next() : this.#block.shift();
  }

  protected override release(): void {
    super.release();
    this.#block.clear();
    this.#outcome = undefined;
  }
}
