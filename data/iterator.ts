/**
 * The iterator protocol inside a pipeline: `next()` answers at once when it can, and with a promise
 * when it must wait. There is no wrapper object per element and no promise on the ready path.
 */

/** What `next()` answers once there is nothing more. */
export const END: unique symbol = Symbol("END");

/** An element or the end, now or later. Elements themselves are never promises. */
export type Pulled<T> = T | typeof END | Promise<T | typeof END>;

/** What `nextBlock()` answers where the next element, or the end, is to be had by `next()` alone. */
export const NO_BLOCK = -1;

/**
 * The running form of one dataset node.
 *
 * - One call at a time: `next()` is not called again before the promise of the last call settled.
 * - An element that fails makes its `next()` throw or reject; the following `next()` goes on with
 *   the element after it. What an iterator had gathered before is kept.
 * - After `END`, and after `dispose()`, every `next()` answers `END`.
 * - Whatever an iterator remembers between calls is in named fields, so that it can be saved.
 */
export abstract class ElementIterator<T = unknown> {
  #disposed = false;

  abstract next(): Pulled<T>;

  /**
   * Writes at most `count` (from 1) of the next elements to the beginning of `into` and says how
   * many, where they can be given at once: the fast lane of whoever wants several, beside which
   * every call of `next()` is a detour. 0 is to be asked again; at `NO_BLOCK` the next answer is by
   * `next()`. Failures, waiting and the end always are, so that they cost what they would without.
   *
   * Never more is read or called for it than `count` calls of `next()` would.
   */
  nextBlock(_into: unknown[], _count: number): number {
    return NO_BLOCK;
  }

  /** True once `dispose()` was called; asynchronous stretches check it after every wait. */
  get disposed(): boolean {
    return this.#disposed;
  }

  /** Stops reading and calling at once, here and in every input. Synchronous and idempotent. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.release();
  }

  /** Lets go of inputs, files and buffers; called once, by `dispose()`. */
  protected abstract release(): void;
}

/** The iterator of a dataset that has no elements. */
export class EmptyIterator extends ElementIterator<never> {
  override next(): typeof END {
    return END;
  }

  protected override release(): void {}
}
