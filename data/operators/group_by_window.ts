/**
 * `groupByWindow`: elements gathered by key into windows, each window made into a dataset.
 */
import { LeatError } from "../../core/error.ts";
import { Call, NodeFunction } from "../call.ts";
import { checkInteger, show } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { type ElementIterator, END, type Pulled } from "../iterator.ts";
import {
  type Attributes,
  type DatasetNode,
  facade,
  registerNode,
  UNKNOWN_CARDINALITY,
} from "../node.ts";
import { BufferMeter } from "../stats.ts";
import { AGAIN, stepOn, type Stepping } from "../stepping.ts";
import { openMade } from "./flat_map.ts";
import { FromNode } from "./from.ts";
import { UnaryIterator, UnaryNode } from "./unary.ts";

/** How a grouping goes: values, or promises of them. */
export interface Grouping {
  /** The key of an element. */
  keyOf(element: unknown): unknown;
  /** How many elements make a full window of this key. */
  sizeOf(key: number): unknown;
  /** Opens what is made of a window; `undefined` when nothing is. */
  open(key: number, elements: readonly unknown[]): unknown;
}

export class GroupByWindowNode extends UnaryNode {
  readonly key: NodeFunction;
  readonly reduce: NodeFunction;
  readonly windowSize: number | NodeFunction;

  constructor(
    input: DatasetNode,
    key: NodeFunction,
    reduce: NodeFunction,
    windowSize: number | NodeFunction,
  ) {
    super("groupByWindow", input);
    this.key = key;
    this.reduce = reduce;
    this.windowSize = windowSize instanceof NodeFunction
      ? windowSize
      : checkInteger("groupByWindow", "windowSize", windowSize, 1);
  }

  override get attributes(): Attributes {
    return { key: this.key, reduce: this.reduce, windowSize: this.windowSize };
  }

  override get elementSpec(): undefined {
    return undefined;
  }

  override get cardinality(): number {
    return this.input.cardinality === 0 ? 0 : UNKNOWN_CARDINALITY;
  }

  override makeIterator(context: IteratorContext): GroupingIterator {
    return new GroupingIterator(context, this.#grouping(context));
  }

  #grouping(context: IteratorContext): Grouping {
    const { windowSize } = this;
    const spec = this.input.elementSpec;
    const key = new Call(this.key, context);
    const reduce = new Call(this.reduce, context);
    const size = windowSize instanceof NodeFunction ? new Call(windowSize, context) : undefined;
    const open = (made: unknown) => openMade(made, reduce, context);
    return {
      keyOf: (element) => key.one(element),
      sizeOf: (key) => size === undefined ? windowSize : size.one(key),
      open: (key, elements) => {
        const made = reduce.two(key, facade().wrap(new FromNode(elements, spec)));
        return made instanceof Promise ? made.then(open) : open(made);
      },
    };
  }
}

registerNode("groupByWindow", {
  fromWire: (a, [input]) =>
    new GroupByWindowNode(
      input!,
      NodeFunction.among(a, "key"),
      NodeFunction.among(a, "reduce"),
      a.windowSize as number | NodeFunction,
    ),
});

/** A window that is not full yet. */
interface OpenWindow {
  readonly size: number;
  readonly elements: unknown[];
}

/**
 * Gathers until a window is full, then gives what is made of it to its end. At the end of the input
 * the windows that are left are given in increasing order of their keys.
 */
export class GroupingIterator extends UnaryIterator implements Stepping {
  readonly #grouping: Grouping;
  readonly #meter: BufferMeter;
  readonly #windows = new Map<number, OpenWindow>();
  #held = 0;
  #current: ElementIterator | undefined;
  #inputEnded = false;

  constructor(context: IteratorContext, grouping: Grouping) {
    super(context);
    this.#grouping = grouping;
    this.#meter = new BufferMeter(context.stats);
  }

  override next(): Pulled<unknown> {
    return stepOn(this, this.context.pacer);
  }

  step(): unknown {
    if (this.#current !== undefined) {
      const element = this.#current.next();
      return element instanceof Promise ? this.#innerLater(element) : this.#inner(element);
    }
    if (this.#inputEnded) return this.#flush();
    const element = this.input.next();
    return element instanceof Promise ? this.#outerLater(element) : this.#outer(element);
  }

  #inner(element: unknown): unknown {
    if (element !== END) {
      this.stats.elements++;
      return element;
    }
    this.#current?.dispose();
    this.#current = undefined;
    return AGAIN;
  }

  async #innerLater(pending: Promise<unknown>): Promise<unknown> {
    return this.#inner(await pending);
  }

  async #outerLater(pending: Promise<unknown>): Promise<unknown> {
    return this.#outer(await this.arrival(pending));
  }

  #outer(element: unknown): unknown {
    if (this.disposed) return END;
    if (element === END) {
      this.#inputEnded = true;
      return AGAIN;
    }
    const key = this.#grouping.keyOf(element);
    return key instanceof Promise ? this.#keyLater(element, key) : this.#keyed(element, key);
  }

  async #keyLater(element: unknown, key: Promise<unknown>): Promise<unknown> {
    return this.#keyed(element, await key);
  }

  #keyed(element: unknown, key: unknown): unknown {
    const number = typeof key === "bigint" ? Number(key) : key;
    if (typeof number !== "number" || !Number.isSafeInteger(number)) {
      throw new LeatError(
        "invalid_argument",
        `${this.stats.operator}: the key function must return an integer, got ${show(key)}`,
      );
    }
    return this.#addTo(number + 0, element); // -0 is 0
  }

  #addTo(key: number, element: unknown): unknown {
    const window = this.#windows.get(key);
    if (window !== undefined) return this.#add(key, window, element);
    const size = this.#grouping.sizeOf(key);
    return size instanceof Promise
      ? this.#sizeLater(key, element, size)
      : this.#begin(key, element, size);
  }

  async #sizeLater(key: number, element: unknown, size: Promise<unknown>): Promise<unknown> {
    return this.#begin(key, element, await size);
  }

  #begin(key: number, element: unknown, size: unknown): unknown {
    if (typeof size !== "number" || !Number.isSafeInteger(size) || size < 1) {
      throw new LeatError(
        "invalid_argument",
        `${this.stats.operator}: Window size must be greater than zero, but got ${show(size)}.`,
      );
    }
    const window = { size, elements: [] };
    this.#windows.set(key, window);
    return this.#add(key, window, element);
  }

  #add(key: number, window: OpenWindow, element: unknown): unknown {
    if (this.disposed) return END;
    window.elements.push(element);
    this.#held++;
    this.#meter.enters(element);
    this.#meter.holds(this.#held);
    return window.elements.length < window.size ? AGAIN : this.#close(key, window);
  }

  #flush(): unknown {
    if (this.#windows.size === 0) return END;
    const key = this.#windows.keys().reduce((least, at) => Math.min(least, at));
    return this.#close(key, this.#windows.get(key)!);
  }

  /** Opens what is made of a window. If that fails, the window is what the error costs. */
  #close(key: number, window: OpenWindow): unknown {
    this.#windows.delete(key);
    this.#held -= window.elements.length;
    this.#meter.holds(this.#held);
    const opened = this.#grouping.open(key, window.elements);
    return opened instanceof Promise ? this.#openLater(opened) : this.#open(opened);
  }

  async #openLater(opened: Promise<unknown>): Promise<unknown> {
    return this.#open(await opened);
  }

  #open(opened: unknown): typeof AGAIN {
    this.#current = opened as ElementIterator | undefined;
    if (this.disposed) this.#current?.dispose();
    return AGAIN;
  }

  protected override release(): void {
    super.release();
    this.#current?.dispose();
    this.#windows.clear();
    this.#meter.holds(0);
  }
}
