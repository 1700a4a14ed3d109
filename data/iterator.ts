/**
 * The iterator protocol inside a pipeline: `next()` answers at once when it can, and with a promise
 * when it must wait. There is no wrapper object per element and no promise when elements are ready.
 */
import { wholeState } from "./checkpoint/whole_state.ts";
import type { NoOp } from "./optimizer/no_op.ts";
import { LeatError } from "../core/error.ts";
import { isPlainObject } from "../core/tree.ts";

/** The answer of `next()` at the end. */
export const END: unique symbol = Symbol("END");

/** An element or the end, now or later. Elements themselves are never promises. */
export type Pulled<T> = T | typeof END | Promise<T | typeof END>;

/** The answer of `nextBlock()` where only `next()` can give the next element, or the end. */
export const NO_BLOCK = -1;

/**
 * Small plain data with which an iterator can recompute an element that it gave before. Iterators
 * that hold elements save their tokens, or the elements themselves where there are no tokens.
 */
export type Token = unknown;

/**
 * The running form of one dataset node.
 *
 * - One call at a time: `next()` is not called again before the promise of the last call settled.
 * - An element that fails makes its `next()` throw or reject; the following `next()` continues with
 *   the element after it. What an iterator had gathered before is kept.
 * - After `END`, and after `dispose()`, every `next()` answers `END`.
 * - Its state between calls can be saved, and restored in another iterator of the same node and
 *   random state: from there both give the same.
 */
export abstract class ElementIterator<T = unknown> {
  #disposed = false;
  /** The operators directly above that a rule left out, the lowest first. */
  #leftOut: readonly NoOp[] = [];

  /** Makes it save and restore the state of `operator` too, which is directly above and was left out. */
  standsFor(operator: NoOp): this {
    this.#leftOut = [...this.#leftOut, operator];
    return this;
  }

  abstract next(): Pulled<T>;

  /**
   * Writes at most `count` (from 1) of the next elements to the beginning of `into` and returns
   * their number, where they can be given at once: the fast path for several elements. After 0, ask
   * again; after `NO_BLOCK`, call `next()`. Failures, waiting and the end always come by `next()`,
   * so that they cost the same as without blocks.
   *
   * It never reads or calls more than `count` calls of `next()` would.
   */
  nextBlock(_into: unknown[], _count: number): number {
    return NO_BLOCK;
  }

  /**
   * The token of the element that `next()` gave last; `undefined` from iterators that can recompute
   * none.
   */
  token(): Token | undefined {
    return undefined;
  }

  /** Recomputes the element with this token, at any time. May fail like `next()`. */
  again(_token: Token): unknown {
    throw new LeatError("internal", `${this.constructor.name} gives no tokens`);
  }

  /**
   * The iterator's state, as plain data and elements; `null` once it is disposed. Called between
   * two calls of `next()`. It may wait for what is in flight, and leaves the iterator unchanged:
   * background reading pauses in the meantime.
   */
  async save(): Promise<unknown> {
    if (this.#disposed) return null;
    let state = await this.saveState();
    for (const { fields } of this.#leftOut) state = { ...fields, input: state };
    return state;
  }

  /**
   * Resumes from the saved state of another iterator of the same node. Called once, before the
   * first `next()`.
   */
  async restore(saved: unknown): Promise<void> {
    let state = saved;
    for (const _ of this.#leftOut) {
      if (isPlainObject(state)) state = (wholeState(state) as { input: unknown }).input;
    }
    if (state === null) this.dispose();
    else if (isPlainObject(state)) await this.restoreState(wholeState(state));
    else throw new LeatError("invalid_argument", `A saved operator is ${typeof state}, no state.`);
  }

  /** The state of an iterator that was not disposed. */
  protected abstract saveState(): Promise<unknown>;

  /**
   * Resumes from what `saveState()` returned. Reading a missing field throws (see `wholeState()`): test
   * optional fields with `in`, and copy the parts of `state` that you keep.
   */
  protected abstract restoreState(state: unknown): Promise<void>;

  /** True once `dispose()` was called; asynchronous code checks it after every wait. */
  get disposed(): boolean {
    return this.#disposed;
  }

  /** Stops reading and calling at once, here and in every input. Synchronous and idempotent. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.release();
  }

  /** Releases inputs, files and buffers; called once, by `dispose()`. */
  protected abstract release(): void;
}

/** Disposes what has been restored so far. A wrong state may make disposing fail. */
export function dropHalfRestored(elements: ElementIterator): void {
  try {
    elements.dispose();
  } catch {
    // The reason why it was not restored is reported already.
  }
}
