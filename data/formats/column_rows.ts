/** Makes the rows of columnar files: selects columns by name, and combines their values. */
import { utf8Text } from "../../core/bytes.ts";
import { LeatError } from "../../core/error.ts";
import { shownText } from "../../core/shown_text.ts";
import type { ByteRanges } from "./byte_ranges.ts";
import type { Rows } from "./row_blocks.ts";

/** Maximum number of columns read from a file. */
export const COLUMNS_MAX = 65_536;

/** Maximum number of columns that a message lists. */
const NAMES_LISTED_MAX = 20;

const NAME_LENGTH_MAX = 100;

export function listNames(names: readonly string[]): string {
  const more = names.length - NAMES_LISTED_MAX;
  const listed = names.slice(0, NAMES_LISTED_MAX)
    .map((name) => name.length <= NAME_LENGTH_MAX ? name : `${name.slice(0, NAME_LENGTH_MAX)}…`)
    .map(shownText)
    .join(", ");
  return `${names.length === 0 ? "none" : listed}${more > 0 ? ` and ${more} more` : ""}`;
}

/** Refuses fields of a struct that elements cannot have as keys. @throws {Error} */
export function checkFieldNames(names: readonly string[]): void {
  if (names.includes("__proto__")) throw new Error("a field has the name __proto__");
  const [repeated] = repeatedOf(names);
  if (repeated === undefined) return;
  const what = `a struct has several fields "${listNames([repeated])}"`;
  throw new LeatError("unimplemented", `${what}; leave the column out with \`columns\``);
}

/** The text of a column's UTF-8. @throws {Error} for other bytes. */
export function columnText(bytes: Uint8Array): string {
  const text = utf8Text(bytes);
  if (text !== undefined) return text;
  throw new Error(
    "a text is not UTF-8; write the column as binary, or leave it out with `columns`",
  );
}

interface ChosenOptions {
  /** The word for a column in messages: `"array"` for .npz files. */
  readonly what?: string;
  /** The columns that the operators after the source need; default: all. */
  readonly wanted?: readonly string[] | undefined;
}

/**
 * Returns the columns to read, in the chosen order; default: all.
 *
 * @throws {LeatError} `not_found` for a column that the file lacks, naming the file, the column,
 * and the existing ones; `resource_exhausted` for more than {@linkcode COLUMNS_MAX};
 * `unimplemented` for a column `__proto__`, which elements must not have as a key, or whose name
 * another column has.
 */
export function chosenColumns(
  bytes: ByteRanges,
  names: readonly string[],
  chosen: readonly string[] | undefined,
  { what = "column", wanted }: ChosenOptions = {},
): readonly string[] {
  const existing = new Set(names);
  for (const name of chosen ?? []) {
    if (existing.has(name)) continue;
    throw bytes.refused(
      "not_found",
      `There is no ${what} ${name} in ${bytes.format} file ${bytes.path}; it has ` +
        `${listNames(names)}.`,
    );
  }
  const selected = chosen ?? names;
  const needed = wanted === undefined ? selected : selected.filter((name) => wanted.includes(name));
  // Reads at least one column. Without rows, no operator could report that a column is missing.
  const columns = needed.length === 0 ? selected.slice(0, 1) : needed;
  if (columns.includes("__proto__")) {
    throw bytes.unsupported(`it has the ${what} __proto__; choose others with \`columns\``);
  }
  const repeated = repeatedOf(names);
  const ambiguous = columns.find((name) => repeated.has(name));
  if (ambiguous !== undefined) {
    const named = `${what}s "${listNames([ambiguous])}"`;
    throw bytes.unsupported(
      `it has several ${named}; rename them, or choose others with \`columns\``,
    );
  }
  if (columns.length <= COLUMNS_MAX) return columns;
  throw bytes.refused(
    "resource_exhausted",
    `${bytes.path} has ${columns.length} ${what}s, more than ${COLUMNS_MAX} (COLUMNS_MAX); choose fewer with \`columns\`.`,
  );
}

function repeatedOf(names: readonly string[]): ReadonlySet<string> {
  const seen = new Set<string>();
  return new Set(names.filter((name) => seen.size === seen.add(name).size));
}

/** A column whose values are in memory. */
export interface LoadedColumn {
  readonly name: string;
  /** Returns the value in a row, in memory of its own. */
  valueAt(row: number): unknown;
}

/**
 * Makes rows as objects, with the columns in the given order.
 *
 * @param location Names these rows in messages, for example `"row group 3"`.
 */
export function columnRows(
  length: number,
  columns: readonly LoadedColumn[],
  bytes: ByteRanges,
  location: string,
): Rows {
  return {
    length,
    at(index) {
      const row: Record<string, unknown> = {};
      for (const column of columns) {
        try {
          row[column.name] = column.valueAt(index);
        } catch (error) {
          throw bytes.failed(`row ${index} of ${location}, column ${column.name}`, error);
        }
      }
      return row;
    },
  };
}
