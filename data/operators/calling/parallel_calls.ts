/** Base of `map` and `filter` where several calls of their function are in flight. */
import {
  type Outcome,
  restoreOutcome,
  type SavedOutcome,
  saveOutcome,
} from "../../elements/answer.ts";
import { Call, type NodeFunction } from "../../udf/call.ts";
import type { IteratorContext } from "../../context.ts";
import { type ElementIterator, END, type Token } from "../../iterator.ts";
import { AUTOTUNE, parallelCalls } from "../../parallelism.ts";
import { isOfStream } from "../../iterators/reading_failure.ts";
import type { SpecCheck } from "../../elements/spec_check.ts";
import { AGAIN, yieldOnce } from "../../iterators/stepping.ts";
import { ParallelCaller } from "../../threads/parallel_caller.ts";
import { SteppingIterator } from "../unary.ts";
import { BufferMeter } from "../../iterators/stats.ts";
import { wholeState } from "../../checkpoint/whole_state.ts";

/** The number of the call that got an element, and the input's token of the element. */
interface Origin {
  readonly index: number;
  readonly token: Token | undefined;
}

/** One slot of the window: a call in flight, or its outcome. */
interface Slot {
  readonly origin: Origin;
  failed: boolean;
  value: unknown;
  /** While the call is in flight; never rejects. */
  pending: Promise<void> | undefined;
  /** Whether the call returned a promise. */
  overlaps: boolean;
}

/** The saved state of a slot: its outcome, or its origin if the call can be repeated. */
export type SavedSlot = SavedOutcome | Origin;

/** The saved state of several calls. */
export interface WindowState {
  readonly window: readonly SavedSlot[];
  readonly calls: number;
}

const NOWHERE: Origin = { index: -1, token: undefined };

/**
 * Keeps a window of at most `numParallelCalls` calls, in flight or settled, ahead of the consumer. A
 * function that returns no promise is called on demand. If other threads make the calls, the window is
 * larger: it has room for blocks of calls.
 */
export abstract class ParallelCalls extends SteppingIterator {
  readonly call: Call;
  /** The origin of the element given last. */
  protected given = NOWHERE;
  readonly #caller: ParallelCaller;
  /**
   * Only with `AUTOTUNE`: counts results for the RAM budget, and estimates those of calls in
   * flight.
   */
  readonly #meter: BufferMeter | undefined;
  readonly #inOrder: boolean;
  readonly #window: Slot[] = [];
  /** The pull in flight; never rejects. */
  #pulling: Promise<void> | undefined;
  #inputEnded = false;
  /** No pull and no call begins while the iteration is saved. */
  #paused = false;
  #waiting: PromiseWithResolvers<typeof AGAIN> | undefined;

  /** `setting`: `numParallelCalls`. `check`: checks the function's results, if they are elements. */
  constructor(
    context: IteratorContext,
    fn: NodeFunction,
    setting: number,
    inOrder: boolean,
    check?: SpecCheck,
    input?: ElementIterator,
  ) {
    super(context, input);
    this.call = new Call(fn, context, {
      overlapping: true,
      ...(check === undefined ? {} : { check }),
    });
    const limit = parallelCalls(setting, context);
    this.#caller = new ParallelCaller(
      ...[this.call, fn, context, limit] as const,
      () => this.#waiting !== undefined,
    );
    if (setting === AUTOTUNE) this.#meter = new BufferMeter(context.stats, context.tuner.ram);
    this.#inOrder = inOrder;
  }

  /** Continues as if `calls` calls had been made before. */
  resume(calls: number): this {
    this.call.resume(calls);
    return this;
  }

  /** The output when the function returned `result` for `element`; `AGAIN` for none. */
  protected abstract conclude(element: unknown, result: unknown): unknown;

  override step(): unknown {
    const canContinue = this.#fill();
    const slot = this.#takeSettled();
    this.#meter?.holds(this.#window.length);
    if (slot === undefined) {
      if (this.disposed || (this.#inputEnded && this.#window.length === 0)) return END;
      if (canContinue) return yieldOnce(this.context.pacer);
      this.#waiting = Promise.withResolvers();
      this.#caller.flush();
      return this.#waiting.promise;
    }
    if (slot.overlaps) this.#fill();
    if (slot.failed) throw slot.value;
    if (slot.value === AGAIN) return AGAIN;
    this.given = slot.origin;
    return this.stats.gave(slot.value);
  }

  /**
   * Pulls and calls until the window is full, the input must be waited for, or a result is ready.
   * True if it stopped before that, because it has used the thread for long enough.
   */
  #fill(): boolean {
    while (this.#mayBegin) {
      let element: unknown;
      try {
        element = this.input.next();
      } catch (error) {
        this.#failPull(error);
        continue;
      }
      if (element instanceof Promise) this.#pulling = this.#await(element);
      else if (this.#accept(element)) return false;
      if (this.#caller.isThreaded && this.context.pacer.due()) return true;
    }
    return false;
  }

  get #mayBegin(): boolean {
    const { length } = this.#window;
    return length < this.#caller.window && this.#pulling === undefined && !this.#inputEnded &&
      !this.#paused && (length === 0 || this.#meter?.fitsOneMore !== false);
  }

  /** Waits for the input in the background. */
  async #await(pending: Promise<unknown>): Promise<void> {
    try {
      const element = await this.arrival(pending);
      this.#pulling = undefined;
      this.#accept(element);
    } catch (error) {
      this.#pulling = undefined;
      this.#failPull(error);
    }
    if (this.disposed) return this.#wake();
    this.#fill();
    if (this.#waiting !== undefined) this.#caller.flush();
    this.#wake();
  }

  #failPull(error: unknown): void {
    const settled = { pending: undefined, overlaps: false };
    this.#window.push({ origin: NOWHERE, failed: true, value: error, ...settled });
  }

  /** Calls the function. True if the consumer need not wait, at the end or for the first result. */
  #accept(element: unknown): boolean {
    if (element === END || this.disposed) {
      this.#inputEnded = true;
      return true;
    }
    const origin = { index: this.call.index, token: this.input.token() };
    const slot = this.#begin(origin, element, () => this.#caller.one(element));
    return slot.pending === undefined && this.#window.length === 1;
  }

  /** Adds a slot for a call to the window, and makes the call. */
  #begin(origin: Origin, element: unknown, call: () => unknown): Slot {
    const slot: Slot = {
      origin,
      failed: false,
      value: undefined,
      pending: undefined,
      overlaps: false,
    };
    this.#window.push(slot);
    this.#meter?.holds(this.#window.length);
    try {
      const result = call();
      if (result instanceof Promise) {
        slot.overlaps = true;
        slot.pending = this.#settle(slot, element, result);
      } else slot.value = this.conclude(element, result);
    } catch (error) {
      slot.failed = true;
      slot.value = this.stats.failed(error);
    }
    return slot;
  }

  async #settle(slot: Slot, element: unknown, result: Promise<unknown>): Promise<void> {
    const { host } = this.context;
    // Other threads measure their calls themselves.
    const startedAtMs = this.#caller.isThreaded ? undefined : host.nowMs();
    try {
      slot.value = this.conclude(element, await result);
    } catch (error) {
      if (this.disposed) return;
      slot.failed = true;
      slot.value = this.stats.failed(error);
    }
    if (startedAtMs !== undefined) this.stats.called(host.nowMs() - startedAtMs);
    slot.pending = undefined;
    if (this.disposed) return;
    this.#meter?.enters(slot.value);
    this.#meter?.holds(this.#window.length);
    if (!this.#inOrder || slot === this.#window[0]) this.#wake();
  }

  /** Wakes a waiting consumer to check again. */
  #wake(): void {
    this.#waiting?.resolve(AGAIN);
    this.#waiting = undefined;
  }

  #takeSettled(): Slot | undefined {
    if (this.#inOrder) {
      return this.#window[0]?.pending === undefined ? this.#window.shift() : undefined;
    }
    const index = this.#window.findIndex((slot, at) =>
      slot.pending === undefined && (at === 0 || !isUnread(slot))
    );
    return index < 0 ? undefined : this.#window.splice(index, 1)[0];
  }

  protected override async ownState(): Promise<WindowState> {
    const wasPulling = this.#pulling !== undefined;
    this.#paused = true;
    this.context.pause.whenOver(() => {
      this.#paused = false;
      if (wasPulling) this.#fill();
    });
    await this.#pulling;
    this.#caller.send();
    const slots = await Promise.all(this.#window.map(saveSlot));
    return { window: slots.filter((slot) => slot !== undefined), calls: this.call.index };
  }

  protected override async restoreOwn(state: unknown): Promise<void> {
    const { window, calls } = state as WindowState;
    this.call.resume(calls);
    for (const saved of window) await this.#restoreSlot(saved);
  }

  async #restoreSlot(saved: SavedSlot): Promise<void> {
    const origin = originOf(saved);
    if (origin !== undefined) {
      const { index, token } = origin;
      const element = await this.input.again(token);
      this.#begin({ index, token }, element, () => this.#caller.again(index, element));
      return;
    }
    const answer = await restoreOutcome(saved as SavedOutcome, this.input);
    this.#window.push({ origin: NOWHERE, ...answer, pending: undefined, overlaps: false });
  }

  protected override release(): void {
    super.release();
    this.#caller.stop();
    this.#window.length = 0;
    this.#meter?.holds(0);
    this.#wake();
  }
}

/** The call to repeat for a saved slot; undefined if its outcome was saved. */
export function originOf(saved: SavedSlot): Origin | undefined {
  return "index" in saved || "token" in saved ? wholeState(saved as Origin) : undefined;
}

/**
 * Whether the slot holds a `ReadingFailure` of the input. It is given last: no element follows it.
 */
function isUnread(slot: Slot): boolean {
  return slot.origin === NOWHERE && !isOfStream(slot);
}

/**
 * Waits for a result and saves it only if its element cannot be recomputed: the function may have
 * changed the element in place, so the call cannot be repeated. Slots without a result, or with a
 * `ReadingFailure`, are not saved.
 */
async function saveSlot(slot: Slot): Promise<SavedSlot | undefined> {
  if (slot.origin.token === undefined) await slot.pending;
  if (slot.pending === undefined) {
    if (slot.value === AGAIN || isUnread(slot)) return undefined;
    if (slot.failed || slot.origin.token === undefined) return saveOutcome(slot as Outcome);
  }
  return { index: slot.origin.index, token: slot.origin.token };
}
