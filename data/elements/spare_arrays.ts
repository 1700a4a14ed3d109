/** The arrays of large batches that nothing uses any more: later batches use their memory again. */
import { type FixedDType, TYPED_ARRAYS, type TypedArray } from "../../core/dtype.ts";

/** A new array of fewer bytes costs less than a weak reference. */
const BYTES_MIN = 64 << 10;
/** Limit of the spare arrays: a few batches of several columns. */
const ARRAYS_MAX = 64;

/** The newest is last. The garbage collector may free them at any time. */
const spares: WeakRef<TypedArray>[] = [];

/** An array with arbitrary contents; `undefined` if there is none of this length. */
export function takeSpare(dtype: FixedDType, length: number): TypedArray | undefined {
  const Values = TYPED_ARRAYS[dtype];
  if (length * Values.BYTES_PER_ELEMENT < BYTES_MIN) return undefined;
  for (let i = spares.length - 1; i >= 0; i--) {
    const data = spares[i]!.deref();
    if (data !== undefined && (data.constructor !== Values || data.length !== length)) continue;
    spares.splice(i, 1);
    if (data !== undefined) return data;
  }
  return undefined;
}

/** Keeps an array that nothing refers to any more, nor to another view of its memory. */
export function keepSpare(data: TypedArray): void {
  if (data.byteLength < BYTES_MIN) return;
  spares.push(new WeakRef(data));
  if (spares.length > ARRAYS_MAX) spares.shift();
}

/** The arrays that columns finish during {@linkcode finishedDuring}. */
let finished: TypedArray[] | undefined;

/** Notes that a column has made an array of its own, and now gives it away. */
export function noteFinished(data: TypedArray): void {
  if (data.byteLength >= BYTES_MIN) finished?.push(data);
}

/** Calls `make`, and returns the large arrays that columns gave away during the call. */
export function finishedDuring<T>(make: () => T): [made: T, arrays: readonly TypedArray[]] {
  const arrays: TypedArray[] = finished = [];
  try {
    return [make(), arrays];
  } finally {
    finished = undefined;
  }
}
