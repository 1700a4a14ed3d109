/** `cache`: elements kept in memory, or in files, after the first complete pass. */
import { checkPath } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import { inOrder } from "../../deterministic/chain.ts";
import { ElementIterator, END, NO_BLOCK, type Pulled } from "../../iterator.ts";
import { type Attributes, type Changeable, type DatasetNode, registerNode } from "../../node.ts";
import { ReadingFailure } from "../../iterators/reading_failure.ts";
import type { Shared } from "../../checkpoint/shared_state.ts";
import { BufferMeter, type OperatorMeter } from "../../iterators/stats.ts";
import { keepMemory } from "../../elements/released.ts";
import { SameElementsNode } from "../unary.ts";
import type { Manifest } from "../../saved/manifest.ts";
import { storedNode } from "../../saved/stored_node.ts";
import { type Storing, StoringIterator } from "../../saved/storing_iterator.ts";
import { Nested } from "../combining/opened.ts";
import { storedPipeline } from "./stored_pipeline.ts";

/** The elements of a complete pass; undefined before one. */
class Store implements Shared {
  elements: readonly unknown[] | undefined;
  /**
   * Where tasks divide splits: makes the context of a pass. Until a pass is complete, each one reads
   * the splits of the first: with others, the task would give what other tasks give from their caches.
   */
  #likePasses: (() => IteratorContext) | undefined;

  constructor(likePasses?: () => IteratorContext) {
    this.#likePasses = likePasses;
  }

  /** The context to read the input in. */
  contextOfPass(context: IteratorContext): IteratorContext {
    return this.#likePasses?.() ?? context;
  }

  /** Keeps the elements of a complete pass, if no other one has been kept. */
  fill(elements: readonly unknown[]): void {
    this.elements ??= elements;
    this.#likePasses = undefined;
  }

  save(): unknown {
    return { elements: this.elements };
  }

  restore(state: unknown): void {
    this.elements = (state as Store).elements;
  }

  keep(): () => void {
    const { elements } = this;
    return () => this.elements = elements;
  }
}

export class CacheNode extends SameElementsNode {
  override readonly division = "split";
  override readonly adviceFacts = {
    opensDatasets: true,
    toHoldLess: "cache(path) keeps elements in files",
  } as const;
  /** Shared by the iterators of this dataset. */
  readonly #store = new Store();
  /** The folder of its files; undefined for a cache in memory. */
  readonly path: string | undefined;

  constructor(input: DatasetNode, path?: unknown) {
    super("cache", path === undefined ? input : inOrder(input));
    this.path = path === undefined ? undefined : checkPath("cache", path);
  }

  /**
   * All fields, because later iterations, also of other pipelines, read the elements that it keeps.
   */
  override fieldsOfInput(): undefined {
    return undefined;
  }

  override get storesInput(): boolean {
    return this.path !== undefined;
  }

  /** A cache in memory keeps what it gets, and gives copies of that. */
  override changeableInput(own: Changeable): Changeable {
    return this.path === undefined ? "nothing" : own;
  }

  override keptIn(shared: unknown): readonly unknown[] | undefined {
    return shared instanceof Store ? shared.elements : undefined;
  }

  override get attributes(): Attributes {
    return { path: this.path };
  }

  /**
   * A task that reads splits has a store of its own, because its elements are not the whole input.
   */
  override makeIterator(context: IteratorContext): ElementIterator {
    if (this.path !== undefined) {
      return fileCacheIterator(context, this.path, this.input);
    }
    const store = context.readsSplits
      ? context.shared(() => new Store(context.likePasses()))
      : this.#store;
    return new CacheIterator(context, store);
  }

  /** Whether iterators give the elements of an earlier pass. A cache in files is never full. */
  get isFull(): boolean {
    return this.#store.elements !== undefined;
  }

  override get shared(): Shared | undefined {
    return this.path === undefined ? this.#store : undefined;
  }
}

registerNode("cache", { fromWire: (a, [input]) => new CacheNode(input!, a.path) });

/** Counts the elements of a store once in an iteration, however many of its iterators give them. */
class HeldOnce {
  readonly #elements: readonly unknown[];
  /** Those that give them, in the order of opening. The operator of the first one counts them. */
  readonly #readers = new Map<CacheIterator, OperatorMeter>();

  constructor(elements: readonly unknown[]) {
    this.#elements = elements;
  }

  enters(reader: CacheIterator, meter: OperatorMeter): void {
    this.#readers.set(reader, meter);
    if (this.#readers.size === 1) meter.holdsOnly(this.#elements);
  }

  leaves(reader: CacheIterator): void {
    if (!this.isCountedBy(reader)) {
      this.#readers.delete(reader);
      return;
    }
    this.#readers.get(reader)!.holdsOnly([]);
    this.#readers.delete(reader);
    const [next] = this.#readers.values();
    next?.holdsOnly(this.#elements);
  }

  isCountedBy(reader: CacheIterator): boolean {
    const [first] = this.#readers.keys();
    return first === reader;
  }
}

/** The saved state of a cache's iterator, besides the contents of a complete cache. */
type CacheState = {
  readonly position: number;
  /** The elements being given, if they are not those of the store. */
  readonly elements: readonly unknown[] | undefined;
} | {
  readonly kept: unknown[];
  readonly failed: boolean;
  readonly ended: boolean;
  readonly input: unknown;
};

/**
 * Gives the elements of a store, or fills it: passes the input's elements through and keeps them. A
 * pass that ends without error fills the store.
 */
class CacheIterator extends ElementIterator {
  readonly #context: IteratorContext;
  readonly #store: Store;
  readonly #meter: BufferMeter;
  /** Counts the elements of a complete pass, also one that it has made. */
  #held: HeldOnce | undefined;
  /** The elements of a complete pass, when reading from one. */
  #complete: readonly unknown[] | undefined;
  /** The index of the next one. */
  #position = 0;
  /** When filling the store: the elements so far, and their input. */
  readonly #kept: unknown[] = [];
  #input: ElementIterator | undefined;
  #failed = false;
  #ended = false;

  constructor(context: IteratorContext, store: Store) {
    super();
    this.#context = context;
    this.#store = store;
    this.#meter = new BufferMeter(context.stats);
    if (store.elements === undefined) this.#input = store.contextOfPass(context).makeInput();
    else this.#read(store.elements);
  }

  #read(elements: readonly unknown[]): void {
    this.#complete = elements;
    this.#count(elements);
  }

  #count(elements: readonly unknown[]): void {
    this.#held?.leaves(this);
    this.#held = this.#context.sharedFor(elements, () => new HeldOnce(elements));
    this.#held.enters(this, this.#context.stats);
  }

  override next(): Pulled<unknown> {
    if (this.#complete !== undefined) return this.#give(this.#complete);
    return this.#ended ? END : this.#fill(this.#input!);
  }

  override nextBlock(into: unknown[], count: number): number {
    const elements = this.#complete;
    if (elements === undefined || this.disposed) return NO_BLOCK;
    const first = this.#position;
    const length = Math.min(count, elements.length - first);
    if (length <= 0) return NO_BLOCK;
    let given = 0;
    try {
      for (; given < length; given++) into[given] = this.#context.given(elements[first + given]);
    } catch {
      if (given === 0) return NO_BLOCK; // `next()` reports it
    }
    this.#position = first + given;
    this.#context.stats.gaveBlock(into, given);
    return given;
  }

  #give(elements: readonly unknown[]): unknown {
    if (this.#position >= elements.length || this.disposed) return END;
    return this.#gave(elements[this.#position++]);
  }

  #gave(element: unknown): unknown {
    const { stats } = this.#context;
    try {
      return stats.gave(this.#context.given(element));
    } catch (error) {
      throw stats.failed(error);
    }
  }

  #fill(input: ElementIterator): Pulled<unknown> {
    let element: unknown;
    try {
      element = input.next();
    } catch (error) {
      throw this.#failedWith(error);
    }
    return element instanceof Promise ? this.#later(element) : this.#keep(element);
  }

  async #later(pending: Promise<unknown>): Promise<unknown> {
    let element: unknown;
    try {
      element = await this.#context.waitFor(pending, 0);
    } catch (error) {
      throw this.#failedWith(error);
    }
    return this.#keep(element);
  }

  /** A `ReadingFailure` does not fail the pass, because another iterator may resume it. */
  #failedWith(error: unknown): unknown {
    if (!(error instanceof ReadingFailure)) this.#failed = true;
    return error;
  }

  #keep(element: unknown): unknown {
    if (this.disposed) return END;
    if (element === END) {
      this.#ended = true;
      if (this.#failed) return END;
      this.#store.fill(this.#kept);
      if (this.#store.elements === this.#kept) this.#count(this.#kept);
      return END;
    }
    keepMemory(element);
    this.#kept.push(element);
    this.#meter.enters(element);
    this.#meter.holds(this.#kept.length);
    return this.#gave(element);
  }

  protected override async saveState(): Promise<CacheState> {
    if (this.#complete !== undefined) {
      const elements = this.#complete === this.#store.elements ? undefined : this.#complete;
      return { position: this.#position, elements };
    }
    return {
      kept: this.#store.elements === this.#kept ? [] : [...this.#kept], // `Store` saves a full store
      failed: this.#failed,
      ended: this.#ended,
      input: await this.#input!.save(),
    };
  }

  protected override async restoreState(state: unknown): Promise<void> {
    const saved = state as CacheState;
    if ("position" in saved) {
      this.#input?.dispose();
      this.#input = undefined;
      this.#read(saved.elements ?? this.#store.elements!);
      this.#position = saved.position;
      return;
    }
    this.#complete = undefined;
    this.#held?.leaves(this);
    this.#held = undefined;
    const { kept, failed, ended, input } = saved;
    this.#failed = failed;
    this.#ended = ended;
    for (const element of kept) {
      this.#kept.push(element);
      this.#meter.enters(element);
    }
    this.#meter.holds(this.#kept.length);
    this.#input ??= this.#context.makeInput();
    await this.#input.restore(input);
  }

  /** The store of an operator that a function did not make still holds its elements afterwards. */
  protected override release(): void {
    this.#input?.dispose();
    this.#ended = true;
    const { stats } = this.#context;
    const isHeld = this.#store.elements === (this.#complete ?? this.#kept);
    if (this.#held === undefined) stats.holdsOnly([]);
    else if (!isHeld || stats.isNested || !this.#held.isCountedBy(this)) this.#held.leaves(this);
  }
}

function fileCacheIterator(
  context: IteratorContext,
  folder: string,
  input: DatasetNode,
): StoringIterator {
  return new StoringIterator(context, fileCaching(context, folder, input));
}

function fileCaching(context: IteratorContext, folder: string, input: DatasetNode): Storing {
  const open = (manifest: Manifest) =>
    new Nested(storedNode(folder, manifest), () => context.randomStream(), context);
  return {
    operator: "cache",
    folder,
    options: {
      spec: input.elementSpec,
      pipeline: storedPipeline(context, input),
    },
    passesWhileLocked: false,
    calls: [],
    shardOf: () => 0,
    open,
    openAgain: open,
  };
}
