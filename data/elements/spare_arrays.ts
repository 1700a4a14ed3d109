/** The arrays of large batches that nothing uses any more: later batches use their memory again. */
import { type FixedDType, TYPED_ARRAYS, type TypedArray } from "../../core/dtype.ts";
import { Tensor } from "../../core/tensor.ts";
import { flattenTree } from "../../core/tree.ts";

/** A new array of fewer bytes costs less than a weak reference. */
const BYTES_MIN = 64 << 10;
/** Limits of the spare arrays together. */
const SPARE_ARRAYS_MAX = 64;
const SPARE_BYTES_MAX = 256 << 20;

/** An array that the garbage collector may free at any time. */
interface Spare {
  readonly Values: unknown;
  readonly length: number;
  readonly bytes: number;
  /** Read only if the array fits, because reading it keeps the array for a while. */
  readonly data: WeakRef<TypedArray>;
}

/** The newest is last. */
const spares: Spare[] = [];
let spareBytes = 0;

/** An array with arbitrary contents; `undefined` if there is none of this length. */
export function takeSpare(dtype: FixedDType, length: number): TypedArray | undefined {
  const Values = TYPED_ARRAYS[dtype];
  if (length * Values.BYTES_PER_ELEMENT < BYTES_MIN) return undefined;
  for (let at = spares.length - 1; at >= 0; at--) {
    const spare = spares[at]!;
    if (spare.Values !== Values || spare.length !== length) continue;
    spares.splice(at, 1);
    spareBytes -= spare.bytes;
    const data = spare.data.deref();
    if (data !== undefined) return data;
  }
  return undefined;
}

/** Keeps an array, if it is large. Nothing else may refer to it, nor to another view of its memory. */
export function keepSpare(data: TypedArray): void {
  const { length, byteLength: bytes } = data;
  if (bytes < BYTES_MIN || bytes > SPARE_BYTES_MAX) return;
  spares.push({ Values: data.constructor, length, bytes, data: new WeakRef(data) });
  spareBytes += bytes;
  while (spares.length > SPARE_ARRAYS_MAX || spareBytes > SPARE_BYTES_MAX) {
    spareBytes -= spares.shift()!.bytes;
  }
}

/** Large arrays that only one batch refers to. */
const owned = new WeakSet<TypedArray>();
let hasFinished = false;

/** Notes that a column gives its own array away, to a batch. */
export function noteFinished(data: TypedArray): void {
  if (data.byteLength < BYTES_MIN) return;
  owned.add(data);
  hasFinished = true;
}

/** Whether a column has given away a large array since the last call. */
export function hasFinishedLarge(): boolean {
  const has = hasFinished;
  hasFinished = false;
  return has;
}

/** Keeps the arrays that columns gave to a batch. Nothing may refer to the batch any more. */
export function keepSpares(batch: unknown): void {
  for (const leaf of flattenTree(batch)) {
    const data = leaf instanceof Tensor ? leaf.data as TypedArray : undefined;
    // `delete`, so that no array is kept twice.
    if (data !== undefined && owned.delete(data)) keepSpare(data);
  }
}
