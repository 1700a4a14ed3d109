/** Padding: columns whose rows may differ in length and are padded to one shape. */
import { type DType, dtypeOf, isTypedArray, zerosOf } from "../../core/dtype.ts";
import { LeatError } from "../../core/error.ts";
import { Tensor } from "../../core/tensor.ts";
import { isPlainObject } from "../../core/tree.ts";
import { invalidArgument, show } from "../check.ts";
import { columnFor, type LeafColumns } from "./columns.ts";
import { specOf } from "./components.ts";
import { type Column, component, itemsOf, shapeOf, tensorOf } from "./leaf_columns.ts";
import { type ElementSpec, isTuple, specText, TensorSpec } from "./spec.ts";
import { stepTo } from "./spec_check.ts";

/** The shape to pad to; `null` and -1 mean the longest in the batch. */
export type PaddedShape = readonly (number | null)[];

/** A `PaddedShape` per component, in the structure of the elements. */
export type PaddedShapes = PaddedShape | readonly PaddedShapes[] | {
  readonly [component: string]: PaddedShapes;
};

/** Padding values: one for all components, or one per component. `null`: the default. */
export type PaddingValues =
  | null
  | number
  | bigint
  | boolean
  | string
  | readonly PaddingValues[]
  | { readonly [component: string]: PaddingValues };

/** The operator that is named in errors about elements. */
const OPERATOR = "paddedBatch";

export interface Padding {
  readonly shapes?: PaddedShapes | undefined;
  readonly values?: PaddingValues | undefined;
}

/** Refuses shapes that no element could have. */
export function checkPaddedShapes(operator: string, shapes: unknown): PaddedShapes | undefined {
  if (shapes === undefined) return undefined;
  const visit = (at: unknown) => {
    if (at === null || (Number.isSafeInteger(at) && at as number >= -1)) return;
    if (Array.isArray(at)) at.forEach(visit);
    else if (isPlainObject(at)) Object.values(at).forEach(visit);
    else throw invalidArgument(operator, "paddedShapes", "made of lengths, -1 or null", at);
  };
  if (typeof shapes === "object" && shapes !== null) visit(shapes);
  else throw invalidArgument(operator, "paddedShapes", "an array or an object of arrays", shapes);
  return shapes as PaddedShapes;
}

/**
 * Refuses padding that does not fit elements with this spec, as far as the spec tells:
 * `invalid_argument` naming the component.
 */
export function checkPadding(
  operator: string,
  spec: ElementSpec,
  padding: Padding,
  path = "",
): void {
  if (spec === undefined) return;
  if (spec instanceof TensorSpec) return checkLeafPadding(operator, spec, padding, path);
  const { shapes, values } = padding;
  for (const [key, below] of Object.entries<ElementSpec>(spec)) {
    const part = path + stepTo(key, spec);
    const partly = {
      shapes: shapesUnder(operator, shapes, key, part),
      values: valueUnder(values, key),
    };
    checkPadding(operator, below, partly, part);
  }
  checkNames(operator, spec, padding, path, () => specText(spec));
}

/** Refuses padding with a key that `parts`, an element's components or their specs, do not have. */
export function checkNames(
  operator: string,
  parts: object,
  { shapes, values }: Padding,
  path: string,
  textOf: () => string,
): void {
  for (const [argument, given] of Object.entries({ paddedShapes: shapes, paddingValues: values })) {
    if (typeof given !== "object" || given === null) continue;
    const key = Object.keys(given).find((key) => !Object.hasOwn(parts, key));
    if (key === undefined) continue;
    throw new LeatError(
      "invalid_argument",
      `${operator}: ${argument} names ${component(path + stepTo(key, given))}, which elements do ` +
        `not have: they are ${textOf()}`,
    );
  }
}

/** `checkNames()` for an element and all that it contains. */
function checkNamesOf(element: unknown, padding: Padding, path: string): void {
  const { shapes, values } = padding;
  if (typeof shapes !== "object" && (typeof values !== "object" || values === null)) return;
  if (!Array.isArray(element) && !isPlainObject(element)) return;
  checkNames(OPERATOR, element, padding, path, () => specText(specOf(element)));
  for (const [key, part] of Object.entries<unknown>(element)) {
    const below = path + stepTo(key, element);
    const partly = {
      shapes: shapesUnder(OPERATOR, shapes, key, below),
      values: valueUnder(values, key),
    };
    checkNamesOf(part, partly, below);
  }
}

function checkLeafPadding(
  operator: string,
  { dtype, shape }: TensorSpec,
  { shapes, values }: Padding,
  path: string,
): void {
  checkRank(operator, shapes, shape.length, path);
  shape.forEach((length, axis) => {
    const wanted = (shapes as PaddedShape | undefined)?.[axis] ?? -1;
    if (length === null || wanted < 0 || length <= wanted) return;
    throw new LeatError(
      "invalid_argument",
      `${operator}: the padded shape ${show(shapes)} of ${component(path)} is smaller than its ` +
        `elements, which are [${shape.map((at) => at ?? "?").join(", ")}]`,
    );
  });
  if (shape.length > 0) fillValue(operator, values, dtype, path);
}

function checkRank(
  operator: string,
  shape: PaddedShapes | undefined,
  rank: number,
  path: string,
): asserts shape is PaddedShape | undefined {
  if (shape === undefined || isShape(shape) && shape.length === rank) return;
  throw new LeatError(
    "invalid_argument",
    `${operator}: the padded shape of ${component(path)} must have ${rank} dimensions like its ` +
      `elements, got ${show(shape)}`,
  );
}

/**
 * The spec of batches of `rows` elements with this spec. Axes without a fixed padded length have
 * the common length of all elements, if it is known, and vary otherwise.
 */
export function paddedSpec(
  spec: ElementSpec,
  shapes: PaddedShapes | undefined,
  rows: number | null,
): ElementSpec {
  if (spec === undefined) return undefined;
  if (spec instanceof TensorSpec) {
    const wanted = shapes !== undefined && isShape(shapes) ? shapes : [];
    const shape = spec.shape.map((length, axis) => {
      const fixed = wanted[axis] ?? -1;
      return fixed < 0 ? length : fixed;
    });
    return new TensorSpec(spec.dtype, [rows, ...shape]);
  }
  const part = (key: string | number) =>
    (shapes as Readonly<Record<string | number, PaddedShapes>> | undefined)?.[key];
  if (isTuple(spec)) return spec.map((below, i) => paddedSpec(below, part(i), rows));
  return Object.fromEntries(
    Object.entries(spec).map(([key, below]) => [key, paddedSpec(below, part(key), rows)]),
  );
}

/** Columns that pad every component of elements like this one to one shape. */
export function paddedColumnFor(
  element: unknown,
  spec: ElementSpec,
  padding: Padding,
  capacity: number,
): Column {
  checkNamesOf(element, padding, "");
  return columnFor(element, spec, capacity, "", paddedLeaves(padding));
}

function paddedLeaves(padding: Padding): LeafColumns {
  return {
    columnOf: (leaf, spec, capacity, path) => leafColumn(leaf, spec, padding, capacity, path),
    below: (key, path) =>
      paddedLeaves({
        shapes: shapesUnder(OPERATOR, padding.shapes, key, path),
        values: valueUnder(padding.values, key),
      }),
  };
}

function leafColumn(
  element: unknown,
  spec: ElementSpec,
  { shapes, values }: Padding,
  capacity: number,
  path: string,
): Column {
  const isBytes = spec instanceof TensorSpec && spec.dtype === "bytes" && spec.shape.length === 0;
  const rank = isBytes ? 0 : shapeOf(element).length;
  checkRank(OPERATOR, shapes, rank, path);
  const shape = shapes ?? new Array<null>(rank).fill(null);
  if (rank === 0) return columnFor(element, spec, capacity, path);
  const dtype = element instanceof Tensor ? element.dtype : dtypeOf(element)!;
  return new PaddedColumn(dtype, shape, fillValue(OPERATOR, values, dtype, path), path);
}

function isShape(shapes: PaddedShapes): shapes is PaddedShape {
  return Array.isArray(shapes) && shapes.every((at) => at === null || typeof at === "number");
}

/** The shapes of the part `key`, whose path is `path`. */
function shapesUnder(
  operator: string,
  shapes: PaddedShapes | undefined,
  key: string | number,
  path: string,
): PaddedShapes | undefined {
  if (shapes === undefined) return undefined;
  const part = Object.hasOwn(shapes, key)
    ? (shapes as Record<string | number, unknown>)[key]
    : undefined;
  if (typeof part === "object" && part !== null) return part as PaddedShapes;
  throw new LeatError(
    "invalid_argument",
    `${operator}: paddedShapes has no shape for ${component(path)}`,
  );
}

/** The values of the part `key`. A single value applies to all parts. */
function valueUnder(
  values: PaddingValues | undefined,
  key: string | number,
): PaddingValues | undefined {
  if (typeof values !== "object" || values === null) return values;
  return (values as Record<string | number, PaddingValues>)[key];
}

/** One item of padding, as stored for its dtype; undefined for what `zerosOf()` gives. */
export type Fill = number | bigint | string | undefined;

/** The padding value of a leaf with this dtype: zeros by default. `invalid_argument` for another type. */
export function fillValue(
  operator: string,
  value: PaddingValues | undefined,
  dtype: DType,
  path: string,
): Fill {
  if (value === undefined || value === null) return undefined;
  const isBig = dtype === "int64" || dtype === "uint64";
  if (dtype === "string" && typeof value === "string") return value;
  if (dtype === "bool" && typeof value === "boolean") return value ? 1 : 0;
  if (isBig && (typeof value === "bigint" || Number.isSafeInteger(value))) {
    const big = BigInt(value as bigint | number);
    if ((zerosOf(dtype, 1) as BigInt64Array).fill(big)[0] === big) return big;
  }
  const isPlainNumber = !isBig && dtype !== "string" && dtype !== "bytes" && dtype !== "bool";
  if (isPlainNumber && typeof value === "number" && fitsExactly(dtype, value)) return value;
  throw new LeatError(
    "invalid_argument",
    `${operator}: the padding value ${show(value)} of ${component(path)} is no ${dtype}`,
  );
}

/** Floats are rounded; integers must be exact. */
function fitsExactly(dtype: DType, value: number): boolean {
  return dtype.startsWith("float") || (zerosOf(dtype, 1) as Int8Array).fill(value)[0] === value;
}

/** One padded leaf. Rows are kept until the longest is known. */
class PaddedColumn implements Column {
  readonly #dtype: DType;
  readonly #wanted: PaddedShape;
  readonly #fill: Fill;
  readonly #path: string;
  readonly #rows: { shape: readonly number[]; data: ArrayLike<unknown> }[] = [];

  constructor(dtype: DType, wanted: PaddedShape, fill: Fill, path: string) {
    this.#dtype = dtype;
    this.#wanted = wanted;
    this.#fill = fill;
    this.#path = path;
  }

  write(index: number, value: unknown): void {
    const dtype = value instanceof Tensor ? value.dtype : dtypeOf(value);
    const shape = shapeOf(value);
    if (dtype !== this.#dtype || shape.length !== this.#wanted.length) {
      throw new LeatError(
        "invalid_argument",
        `${OPERATOR}: ${component(this.#path)} of element ${index} is ${dtype ?? show(value)} of ` +
          `shape [${shape}], but the first was ${this.#dtype} of rank ${this.#wanted.length}`,
      );
    }
    shape.forEach((length, axis) => {
      const wanted = this.#wanted[axis] ?? -1;
      if (wanted < 0 || length <= wanted) return;
      throw new LeatError(
        "data_loss",
        `${OPERATOR}: ${component(this.#path)} of element ${index} has shape [${shape}], longer ` +
          `than the padded shape [${this.#wanted.map((at) => at ?? -1)}]`,
      );
    });
    this.#rows[index] = { shape, data: itemsOf(value, shape, this.#path, index) };
  }

  read(index: number): Tensor {
    const { shape, data } = this.#rows[index]!;
    return tensorOf(this.#dtype, shape, data);
  }

  finish(count: number): Tensor {
    const rows = this.#rows.slice(0, count);
    const shape = this.#wanted.map((wanted, axis) =>
      wanted !== null && wanted >= 0
        ? wanted
        : rows.reduce((longest, row) => Math.max(longest, row.shape[axis]!), 0)
    );
    const rowSize = shape.reduce((a, b) => a * b, 1);
    const data = zerosOf(this.#dtype, count * rowSize);
    if (this.#fill !== undefined) (data as unknown[]).fill(this.#fill);
    rows.forEach((row, i) => copyRow(data as unknown[], shape, i * rowSize, row, 0, 0));
    return tensorOf(this.#dtype, [count, ...shape], data);
  }
}

/** Copies a row to the start of each axis of its padded row, by runs as long as possible. */
function copyRow(
  target: unknown[],
  shape: readonly number[],
  targetAt: number,
  row: { shape: readonly number[]; data: ArrayLike<unknown> },
  rowAt: number,
  axis: number,
): void {
  const length = row.shape[axis]!;
  const targetStride = sizeAfter(shape, axis);
  const rowStride = sizeAfter(row.shape, axis);
  if (targetStride !== rowStride) {
    for (let i = 0; i < length; i++) {
      copyRow(target, shape, targetAt + i * targetStride, row, rowAt + i * rowStride, axis + 1);
    }
    return;
  }
  // No axis of a padded row is shorter, so with equal sizes the axes after this one need no padding.
  const size = length * rowStride;
  if (isTypedArray(target)) {
    (target as unknown as Uint8Array).set(
      (row.data as Uint8Array).subarray(rowAt, rowAt + size),
      targetAt,
    );
  } else for (let i = 0; i < size; i++) target[targetAt + i] = row.data[rowAt + i];
}

/** The number of items of the axes after `axis`. */
function sizeAfter(shape: readonly number[], axis: number): number {
  let size = 1;
  for (let i = axis + 1; i < shape.length; i++) size *= shape[i]!;
  return size;
}
