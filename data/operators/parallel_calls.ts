/**
 * Parallel `map`: several calls of one function in flight.
 */
import { Call, type NodeFunction } from "../call.ts";
import type { IteratorContext } from "../context.ts";
import { END, type Pulled } from "../iterator.ts";
import { parallelCalls } from "../parallelism.ts";
import { UnaryIterator } from "./unary.ts";

/** One place in the window: a call in flight, or what it came to. */
interface Slot {
  settled: boolean;
  failed: boolean;
  value: unknown;
}

/**
 * Keeps a window of at most `limit` results, settled or in flight, so that no more than that are
 * ever called ahead of the consumer. A function that answers at once is called on demand.
 */
export class ParallelCalls extends UnaryIterator {
  readonly #call: Call;
  readonly #limit: number;
  readonly #inOrder: boolean;
  readonly #window: Slot[] = [];
  #pulling = false;
  #ended = false;
  #waiting: PromiseWithResolvers<unknown> | undefined;

  constructor(context: IteratorContext, fn: NodeFunction, setting: number, inOrder: boolean) {
    super(context);
    this.#call = new Call(fn, context, true);
    this.#limit = parallelCalls(setting);
    this.#inOrder = inOrder;
  }

  override next(): Pulled<unknown> {
    this.#fill();
    const slot = this.#takeSettled();
    if (slot !== undefined) {
      if (slot.failed) throw slot.value;
      this.stats.elements++;
      return slot.value;
    }
    if (this.#isDone()) return END;
    this.#waiting = Promise.withResolvers();
    return this.#waiting.promise;
  }

  /** Pulls and calls until the window is full, the input must be waited for, or one is ready. */
  #fill(): void {
    while (this.#window.length < this.#limit && !this.#pulling && !this.#ended) {
      let element: unknown;
      try {
        element = this.input.next();
      } catch (error) {
        this.#window.push({ settled: true, failed: true, value: error });
        continue;
      }
      if (element instanceof Promise) this.#await(element);
      else if (this.#accept(element)) return;
    }
  }

  /** Waits for the input in the background. */
  async #await(pending: Promise<unknown>): Promise<void> {
    this.#pulling = true;
    try {
      const element = await this.arrival(pending);
      this.#pulling = false;
      this.#accept(element);
    } catch (error) {
      this.#pulling = false;
      this.#window.push({ settled: true, failed: true, value: error });
    }
    this.#progress();
  }

  /** Calls the function; true when a result can be given without waiting. */
  #accept(element: unknown): boolean {
    if (element === END || this.disposed) {
      this.#ended = true;
      return true;
    }
    const slot: Slot = { settled: true, failed: false, value: undefined };
    this.#window.push(slot);
    try {
      slot.value = this.#call.one(element);
    } catch (error) {
      slot.failed = true;
      slot.value = error;
    }
    if (!(slot.value instanceof Promise)) return this.#window.length === 1;
    slot.settled = false;
    this.#settle(slot, slot.value);
    return false;
  }

  async #settle(slot: Slot, pending: Promise<unknown>): Promise<void> {
    try {
      slot.value = await pending;
    } catch (error) {
      slot.failed = true;
      slot.value = error;
    }
    slot.settled = true;
    this.#progress();
  }

  /** Answers a waiting consumer if it can be answered, and keeps the window full. */
  #progress(): void {
    if (!this.disposed) this.#fill();
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    const slot = this.#takeSettled();
    if (slot === undefined && !this.#isDone()) return;
    this.#waiting = undefined;
    if (slot === undefined) waiting.resolve(END);
    else if (slot.failed) waiting.reject(slot.value);
    else {
      this.stats.elements++;
      waiting.resolve(slot.value);
    }
    if (!this.disposed) this.#fill();
  }

  #takeSettled(): Slot | undefined {
    const index = this.#inOrder
      ? (this.#window[0]?.settled === true ? 0 : -1)
      : this.#window.findIndex((slot) => slot.settled);
    return index < 0 ? undefined : this.#window.splice(index, 1)[0];
  }

  #isDone(): boolean {
    return this.disposed || (this.#ended && this.#window.length === 0);
  }

  protected override release(): void {
    super.release();
    this.#window.length = 0;
    this.#waiting?.resolve(END);
    this.#waiting = undefined;
  }
}
