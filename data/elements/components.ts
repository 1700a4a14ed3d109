/** Components: the parts into which `fromTensors`, `fromTensorSlices` and `unbatch` divide elements. */
import { BESIDE_BYTES_MAX, ownBytes } from "../../core/bytes.ts";
import { isTypedArray } from "../../core/dtype.ts";
import { LeatError } from "../../core/error.ts";
import { RaggedTensor, Tensor, tensor } from "../../core/tensor.ts";
import {
  copyTree,
  flattenTree,
  isLeaf,
  isPlainObject,
  type Leaf,
  mapTree,
  TOO_DEEP,
  TREE_DEPTH_MAX,
} from "../../core/tree.ts";
import type { Changeable } from "../node.ts";
import { asBatch, cutLeaf } from "./rows.ts";
import { type ElementSpec, leavesOfSpec, TensorSpec } from "./spec.ts";

/**
 * Reads nested arrays of scalars as tensors: `[[1, 2], [3, 4]]` becomes one of shape [2, 2].
 * Arrays that hold tensors, typed arrays or objects are tuples of components.
 */
export function tensorize(value: unknown): unknown {
  if (Array.isArray(value)) return isNestedScalars(value) ? tensor(value) : value.map(tensorize);
  if (isPlainObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, tensorize(part)]));
  }
  return value;
}

function isNestedScalars(array: readonly unknown[]): boolean {
  return array.every((item) =>
    Array.isArray(item) ? isNestedScalars(item) : isLeaf(item) && typeof item !== "object"
  );
}

/**
 * The spec of an example element: pass it as `spec` to declare what a function returns. Numbers
 * become float64, as in a batch. `null`, instances of other classes, and an element that nests too
 * deep, as with a cycle, are unknown (`undefined`).
 * Lengths are those of the example: replace a length that varies between elements by `null`.
 *
 * @example
 * ```ts
 * import { Dataset, specOf } from "../../mod.ts";
 *
 * const pairs = Dataset.range(4).map((x) => ({ x, y: new Float32Array(2) }), {
 *   spec: specOf({ x: 0, y: new Float32Array(2) }),
 * });
 * console.log(pairs.batch(2).elementSpec); // x: float64 of shape [null], y: float32 of [null, 2]
 * ```
 */
export function specOf(element: unknown): ElementSpec {
  try {
    return specAt(element, 0);
  } catch (error) {
    if (error === TOO_DEEP) return undefined;
    throw error;
  }
}

function specAt(element: unknown, depth: number): ElementSpec {
  if (depth > TREE_DEPTH_MAX) throw TOO_DEEP;
  if (Array.isArray(element)) return Array.from(element, (part) => specAt(part, depth + 1));
  if (element instanceof RaggedTensor) {
    const { dtype, shape } = element.values;
    return new TensorSpec(dtype, [element.numRows, null, ...shape.slice(1)]);
  }
  if (element instanceof Tensor) return new TensorSpec(element.dtype, element.shape);
  if (isTypedArray(element)) {
    const { dtype, shape } = tensor(element);
    return new TensorSpec(dtype, shape);
  }
  switch (typeof element) {
    case "number":
      return new TensorSpec("float64", []);
    case "bigint":
      return new TensorSpec("int64", []);
    case "boolean":
      return new TensorSpec("bool", []);
    case "string":
      return new TensorSpec("string", []);
  }
  if (!isPlainObject(element)) return undefined;
  return Object.fromEntries(
    Object.entries(element).map(([key, part]) => [key, specAt(part, depth + 1)]),
  );
}

/** The spec of one row of elements with this spec: without axis 0. */
export function rowSpec(leaf: TensorSpec): TensorSpec {
  return new TensorSpec(leaf.dtype, leaf.shape.slice(1));
}

/** The length of axis 0; `undefined` for a component without axes. */
function rowsOf(leaf: unknown): number | undefined {
  if (leaf instanceof Tensor) return leaf.shape[0];
  if (leaf instanceof RaggedTensor) return leaf.numRows;
  return isTypedArray(leaf) ? leaf.length : undefined;
}

/** One row of every component; scalars become plain values. */
export function rowAt(components: unknown, index: number): unknown {
  return mapTree(components, (leaf) => leafRow(leaf, index));
}

function leafRow(leaf: Leaf, index: number): unknown {
  if (isTypedArray(leaf)) return leaf[index];
  if (leaf instanceof RaggedTensor) {
    const row = cutLeaf(leaf, index, index + 1) as RaggedTensor;
    return row.values;
  }
  if (!(leaf instanceof Tensor)) return leaf;
  if (leaf.shape.length > 1) return leaf.row(index);
  const value = leaf.data[index];
  return leaf.dtype === "bool" ? value !== 0 : value;
}

/** So many rows are copied together: copying each alone takes longer if they have many components. */
const FEW_ROWS = 8;
/** Limit of their bytes. Larger rows are copied alone, because a row that is kept keeps its part alive. */
const FEW_ROWS_BYTES_MAX = 65_536;

/** Consecutive rows of a batch. */
interface RowPart {
  /** These rows of the components whose rows are views; the other components whole. */
  readonly rows: unknown;
  readonly start: number;
  readonly stop: number;
}

/**
 * Gives the rows of a batch of `count` rows one by one, like `rowAt`. A row alone keeps little of the
 * batch alive: if the batch is not small, it is a view of a copy of few rows. What the consumer of
 * several rows may change or transfer has memory of its own in each row.
 */
export class SingleRows {
  readonly #batch: unknown;
  readonly #count: number;
  readonly #changeable: Changeable;
  readonly #rowsPerPart: number;
  #part: RowPart;

  constructor(batch: unknown, count: number, changeable: Changeable) {
    this.#batch = asBatch(batch);
    this.#count = count;
    this.#changeable = count > 1 ? changeable : "nothing";
    const bytes = flattenTree(batch).reduce((sum: number, leaf) => sum + viewedBytes(leaf), 0);
    const rowsIn = (partBytes: number) => Math.floor(partBytes * count / bytes);
    const fewRows = Math.min(FEW_ROWS, rowsIn(FEW_ROWS_BYTES_MAX));
    this.#rowsPerPart = Math.max(1, fewRows, rowsIn(BESIDE_BYTES_MAX));
    const isWhole = this.#changeable === "all" || this.#rowsPerPart >= count;
    this.#part = { rows: this.#batch, start: 0, stop: isWhole ? count : 0 };
  }

  at(index: number): unknown {
    if (index < this.#part.start || index >= this.#part.stop) this.#part = this.#partFrom(index);
    const { rows, start } = this.#part;
    return mapTree(rows, (leaf) => this.#rowOf(leaf, hasViews(leaf) ? index - start : index));
  }

  #rowOf(leaf: Leaf, index: number): unknown {
    const row = leafRow(leaf, index);
    const isOwn = this.#changeable === "all" ||
      this.#changeable === "bytes" && isBytes(leaf, undefined);
    return isOwn ? copyTree(row) : row;
  }

  #partFrom(start: number): RowPart {
    const stop = Math.min(this.#count, start + this.#rowsPerPart);
    const rows = mapTree(
      this.#batch,
      (leaf) => hasViews(leaf) ? withOwnMemory(cutLeaf(leaf, start, stop)) : leaf,
    );
    return { rows, start, stop };
  }
}

/** Whether the rows of a component are views. */
function hasViews(leaf: unknown): leaf is Tensor | RaggedTensor {
  return leaf instanceof RaggedTensor || leaf instanceof Tensor && leaf.shape.length > 1;
}

/** The bytes of a component whose rows are views. */
function viewedBytes(leaf: unknown): number {
  if (!hasViews(leaf)) return 0;
  return bytesOf(leaf instanceof RaggedTensor ? leaf.values : leaf);
}

function bytesOf({ data }: Tensor): number {
  return isTypedArray(data) ? data.byteLength : 0;
}

function withOwnMemory(leaf: Leaf): Leaf {
  if (leaf instanceof RaggedTensor) {
    return new RaggedTensor(withOwnMemory(leaf.values) as Tensor, leaf.rowSplits);
  }
  if (!(leaf instanceof Tensor) || !isTypedArray(leaf.data)) return leaf;
  return new Tensor(leaf.dtype, leaf.shape, ownBytes(leaf.data));
}

/** The length of axis 0, which must be the same in every component. */
export function commonRows(
  operator: string,
  leaves: readonly unknown[],
  paths: readonly string[],
): number {
  let rows: number | undefined;
  leaves.forEach((leaf, i) => {
    if (leaf === null) return; // null in every row
    const length = rowsOf(leaf);
    if (length === undefined) {
      throw new LeatError(
        "invalid_argument",
        `${operator}: component ${paths[i]} is a scalar and has no rows`,
      );
    }
    if (rows !== undefined && rows !== length) {
      const first = paths[leaves.findIndex((other) => other !== null)];
      throw new LeatError(
        "invalid_argument",
        `${operator}: all components must have the same number of rows, but ${first} has ` +
          `${rows} and ${paths[i]} has ${length}`,
      );
    }
    rows = length;
  });
  if (rows === undefined) {
    throw new LeatError(
      "invalid_argument",
      `${operator}: the element has no components, or only null, and so no rows`,
    );
  }
  return rows;
}

/**
 * A function that copies the byte strings of elements with the spec of `source`. A batch holds those as
 * they are; the numbers of the elements it copies itself.
 */
export function byteStringCopier(
  source: { readonly elementSpec: ElementSpec },
): (element: unknown) => unknown {
  // Finding the spec of many elements takes long, and is needed only to tell arrays of bytes apart.
  let spec: ElementSpec | undefined;
  let hasNone = false;
  const findSpec = () => {
    spec = source.elementSpec;
    hasNone = leavesOfSpec(spec)?.every(({ dtype }) => dtype !== "bytes") === true;
    return spec;
  };
  return (element) => {
    try {
      if (hasNone || !mayHaveBytes(element)) return element;
      return withOwnBytes(element, spec ?? findSpec());
    } catch {
      return element; // a cycle has overflowed the stack: no operator can use the element
    }
  };
}

function mayHaveBytes(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (value instanceof Uint8Array) return true;
  if (isLeaf(value)) return isBytes(value, undefined);
  return (Array.isArray(value) || isPlainObject(value)) && Object.values(value).some(mayHaveBytes);
}

/** Without a spec a `Uint8Array` is a row of numbers, as for a batch. */
function withOwnBytes(value: unknown, spec: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (isLeaf(value)) return isBytes(value, spec) ? copyTree(value) : value;
  if (!Array.isArray(value) && !isPlainObject(value)) return value;
  const parts = value as Record<string, unknown>;
  const specs = spec instanceof TensorSpec
    ? undefined
    : spec as Record<string, unknown> | undefined;
  let copy: Record<string, unknown> | undefined;
  for (const key of Object.keys(parts)) {
    const own = withOwnBytes(parts[key], specs?.[key]);
    if (own === parts[key]) continue;
    copy ??= (Array.isArray(value) ? [...value] : { ...value }) as Record<string, unknown>;
    copy[key] = own;
  }
  return copy ?? value;
}

function isBytes(leaf: Leaf, spec: unknown): boolean {
  if (leaf instanceof Tensor) return leaf.dtype === "bytes";
  if (leaf instanceof RaggedTensor) return leaf.values.dtype === "bytes";
  return spec instanceof TensorSpec && spec.dtype === "bytes";
}
