/** Base of `groupByWindow` and `bucketBySequenceLength`. */
import { LeatError } from "../../../core/error.ts";
import type { Call } from "../../udf/call.ts";
import { show } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import { type HeldElements, restoreHeld, saveHeld } from "../../elements/held.ts";
import { keepMemory } from "../../elements/released.ts";
import { END } from "../../iterator.ts";
import { BufferMeter } from "../../iterators/stats.ts";
import { AGAIN } from "../../iterators/stepping.ts";
import type { RandomStream } from "../../../core/philox.ts";
import type { DatasetNode } from "../../node.ts";
import { onlyBatchOf } from "../../optimizer/rules/group_and_batch_fusion.ts";
import { Nested } from "../combining/opened.ts";
import { SteppingIterator } from "../unary.ts";
import { wholeState } from "../../checkpoint/whole_state.ts";

/** How elements are grouped. Its methods return values, or promises of them. */
export interface Grouping {
  readonly calls: readonly Call[];
  keyOf(element: unknown): unknown;
  /** How many elements make a full window of this key. */
  sizeOf(key: number): unknown;
  /** The node of a window's dataset; `undefined` to drop the window. `number`: counts windows. */
  make(number: number, key: number, elements: readonly unknown[]): unknown;
  /** Makes the node of the window with this number again, after a restore. */
  makeAgain(number: number, key: number, elements: readonly unknown[]): unknown;
  /** The random state of the dataset of the window with this number. */
  randomState(number: number): () => RandomStream;
}

/** A window that is not full yet. */
interface OpenWindow extends HeldElements {
  readonly size: number;
}

/** The closed window whose dataset is being read. */
interface Current {
  readonly number: number;
  readonly key: number;
  readonly window: HeldElements;
  readonly nested: Nested;
}

interface GroupingState {
  readonly windows: { readonly key: number; readonly size: number; readonly held: unknown }[];
  readonly current: {
    readonly number: number;
    readonly key: number;
    readonly held: unknown;
    readonly nested: unknown;
  } | null;
  readonly opened: number;
  readonly inputEnded: boolean;
  /** How many calls of each function were begun. */
  readonly calls: number[];
}

export function checkKey(operator: string, key: unknown): number {
  const number = typeof key === "bigint" ? Number(key) : key;
  if (typeof number === "number" && Number.isSafeInteger(number)) return number + 0; // -0 is 0
  throw new LeatError(
    "invalid_argument",
    `${operator}: the key function must return an integer, got ${show(key)}`,
  );
}

/**
 * Gathers until a window is full, then gives all elements of the window's dataset. At the end of the
 * input it closes the remaining windows in increasing order of their keys.
 */
export class GroupingIterator extends SteppingIterator {
  readonly #grouping: Grouping;
  readonly #meter: BufferMeter;
  readonly #windows = new Map<number, OpenWindow>();
  #held = 0;
  #opened = 0;
  #current: Current | undefined;
  #inputEnded = false;
  /** At the end of the input, the keys of the windows that are left, in decreasing order. */
  #keysLeft: number[] | undefined;

  constructor(context: IteratorContext, grouping: Grouping) {
    super(context);
    this.#grouping = grouping;
    this.#meter = new BufferMeter(context.stats);
  }

  override step(): unknown {
    if (this.#current !== undefined) {
      const element = this.#current.nested.iterator.next();
      return element instanceof Promise
        ? this.arrival(element).then((element) => this.#inner(element))
        : this.#inner(element);
    }
    if (this.#inputEnded) return this.#take(END);
    const element = this.input.next();
    return element instanceof Promise
      ? this.arrival(element, 0).then((element) => this.#take(element))
      : this.#take(element);
  }

  #take(element: unknown): unknown {
    try {
      const answer = this.#outer(element);
      if (answer instanceof Promise) answer.catch((error) => this.stats.failed(error));
      return answer;
    } catch (error) {
      throw this.stats.failed(error);
    }
  }

  #inner(element: unknown): unknown {
    if (element !== END) {
      return this.stats.gave(element);
    }
    this.#current?.nested.iterator.dispose();
    this.#current = undefined;
    return AGAIN;
  }

  #outer(element: unknown): unknown {
    if (this.disposed) return END;
    if (element === END) {
      this.#inputEnded = true;
      return this.#flush();
    }
    const key = this.#grouping.keyOf(element);
    return key instanceof Promise
      ? key.then((key) => this.#keyed(element, key))
      : this.#keyed(element, key);
  }

  #keyed(element: unknown, key: unknown): unknown {
    return this.#addTo(checkKey(this.stats.operator, key), element);
  }

  #addTo(key: number, element: unknown): unknown {
    const window = this.#windows.get(key);
    if (window !== undefined) return this.#add(key, window, element);
    const size = this.#grouping.sizeOf(key);
    return size instanceof Promise
      ? size.then((size) => this.#begin(key, element, size))
      : this.#begin(key, element, size);
  }

  #begin(key: number, element: unknown, given: unknown): unknown {
    const size = typeof given === "bigint" ? Number(given) : given;
    if (typeof size !== "number" || !Number.isSafeInteger(size) || size < 1) {
      throw new LeatError(
        "invalid_argument",
        `${this.stats.operator}: the size of a window must be an integer of at least 1, got ` +
          `${show(given)} for key ${key}`,
      );
    }
    const window = { size, elements: [], tokens: [] };
    this.#windows.set(key, window);
    return this.#add(key, window, element);
  }

  #add(key: number, window: OpenWindow, element: unknown): unknown {
    if (this.disposed) return END;
    keepMemory(element);
    window.elements.push(element);
    const token = this.input.token();
    if (token !== undefined) window.tokens.push(token);
    this.#meter.enters(element);
    this.#meter.holds(++this.#held);
    return window.elements.length < window.size ? AGAIN : this.#close(key, window);
  }

  #flush(): unknown {
    this.#keysLeft ??= [...this.#windows.keys()].sort((a, b) => b - a);
    const key = this.#keysLeft.pop();
    return key === undefined ? END : this.#close(key, this.#windows.get(key)!);
  }

  /** Closes a window and opens its dataset. If that fails, the window is lost. */
  #close(key: number, window: OpenWindow): unknown {
    this.#windows.delete(key);
    this.#held -= window.elements.length;
    this.#meter.holds(this.#held);
    const number = this.#opened++;
    const made = this.#grouping.make(number, key, window.elements);
    return made instanceof Promise
      ? this.#openLater(number, key, window, made)
      : this.#open(number, key, window, made);
  }

  async #openLater(
    number: number,
    key: number,
    window: HeldElements,
    made: Promise<unknown>,
  ): Promise<unknown> {
    return this.#open(number, key, window, await made);
  }

  #open(number: number, key: number, window: HeldElements, made: unknown): unknown {
    if (made === undefined || this.disposed) return AGAIN;
    const node = made as DatasetNode;
    const batch = this.context.uses("groupAndBatchFusion") ? onlyBatchOf(node) : undefined;
    if (batch !== undefined) return this.stats.gave(batch[0]);
    const nested = new Nested(node, this.#grouping.randomState(number), this.context);
    this.#current = { number, key, window, nested };
    return AGAIN;
  }

  protected override async ownState(): Promise<GroupingState> {
    const current = this.#current;
    return {
      windows: [...this.#windows].map(([key, window]) => (
        { key, size: window.size, held: saveHeld(window) }
      )),
      current: current === undefined ? null : {
        number: current.number,
        key: current.key,
        held: saveHeld(current.window),
        nested: await current.nested.save(),
      },
      opened: this.#opened,
      inputEnded: this.#inputEnded,
      calls: this.#grouping.calls.map((call) => call.index),
    };
  }

  protected override async restoreOwn(state: unknown): Promise<void> {
    const { windows, current, opened, inputEnded, calls } = state as GroupingState;
    this.#grouping.calls.forEach((call, i) => call.resume(calls[i]!));
    this.#opened = opened;
    this.#inputEnded = inputEnded;
    for (const { key, size, held } of windows.map(wholeState)) {
      const { elements, tokens } = await restoreHeld(held, this.input);
      this.#windows.set(key, { size, elements, tokens });
      for (const element of elements) this.#meter.enters(element);
      this.#held += elements.length;
    }
    this.#meter.holds(this.#held);
    if (current !== null) await this.#restoreCurrent(current);
  }

  async #restoreCurrent(current: NonNullable<GroupingState["current"]>): Promise<void> {
    const { number, key, held, nested } = wholeState(current);
    const window = await restoreHeld(held, this.input);
    const node = await this.#grouping.makeAgain(number, key, window.elements) as DatasetNode;
    const opened = new Nested(node, this.#grouping.randomState(number), this.context);
    this.#current = { number, key, window, nested: opened };
    await opened.restore(nested);
  }

  protected override release(): void {
    super.release();
    this.#current?.nested.iterator.dispose();
    this.#windows.clear();
    this.#keysLeft = undefined;
    this.#meter.holds(0);
  }
}
