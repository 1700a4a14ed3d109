/**
 * The iterator protocol inside a pipeline: `next()` answers at once when it can, and with a promise
 * when it must wait. There is no wrapper object per element and no promise on the ready path.
 */
import { wholeState } from "./checkpoint/whole_state.ts";
import { LeatError } from "../core/error.ts";
import { isPlainObject } from "../core/tree.ts";

/** What `next()` answers once there is nothing more. */
export const END: unique symbol = Symbol("END");

/** An element or the end, now or later. Elements themselves are never promises. */
export type Pulled<T> = T | typeof END | Promise<T | typeof END>;

/** What `nextBlock()` answers where the next element, or the end, is to be had by `next()` alone. */
export const NO_BLOCK = -1;

/**
 * Small plain data from which an iterator gives an element once more that it gave before. Whoever
 * holds elements is saved with tokens where there are any, and with the elements themselves where
 * there are none.
 */
export type Token = unknown;

/**
 * The running form of one dataset node.
 *
 * - One call at a time: `next()` is not called again before the promise of the last call settled.
 * - An element that fails makes its `next()` throw or reject; the following `next()` goes on with
 *   the element after it. What an iterator had gathered before is kept.
 * - After `END`, and after `dispose()`, every `next()` answers `END`.
 * - What it remembers between calls can be saved, and restored in another iterator of the same node
 *   and luck: from there both give the same.
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

  /**
   * The token of the element that `next()` gave last; `undefined` from iterators that can give none
   * again, whatever the element.
   */
  token(): Token | undefined {
    return undefined;
  }

  /** The element that had this token, once more, wherever the iterator stands. May fail as `next()`. */
  again(_token: Token): unknown {
    throw new LeatError("internal", `${this.constructor.name} gives no tokens`);
  }

  /**
   * Where the iterator stands, as plain data and elements; `null` once it is disposed. Called between
   * two calls of `next()`. It may wait for what is in flight, and leaves the iterator as it was: what
   * is read ahead in the background waits meanwhile.
   */
  async save(): Promise<unknown> {
    return this.#disposed ? null : await this.saveState();
  }

  /** Goes on from what another iterator of the same node answered to `save()`. Called once, before the first `next()`. */
  async restore(state: unknown): Promise<void> {
    if (state === null) this.dispose();
    else if (isPlainObject(state)) await this.restoreState(wholeState(state));
    else throw new LeatError("invalid_argument", `A saved operator is ${typeof state}, no state.`);
  }

  /** What `save()` answers of an iterator that goes on. */
  protected abstract saveState(): Promise<unknown>;

  /**
   * Goes on from what `saveState()` answered. A field that is not there cannot be read, see
   * `wholeState()`: what may be left out is asked for by `in`, and what is kept of a state is copied.
   */
  protected abstract restoreState(state: unknown): Promise<void>;

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
