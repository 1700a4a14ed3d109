/**
 * Element specs: the structure, dtype and shape of a dataset's elements, as far as they are known
 * before running.
 */
import { type DType, isDType } from "../../core/dtype.ts";
import { LeatError } from "../../core/error.ts";
import { isPlainObject } from "../../core/tree.ts";
import { invalidArgument } from "../check.ts";

/** One leaf of an element: its dtype and shape; `null` dimensions vary. A plain number has shape []. */
export class TensorSpec {
  /** The type of its values. */
  readonly dtype: DType;
  /** The length of each axis, outermost first; null where it varies. */
  readonly shape: readonly (number | null)[];

  /**
   * Errors: `invalid_argument` for an unknown dtype, or a length that is not an integer from 0 on.
   */
  constructor(dtype: DType, shape: readonly (number | null)[]) {
    if (!isDType(dtype)) throw invalidArgument("TensorSpec", "dtype", "a dtype", dtype);
    const isLength = (at: unknown) =>
      at === null || (Number.isSafeInteger(at) && at as number >= 0);
    if (!Array.isArray(shape) || !shape.every(isLength)) {
      throw invalidArgument(
        "TensorSpec",
        "shape",
        "an array of lengths, null where they vary",
        shape,
      );
    }
    this.dtype = dtype;
    this.shape = shape;
  }
}

/** The spec of an element: a structure with `TensorSpec` leaves; `undefined` where nothing is known. */
export type ElementSpec =
  | TensorSpec
  | readonly ElementSpec[]
  | { readonly [component: string]: ElementSpec }
  | undefined;

/** Checks an operator's argument `spec`: a structure over `TensorSpec`s, parts of which may be unknown. */
export function checkSpec(operator: string, spec: unknown): ElementSpec {
  if (spec === undefined || spec instanceof TensorSpec) return spec;
  if (Array.isArray(spec)) return spec.map((part) => checkSpec(operator, part));
  if (!isPlainObject(spec)) {
    throw invalidArgument(operator, "spec", "a TensorSpec, or structure of them", spec);
  }
  return Object.fromEntries(
    Object.entries(spec).map(([name, part]) => [name, checkSpec(operator, part)]),
  );
}

/** Applies `fn` to every leaf; unknown parts stay unknown. */
export function mapSpec(spec: ElementSpec, fn: (leaf: TensorSpec) => TensorSpec): ElementSpec {
  if (spec === undefined) return undefined;
  if (spec instanceof TensorSpec) return fn(spec);
  if (isTuple(spec)) return spec.map((part) => mapSpec(part, fn));
  return Object.fromEntries(
    Object.entries(spec).map(([name, part]) => [name, mapSpec(part, fn)]),
  );
}

/** The leaves of a spec, depth first; `undefined` where some part is unknown. */
export function leavesOfSpec(spec: ElementSpec): TensorSpec[] | undefined {
  if (spec === undefined) return undefined;
  if (spec instanceof TensorSpec) return [spec];
  const leaves: TensorSpec[] = [];
  for (const part of Object.values<ElementSpec>(spec)) {
    const below = leavesOfSpec(part);
    if (below === undefined) return undefined;
    leaves.push(...below);
  }
  return leaves;
}

export function isRecordSpec(spec: ElementSpec): spec is { readonly [name: string]: ElementSpec } {
  return spec !== undefined && !(spec instanceof TensorSpec) && !isTuple(spec);
}

/** True for the spec of an array (a tuple). `Array.isArray` does not narrow readonly arrays. */
export function isTuple(spec: ElementSpec): spec is readonly ElementSpec[] {
  return Array.isArray(spec);
}

/** A spec in words: `{ x: float32[2, ?], y: int64 }`. */
export function specText(spec: ElementSpec): string {
  if (spec === undefined) return "unknown";
  if (spec instanceof TensorSpec) {
    return spec.shape.length === 0
      ? spec.dtype
      : `${spec.dtype}[${spec.shape.map((at) => at ?? "?").join(", ")}]`;
  }
  if (isTuple(spec)) return `[${spec.map(specText).join(", ")}]`;
  const parts = Object.entries(spec).map(([name, part]) => `${name}: ${specText(part)}`);
  return `{ ${parts.join(", ")} }`;
}

/**
 * The spec that covers elements of both specs: dimensions that differ become null, and a part that is
 * unknown in one is unknown. `differ` is called if they cannot be elements of one dataset.
 */
export function mergeSpecs(
  a: ElementSpec,
  b: ElementSpec,
  differ: (path: string, a: ElementSpec, b: ElementSpec) => undefined,
  path = "$",
): ElementSpec {
  if (a === undefined || b === undefined) return undefined;
  if (a instanceof TensorSpec || b instanceof TensorSpec) {
    if (!(a instanceof TensorSpec && b instanceof TensorSpec) || a.dtype !== b.dtype) {
      return differ(path, a, b);
    }
    if (a.shape.length !== b.shape.length) return undefined;
    return new TensorSpec(a.dtype, a.shape.map((at, i) => at === b.shape[i] ? at : null));
  }
  if (isTuple(a) || isTuple(b)) {
    if (!isTuple(a) || !isTuple(b) || a.length !== b.length) return differ(path, a, b);
    return a.map((part, i) => mergeSpecs(part, b[i], differ, `${path}[${i}]`));
  }
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length || !keys.every((key) => Object.hasOwn(b, key))) {
    return differ(path, a, b);
  }
  return Object.fromEntries(
    keys.map((key) => [key, mergeSpecs(a[key], b[key], differ, `${path}.${key}`)]),
  );
}

/**
 * The common spec of several datasets; `invalid_argument` where their elements could not be of one
 * dataset.
 */
export function commonSpec(operator: string, specs: readonly ElementSpec[]): ElementSpec {
  return specs.reduce((common, spec) =>
    mergeSpecs(common, spec, (path, a, b) => {
      throw new LeatError(
        "invalid_argument",
        `${operator}: the datasets' elements differ at ${path}: ${describe(a)} and ${describe(b)}`,
      );
    })
  );
}

function describe(spec: ElementSpec): string {
  if (spec instanceof TensorSpec) return `${spec.dtype}`;
  if (isTuple(spec)) return `a tuple of ${spec.length}`;
  return `an object of {${Object.keys(spec ?? {}).join(", ")}}`;
}
