/** Base of `batch`, `paddedBatch` and `raggedBatch`. */
import { LeatError } from "../../../core/error.ts";
import { BatchMemory, BatchRows } from "../../elements/batch_rows.ts";
import { noteMemory } from "../../elements/released.ts";
import { InputBlock } from "../../elements/block.ts";
import { hasFinishedLarge, keepSpares } from "../../elements/spare_arrays.ts";
import { checkBoolean, checkInteger } from "../../check.ts";
import { type Column, ScalarColumn } from "../../elements/leaf_columns.ts";
import type { IteratorContext } from "../../context.ts";
import { END, NO_BLOCK, type Pulled } from "../../iterator.ts";
import { type Changeable, type DatasetNode, UNKNOWN_CARDINALITY } from "../../node.ts";
import type { Pacer } from "../../iterators/pacer.ts";
import type { ElementSpec } from "../../elements/spec.ts";
import { AGAIN, stepOn, type Stepping } from "../../iterators/stepping.ts";
import { type BatchedRows, rowOf } from "../../optimizer/batched_call.ts";
import { MapIterator } from "../calling/map.ts";
import { CallingIterator } from "../calling/calling.ts";
import { ParallelCalls } from "../calling/parallel_calls.ts";
import { ElementsOfInputNode, SameElementsNode, UnaryIterator, UnaryNode } from "../unary.ts";

/** The node of an operator that makes one element of several input elements. */
export abstract class GatheringNode extends UnaryNode {
  override readonly division = "rows";
  readonly size: number;
  readonly dropRemainder: boolean;
  /** Whether the memory of a batch is that of its rows, one after the other, as with `batch`. */
  readonly isPlain: boolean = false;

  constructor(kind: string, input: DatasetNode, size: unknown, dropRemainder: unknown) {
    super(kind, input);
    this.size = checkInteger(kind, "size", size, 1);
    this.dropRemainder = checkBoolean(kind, "dropRemainder", dropRemainder, false);
  }

  override get cardinality(): number {
    const { cardinality } = this.input;
    if (cardinality === UNKNOWN_CARDINALITY || cardinality === Infinity) return cardinality;
    const batches = cardinality / this.size;
    return this.dropRemainder ? Math.floor(batches) : Math.ceil(batches);
  }

  override changeableInput(own: Changeable): Changeable {
    return own === "nothing" ? own : "bytes";
  }

  override splitMultiple(multiple: number): number {
    return multiple * this.size;
  }

  override makeIterator(context: IteratorContext): GatheringIterator {
    return new GatheringIterator(context, this, this.columnsOf(this.input.elementSpec));
  }

  /**
   * The one batch of these elements, in an array; undefined if they make no batch or several, or if
   * one of them fails.
   */
  stack(elements: readonly unknown[]): [batch: unknown] | undefined {
    const count = elements.length;
    if (count === 0 || count > this.size || (count < this.size && this.dropRemainder)) return;
    try {
      const column = this.columnsOf(this.input.elementSpec)(elements[0]);
      for (let i = 0; i < count; i++) column.write(i, elements[i]);
      return [column.finish(count)];
    } catch {
      return undefined;
    }
  }

  /** Which of these elements fit a batch that begins with the first one. */
  fitting(elements: readonly unknown[]): boolean[] {
    let column: Column | undefined;
    return elements.map((element, i) => {
      try {
        column ??= this.columnsOf(this.input.elementSpec)(elements[0]);
        column.write(i, element);
        return true;
      } catch {
        return false;
      }
    });
  }

  /** The operator that makes the elements, for messages. */
  get maker(): string {
    let node = this.input;
    while (node instanceof ElementsOfInputNode || node instanceof SameElementsNode) {
      node = node.inputs[0]!;
    }
    return node.kind;
  }

  /** What the operator gives for the first `count` rows of `column`. */
  giveBatch(column: Column, count: number): unknown {
    return column.finish(count);
  }

  /** The number of rows of each batch; null if the last may have fewer. */
  protected get rows(): number | null {
    return this.dropRemainder ? this.size : null;
  }

  /** Makes the column for a batch from its first element and the elements' spec. */
  protected abstract columnsOf(spec: ElementSpec): (element: unknown) => Column;
}

interface GatheringState {
  readonly rows: readonly unknown[];
  /** Elements read and not added yet. */
  readonly leftover: readonly unknown[];
  /** How many elements did not fit with the rows. */
  readonly refused: number;
}

/** A batchable function gets at most this many elements at once. */
const ROWS_MAX = 64;
/** If its call takes longer than this, in ms, the next call gets fewer elements. */
const ROWS_MS = 1;

/** Writes elements into a column made for the first one, and gives the column when it is full. */
class GatheringIterator extends UnaryIterator implements Stepping {
  readonly #node: Pick<GatheringNode, "dropRemainder" | "giveBatch" | "maker">;
  readonly #size: number;
  readonly #columnFor: (element: unknown) => Column;
  readonly #pacer: Pacer;
  /** Elements read and not added yet; never more than the batch has space for. */
  readonly #block = new InputBlock();
  /** The gathered elements; they stay when an element fails. */
  #column: Column | undefined;
  /** The column's own array for numbers, if it takes them unconverted. */
  #numbers: Float64Array | undefined;
  #count = 0;
  /** How many elements did not fit the column. */
  #refused = 0;
  #ended = false;
  /** Rule `mapAndBatchFusion`: the input, if its functions write numbers to the column. */
  readonly #calling: CallingIterator | undefined;
  /** Rule `mapAndBatchFusion`: the memory to which functions of the input decode images. */
  readonly #rows: BatchRows | undefined;
  /** Rule `mapVectorization`: the input, whose function may take batches. */
  readonly #batchable: MapIterator | undefined;
  #rowsAtOnce = 8;

  constructor(
    context: IteratorContext,
    node: Pick<GatheringNode, "size" | "dropRemainder" | "isPlain" | "giveBatch" | "maker">,
    columnFor: (element: unknown) => Column,
  ) {
    super(context);
    const { size, isPlain } = node;
    this.#node = node;
    this.#size = size;
    this.#columnFor = columnFor;
    this.#pacer = context.pacer;
    const { input } = this;
    const fuses = context.uses("mapAndBatchFusion");
    this.#calling = fuses && input instanceof CallingIterator ? input : undefined;
    // A split that runs alone often has too few rows for a batch, and would waste its memory.
    const isWhole = context.randomState.split === 0 || context.batchMemory !== undefined;
    if (
      fuses && isPlain && isWhole &&
      (input instanceof MapIterator || input instanceof ParallelCalls)
    ) {
      input.call.rows = this.#rows = new BatchRows(
        size,
        context.batchMemory ?? new BatchMemory(context.host.sharesBatches),
      );
    }
    const vectorizes = context.uses("mapVectorization") && input instanceof MapIterator;
    this.#batchable = vectorizes ? input : undefined;
  }

  override next(): Pulled<unknown> {
    return this.#ended ? END : stepOn(this, this.#pacer);
  }

  step(): unknown {
    if (!this.#block.isEmpty) return this.#addBlock();
    const length = this.#batchable?.isBatchable ? this.#rowsAtOnce : 1;
    const wanted = Math.min(this.#size - this.#count, Math.max(this.#pacer.blockLength, length));
    const read = wanted > 1 ? this.#read(wanted) : NO_BLOCK;
    if (read >= 0) {
      this.#pacer.count(wanted - 1);
      return this.disposed ? END : this.#addBlock();
    }
    const element = this.input.next();
    return element instanceof Promise
      ? this.arrival(element).then((element) => this.#add(element))
      : this.#add(element);
  }

  /**
   * Reads several elements to the block, or directly to the column. Returns as `nextBlock()` does.
   */
  #read(count: number): number {
    if (this.#batchable !== undefined) {
      const { host } = this.context;
      const startedAtMs = host.nowMs();
      const rows = this.#batchable.nextRows(count);
      const isShort = host.nowMs() - startedAtMs < ROWS_MS;
      this.#rowsAtOnce = isShort ? Math.min(2 * count, ROWS_MAX) : Math.max(2, count >> 1);
      if (rows !== undefined) return this.#addRows(rows);
    }
    if (this.#numbers === undefined || this.#calling === undefined) {
      return this.#block.read(this.input, count);
    }
    const written = this.#calling.nextNumbers(this.#numbers, this.#count, count);
    if (written > 0) this.#count += written;
    return written;
  }

  /** Adds results of a batchable function, or puts them into the block if they may not fit. */
  #addRows(rows: BatchedRows): number {
    const { batch, count } = rows;
    const column = this.#column ?? this.#columnOf(rows);
    if (column?.writeRows?.(this.#count, batch, count) === true) {
      this.#column = column;
      this.#count += count;
    } else this.#block.put(Array.from({ length: count }, (_, i) => rowOf(rows, i)));
    return count;
  }

  /** The column for a batch that begins with these rows; undefined if there is none, and each fails. */
  #columnOf(rows: BatchedRows): Column | undefined {
    try {
      return this.#columnFor(rowOf(rows, 0));
    } catch {
      return undefined;
    }
  }

  /** Adds the elements read. If one does not fit, the block continues after it. */
  #addBlock(): unknown {
    const block = this.#block;
    while (!block.isEmpty) {
      if (this.#numbers !== undefined) this.#addNumbers(block, this.#numbers);
      if (block.isEmpty) break;
      this.#write(block.shift());
    }
    return this.#count === this.#size ? this.#give() : AGAIN;
  }

  /** Numbers are written directly to the column's array, because calls would dominate their cost. */
  #addNumbers(block: InputBlock, numbers: Float64Array): void {
    const { items, end } = block;
    let { at } = block;
    let count = this.#count;
    for (; at < end; at++) {
      const element = items[at];
      if (typeof element !== "number") break;
      numbers[count++] = element;
    }
    block.at = at;
    this.#count = count;
  }

  #add(element: unknown): unknown {
    if (element === END) return this.#finish();
    this.#write(element);
    return this.#count === this.#size ? this.#give() : AGAIN;
  }

  #write(element: unknown): void {
    try {
      if (this.#column === undefined) this.#begin(element);
      else this.#column.write(this.#count, element);
    } catch (error) {
      if (this.#column !== undefined) this.#refused++;
      const left = this.#refused > this.#count ? this.#count : 0;
      if (left > 0) this.#beginAgain(element);
      throw this.stats.failed(this.#refusal(error, left));
    }
    this.#count++;
  }

  /** Drops what is gathered: an odd element that begins a batch must not cost all later ones. */
  #beginAgain(element: unknown): void {
    this.#drop();
    try {
      this.#begin(element);
      this.#count = 1;
    } catch {
      // It fits no batch, and its error is thrown anyway.
    }
  }

  #drop(): void {
    this.#column = this.#numbers = undefined;
    this.#count = this.#refused = 0;
  }

  /** Names the operator whose element does not fit. `left`: how many others are left out for it. */
  #refusal(error: unknown, left: number): unknown {
    if (!(error instanceof LeatError) || error.code !== "invalid_argument") return error;
    const prefix = `${this.stats.operator}: `;
    const message = error.message.startsWith(prefix) ? error.message : prefix + error.message;
    return new LeatError(
      error.code,
      `${message} The element comes from ${this.#node.maker}().` +
        (left > 0
          ? ` More did not fit with the ${left} before it, so these are left out instead.`
          : ""),
      { cause: error },
    );
  }

  /** Keeps the column only if the first element fits it, so that later ones need not match a failed one. */
  #begin(element: unknown): void {
    const column = within(this.stats.operator, "a batch", () => this.#columnFor(element));
    column.write(0, element);
    this.#column = column;
    this.#numbers = column instanceof ScalarColumn ? column.plainNumbers : undefined;
  }

  #finish(): unknown {
    this.#ended = true;
    if (this.#count === 0 || this.#node.dropRemainder || this.disposed) return END;
    return this.#give();
  }

  #give(): unknown {
    const column = this.#column!;
    const count = this.#count;
    // Reset first: if this batch cannot be made, the next one is not affected.
    this.#drop();
    try {
      const batch = within(
        this.stats.operator,
        "a batch",
        () => this.#node.giveBatch(column, count),
      );
      this.#noteMemory(batch);
      return this.stats.gave(batch);
    } catch (error) {
      throw this.stats.failed(error);
    }
  }

  #noteMemory(batch: unknown): void {
    const images = this.#rows?.memory();
    const hasArrays = hasFinishedLarge();
    if (images === undefined && !hasArrays) return;
    noteMemory(batch, {
      release: () => images?.release(),
      reuse() {
        images?.reuse?.();
        if (hasArrays) keepSpares(batch);
      },
    });
  }

  protected override ownState(): GatheringState {
    const column = this.#column;
    const rows = Array.from({ length: this.#count }, (_, index) => column!.read(index));
    return { rows, leftover: this.#block.rest, refused: this.#refused };
  }

  protected override restoreOwn(state: unknown): void {
    const { rows, leftover, refused } = state as GatheringState;
    for (const row of rows) this.#write(row);
    this.#refused = refused;
    this.#block.put(leftover);
  }

  protected override release(): void {
    super.release();
    this.#block.clear();
    this.#drop();
    this.#ended = true;
  }
}

/** Runs `make`. A `RangeError`, as for an array that is too long, becomes an error of the operator. */
export function within<R>(operator: string, what: string, make: () => R): R {
  try {
    return make();
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    throw new LeatError(
      "resource_exhausted",
      `${operator}: ${what} is larger, or nests deeper, than memory allows: ${cause.message}`,
      { cause },
    );
  }
}
