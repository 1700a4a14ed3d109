/** How elements represent the lists, maps and decimals of columnar files. */
import {
  type DType,
  type DTypeArrays,
  isFixedDType,
  isTypedArray,
  TYPED_ARRAYS,
  type TypedArray,
} from "../../../core/dtype.ts";
import { Tensor } from "../../../core/tensor.ts";
import { copyInto, sameShape, shapeOf } from "../../elements/leaf_columns.ts";

/** What is known about values of a column, or of items of its lists, before they are read. */
export interface ValueType {
  /** The dtype of the scalars at the bottom of lists; `undefined` if they have no single dtype. */
  readonly dtype: DType | undefined;
  /** Number of list levels above the scalars. */
  readonly depth: number;
}

/**
 * Packs a list into one leaf if possible. Numbers become a typed array. Booleans, strings and byte
 * strings become a tensor of shape [n]. Lists of equal shapes become a tensor with one more axis.
 * Returns `items` itself if its lists differ in shape, a value is null, or the items have no dtype.
 *
 * @param items Converted values, null for each absent one.
 * @param type What is known about one item.
 */
export function packList(items: readonly unknown[], type: ValueType): unknown {
  const { dtype, depth } = type;
  if (dtype === undefined || items.includes(null)) return items;
  if (depth === 0) return packScalars(dtype, items);
  if (items.length === 0) return Tensor.zeros(dtype, new Array<number>(depth + 1).fill(0));
  const shape = shapeOf(items[0]);
  const isPacked = (item: unknown) =>
    (item instanceof Tensor || isTypedArray(item)) && sameShape(shapeOf(item), shape);
  if (!items.every(isPacked)) return items;
  return stack(dtype, items as (Tensor | TypedArray)[], shape);
}

function packScalars(dtype: DType, items: readonly unknown[]): Tensor | TypedArray {
  const { length } = items;
  if (!isFixedDType(dtype)) return new Tensor(dtype, [length], items as string[] & Uint8Array[]);
  const data = new TYPED_ARRAYS[dtype](length) as { [index: number]: unknown };
  for (let i = 0; i < length; i++) data[i] = items[i];
  return dtype === "bool"
    ? new Tensor(dtype, [length], data as Uint8Array)
    : data as unknown as TypedArray;
}

function stack(
  dtype: DType,
  items: readonly (Tensor | TypedArray)[],
  shape: readonly number[],
): Tensor {
  const parts = items.map((item) => item instanceof Tensor ? item.data : item);
  const listShape = [items.length, ...shape];
  if (!isFixedDType(dtype)) {
    return new Tensor(dtype, listShape, parts.flat() as string[] & Uint8Array[]);
  }
  const stride = parts[0]!.length;
  const data = new TYPED_ARRAYS[dtype](items.length * stride);
  parts.forEach((part, i) => copyInto(data, part as TypedArray, i * stride));
  return new Tensor(dtype, listShape, data as DTypeArrays[typeof dtype]);
}

/** The largest power of ten that a float64 holds exactly, as all smaller ones. */
const EXACT_POWER_MAX = 22;

/** Returns the float64 nearest to `unscaled` / 10^`scale`. */
export function decimal(unscaled: number | bigint, scale: number): number {
  const number = Number(unscaled);
  // Dividing rounds once, and so correctly, only if both numbers are exact. Reading text takes longer.
  const isExact = Number.isSafeInteger(number) && scale >= 0 && scale <= EXACT_POWER_MAX;
  return isExact ? number / 10 ** scale : Number(`${unscaled}e${-scale}`);
}

/** Whether values of a type can be keys of a map: others have no text of their own. */
export function isKeyType({ dtype, depth }: ValueType): boolean {
  return depth === 0 && dtype !== undefined && dtype !== "bytes";
}

/** What messages say of other keys. */
export const MAP_KEYS_WANTED =
  "keys of a map can only be texts, numbers, booleans or times; leave the column out with `columns`";
