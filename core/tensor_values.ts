/** The plain values that `tensor()` accepts and `toArray()` returns. */
import type { DType, TypedArray } from "./dtype.ts";
import type { Tensor } from "./tensor.ts";

/** One element of a tensor as a plain value. */
export type TensorScalar = number | bigint | boolean | string | Uint8Array;

/** A tensor as plain values: nested arrays, or the scalar itself where there is no axis. */
export type NestedArray = TensorScalar | NestedArray[];

/** The values that `tensor()` accepts. */
export type TensorLike = NestedArray | TypedArray | readonly (NestedArray | TypedArray)[] | Tensor;

/** How `tensor()` reads its argument. */
export interface TensorOptions<D extends DType = DType> {
  /**
   * Default: the dtype of a typed array; otherwise `float64` for numbers, `int64` for bigints, `bool`
   * for booleans and `string` for text.
   */
  readonly dtype?: D;
  /** Default: follows from the nesting of the arrays. */
  readonly shape?: readonly number[];
}
