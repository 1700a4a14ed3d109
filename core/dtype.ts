/** The element types of tensors: their names, sizes and storage. */
import { LeatError } from "./error.ts";

/** The dtypes, in the order that docs and specs list them. */
export const DTYPES = [
  "int8",
  "uint8",
  "int16",
  "uint16",
  "int32",
  "uint32",
  "int64",
  "uint64",
  "float16",
  "float32",
  "float64",
  "bool",
  "string",
  "bytes",
] as const;

/**
 * The type of a tensor's elements. `bool` is stored as one byte, 0 or 1; `string` is text, `bytes`
 * is opaque.
 */
export type DType = typeof DTYPES[number];

/** The dtypes whose elements all have one size. */
export type FixedDType = Exclude<DType, "string" | "bytes">;

/** The storage of each dtype. */
export interface DTypeArrays {
  /** Signed, 8 bits. */
  int8: Int8Array;
  /** Unsigned, 8 bits. */
  uint8: Uint8Array;
  /** Signed, 16 bits. */
  int16: Int16Array;
  /** Unsigned, 16 bits. */
  uint16: Uint16Array;
  /** Signed, 32 bits. */
  int32: Int32Array;
  /** Unsigned, 32 bits. */
  uint32: Uint32Array;
  /** Signed, 64 bits, as bigints. */
  int64: BigInt64Array;
  /** Unsigned, 64 bits, as bigints. */
  uint64: BigUint64Array;
  /** IEEE 754, 16 bits. */
  float16: Float16Array;
  /** IEEE 754, 32 bits. */
  float32: Float32Array;
  /** IEEE 754, 64 bits. */
  float64: Float64Array;
  /** 0 or 1, one byte each. */
  bool: Uint8Array;
  /** Text. */
  string: string[];
  /** Opaque bytes of any length. */
  bytes: Uint8Array[];
}

/** The typed arrays that store a dtype. */
export type TypedArray = DTypeArrays[FixedDType];

/** The dtype of a typed array; `uint8` for a `Uint8Array`. */
export type DTypeOf<A extends TypedArray> = {
  [D in Exclude<FixedDType, "bool">]: A extends DTypeArrays[D] ? D : never;
}[Exclude<FixedDType, "bool">];

interface TypedArrayConstructor {
  new (length: number): TypedArray;
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): TypedArray;
  readonly BYTES_PER_ELEMENT: number;
}

/** The constructor of each fixed-size dtype's storage. */
export const TYPED_ARRAYS: Readonly<Record<FixedDType, TypedArrayConstructor>> = {
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  float16: Float16Array,
  float32: Float32Array,
  float64: Float64Array,
  bool: Uint8Array,
};

const DTYPE_SET: ReadonlySet<unknown> = new Set(DTYPES);

const DTYPE_OF_CONSTRUCTOR: ReadonlyMap<unknown, FixedDType> = new Map(
  (Object.entries(TYPED_ARRAYS) as [FixedDType, TypedArrayConstructor][])
    .filter(([dtype]) => dtype !== "bool")
    .map(([dtype, constructor]) => [constructor, dtype]),
);

/** Whether `value` is the name of a dtype. */
export function isDType(value: unknown): value is DType {
  return DTYPE_SET.has(value);
}

/** Whether every element of `dtype` has the same size. */
export function isFixedDType(dtype: DType): dtype is FixedDType {
  return dtype !== "string" && dtype !== "bytes";
}

/** Bytes per element; 0 for `string` and `bytes`, whose elements vary in size. */
export function itemSize(dtype: DType): number {
  return isFixedDType(dtype) ? TYPED_ARRAYS[dtype].BYTES_PER_ELEMENT : 0;
}

/**
 * The dtype that a typed array stores (`uint8` for a `Uint8Array` or a class derived from it), or
 * `undefined` for anything else.
 */
export function dtypeOf(value: unknown): FixedDType | undefined {
  if (!ArrayBuffer.isView(value)) return undefined;
  return DTYPE_OF_CONSTRUCTOR.get(value.constructor) ??
    (value instanceof Uint8Array ? "uint8" : undefined);
}

/**
 * Whether `value` is a typed array that stores a dtype. `Uint8ClampedArray` and `DataView` store
 * none.
 */
export function isTypedArray(value: unknown): value is TypedArray {
  return dtypeOf(value) !== undefined;
}

/**
 * `length` zeros (empty strings, empty blocks) in the storage of `dtype`.
 *
 * @throws {LeatError} `invalid_argument` where `dtype` is unknown.
 */
export function zerosOf<D extends DType>(dtype: D, length: number): DTypeArrays[D] {
  if (!isDType(dtype)) {
    throw new LeatError(
      "invalid_argument",
      `unknown dtype ${dtype}; dtypes are ${DTYPES.join(", ")}`,
    );
  }
  if (dtype === "string") return new Array<string>(length).fill("") as DTypeArrays[D];
  if (dtype === "bytes") {
    return Array.from({ length }, () => new Uint8Array(0)) as DTypeArrays[D];
  }
  return new TYPED_ARRAYS[dtype as FixedDType](length) as DTypeArrays[D];
}
