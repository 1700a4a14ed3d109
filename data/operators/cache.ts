/**
 * `cache`: elements kept in memory after the first complete pass.
 */
import type { IteratorContext } from "../context.ts";
import { ElementIterator, END, NO_BLOCK, type Pulled } from "../iterator.ts";
import { type Attributes, type DatasetNode, registerNode } from "../node.ts";
import type { ElementSpec } from "../spec.ts";
import { BufferMeter } from "../stats.ts";
import { UnaryIterator, UnaryNode } from "./unary.ts";

/** The elements of a complete pass; empty until there was one. */
interface Store {
  elements: readonly unknown[] | undefined;
}

export class CacheNode extends UnaryNode {
  /** Shared by the iterators of this dataset. */
  readonly #store: Store = { elements: undefined };

  constructor(input: DatasetNode) {
    super("cache", input);
  }

  override get attributes(): Attributes {
    return {};
  }

  override get elementSpec(): ElementSpec {
    return this.input.elementSpec;
  }

  override get cardinality(): number {
    return this.input.cardinality;
  }

  override splitMultiple(multiple: number): number {
    return multiple;
  }

  /** A task that reads splits keeps what it was handed to itself: it is not the whole input. */
  override makeIterator(context: IteratorContext): ElementIterator {
    const store = context.readsSplits
      ? context.shared<Store>(() => ({ elements: undefined }))
      : this.#store;
    return store.elements === undefined
      ? new FillingIterator(context, store)
      : new CachedIterator(context, store.elements);
  }
}

registerNode("cache", { fromWire: (_, [input]) => new CacheNode(input!) });

/** Passes elements through and keeps them; the store is filled by a pass that ends without error. */
class FillingIterator extends UnaryIterator {
  readonly #store: Store;
  readonly #meter: BufferMeter;
  readonly #kept: unknown[] = [];
  #failed = false;
  #ended = false;

  constructor(context: IteratorContext, store: Store) {
    super(context);
    this.#store = store;
    this.#meter = new BufferMeter(context.stats);
  }

  override next(): Pulled<unknown> {
    if (this.#ended) return END;
    let element: unknown;
    try {
      element = this.input.next();
    } catch (error) {
      this.#failed = true;
      throw error;
    }
    return element instanceof Promise ? this.#later(element) : this.#keep(element);
  }

  async #later(pending: Promise<unknown>): Promise<unknown> {
    let element: unknown;
    try {
      element = await this.arrival(pending);
    } catch (error) {
      this.#failed = true;
      throw error;
    }
    return this.#keep(element);
  }

  #keep(element: unknown): unknown {
    if (this.disposed) return END;
    if (element === END) {
      this.#ended = true;
      if (!this.#failed) this.#store.elements ??= this.#kept;
      return END;
    }
    this.#kept.push(element);
    this.#meter.enters(element);
    this.#meter.holds(this.#kept.length);
    this.stats.elements++;
    return element;
  }

  protected override release(): void {
    super.release();
    this.#ended = true;
    if (this.#store.elements !== this.#kept) this.#meter.holds(0);
  }
}

class CachedIterator extends ElementIterator {
  readonly #context: IteratorContext;
  readonly #elements: readonly unknown[];
  #position = 0;

  constructor(context: IteratorContext, elements: readonly unknown[]) {
    super();
    this.#context = context;
    this.#elements = elements;
  }

  override next(): Pulled<unknown> {
    if (this.#position >= this.#elements.length || this.disposed) return END;
    this.#context.stats.elements++;
    return this.#elements[this.#position++];
  }

  override nextBlock(into: unknown[], count: number): number {
    const first = this.#position;
    const length = Math.min(count, this.#elements.length - first);
    if (length <= 0 || this.disposed) return NO_BLOCK;
    for (let i = 0; i < length; i++) into[i] = this.#elements[first + i];
    this.#position = first + length;
    this.#context.stats.elements += length;
    return length;
  }

  protected override release(): void {}
}
