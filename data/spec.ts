/**
 * Element specs: the structure, dtype and shape of a dataset's elements, as far as they are known
 * before running.
 */
import type { DType } from "../core/dtype.ts";

/** One leaf of an element: its dtype and shape; `null` dimensions vary. A plain number has shape []. */
export class TensorSpec {
  readonly dtype: DType;
  readonly shape: readonly (number | null)[];

  constructor(dtype: DType, shape: readonly (number | null)[]) {
    this.dtype = dtype;
    this.shape = shape;
  }
}

/** The spec of an element: structure with `TensorSpec` leaves; `undefined` where nothing is known. */
export type ElementSpec =
  | TensorSpec
  | readonly ElementSpec[]
  | { readonly [component: string]: ElementSpec }
  | undefined;

/** Applies `fn` to every leaf; unknown parts stay unknown. */
export function mapSpec(spec: ElementSpec, fn: (leaf: TensorSpec) => TensorSpec): ElementSpec {
  if (spec === undefined) return undefined;
  if (spec instanceof TensorSpec) return fn(spec);
  if (isTuple(spec)) return spec.map((part) => mapSpec(part, fn));
  return Object.fromEntries(
    Object.entries(spec).map(([name, part]) => [name, mapSpec(part, fn)]),
  );
}

/** True for the spec of an array (a tuple). `Array.isArray` does not narrow readonly arrays. */
export function isTuple(spec: ElementSpec): spec is readonly ElementSpec[] {
  return Array.isArray(spec);
}
