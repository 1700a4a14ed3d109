/**
 * Remainders: the last rows of a split, which do not fill a batch. The rows of several splits are
 * joined to batches.
 */
import { LeatError } from "../../core/error.ts";
import { flattenTree, isPlainObject, treePaths } from "../../core/tree.ts";
import { commonRows, rowAt, rowSpec, specOf } from "../elements/components.ts";
import { type ElementSpec, mapSpec } from "../elements/spec.ts";

/** A batch, or single rows if a batch would change them, as padding does. */
export type Remainder = { readonly batch: unknown } | { readonly rows: readonly unknown[] };

/** @throws {LeatError} `internal` for anything that no worker sends. */
export function rowsIn(remainder: unknown): number {
  const content = remainderOf(remainder);
  return "rows" in content ? content.rows.length : rowsInBatch(content.batch);
}

/**
 * The rows from number `from` on, and their spec.
 * @param spec The spec of the elements that the batch is made of.
 */
export function rowsOf(
  remainder: unknown,
  from: number,
  spec: ElementSpec,
): { readonly rows: readonly unknown[]; readonly spec: ElementSpec } {
  const content = remainderOf(remainder);
  if ("rows" in content) return { rows: content.rows.slice(from), spec };
  const { batch } = content;
  const length = Math.max(0, rowsInBatch(batch) - from);
  const rows = Array.from({ length }, (_, i) => rowAt(batch, from + i));
  return { rows, spec: mapSpec(specOf(batch), rowSpec) };
}

function rowsInBatch(batch: unknown): number {
  const leaves = flattenTree(batch);
  if (leaves.every((leaf) => leaf === null)) {
    throw new LeatError(
      "invalid_argument",
      "batch: DETERMINISTIC and distributedSave() cannot count the rows of a batch that has no component but " +
        "null; add a component to its elements, such as their number",
    );
  }
  return commonRows("batch", leaves, treePaths(batch));
}

function remainderOf(value: unknown): Remainder {
  if (isPlainObject(value)) {
    if (Array.isArray(value["rows"])) return { rows: value["rows"] };
    if ("batch" in value) return { batch: value["batch"] };
  }
  throw new LeatError("internal", "The remainder of a split is neither a batch nor rows");
}
