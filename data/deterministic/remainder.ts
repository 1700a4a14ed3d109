/**
 * Remainders: the last rows of a split, which do not fill a batch. The rows of several splits are
 * joined to batches.
 */
import { LeatError } from "../../core/error.ts";
import { flattenTree, isPlainObject, treePaths } from "../../core/tree.ts";
import { commonRows, rowAt, rowSpec, specOf } from "../elements/components.ts";
import { type ElementSpec, mapSpec } from "../elements/spec.ts";

/** A batch; or rows one by one, where a batch would change them as padding does. */
export type Remainder = { readonly batch: unknown } | { readonly rows: readonly unknown[] };

/** @throws {LeatError} `internal` for anything that no worker sends. */
export function rowsIn(remainder: unknown): number {
  const of = remainderOf(remainder);
  return "rows" in of ? of.rows.length : rowsInBatch(of.batch);
}

/**
 * Rows from `from` on, and what is known of them.
 * @param spec of the elements of which the batch is made.
 */
export function rowsOf(
  remainder: unknown,
  from: number,
  spec: ElementSpec,
): { readonly rows: readonly unknown[]; readonly spec: ElementSpec } {
  const of = remainderOf(remainder);
  if ("rows" in of) return { rows: of.rows.slice(from), spec };
  const { batch } = of;
  const length = Math.max(0, rowsInBatch(batch) - from);
  const rows = Array.from({ length }, (_, i) => rowAt(batch, from + i));
  return { rows, spec: mapSpec(specOf(batch), rowSpec) };
}

function rowsInBatch(batch: unknown): number {
  return commonRows("batch", flattenTree(batch), treePaths(batch));
}

function remainderOf(value: unknown): Remainder {
  if (isPlainObject(value)) {
    if (Array.isArray(value["rows"])) return { rows: value["rows"] };
    if ("batch" in value) return { batch: value["batch"] };
  }
  throw new LeatError("internal", "The rows left over from a split are neither a batch nor rows");
}
