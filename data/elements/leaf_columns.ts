/** Columns of leaves: the rows of one leaf become one tensor with a new first axis. */
import { isDetached } from "../../core/bytes.ts";
import {
  type DType,
  type DTypeArrays,
  dtypeOf,
  type FixedDType,
  isFixedDType,
  isTypedArray,
  TYPED_ARRAYS,
  type TypedArray,
} from "../../core/dtype.ts";
import { LeatError } from "../../core/error.ts";
import { Tensor } from "../../core/tensor.ts";
import { show } from "../check.ts";
import { WrittenBatch } from "./batch_rows.ts";
import { keepSpare, noteFinished, takeSpare } from "./spare_arrays.ts";

/**
 * Limit of the bytes that a column allocates before it has rows for them. It is large because
 * growing copies all rows, while the system provides pages of memory only when they are written.
 */
const INITIAL_BYTES_MAX = 64 << 20;

/** The rows of one leaf, or of one part of the structure. */
export interface Column {
  /** Writes row `index`. If the row does not fit, it throws and leaves earlier rows unchanged. */
  write(index: number, value: unknown): void;
  /**
   * Writes the `count` rows of a batch, as rows `index` and following. Returns false if they may
   * not fit. Then, and for columns without this method, rows have to be written one by one.
   */
  writeRows?(index: number, batch: unknown, count: number): boolean;
  /**
   * Row `index` as a value. A column made for this value is of the same kind, and stores the same
   * row.
   */
  read(index: number): unknown;
  /** The first `count` rows as one tensor (or structure of tensors). Ends the use of the column. */
  finish(count: number): unknown;
}

/** Plain numbers become float64, unless a spec says otherwise. */
export function numberDType(dtype: DType | undefined): FixedDType {
  return dtype !== undefined && isFixedDType(dtype) && dtype !== "bool" ? dtype : "float64";
}

/** The name of a leaf in errors: its path in the element. */
export function component(path: string): string {
  return `component ${path === "" ? "0" : path.replace(/^\./, "")}`;
}

export function shapeOf(value: unknown): readonly number[] {
  if (value instanceof Tensor) return value.shape;
  return isTypedArray(value) ? [value.length] : [];
}

/** The items of a tensor or array of `shape`; `failed_precondition` if their memory is gone. */
export function itemsOf(
  leaf: unknown,
  shape: readonly number[],
  path: string,
  index?: number,
): ArrayLike<unknown> {
  const items = (leaf instanceof Tensor ? leaf.data : leaf) as ArrayLike<unknown>;
  const isWhole = items.length === shape.reduce((a, b) => a * b, 1);
  if (isWhole && !(isTypedArray(items) && isDetached(items))) return items;
  const element = index === undefined ? "the element" : `element ${index}`;
  throw new LeatError(
    "failed_precondition",
    `The memory of ${component(path)} of ${element} was transferred or released`,
  );
}

function differentShapes(
  path: string,
  first: readonly number[],
  index: number,
  shape: readonly number[],
  remedy = "",
): LeatError {
  return new LeatError(
    "invalid_argument",
    `Cannot batch tensors with different shapes in ${component(path)}. First element had shape ` +
      `[${first.join(", ")}] and element ${index} had shape [${shape.join(", ")}]. Use ` +
      `paddedBatch, or make the shapes equal before batching.${remedy}`,
  );
}

const BYTES_REMEDY = " Byte strings of any length stack where a spec says so: " +
  `{ spec: new TensorSpec("bytes", []) } with the function that makes them.`;

export function differentKinds(
  path: string,
  first: string,
  index: number,
  value: unknown,
): LeatError {
  const found = value instanceof Tensor ? `a ${value.dtype} tensor` : show(value);
  const remedy = first === "null" || value === null
    ? ` Replace nulls with map before batching${replacementOf(path)}.`
    : "";
  return new LeatError(
    "invalid_argument",
    `Cannot batch different types in ${component(path)}. First element was ${first} and element ` +
      `${index} is ${found}.${remedy}`,
  );
}

/** The error for a number that the dtype of its column cannot hold. */
function beyondDType(path: string, dtype: FixedDType, index: number, value: unknown): LeatError {
  const why = dtype === "int64" && typeof value === "bigint"
    ? "int64. Bigints are int64 unless a spec of the source or function says otherwise, such as " +
      `{ spec: new TensorSpec("uint64", []) }`
    : `${dtype} by its spec`;
  return new LeatError(
    "invalid_argument",
    `Cannot batch ${show(value)} of element ${index} in ${component(path)}, which is ${why}.`,
  );
}

/** Shows how to replace nulls in a field of the element. */
function replacementOf(path: string): string {
  const [, name] = /^\.([a-z_$][\w$]*)$/i.exec(path) ?? [];
  return name === undefined ? "" : `: map((row) => ({ ...row, ${name}: row.${name} ?? 0 }))`;
}

/** Rows of the same typed array type, `rowSize` items each. */
class RowStore {
  readonly dtype: FixedDType;
  readonly #rowSize: number;
  readonly #capacity: number;
  data: TypedArray;
  #rows: number;

  constructor(dtype: FixedDType, rowSize: number, capacity: number) {
    const rowBytes = Math.max(1, rowSize * TYPED_ARRAYS[dtype].BYTES_PER_ELEMENT);
    this.dtype = dtype;
    this.#rowSize = rowSize;
    this.#capacity = capacity;
    const whole = takeSpare(dtype, capacity * rowSize);
    this.#rows = whole !== undefined
      ? capacity
      : Math.min(capacity, Math.max(1, Math.floor(INITIAL_BYTES_MAX / rowBytes)));
    const length = this.#rows * rowSize;
    this.data = whole ?? takeSpare(dtype, length) ??
      // Faster with a class that is written out than with one that is looked up.
      (dtype === "float64" ? new Float64Array(length) : new TYPED_ARRAYS[dtype](length));
  }

  /** Allocates space for row `index`. */
  reserve(index: number): void {
    if (index < this.#rows) return;
    this.#rows = Math.min(this.#capacity, Math.max(this.#rows * 2, index + 1));
    const grown = new TYPED_ARRAYS[this.dtype](this.#rows * this.#rowSize);
    copyInto(grown, this.data, 0);
    this.data = grown;
  }

  /** The first `count` rows, copied if the store is larger. Ends the use of the store. */
  take(count: number): TypedArray {
    const { data } = this;
    const length = count * this.#rowSize;
    if (length === data.length) {
      noteFinished(data);
      return data;
    }
    // Small splits end with a short batch: clearing a new array costs more than copying its rows.
    const rows = data.slice(0, length);
    keepSpare(data);
    return rows;
  }
}

/** `TypedArray.set` between arrays of the same type, which the union type cannot express. */
export function copyInto(target: TypedArray, source: TypedArray, offset: number): void {
  (target as Uint8Array).set(source as Uint8Array, offset);
}

/** Plain numbers, bigints or booleans. */
export class ScalarColumn implements Column {
  readonly #type: "number" | "bigint" | "boolean";
  readonly #path: string;
  readonly #capacity: number;
  readonly #store: RowStore;
  /** Whether the dtype must hold every value exactly. Floats are rounded. */
  readonly #isExact: boolean;

  constructor(
    dtype: FixedDType,
    type: "number" | "bigint" | "boolean",
    capacity: number,
    path: string,
  ) {
    this.#type = type;
    this.#path = path;
    this.#capacity = capacity;
    this.#store = new RowStore(dtype, 1, capacity);
    this.#isExact = type !== "boolean" && !dtype.startsWith("float");
  }

  write(index: number, value: unknown): void {
    // deno-lint-ignore valid-typeof -- #type is one of the results of typeof
    if (typeof value !== this.#type) {
      const shape = shapeOf(value);
      if (shape.length > 0) throw differentShapes(this.#path, [], index, shape);
      throw differentKinds(this.#path, `a ${this.#type}`, index, value);
    }
    if (index >= this.#store.data.length) this.#store.reserve(index);
    const { data } = this.#store;
    data[index] = value as number;
    if (this.#isExact && data[index] !== value) {
      throw beyondDType(this.#path, this.#store.dtype, index, value);
    }
  }

  read(index: number): unknown {
    const value = this.#store.data[index]!;
    return this.#type === "boolean" ? value !== 0 : value;
  }

  /** The array to which numbers may be written directly; `undefined` if they must be checked. */
  get plainNumbers(): Float64Array | undefined {
    const { data } = this.#store;
    return data instanceof Float64Array && data.length === this.#capacity ? data : undefined;
  }

  finish(count: number): Tensor {
    return new Tensor(this.#store.dtype, [count], this.#store.take(count));
  }
}

/** Plain integers and bigints that a spec declares as 64-bit. */
export class WideNumberColumn implements Column {
  readonly #dtype: "int64" | "uint64";
  readonly #path: string;
  readonly #bigints: ScalarColumn;

  constructor(dtype: "int64" | "uint64", capacity: number, path: string) {
    this.#dtype = dtype;
    this.#path = path;
    this.#bigints = new ScalarColumn(dtype, "bigint", capacity, path);
  }

  write(index: number, value: unknown): void {
    if (typeof value !== "number") return this.#bigints.write(index, value);
    if (!Number.isSafeInteger(value)) throw beyondDType(this.#path, this.#dtype, index, value);
    this.#bigints.write(index, BigInt(value));
  }

  read(index: number): unknown {
    return this.#bigints.read(index);
  }

  finish(count: number): Tensor {
    return this.#bigints.finish(count);
  }
}

export class TensorColumn implements Column {
  readonly #dtype: FixedDType;
  readonly #shape: readonly number[];
  readonly #rowSize: number;
  readonly #path: string;
  readonly #capacity: number;
  /** The memory of the batch, as long as every row was decoded directly to it. */
  #written: WrittenBatch | undefined;
  /** Copies of the rows, in all other cases. */
  #copied: RowStore | undefined;

  constructor(dtype: FixedDType, shape: readonly number[], capacity: number, path: string) {
    this.#dtype = dtype;
    this.#shape = shape;
    this.#rowSize = shape.reduce((a, b) => a * b, 1);
    this.#path = path;
    this.#capacity = capacity;
  }

  write(index: number, value: unknown): void {
    const dtype = value instanceof Tensor ? value.dtype : dtypeOf(value);
    const shape = shapeOf(value);
    if (!sameShape(shape, this.#shape)) {
      const isText = this.#dtype === "uint8" && value instanceof Uint8Array;
      throw differentShapes(this.#path, this.#shape, index, shape, isText ? BYTES_REMEDY : "");
    }
    if (dtype !== this.#dtype) {
      throw differentKinds(this.#path, `a ${this.#dtype} tensor`, index, value);
    }
    const data = itemsOf(value, shape, this.#path, index) as TypedArray;
    if (index === 0 && this.#copied === undefined) {
      this.#written = WrittenBatch.of(data, this.#capacity);
    }
    if (this.#written?.has(index, data)) return;
    copyInto(this.#storeOf(index), data, index * this.#rowSize);
  }

  writeRows(index: number, batch: unknown, count: number): boolean {
    if (!(batch instanceof Tensor) || batch.dtype !== this.#dtype) return false;
    if (!sameShape(batch.shape, [count, ...this.#shape])) return false;
    if (batch.data.length !== count * this.#rowSize) return false;
    const store = this.#storeOf(index, count);
    copyInto(store, batch.data as TypedArray, index * this.#rowSize);
    return true;
  }

  read(index: number): Tensor {
    const start = index * this.#rowSize;
    const { data } = this.#written ?? this.#copied!;
    return new Tensor(this.#dtype, this.#shape, data.slice(start, start + this.#rowSize));
  }

  finish(count: number): Tensor {
    const isWritten = this.#written !== undefined && count === this.#capacity;
    const data = isWritten ? this.#written!.finish() : this.#copies(count).take(count);
    return new Tensor(this.#dtype, [count, ...this.#shape], data);
  }

  /** An array with copies of the rows before `index`, and space for `count` rows from there on. */
  #storeOf(index: number, count = 1): TypedArray {
    const store = this.#copies(index);
    store.reserve(index + count - 1);
    return store.data;
  }

  /** The store of copies, with the first `count` rows. */
  #copies(count: number): RowStore {
    if (this.#copied !== undefined) return this.#copied;
    const store = this.#copied = new RowStore(this.#dtype, this.#rowSize, this.#capacity);
    if (this.#written !== undefined && count > 0) {
      store.reserve(count - 1);
      copyInto(store.data, this.#written.data.subarray(0, count * this.#rowSize), 0);
    }
    this.#written = undefined;
    return store;
  }
}

/** Tensors of strings or byte strings, whose items have no fixed size. */
export class TextTensorColumn implements Column {
  readonly #dtype: "string" | "bytes";
  readonly #shape: readonly number[];
  readonly #path: string;
  readonly #rows: (readonly unknown[])[] = [];

  constructor(dtype: DType, shape: readonly number[], path: string) {
    this.#dtype = dtype as "string" | "bytes";
    this.#shape = shape;
    this.#path = path;
  }

  write(index: number, value: unknown): void {
    const shape = shapeOf(value);
    if (!sameShape(shape, this.#shape)) {
      throw differentShapes(this.#path, this.#shape, index, shape);
    }
    if (!(value instanceof Tensor) || value.dtype !== this.#dtype) {
      throw differentKinds(this.#path, `a ${this.#dtype} tensor`, index, value);
    }
    this.#rows[index] = value.data as unknown as readonly unknown[];
  }

  read(index: number): Tensor {
    return tensorOf(this.#dtype, this.#shape, this.#rows[index]);
  }

  finish(count: number): Tensor {
    const items = this.#rows.slice(0, count).flat() as string[] & Uint8Array[];
    return new Tensor(this.#dtype, [count, ...this.#shape], items);
  }
}

/** Strings, or byte strings of any length, such as the records of a file. */
export class TextColumn implements Column {
  readonly #dtype: "string" | "bytes";
  readonly #path: string;
  readonly #rows: unknown[] = [];

  constructor(dtype: "string" | "bytes", path: string) {
    this.#dtype = dtype;
    this.#path = path;
  }

  write(index: number, value: unknown): void {
    const isString = this.#dtype === "string";
    if (isString ? typeof value !== "string" : !(value instanceof Uint8Array)) {
      throw differentKinds(this.#path, isString ? "a string" : "bytes", index, value);
    }
    this.#rows[index] = value;
  }

  read(index: number): unknown {
    return this.#rows[index];
  }

  finish(count: number): Tensor {
    return tensorOf(this.#dtype, [count], this.#rows.slice(0, count));
  }
}

/** A leaf that is null in every element, and so in the batch. */
export class NullColumn implements Column {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  write(index: number, value: unknown): void {
    if (value !== null) throw differentKinds(this.#path, "null", index, value);
  }

  read(): null {
    return null;
  }

  finish(): null {
    return null;
  }
}

export function sameShape(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((length, axis) => length === b[axis]);
}

export function tensorOf(dtype: DType, shape: readonly number[], data: unknown): Tensor {
  return new Tensor(dtype, shape, data as DTypeArrays[DType]);
}
