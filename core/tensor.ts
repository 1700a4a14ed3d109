/**
 * Tensors, which batches consist of. A tensor has a dtype, a shape and one flat row-major array. A
 * ragged tensor has one tensor of values and the positions where its rows begin.
 */
import {
  type DType,
  type DTypeArrays,
  type DTypeOf,
  dtypeOf,
  isDType,
  isFixedDType,
  isTypedArray,
  TYPED_ARRAYS,
  type TypedArray,
  zerosOf,
} from "./dtype.ts";
import { LeatError } from "./error.ts";
import { shownClass } from "./shown_text.ts";
import type { NestedArray, TensorLike, TensorOptions, TensorScalar } from "./tensor_values.ts";

/**
 * A dense tensor. Immutable by convention: its `data` may be shared with another thread.
 *
 * @example
 * ```ts
 * import { tensor } from "./tensor.ts";
 *
 * const images = tensor(new Uint8Array(2 * 3), { shape: [2, 3] });
 * images.toArray(); // [[0, 0, 0], [0, 0, 0]]
 * ```
 */
export class Tensor<D extends DType = DType> {
  /** The type of the elements. */
  readonly dtype: D;
  /** The length of each axis, outermost first; `[]` for a scalar. */
  readonly shape: readonly number[];
  /** The elements, row-major. */
  readonly data: DTypeArrays[D];

  /**
   * A tensor over existing data.
   *
   * @param dtype The type of the elements.
   * @param shape Length of every axis, outermost first; `[]` for a scalar.
   * @param data The elements, row-major; kept, not copied.
   * @throws {LeatError} `invalid_argument` if the length of `data` is not the product of `shape`, or
   * its class is not that of `dtype`. The elements are not checked.
   */
  constructor(dtype: D, shape: readonly number[], data: DTypeArrays[D]) {
    const size = sizeOf(shape);
    if (!isStoreOf(dtype, data)) throw wrongStore(dtype, data);
    if (data.length !== size) {
      throw new LeatError(
        "invalid_argument",
        `a ${dtype} tensor of shape [${shape}] has ${size} elements, but its data has ${data.length}`,
      );
    }
    this.dtype = dtype;
    this.shape = shape;
    this.data = data;
  }

  /** A tensor of zeros (`false`, `""`, empty blocks). */
  static zeros<D extends DType>(dtype: D, shape: readonly number[]): Tensor<D> {
    return new Tensor(dtype, shape, zerosOf(dtype, sizeOf(shape)));
  }

  /** Number of elements: the product of the shape. */
  get size(): number {
    return this.data.length;
  }

  /**
   * Bytes of the elements; strings count as UTF-8. Takes linear time for `string` and `bytes`, and
   * constant time otherwise.
   */
  get byteLength(): number {
    const { data } = this;
    if (!Array.isArray(data)) return data.byteLength;
    let total = 0;
    for (const item of data as (string | Uint8Array)[]) {
      total += typeof item === "string" ? utf8Length(item) : item.byteLength;
    }
    return total;
  }

  /**
   * Row `index` along axis 0, as a view of the same data (a copy of text and bytes).
   *
   * @throws {LeatError} `out_of_range` if there is no such row, `invalid_argument` for a scalar.
   */
  row(index: number): Tensor<D> {
    const [rows, ...shape] = this.shape;
    if (rows === undefined) {
      throw new LeatError("invalid_argument", `a ${this.dtype} scalar has no rows`);
    }
    if (!Number.isInteger(index) || index < 0 || index >= rows) {
      throw new LeatError(
        "out_of_range",
        `row ${index} of a ${this.dtype} tensor of shape [${this.shape}]`,
      );
    }
    const rowSize = sizeOf(shape);
    const start = index * rowSize;
    const { data } = this;
    const part = Array.isArray(data)
      ? data.slice(start, start + rowSize)
      : (data as TypedArray).subarray(start, start + rowSize);
    return new Tensor(this.dtype, shape, part as DTypeArrays[D]);
  }

  /** Returns a tensor with this data and another shape of the same size. */
  reshape(shape: readonly number[]): Tensor<D> {
    return new Tensor(this.dtype, shape, this.data);
  }

  /**
   * The elements as nested arrays; for a scalar, the element itself. `bool` gives booleans, `int64`
   * and `uint64` give bigints.
   */
  toArray(): NestedArray {
    const at = this.dtype === "bool"
      ? (index: number) => this.data[index] !== 0
      : (index: number) => this.data[index] as TensorScalar;
    return nest(this.shape, 0, 0, at);
  }
}

/**
 * Makes a tensor of a scalar, a typed array (kept, not copied, unless `dtype` differs), or nested
 * arrays of either. A `Uint8Array` is a row of `uint8`, but one element if `dtype` is `"bytes"`.
 *
 * @throws {LeatError} `invalid_argument` for rows of unequal length, mixed types, a value that
 * `dtype` cannot hold (a fraction or an overflow in an integer dtype), or a `shape` of a different
 * size.
 *
 * @example
 * ```ts
 * import { tensor } from "./tensor.ts";
 *
 * tensor([[1, 2], [3, 4]]); // float64, shape [2, 2]
 * tensor([1, 2, 3], { dtype: "int32" });
 * ```
 */
export function tensor<D extends DType>(
  value: TensorLike,
  options: TensorOptions<D> & { readonly dtype: D },
): Tensor<D>;
/** Makes a tensor of a typed array, which is kept, not copied. */
export function tensor<A extends TypedArray>(
  value: A,
  options?: Omit<TensorOptions, "dtype">,
): Tensor<DTypeOf<A>>;
/** Makes a tensor of other values, whose dtype follows from them. */
export function tensor(value: TensorLike, options?: TensorOptions): Tensor;
export function tensor(
  value: TensorLike,
  options: TensorOptions = {},
): Tensor {
  const { dtype } = options;
  if (dtype !== undefined && !isDType(dtype)) {
    throw new LeatError("invalid_argument", `unknown dtype ${String(dtype)}`);
  }
  const made = fromAny(value, dtype);
  return options.shape === undefined ? made : made.reshape(options.shape);
}

/**
 * Rows of different lengths: row `i` is `values` from `rowSplits[i]` to `rowSplits[i + 1]` along
 * axis 0. The splits are a `BigInt64Array` (int64, as in tf.data), one longer than the number of
 * rows; they go from 0 to the number of values.
 */
export class RaggedTensor<D extends DType = DType> {
  /** The rows, one after the other along axis 0. */
  readonly values: Tensor<D>;
  /** Where each row begins, and where the last one ends. */
  readonly rowSplits: BigInt64Array;

  /**
   * A ragged tensor over existing data, which is kept, not copied.
   *
   * @throws {LeatError} `invalid_argument` if the splits do not start at 0, do not end at the number
   * of values, or decrease.
   */
  constructor(values: Tensor<D>, rowSplits: BigInt64Array) {
    const rows = values.shape[0];
    if (!(rowSplits instanceof BigInt64Array)) {
      throw new LeatError(
        "invalid_argument",
        "the row splits of a ragged tensor are a BigInt64Array",
      );
    }
    if (
      rows === undefined || rowSplits[0] !== 0n || rowSplits[rowSplits.length - 1] !== BigInt(rows)
    ) {
      throw new LeatError(
        "invalid_argument",
        `the row splits of ragged values of shape [${values.shape}] go from 0 to the number of values, not from ` +
          `${rowSplits[0]} to ${rowSplits[rowSplits.length - 1]}`,
      );
    }
    for (let i = 1; i < rowSplits.length; i++) {
      if (rowSplits[i]! < rowSplits[i - 1]!) {
        throw new LeatError("invalid_argument", `row split ${i} of a ragged tensor goes down`);
      }
    }
    this.values = values;
    this.rowSplits = rowSplits;
  }

  /** Number of rows. */
  get numRows(): number {
    return this.rowSplits.length - 1;
  }

  /** Bytes of values and splits. */
  get byteLength(): number {
    return this.values.byteLength + this.rowSplits.byteLength;
  }

  /** One array per row. */
  toArray(): NestedArray[] {
    const flat = this.values.toArray() as NestedArray[];
    return Array.from(
      { length: this.numRows },
      (_, row) => flat.slice(Number(this.rowSplits[row]), Number(this.rowSplits[row + 1])),
    );
  }
}

/** Number of bytes of `text` as UTF-8; a lone surrogate counts as the three bytes of U+FFFD. */
export function utf8Length(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) continue;
    bytes += unit < 0x800 ? 1 : 2;
    if ((unit & 0xfc00) === 0xd800 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) i++;
  }
  return bytes;
}

function sizeOf(shape: readonly number[]): number {
  let size = 1;
  for (const length of shape) {
    if (!Number.isSafeInteger(length) || length < 0) {
      throw new LeatError(
        "invalid_argument",
        `axis lengths are integers from 0 up, not ${length} in shape [${shape}]`,
      );
    }
    size *= length;
  }
  return size;
}

function isStoreOf(dtype: DType, data: unknown): boolean {
  if (!isFixedDType(dtype)) return Array.isArray(data);
  const constructor = TYPED_ARRAYS[dtype];
  return constructor !== undefined && data instanceof constructor;
}

function wrongStore(dtype: DType, data: unknown): LeatError {
  if (!isDType(dtype)) return new LeatError("invalid_argument", `unknown dtype ${String(dtype)}`);
  const wanted = isFixedDType(dtype) ? TYPED_ARRAYS[dtype].name : "an array";
  const isObject = typeof data === "object" && data !== null;
  const found = Array.isArray(data) ? "an array" : isObject ? shownClass(data) : typeof data;
  return new LeatError(
    "invalid_argument",
    `the data of a ${dtype} tensor is ${wanted}, not ${found}`,
  );
}

function nest(
  shape: readonly number[],
  axis: number,
  start: number,
  at: (index: number) => TensorScalar,
): NestedArray {
  const length = shape[axis];
  if (length === undefined) return at(start);
  const stride = sizeOf(shape.slice(axis + 1));
  return Array.from({ length }, (_, i) => nest(shape, axis + 1, start + i * stride, at));
}

function fromAny(value: unknown, dtype: DType | undefined): Tensor {
  if (value instanceof Tensor) {
    return dtype === undefined || dtype === value.dtype
      ? value
      : pack(dtype, value.shape, [...value.data as Iterable<unknown>]);
  }
  if (isTypedArray(value) && dtype !== "bytes") {
    const own = dtypeOf(value)!;
    if (dtype === undefined || dtype === own) return new Tensor(own, [value.length], value);
    return pack(dtype, [value.length], [...value as Iterable<unknown>]);
  }
  const shape = nestedShape(value, dtype === "bytes");
  const leaves: unknown[] = [];
  flatten(value, shape, 0, leaves);
  if (dtype !== undefined) return pack(dtype, shape, leaves);
  const inferred = dtypeOfLeaf(value, leaves);
  // Otherwise a bigint among numbers would be rounded.
  const odd = leaves.find((leaf) => typeof leaf !== typeof leaves[0]);
  if (odd !== undefined) throw cannotHold(inferred, odd, shape);
  return pack(inferred, shape, leaves);
}

/**
 * The shape according to the first element of every axis; `flatten` checks the others against it.
 */
function nestedShape(value: unknown, bytesAreLeaves: boolean): number[] {
  const shape: number[] = [];
  for (let at = value; isRow(at, bytesAreLeaves); at = at[0]) shape.push(at.length);
  return shape;
}

function isRow(value: unknown, bytesAreLeaves: boolean): value is ArrayLike<unknown> {
  return Array.isArray(value) || (isTypedArray(value) && !bytesAreLeaves);
}

function flatten(value: unknown, shape: readonly number[], axis: number, leaves: unknown[]): void {
  if (axis === shape.length) {
    leaves.push(value);
    return;
  }
  const length = shape[axis]!;
  if (!(Array.isArray(value) || isTypedArray(value)) || value.length !== length) {
    throw new LeatError(
      "invalid_argument",
      `rows of one tensor have one length: axis ${axis} of [${shape}] is ${length} long, but a row is ` +
        `${(value as { length?: number } | null)?.length ?? typeof value}`,
    );
  }
  for (let i = 0; i < length; i++) flatten(value[i], shape, axis + 1, leaves);
}

function dtypeOfLeaf(value: unknown, leaves: readonly unknown[]): DType {
  let row = value;
  while (Array.isArray(row) && row.length > 0) row = row[0];
  const typed = dtypeOf(row);
  if (typed !== undefined) return typed;
  switch (typeof leaves[0]) {
    case "bigint":
      return "int64";
    case "boolean":
      return "bool";
    case "string":
      return "string";
    default:
      return "float64";
  }
}

function pack(dtype: DType, shape: readonly number[], leaves: readonly unknown[]): Tensor {
  if (!isFixedDType(dtype)) {
    const odd = leaves.find((leaf) =>
      dtype === "string" ? typeof leaf !== "string" : !(leaf instanceof Uint8Array)
    );
    if (odd !== undefined || leaves.includes(undefined)) throw cannotHold(dtype, odd, shape);
    return new Tensor(dtype, shape, leaves as string[] | Uint8Array[]);
  }
  const data = zerosOf(dtype, leaves.length) as { [index: number]: number | bigint };
  const big = dtype === "int64" || dtype === "uint64";
  const floating = dtype.startsWith("float");
  for (let i = 0; i < leaves.length; i++) {
    const number = numeric(leaves[i], big);
    if (number === undefined) throw cannotHold(dtype, leaves[i], shape);
    data[i] = number;
    if (!floating && data[i] !== number || (dtype === "bool" && Number(number) > 1)) {
      throw cannotHold(dtype, leaves[i], shape);
    }
  }
  return new Tensor(dtype, shape, data as TypedArray);
}

/** `leaf` as a bigint (`big`) or a number; `undefined` if it is neither. */
function numeric(leaf: unknown, big: boolean): number | bigint | undefined {
  switch (typeof leaf) {
    case "boolean":
      return big ? BigInt(leaf) : Number(leaf);
    case "bigint":
      return big ? leaf : Number(leaf);
    case "number":
      if (!big) return leaf;
      return Number.isInteger(leaf) ? BigInt(leaf) : undefined;
    default:
      return undefined;
  }
}

function cannotHold(dtype: DType, leaf: unknown, shape: readonly number[]): LeatError {
  const shown = typeof leaf === "object" && leaf !== null ? shownClass(leaf) : String(leaf);
  return new LeatError(
    "invalid_argument",
    `a ${dtype} tensor of shape [${shape}] cannot hold ${shown} (${typeof leaf})`,
  );
}
