/**
 * The iterator protocol inside a pipeline: `next()` returns an element, or a promise if it must wait.
 * Elements have no wrapper objects, and those that are ready cost no promise.
 */
import { wholeState } from "./checkpoint/whole_state.ts";
import type { NoOp } from "./optimizer/no_op.ts";
import { LeatError } from "../core/error.ts";
import { isPlainObject } from "../core/tree.ts";

/** What `next()` returns at the end. */
export const END: unique symbol = Symbol("END");

/** An element or the end, now or later. Elements themselves are never promises. */
export type Pulled<T> = T | typeof END | Promise<T | typeof END>;

/** `nextBlock()` returns this if only `next()` can give the next element, or the end. */
export const NO_BLOCK = -1;

/**
 * Small plain data from which an iterator can recompute an element that it gave before. Iterators
 * that hold elements save the tokens of these, or the elements themselves if they have no tokens.
 */
export type Token = unknown;

/**
 * The running form of one dataset node.
 *
 * - One call at a time: callers wait for the promise of `next()` before they call it again.
 * - An element that fails makes its `next()` throw or reject; the following `next()` continues with
 *   the element after it. The iterator keeps what it had gathered, such as the start of a batch.
 * - After `END`, and after `dispose()`, every `next()` returns `END`.
 * - Its state between calls can be saved, and restored in another iterator of the same node and
 *   random state. Then both give the same elements.
 */
export abstract class ElementIterator<T = unknown> {
  #disposed = false;
  /** The operators directly above that a rule left out, the lowest first. */
  #leftOut: readonly NoOp[] = [];

  /** Also saves and restores the state of `operator`, which a rule left out directly above this. */
  standsFor(operator: NoOp): this {
    this.#leftOut = [...this.#leftOut, operator];
    return this;
  }

  abstract next(): Pulled<T>;

  /**
   * The fast path for several elements: writes at most `count` (from 1) of the next elements to the
   * beginning of `into`, if it need not wait for them, and returns their number. After 0, call it
   * again; after `NO_BLOCK`, call `next()`. Only `next()` reports failures and the end, and waits.
   *
   * It never reads files, or calls functions, more often than `count` calls of `next()` would.
   */
  nextBlock(_into: unknown[], _count: number): number {
    return NO_BLOCK;
  }

  /** The token of the last element that `next()` gave; `undefined` if it cannot be recomputed. */
  token(): Token | undefined {
    return undefined;
  }

  /** Recomputes the element with this token, at any time. May fail like `next()`. */
  again(_token: Token): unknown {
    throw new LeatError("internal", `${this.constructor.name} gives no tokens`);
  }

  /**
   * The iterator's state, as plain data and elements; `null` once it is disposed. Called between two
   * calls of `next()`. It may wait for what is in flight. The iterator does not change meanwhile:
   * background reading pauses.
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
    for (const { inputOf = inputStateOf } of this.#leftOut.toReversed()) {
      if (isPlainObject(state)) state = inputOf(wholeState(state) as { input: unknown });
    }
    if (state === null) this.dispose();
    else if (isPlainObject(state)) await this.restoreState(wholeState(state));
    else {
      throw new LeatError(
        "invalid_argument",
        `The saved state of an operator is not a plain object (${typeof state}).`,
      );
    }
  }

  /** The state of an iterator that was not disposed. */
  protected abstract saveState(): Promise<unknown>;

  /**
   * Resumes from what `saveState()` returned. Reading a missing field throws (see `wholeState()`): test
   * optional fields with `in`, and copy the parts of `state` that you keep.
   */
  protected abstract restoreState(state: unknown): Promise<void>;

  /** Whether `dispose()` was called. Asynchronous code must check it after every `await`. */
  get disposed(): boolean {
    return this.#disposed;
  }

  /** Stops all reading and calling, of this iterator and its inputs. Synchronous and idempotent. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.release();
  }

  /** Releases inputs, files and buffers; called once, by `dispose()`. */
  protected abstract release(): void;
}

function inputStateOf({ input }: { readonly input: unknown }): unknown {
  return input;
}

/** Disposes an iterator whose `restore()` failed. A wrong state may make this fail, too. */
export function dropHalfRestored(elements: ElementIterator): void {
  try {
    elements.dispose();
  } catch {
    // The caller reports the error of `restore()`.
  }
}
