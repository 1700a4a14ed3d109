/**
 * Ragged columns: leaves of different lengths along their first axis are concatenated instead of
 * padded.
 */
import { type DType, dtypeOf } from "../../core/dtype.ts";
import { LeatError } from "../../core/error.ts";
import { RaggedTensor, Tensor } from "../../core/tensor.ts";
import { show } from "../check.ts";
import { columnFor, type LeafColumns, stackedColumn } from "./columns.ts";
import { type Column, component, itemsOf, sameShape, shapeOf, tensorOf } from "./leaf_columns.ts";
import { joinTensors } from "./rows.ts";
import { type ElementSpec, mapSpec, TensorSpec } from "./spec.ts";

/**
 * Columns for elements like this one. Leaves with an axis are ragged, unless the spec says that
 * their shape does not vary.
 */
export function raggedColumnFor(element: unknown, spec: ElementSpec, capacity: number): Column {
  return columnFor(element, spec, capacity, "", RAGGED);
}

const RAGGED: LeafColumns = { columnOf: raggedColumn, below: () => RAGGED };

/** The spec of ragged batches of `rows` elements with this spec: axis 1 varies. */
export function raggedSpec(spec: ElementSpec, rows: number | null): ElementSpec {
  return mapSpec(spec, (leaf) => {
    const shape = isUniform(leaf) ? leaf.shape : [null, ...leaf.shape.slice(1)];
    return new TensorSpec(leaf.dtype, [rows, ...shape]);
  });
}

function isUniform(leaf: TensorSpec): boolean {
  return leaf.shape.every((length) => length !== null);
}

function raggedColumn(leaf: unknown, spec: ElementSpec, capacity: number, path: string): Column {
  const shape = shapeOf(leaf);
  if (shape.length === 0 || (spec instanceof TensorSpec && isUniform(spec))) {
    return stackedColumn(leaf, spec, capacity, path);
  }
  const dtype = leaf instanceof Tensor ? leaf.dtype : dtypeOf(leaf)!;
  return new RaggedColumn(dtype, shape.slice(1), path);
}

/** Keeps the rows as they are until the column is finished. */
class RaggedColumn implements Column {
  readonly #dtype: DType;
  /** The shape of one value. */
  readonly #inner: readonly number[];
  readonly #path: string;
  readonly #rows: Tensor[] = [];

  constructor(dtype: DType, inner: readonly number[], path: string) {
    this.#dtype = dtype;
    this.#inner = inner;
    this.#path = path;
  }

  write(index: number, value: unknown): void {
    const shape = shapeOf(value);
    const dtype = value instanceof Tensor ? value.dtype : dtypeOf(value);
    if (
      dtype !== this.#dtype || shape.length === 0 || !sameShape(shape.slice(1), this.#inner)
    ) {
      throw new LeatError(
        "invalid_argument",
        `raggedBatch: ${component(this.#path)} of element ${index} is ${dtype ?? show(value)} of ` +
          `shape [${shape}], but the first was ${this.#dtype} of shape ` +
          `[${["any length", ...this.#inner]}]; only the first axis may vary`,
      );
    }
    this.#rows[index] = tensorOf(this.#dtype, shape, itemsOf(value, shape, this.#path, index));
  }

  read(index: number): Tensor {
    return this.#rows[index]!;
  }

  finish(count: number): RaggedTensor {
    const rows = this.#rows.slice(0, count);
    const splits = new BigInt64Array(count + 1);
    rows.forEach((row, i) => splits[i + 1] = splits[i]! + BigInt(row.shape[0]!));
    return new RaggedTensor(joinTensors(rows), splits);
  }
}
