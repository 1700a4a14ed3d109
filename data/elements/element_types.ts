/** The types of operators' results. */
import type { DTypeOf, TypedArray } from "../../core/dtype.ts";
import type { RaggedTensor, Tensor } from "../../core/tensor.ts";
import type { TensorScalar } from "../../core/tensor_values.ts";
import type { Dataset } from "../dataset.ts";

/** A plain value as a leaf of an element. */
export type Scalar = number | bigint | boolean | string;

/**
 * An element with every leaf stacked into a tensor, with a dtype if the leaf's type determines it.
 * For numbers, bigints and `Uint8Array`s the `spec` decides.
 */
export type Batched<T> = unknown extends T ? unknown
  : T extends Tensor<infer D> ? Tensor<D>
  : T extends Exclude<TypedArray, Uint8Array> ? Tensor<DTypeOf<T>>
  : T extends Scalar | Uint8Array ? Tensor
  : T extends null ? null
  : { -readonly [K in keyof T]: Batched<T[K]> };

/** An element with every leaf stacked into a tensor, ragged where lengths vary. */
export type RaggedBatched<T> = unknown extends T ? unknown
  : T extends Scalar ? Tensor
  : T extends TypedArray | Tensor ? RaggedTensor | Tensor
  : T extends null ? null
  : { -readonly [K in keyof T]: RaggedBatched<T[K]> };

/** Rows of packed sequences. */
export type Packed<T> = unknown extends T ? unknown
  :
    & (T extends TypedArray | Tensor ? { tokens: Tensor } : { -readonly [K in keyof T]: Tensor })
    & { segmentIds: Tensor; positions: Tensor };

/** A row of nested arrays, of a tensor, of a typed array, or of each of several components. */
export type Sliced<C> = unknown extends C ? C
  : C extends BigInt64Array | BigUint64Array ? bigint
  : C extends TypedArray ? number
  : C extends Tensor ? Tensor | TensorScalar
  : C extends RaggedTensor ? Tensor
  : C extends readonly Scalar[] ? C[number]
  : C extends readonly (readonly (Scalar | readonly unknown[])[])[] ? Tensor
  : { -readonly [K in keyof C]: Sliced<C[K]> };

/** Nested arrays of scalars as tensors; everything else unchanged. */
export type Tensorized<E> = unknown extends E ? E
  : E extends Scalar | TypedArray | Tensor | RaggedTensor ? E
  : E extends readonly Scalar[] ? Tensor
  : E extends readonly (readonly (Scalar | readonly unknown[])[])[] ? Tensor
  : { -readonly [K in keyof E]: Tensorized<E[K]> };

/** A dataset per component. */
export type Windowed<T> = unknown extends T ? unknown
  : [T] extends [Scalar | TypedArray | Tensor | RaggedTensor | null | Dataset<unknown>] ? Dataset<T>
  : { -readonly [K in keyof T]: Windowed<T[K]> };
