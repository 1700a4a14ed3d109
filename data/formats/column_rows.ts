/**
 * Rows of files that hold columns: choosing columns by their names, and putting their values side by side.
 */

import type { ByteRanges } from "./byte_ranges.ts";
import type { Rows } from "./row_blocks.ts";

/** Most columns that are read of a file: each row has them all. */
export const COLUMNS_MAX = 65_536;

/** Most names that a message lists. */
const NAMES_LISTED_MAX = 20;

/** Longest part of a name that a message has. */
const NAME_LENGTH_MAX = 100;

/** Names for a message: the first of them. */
export function listNames(names: readonly string[]): string {
  const more = names.length - NAMES_LISTED_MAX;
  const listed = names.slice(0, NAMES_LISTED_MAX)
    .map((name) => name.length <= NAME_LENGTH_MAX ? name : `${name.slice(0, NAME_LENGTH_MAX)}…`)
    .join(", ");
  return `${names.length === 0 ? "none" : listed}${more > 0 ? ` and ${more} more` : ""}`;
}

/**
 * The columns to read, in the order in which they were chosen: all that there are, unless some were.
 *
 * @param what they are called in messages.
 * @throws {LeatError} `not_found` for one that the file does not have, naming the file, the column, and what there is;
 * `resource_exhausted` for more than {@linkcode COLUMNS_MAX}.
 */
export function chosenColumns(
  bytes: ByteRanges,
  names: readonly string[],
  chosen: readonly string[] | undefined,
  what = "column",
): readonly string[] {
  const known = new Set(names);
  for (const name of chosen ?? []) {
    if (known.has(name)) continue;
    throw bytes.refused(
      "not_found",
      `There is no ${what} ${name} in ${bytes.format} file ${bytes.path}; it has ` +
        `${listNames(names)}.`,
    );
  }
  const columns = chosen ?? names;
  if (columns.length <= COLUMNS_MAX) return columns;
  throw bytes.refused(
    "resource_exhausted",
    `${bytes.path} has ${columns.length} ${what}s, more than ${COLUMNS_MAX} (COLUMNS_MAX); choose fewer.`,
  );
}

/** A column whose values are in memory. */
export interface LoadedColumn {
  readonly name: string;
  /** The value in a row, in memory of its own. */
  valueAt(row: number): unknown;
}

/** Rows as objects of columns, in the order of these. */
export class ColumnRows implements Rows {
  readonly length: number;
  readonly #columns: readonly LoadedColumn[];
  readonly #bytes: ByteRanges;
  readonly #place: string;

  /** @param place the rows, as messages name them: `"row group 3"`. */
  constructor(
    length: number,
    columns: readonly LoadedColumn[],
    bytes: ByteRanges,
    place: string,
  ) {
    this.length = length;
    this.#columns = columns;
    this.#bytes = bytes;
    this.#place = place;
  }

  at(index: number): unknown {
    const row: Record<string, unknown> = {};
    for (const column of this.#columns) {
      try {
        row[column.name] = column.valueAt(index);
      } catch (error) {
        const where = `row ${index} of ${this.#place}, column ${column.name}`;
        throw this.#bytes.failed(where, error);
      }
    }
    return row;
  }
}
