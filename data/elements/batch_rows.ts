/**
 * Memory of batches that are still to be filled. An image that goes into a batch unchanged is
 * decoded directly to its row of the batch's memory, which saves a copy and a buffer.
 */
import {
  type DTypeArrays,
  type FixedDType,
  TYPED_ARRAYS,
  type TypedArray,
} from "../../core/dtype.ts";
import type { ElementMemory } from "./released.ts";

/** Larger batches get no memory in advance: their memory grows with their rows. */
const BATCH_BYTES_MAX = 256 << 20;

/** Limit of unshared released arrays to keep: one batch is read while another one is filled. */
const FREE_MAX = 2;

/**
 * Limit of the shared memory in use. The engine does not count shared memory, so memory that is not
 * given back stays until something else causes a garbage collection.
 */
const SHARED_BYTES_MAX = 2 ** 30;

/**
 * After this many finished batches in a row that did not use their memory, no more is allocated. Not
 * counted are those that calls were ahead, because all of them miss their rows after one shift.
 */
const UNUSED_MAX = 16;

/** The batches whose memory no column has taken yet. */
const untaken = new WeakMap<ArrayBufferLike, Batch>();

/**
 * The row of a batch to which an image may be decoded. It has none if the function sees the image.
 */
export class RowPlace {
  #batch: Batch | undefined;
  #row = 0;

  assign(batch: Batch, row: number): void {
    this.#batch = batch;
    this.#row = row;
  }

  /** Memory for `length` values; undefined without a row, or if they do not fit it. */
  memory<D extends FixedDType>(dtype: D, length: number): DTypeArrays[D] | undefined {
    return this.#batch?.memory(this.#row, dtype, length);
  }
}

/** Allocates memory for batches, and uses the memory of released batches again. */
export class BatchMemory {
  readonly #isShared: boolean;
  /** Shared memory that was not freed yet, in bytes. */
  #sharedBytes = 0;
  readonly #freed = new FinalizationRegistry<number>((bytes) => this.#sharedBytes -= bytes);
  #free: TypedArray[] = [];
  /** How many of the last finished batches did not use their memory. */
  unused = 0;

  /** @param isShared Whether other threads can write to the memory. */
  constructor(isShared = false) {
    this.#isShared = isShared;
  }

  /** Memory of this size with arbitrary contents. */
  take(dtype: FixedDType, length: number): TypedArray {
    const free = this.#free.pop();
    if (free?.constructor === TYPED_ARRAYS[dtype] && free.length === length) return free;
    this.#free = []; // the batches have changed
    const Values = TYPED_ARRAYS[dtype];
    const bytes = length * Values.BYTES_PER_ELEMENT;
    const isShared = this.#isShared && this.#sharedBytes + bytes <= SHARED_BYTES_MAX;
    return isShared ? new Values(this.#share(bytes), 0, length) : new Values(length);
  }

  give(data: TypedArray): void {
    const isKept = data.buffer instanceof SharedArrayBuffer || this.#free.length < FREE_MAX;
    if (isKept && data.length > 0) this.#free.push(data);
  }

  #share(bytes: number): SharedArrayBuffer {
    const buffer = new SharedArrayBuffer(bytes);
    this.#freed.register(buffer, bytes);
    this.#sharedBytes += bytes;
    return buffer;
  }
}

/** Assigns the rows of consecutive batches to the calls of one function, in the order of calls. */
export class BatchRows {
  readonly #size: number;
  readonly #memory: BatchMemory;
  /** Whether the function only returns the images that it decodes: it does not read or keep them. */
  areUnseen = false;
  #offered: RowPlace | undefined;
  #batch: Batch | undefined;
  #row = 0;
  #shifts = 0;
  /** How many batches have begun. */
  #begun = 0;
  /** How many of them began after the last one that used its memory. */
  #ahead = 0;
  /** The arrays of the last finished batch. */
  #finished: TypedArray[] = [];

  /**
   * @param size How many rows a batch has.
   * @param memory Memory that other iterations use, too. Default: memory of this one only.
   */
  constructor(size: number, memory: BatchMemory = new BatchMemory()) {
    this.#size = size;
    this.#memory = memory;
  }

  /** Notes that the function decodes an image, which takes its memory from `place`. */
  offer(place: RowPlace): void {
    this.#offered = place;
  }

  /** Notes that the function is about to be called. */
  beginCall(): void {
    this.#offered = undefined;
  }

  /** Notes that the function returned. If its images are unseen, the offered place gets the next row. */
  endCall(): void {
    const offered = this.#offered;
    this.#offered = undefined;
    if (offered === undefined || !this.areUnseen) return;
    if (this.#memory.unused >= UNUSED_MAX + this.#ahead) return;
    if (this.#batch === undefined || this.#row === 0) {
      this.#batch = new Batch(this, this.#size, this.#shifts, ++this.#begun);
    }
    offered.assign(this.#batch, this.#row);
    this.#row = (this.#row + 1) % this.#size;
  }

  /** Notes that a finished batch uses the memory of `batch`. */
  used(batch: Batch, data: TypedArray): void {
    this.#memory.unused = 0;
    this.#ahead = this.#begun - batch.number;
    this.#finished.push(data);
  }

  /** The memory of the last finished batch; undefined if its rows were copied. Called once for each. */
  memory(): ElementMemory | undefined {
    const finished = this.#finished;
    if (finished.length === 0) {
      if (this.#begun > 0) this.#memory.unused++;
      return undefined;
    }
    this.#finished = [];
    const memory = this.#memory;
    return {
      release: () => finished.forEach((data) => memory.give(emptied(data))),
      reuse: () => finished.forEach((data) => memory.give(data)),
    };
  }

  /** Memory of this size with arbitrary contents. */
  allocate(dtype: FixedDType, length: number): TypedArray {
    return this.#memory.take(dtype, length);
  }

  /**
   * Notes that a row of `batch` should be `by` rows later, because a call failed, for example. Rows
   * assigned since then are wrong, too, so the next calls get rows of a new batch.
   */
  shift(batch: Batch, by: number): void {
    if (by === 0 || batch.shifts !== this.#shifts) return;
    this.#shifts++;
    this.#batch = undefined;
    this.#row = (this.#row + by + this.#size) % this.#size;
  }
}

/**
 * Moves memory to a new array: `data`, and other views of the memory, are empty from now on. Shared
 * memory cannot be moved: the result is then an empty array, and `data` is unchanged.
 */
function emptied(data: TypedArray): TypedArray {
  const Values = data.constructor as new (buffer: ArrayBuffer) => TypedArray;
  const { buffer } = data;
  if (buffer instanceof SharedArrayBuffer) return new Values(new ArrayBuffer(0));
  return new Values(buffer.detached ? new ArrayBuffer(0) : buffer.transfer());
}

/** Memory for one batch. */
class Batch {
  readonly rows: BatchRows;
  /** How often rows had been shifted when this batch began. */
  readonly shifts: number;
  /** How many had begun, with this one. */
  readonly number: number;
  readonly #size: number;
  data: TypedArray | undefined;

  constructor(rows: BatchRows, size: number, shifts: number, number: number) {
    this.rows = rows;
    this.shifts = shifts;
    this.number = number;
    this.#size = size;
  }

  memory<D extends FixedDType>(
    row: number,
    dtype: D,
    length: number,
  ): DTypeArrays[D] | undefined {
    this.data ??= this.#allocate(dtype, length);
    const { data } = this;
    const fits = data?.constructor === TYPED_ARRAYS[dtype] && data.length === this.#size * length;
    return fits ? data.subarray(row * length, (row + 1) * length) as DTypeArrays[D] : undefined;
  }

  #allocate(dtype: FixedDType, length: number): TypedArray | undefined {
    const bytes = this.#size * length * TYPED_ARRAYS[dtype].BYTES_PER_ELEMENT;
    if (bytes === 0 || bytes > BATCH_BYTES_MAX) return undefined;
    const data = this.rows.allocate(dtype, this.#size * length);
    untaken.set(data.buffer, this);
    return data;
  }
}

/** A batch whose rows were decoded directly to its memory. */
export class WrittenBatch {
  readonly #batch: Batch;
  /** All rows. */
  readonly data: TypedArray;

  private constructor(batch: Batch, data: TypedArray) {
    this.#batch = batch;
    this.data = data;
  }

  /** The batch of `count` rows of which `first` is row 0; undefined if `first` is not in such memory. */
  static of(first: TypedArray, count: number): WrittenBatch | undefined {
    const batch = untaken.get(first.buffer), data = batch?.data;
    const isBatch = data?.constructor === first.constructor && data.length === count * first.length;
    if (batch === undefined || data === undefined || !isBatch) return undefined;
    const written = new WrittenBatch(batch, data);
    if (!written.has(0, first)) return undefined;
    untaken.delete(first.buffer); // so no other batch takes it
    return written;
  }

  /** Whether `row` is row `index` of this memory. If not, the rows have to be copied. */
  has(index: number, row: TypedArray): boolean {
    const isOfThis = row.buffer === this.data.buffer;
    if (isOfThis && row.byteOffset === index * row.byteLength) return true;
    const batch = isOfThis ? this.#batch : untaken.get(row.buffer);
    batch?.rows.shift(batch, index - row.byteOffset / row.byteLength);
    return false;
  }

  /** The memory, once all rows are in it. */
  finish(): TypedArray {
    this.#batch.rows.used(this.#batch, this.data);
    return this.data;
  }
}
