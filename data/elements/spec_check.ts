/** Checks elements against the `spec` that a user has declared, and that they contain no `undefined`. */
import {
  type DType,
  isFixedDType,
  isTypedArray,
  itemSize,
  TYPED_ARRAYS,
} from "../../core/dtype.ts";
import { LeatError } from "../../core/error.ts";
import { RaggedTensor, Tensor } from "../../core/tensor.ts";
import { isPlainObject, TOO_DEEP, TREE_DEPTH_MAX } from "../../core/tree.ts";
import { show } from "../check.ts";
import type { OperatorMeter } from "../iterators/stats.ts";
import { component } from "./leaf_columns.ts";
import { specOf } from "./components.ts";
import { type ElementSpec, isTuple, specText, TensorSpec } from "./spec.ts";

export interface SpecCheckOptions {
  /** Whether null may replace a leaf, as in rows of files with missing values. Default false. */
  readonly nullable?: boolean;
}

/**
 * Whether an element contains no `undefined`, which has no wire form. Excessive nesting is refused
 * elsewhere.
 */
export function isWhole(value: unknown): boolean {
  try {
    return isWholeAt(value, 0);
  } catch (error) {
    if (error === TOO_DEEP) return true;
    throw error;
  }
}

function isWholeAt(value: unknown, depth: number): boolean {
  if (typeof value !== "object") return value !== undefined;
  if (value === null) return true;
  // Ends the whole walk: data with cycles has too many paths to try each of them.
  if (depth > TREE_DEPTH_MAX) throw TOO_DEEP;
  if (Array.isArray(value)) {
    // Array methods would skip holes.
    for (const part of value) if (!isWholeAt(part, depth + 1)) return false;
    return true;
  }
  if (!isRecord(value)) return true;
  for (const key in value) {
    if (!isWholeAt(value[key], depth + 1)) return false;
  }
  return true;
}

/** Refuses an element with `undefined` in it, and counts it as failed at the operator that gave it. */
export function requireWhole(element: unknown, stats: OperatorMeter): void {
  const which = `${stats.operator}: an element it gives`;
  let fault: LeatError;
  try {
    if (isWhole(element)) return;
    fault = missingIn(element, which);
  } catch (error) {
    fault = unreadable(which, error);
  }
  throw stats.failed(fault);
}

/** The error of an element with `undefined` in it, naming the leaf. `which`: which element it is. */
export function missingIn(element: unknown, which: string): LeatError {
  const path = pathOfMissing(element, "") ?? "";
  const reason = path === "" && element !== undefined
    ? "something in it is undefined"
    : absent(path);
  return new LeatError("invalid_argument", `${which}: ${reason}`);
}

/** The error of an element of which a getter or a proxy throws. `which`: which element it is. */
function unreadable(which: string, cause: unknown): LeatError {
  const { message } = LeatError.from(cause);
  const what = `${which}: reading it throws "${message}"; give plain values, without getters`;
  return new LeatError("invalid_argument", what, { cause });
}

function pathOfMissing(value: unknown, path: string): string | undefined {
  if (value === undefined) return path;
  if (!Array.isArray(value) && !isPlainObject(value)) return undefined;
  for (const [key, part] of partsOf(value)) {
    const found = pathOfMissing(part, path + stepTo(key, value));
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The parts of a container by their keys. A hole in an array is `undefined`. */
function* partsOf(container: unknown): Iterable<[key: string, part: unknown]> {
  if (Array.isArray(container)) {
    for (let i = 0; i < container.length; i++) yield [String(i), container[i]];
  } else yield* Object.entries(container as Record<string, unknown>);
}

type Fits = (value: unknown) => boolean;

/** A spec prepared once, so that checking an element is fast. */
export class SpecCheck {
  /**
   * Whether every plain number fits. If not, the integers within the bounds fit, if there are any.
   */
  readonly takesAnyNumber: boolean;
  readonly #numberMin: number;
  readonly #numberMax: number;
  readonly #spec: ElementSpec;
  readonly #fits: Fits;
  readonly #nullable: boolean;

  /** The check for a spec; undefined if nothing is declared. */
  static of(spec: ElementSpec, options?: SpecCheckOptions): SpecCheck | undefined {
    return spec === undefined ? undefined : new SpecCheck(spec, options);
  }

  private constructor(spec: ElementSpec, { nullable = false }: SpecCheckOptions = {}) {
    this.#spec = spec;
    this.#nullable = nullable;
    this.#fits = fitsOf(spec, nullable);
    const dtype = spec instanceof TensorSpec && spec.shape.length === 0 ? spec.dtype : "string";
    this.takesAnyNumber = dtype.startsWith("float");
    [this.#numberMin, this.#numberMax] = integerBounds(dtype);
  }

  /** `fits()` for a plain number, for loops over many. */
  fitsNumber(element: number): boolean {
    return this.takesAnyNumber ||
      element >= this.#numberMin && element <= this.#numberMax && Math.trunc(element) === element;
  }

  fits(element: unknown): boolean {
    return this.#fits(element);
  }

  /** Returns the element; throws `failure()` if it does not fit. */
  checked<T>(element: T): T {
    if (!this.#fits(element)) throw this.failure(element);
    return element;
  }

  /**
   * Why an element does not fit: `invalid_argument` naming the first leaf that does not, and its
   * spec.
   *
   * @param which Which element it is, to begin the message.
   */
  failure(element: unknown, which?: string): LeatError {
    const reason = this.#reason(this.#spec, element, "") ?? "it fits";
    return new LeatError("invalid_argument", which === undefined ? reason : `${which}: ${reason}`);
  }

  #reason(spec: ElementSpec, value: unknown, path: string): string | undefined {
    if (value === undefined) return absent(path);
    if (spec === undefined || spec instanceof TensorSpec) {
      if (fitsOf(spec, this.#nullable)(value)) return undefined;
      return spec === undefined
        ? this.#reasonWithin(undefined, value, path)
        : contradiction(path, valueText(value), specText(spec));
    }
    const isSame = isTuple(spec)
      ? Array.isArray(value) && value.length === spec.length
      : isPlainObject(value) && sameKeys(value, Object.keys(spec));
    return isSame
      ? this.#reasonWithin(spec, value, path)
      : contradiction(path, valueText(value), specText(spec));
  }

  #reasonWithin(spec: ElementSpec, value: unknown, path: string): string | undefined {
    for (const [key, part] of partsOf(value)) {
      const below = spec === undefined ? undefined : (spec as Record<string, ElementSpec>)[key];
      const reason = this.#reason(below, part, path + stepTo(key, value));
      if (reason !== undefined) return reason;
    }
    return undefined;
  }
}

/** Refuses elements whose spec has a scalar, such as a byte string, because it has no rows. */
export function checkHasRows(operator: string, spec: ElementSpec, path = ""): void {
  if (spec === undefined) return;
  if (!(spec instanceof TensorSpec)) {
    for (const [key, part] of Object.entries<ElementSpec>(spec)) {
      checkHasRows(operator, part, path + stepTo(key, spec));
    }
  } else if (spec.shape.length === 0) {
    throw new LeatError(
      "invalid_argument",
      `${operator}: ${component(path)} is a scalar (${specText(spec)}) and has no rows; call ` +
        `batch(n) before`,
    );
  }
}

/** The step from a container to one of its parts, as in a path. */
export function stepTo(key: string, parent: unknown): string {
  return Array.isArray(parent) ? `[${key}]` : `.${key}`;
}

function absent(path: string): string {
  return path === ""
    ? "the element is undefined: return a value, or null"
    : `${component(path)} is undefined: give null for what is absent`;
}

function contradiction(path: string, found: string, wanted: string): string {
  return `${component(path)} is ${found}, but the spec says ${wanted}: correct one of them ` +
    "(null in a shape allows any length)";
}

/** A value in a message: by dtype and shape if it is large. */
function valueText(value: unknown): string {
  if (value instanceof Tensor || value instanceof RaggedTensor || isTypedArray(value)) {
    return specText(specOf(value));
  }
  if (Array.isArray(value)) return `a tuple of ${value.length}`;
  return isPlainObject(value) ? `an object of {${Object.keys(value).join(", ")}}` : show(value);
}

function sameKeys(value: Record<string, unknown>, keys: readonly string[]): boolean {
  return Object.keys(value).length === keys.length &&
    keys.every((key) => Object.hasOwn(value, key));
}

function fitsOf(spec: ElementSpec, nullable: boolean): Fits {
  if (spec === undefined) return (value) => isWhole(value);
  if (spec instanceof TensorSpec) {
    const fits = leafFits(spec);
    return nullable ? (value) => value === null || fits(value) : fits;
  }
  if (isTuple(spec)) return tupleFits(spec.map((part) => fitsOf(part, nullable)));
  const keys = Object.keys(spec);
  return recordFits(keys, keys.map((key) => fitsOf(spec[key], nullable)));
}

/** A faster `isPlainObject()`: looking up a prototype costs more than the rest of the check. */
function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null &&
    (value.constructor === Object || isPlainObject(value));
}

function tupleFits(parts: readonly Fits[]): Fits {
  return (value) => {
    if (!Array.isArray(value) || value.length !== parts.length) return false;
    for (let i = 0; i < parts.length; i++) if (!parts[i]!(value[i])) return false;
    return true;
  };
}

/** Keys usually come in the order of the spec: then both are compared in parallel. */
function recordFits(keys: readonly string[], parts: readonly Fits[]): Fits {
  const fitsInAnyOrder = (value: Record<string, unknown>) =>
    sameKeys(value, keys) && parts.every((fits, i) => fits(value[keys[i]!]));
  return (value) => {
    if (!isRecord(value)) return false;
    let i = 0;
    for (const key in value) {
      if (key !== keys[i]) return fitsInAnyOrder(value);
      if (!parts[i]!(value[key])) return false;
      i++;
    }
    return i === keys.length;
  };
}

function leafFits(spec: TensorSpec): Fits {
  const { dtype, shape } = spec;
  if (shape.length === 0) {
    const fits = scalarFits(dtype);
    return (value) => fits(value) || value instanceof Tensor && tensorFits(value, spec);
  }
  // There is no typed array of booleans.
  const [length = null] = shape;
  const TypedArray = isFixedDType(dtype) && dtype !== "bool" ? TYPED_ARRAYS[dtype] : undefined;
  const arrayFits: Fits = TypedArray === undefined || shape.length > 1
    ? () => false
    : (value) => value instanceof TypedArray && (length === null || value.length === length);
  return (value) =>
    arrayFits(value) ||
    value instanceof Tensor && tensorFits(value, spec) ||
    value instanceof RaggedTensor && raggedFits(value, spec);
}

function scalarFits(dtype: DType): Fits {
  const [min, max] = integerBounds(dtype);
  switch (dtype) {
    case "float16":
    case "float32":
    case "float64":
      return (value) => typeof value === "number";
    case "bool":
      return (value) => typeof value === "boolean";
    case "string":
      return (value) => typeof value === "string";
    case "bytes":
      return (value) => value instanceof Uint8Array;
    case "int64":
      return (value) => isInteger(value, min, max) || isBigint(value, BigInt.asIntN);
    case "uint64":
      return (value) => isInteger(value, min, max) || isBigint(value, BigInt.asUintN);
    default:
      return (value) => isInteger(value, min, max);
  }
}

function isInteger(value: unknown, min: number, max: number): boolean {
  return typeof value === "number" && value >= min && value <= max && Math.trunc(value) === value;
}

function isBigint(value: unknown, cut: (bits: number, value: bigint) => bigint): boolean {
  return typeof value === "bigint" && cut(64, value) === value;
}

/** The least and greatest plain number that an integer dtype holds exactly; none for other dtypes. */
function integerBounds(dtype: DType): [min: number, max: number] {
  if (!/^u?int/.test(dtype)) return [Infinity, -Infinity];
  const bits = 8 * itemSize(dtype);
  const [min, max] = dtype.startsWith("u")
    ? [0, 2 ** bits - 1]
    : [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1];
  return [Math.max(min, Number.MIN_SAFE_INTEGER), Math.min(max, Number.MAX_SAFE_INTEGER)];
}

function tensorFits(tensor: Tensor, { dtype, shape }: TensorSpec): boolean {
  return tensor.dtype === dtype && tensor.shape.length === shape.length &&
    tensor.shape.every((length, axis) => shape[axis] === null || shape[axis] === length);
}

/** The lengths of its rows vary, so its spec has a null there. */
function raggedFits({ values, numRows }: RaggedTensor, { dtype, shape }: TensorSpec): boolean {
  const [rows, lengths, ...rest] = shape;
  return (rows === null || rows === numRows) && lengths === null && values.dtype === dtype &&
    values.shape.length - 1 === rest.length &&
    rest.every((length, axis) => length === null || length === values.shape[axis + 1]);
}
