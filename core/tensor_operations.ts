/** Operations on tensors, with the names and defaults of TensorFlow. */

import { type DType, type FixedDType, isFixedDType, isTypedArray } from "./dtype.ts";
import { LeatError } from "./error.ts";
import { shownClass } from "./shown_text.ts";
import { Tensor, tensor } from "./tensor.ts";

/** The operations that user functions get as `extra.tensors`. */
export interface TensorOperations {
  /** See {@linkcode cast}. */
  readonly cast: typeof cast;
  /** See {@linkcode oneHot}. */
  readonly oneHot: typeof oneHot;
  /** See {@linkcode stack}. */
  readonly stack: typeof stack;
  /** See {@linkcode pad}. */
  readonly pad: typeof pad;
  /** See {@linkcode gather}. */
  readonly gather: typeof gather;
}

/**
 * The values in another dtype. Floats are truncated to integers, and integers wrap around as in typed
 * arrays; `bool` is whether a value is not 0.
 *
 * @throws {LeatError} `invalid_argument` for text and bytes, as a value or as the dtype, and for NaN
 * and infinity as an integer of 64 bits.
 */
export function cast<D extends FixedDType>(value: Tensor, dtype: D): Tensor<D> {
  requireTensor("cast", value);
  const from = requireNumeric("cast", value);
  requireFixed("cast", dtype);
  const out = Tensor.zeros(dtype, value.shape);
  const into = out.data as { [index: number]: number | bigint };
  const isBig = dtype === "int64" || dtype === "uint64";
  const isFloat = dtype.startsWith("float");
  for (let i = 0; i < from.length; i++) {
    const item = from[i]!;
    if (dtype === "bool") into[i] = Number(item) !== 0 ? 1 : 0;
    else if (isBig) into[i] = typeof item === "bigint" ? item : bigOf(item);
    else if (isFloat) into[i] = Number(item);
    else into[i] = typeof item === "bigint" ? Number(BigInt.asIntN(32, item)) : Math.trunc(item);
  }
  return out;
}

function bigOf(value: number): bigint {
  if (Number.isFinite(value)) return BigInt(Math.trunc(value));
  throw invalid("cast", `${value} is no integer`);
}

/** Options of {@linkcode oneHot}. */
export interface OneHotOptions<D extends FixedDType = FixedDType> {
  /** Default `"float32"`. */
  readonly dtype?: D;
  /** The value at the index; default 1. */
  readonly onValue?: number;
  /** All other values; default 0. */
  readonly offValue?: number;
}

/**
 * One-hot rows of indices of any shape, along a new last axis of length `depth`. An index outside of 0
 * to `depth - 1` gives a row without `onValue`, as in `tf.one_hot`.
 *
 * @throws {LeatError} `invalid_argument` for a `depth` that is not an integer from 0 up, for indices
 * that are not integers, and for a dtype of text or bytes.
 *
 * @example
 * ```ts
 * import { tensor } from "./tensor.ts";
 * import { oneHot } from "./tensor_operations.ts";
 *
 * oneHot(tensor(new Int32Array([2, 0])), 3).toArray(); // [[0, 0, 1], [1, 0, 0]]
 * ```
 */
export function oneHot<D extends FixedDType = "float32">(
  indices: Tensor | number | bigint,
  depth: number,
  { dtype = "float32" as D, onValue = 1, offValue = 0 }: OneHotOptions<D> = {},
): Tensor<D> {
  requireLength("oneHot", "depth", depth);
  requireFixed("oneHot", dtype);
  const of = indices instanceof Tensor ? indices : tensor(indices);
  const at = requireNumeric("oneHot", of);
  const ones = Tensor.zeros(dtype, [...of.shape, depth]);
  const on = cast(tensor(onValue), dtype).data[0]!, off = cast(tensor(offValue), dtype).data[0]!;
  const data = ones.data as { [index: number]: number | bigint } & { fill(value: unknown): void };
  if (offValue !== 0) data.fill(off);
  for (let i = 0; i < at.length; i++) {
    const index = Number(at[i]);
    if (!Number.isInteger(index)) throw invalid("oneHot", `an index is an integer, not ${at[i]}`);
    if (index >= 0 && index < depth) data[i * depth + index] = on;
  }
  return ones;
}

/**
 * Tensors of one dtype and shape, along a new axis.
 *
 * @param axis from `-(rank + 1)` to `rank`; default 0.
 * @throws {LeatError} `invalid_argument` if there are no tensors, their dtypes or shapes differ, or
 * the axis is out of range.
 */
export function stack<D extends DType>(
  values: readonly Tensor<D>[],
  { axis = 0 }: { readonly axis?: number } = {},
): Tensor<D> {
  if (!Array.isArray(values)) {
    throw invalid("stack", `an array of tensors is wanted, not ${kindOf(values)}`);
  }
  for (const value of values) requireTensor("stack", value);
  const [first] = values;
  if (first === undefined) throw invalid("stack", "there are no tensors");
  const { dtype, shape } = first;
  for (const value of values) {
    if (value.dtype === dtype && value.shape.join() === shape.join()) continue;
    const other = `${value.dtype} [${value.shape}]`;
    throw invalid(
      "stack",
      `tensors have one dtype and shape, not ${dtype} [${shape}] and ${other}`,
    );
  }
  const at = axisOf("stack", axis, shape.length + 1);
  const out = Tensor.zeros(dtype, shape.toSpliced(at, 0, values.length));
  const inner = product(shape.slice(at)), outer = product(shape.slice(0, at));
  for (let row = 0; row < outer; row++) {
    for (const [i, { data }] of values.entries()) {
      copy(data, row * inner, out.data, (row * values.length + i) * inner, inner);
    }
  }
  return out;
}

/**
 * A tensor with values added before and after each axis.
 *
 * @param paddings `[before, after]` for each axis.
 * @param constant the new values; default 0, `""` or no bytes.
 * @throws {LeatError} `invalid_argument` if there is not one pair of counts for each axis, or if
 * `constant` is not of the tensor's kind.
 */
export function pad<D extends DType>(
  value: Tensor<D>,
  paddings: readonly (readonly [before: number, after: number])[],
  constant?: number | bigint | string,
): Tensor<D> {
  requireTensor("pad", value);
  const { shape } = value;
  if (!Array.isArray(paddings) || paddings.length !== shape.length) {
    throw invalid("pad", `a tensor of shape [${shape}] is padded by ${shape.length} pairs`);
  }
  for (const side of paddings.flat()) requireLength("pad", "a padding", side);
  const padded = shape.map((length, axis) => paddings[axis]![0] + length + paddings[axis]![1]);
  const out = Tensor.zeros(value.dtype, padded);
  if (constant !== undefined) {
    const item = paddingOf(value.dtype, constant);
    (out.data as unknown as { fill(value: unknown): void }).fill(item);
  }
  const rank = shape.length, inner = rank === 0 ? 1 : shape[rank - 1]!;
  const rows = inner === 0 ? 0 : value.size / inner;
  for (let row = 0; row < rows; row++) {
    let rest = row, to = rank === 0 ? 0 : paddings[rank - 1]![0], step = padded[rank - 1] ?? 1;
    for (let axis = rank - 2; axis >= 0; axis--) {
      to += (rest % shape[axis]! + paddings[axis]![0]) * step;
      rest = Math.floor(rest / shape[axis]!);
      step *= padded[axis]!;
    }
    copy(value.data, row * inner, out.data, to, inner);
  }
  return out;
}

function paddingOf(dtype: DType, constant: number | bigint | string): unknown {
  if (typeof constant === "string") {
    if (dtype === "string") return constant;
  } else if (isFixedDType(dtype)) return cast(tensor(constant), dtype).data[0];
  throw invalid("pad", `${JSON.stringify(String(constant))} pads no tensor of ${dtype}`);
}

/**
 * The slices of a tensor at indices of any shape, along an axis.
 *
 * @param axis from `-rank` to `rank - 1`; default 0.
 * @throws {LeatError} `out_of_range` for an index beyond the axis; `invalid_argument` if `value` is a
 * scalar or the axis is out of range.
 */
export function gather<D extends DType>(
  value: Tensor<D>,
  indices: Tensor | readonly number[],
  { axis = 0 }: { readonly axis?: number } = {},
): Tensor<D> {
  requireTensor("gather", value);
  const { shape } = value;
  const at = axisOf("gather", axis, shape.length);
  const of = indices instanceof Tensor ? indices : indexTensor(indices);
  const wanted = requireNumeric("gather", of);
  const length = shape[at]!, count = wanted.length;
  const out = Tensor.zeros(value.dtype, shape.toSpliced(at, 1, ...of.shape));
  const inner = product(shape.slice(at + 1)), outer = product(shape.slice(0, at));
  for (let i = 0; i < count; i++) {
    const index = Number(wanted[i]);
    if (!Number.isInteger(index) || index < 0 || index >= length) {
      throw new LeatError(
        "out_of_range",
        `gather: there is no index ${wanted[i]} along axis ${at} of a tensor of shape [${shape}]`,
      );
    }
    for (let row = 0; row < outer; row++) {
      const from = (row * length + index) * inner;
      copy(value.data, from, out.data, (row * count + i) * inner, inner);
    }
  }
  return out;
}

export const tensors: TensorOperations = { cast, oneHot, stack, pad, gather };

function copy(from: unknown, at: number, into: unknown, to: number, count: number): void {
  const source = from as ArrayLike<unknown>, target = into as { [index: number]: unknown };
  if (!Array.isArray(from) && count > 16) {
    (into as Uint8Array).set((from as Uint8Array).subarray(at, at + count), to);
    return;
  }
  for (let i = 0; i < count; i++) target[to + i] = source[at + i];
}

function requireNumeric(operation: string, { dtype, data }: Tensor): ArrayLike<number | bigint> {
  if (isFixedDType(dtype)) return data as ArrayLike<number | bigint>;
  throw invalid(operation, `a tensor of numbers is wanted, not of ${dtype}`);
}

/** The types refuse anything else, but a program may be JavaScript. */
function requireTensor(operation: string, value: unknown): void {
  if (value instanceof Tensor) return;
  throw invalid(operation, `a tensor is wanted, not ${kindOf(value)}; tensor() makes one`);
}

/** An array of indices, also a typed one, as a tensor. */
function indexTensor(indices: readonly number[]): Tensor {
  if (Array.isArray(indices) || isTypedArray(indices)) {
    return tensor(Float64Array.from(indices, Number));
  }
  throw invalid("gather", `indices are a tensor or an array, not ${kindOf(indices)}`);
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  return typeof value === "object" ? shownClass(value) : typeof value;
}

/** The types refuse such a dtype, but a program may be JavaScript. */
function requireFixed(operation: string, dtype: DType): void {
  if (isFixedDType(dtype)) return;
  throw invalid(operation, `a dtype of numbers or bool is wanted, not ${dtype}`);
}

function requireLength(operation: string, name: string, value: number): void {
  if (Number.isSafeInteger(value) && value >= 0) return;
  throw invalid(operation, `${name} is an integer from 0 up, not ${value}`);
}

function axisOf(operation: string, axis: number, rank: number): number {
  if (Number.isInteger(axis) && axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  throw invalid(operation, `an axis is from ${-rank} to ${rank - 1}, not ${axis}`);
}

function product(lengths: readonly number[]): number {
  return lengths.reduce((product, length) => product * length, 1);
}

function invalid(operation: string, message: string): LeatError {
  return new LeatError("invalid_argument", `${operation}: ${message}`);
}
