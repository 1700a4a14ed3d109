/** Plans how to read records, from the user's options and each file's header. */
import { LeatError } from "../../../core/error.ts";
import { checkArray, checkBoolean, invalidArgument, show } from "../../check.ts";
import type { ElementSpec } from "../../elements/spec.ts";
import { COLUMNS_MAX, listNames } from "../column_rows.ts";
import {
  checkDeclaredColumns,
  columnsSpec,
  type DeclaredColumn,
  type ReadColumn,
  type RecordPlan,
} from "./csv_columns.ts";

/** The part of the plan that is known before a file is opened. */
export class CsvSchema {
  /** Whether the first record of a file names its columns. */
  readonly header: boolean;
  readonly columns: readonly DeclaredColumn[] | undefined;
  readonly select: readonly (string | number)[] | undefined;
  readonly exclude: readonly (string | number)[] | undefined;
  readonly naValue: string;

  /** @throws {LeatError} `invalid_argument` naming `operator` and the option. */
  constructor(
    operator: string,
    options: {
      readonly [name in "columns" | "header" | "select" | "exclude" | "naValue"]?: unknown;
    },
  ) {
    const { columns, header, select, exclude, naValue = "" } = options;
    this.header = checkBoolean(operator, "header", header, true);
    this.columns = columns === undefined ? undefined : checkDeclaredColumns(operator, columns);
    this.select = checkKeys(operator, "select", select, this.header);
    this.exclude = checkKeys(operator, "exclude", exclude, this.header);
    if (typeof naValue !== "string") throw invalidArgument(operator, "naValue", "a text", naValue);
    this.naValue = naValue;
    this.#checkCombination(operator);
  }

  /** Whether a file's first record is needed to read the others. */
  get needsFirst(): boolean {
    return this.header || this.columns === undefined;
  }

  get elementSpec(): ElementSpec {
    return this.columns === undefined ? undefined : columnsSpec(this.columns);
  }

  /**
   * Plans how to read the records of one file.
   *
   * @param first Its first record, if {@linkcode needsFirst}.
   * @throws {LeatError} `data_loss` naming the file and the column that it lacks; `resource_exhausted`
   * for more columns than {@linkcode COLUMNS_MAX}.
   */
  planOf(path: string, first: readonly string[] | undefined): RecordPlan {
    const fieldCount = first?.length ?? this.#fieldCount;
    const { naValue } = this;
    const isText = this.columns === undefined;
    if ((first?.length ?? 0) > COLUMNS_MAX) throw tooMany(path);
    if (this.header) checkLineEnds(path, first!);
    const columns = this.#isByName
      ? this.columns!.map((column) => findColumn(path, first!, column))
      : this.#columnsByKeys(path, first);
    return { columns, fieldCount, naValue, isText };
  }

  /** Whether declared columns are found by their names in the header. */
  get #isByName(): boolean {
    return this.header && this.columns?.[0]?.name !== undefined;
  }

  /** Number of fields of records without a header; `undefined` if there may be more fields. */
  get #fieldCount(): number | undefined {
    if (this.select !== undefined) return undefined;
    return this.columns!.length + (this.exclude?.length ?? 0);
  }

  #columnsByKeys(path: string, first: readonly string[] | undefined): ReadColumn[] {
    const indices = this.#indices(path, first);
    if (this.columns !== undefined) {
      if (indices.length !== this.columns.length) {
        throw misfit(
          path,
          `gives ${indices.length} columns, and ${this.columns.length} are declared`,
        );
      }
      return this.columns.map((column, i) => ({ ...column, index: indices[i]! }));
    }
    const columns = indices.map((index) => {
      const name = this.header ? first![index] : undefined;
      return { name, index, dtype: "string", default: undefined } as const;
    });
    if (this.header) checkHeader(path, columns.map(({ name }) => name!));
    return columns;
  }

  /** The indices of the fields that are read. */
  #indices(path: string, first: readonly string[] | undefined): number[] {
    const indicesOf = (keys: readonly (string | number)[]) =>
      keys.map((key) => findIndex(path, this.header ? first! : undefined, key));
    if (this.select !== undefined) return indicesOf(this.select);
    const excluded = new Set(indicesOf(this.exclude ?? []));
    const count = first?.length ?? this.#fieldCount!;
    return Array.from({ length: count }, (_, i) => i).filter((i) => !excluded.has(i));
  }

  #checkCombination(operator: string): void {
    const { columns, select, exclude } = this;
    const chosen = select ?? exclude;
    const refuse = (argument: string, wanted: string) =>
      invalidArgument(operator, argument, wanted, chosen);
    if (columns?.length === 0) throw invalidArgument(operator, "columns", "at least one", columns);
    if (select !== undefined && exclude !== undefined) {
      throw refuse("select", "left out where exclude is given");
    }
    if (chosen !== undefined && this.#isByName) {
      throw refuse(
        select === undefined ? "exclude" : "select",
        "left out where columns are declared by name, which selects them",
      );
    }
    if (select !== undefined && columns !== undefined && select.length !== columns.length) {
      throw refuse("select", `as long as columns, ${columns.length}`);
    }
  }
}

/** Checks `select` or `exclude`: different columns, by index or by name in the header. */
function checkKeys(
  operator: string,
  argument: string,
  value: unknown,
  header: boolean,
): readonly (string | number)[] | undefined {
  if (value === undefined) return undefined;
  const keys = checkArray(operator, argument, value);
  const isKey = (key: unknown) =>
    (header && typeof key === "string") || (Number.isSafeInteger(key) && key as number >= 0);
  if (keys.length > 0 && keys.every(isKey) && new Set(keys).size === keys.length) {
    return keys as (string | number)[];
  }
  const kinds = header ? "names or indices of columns" : "indices of columns";
  throw invalidArgument(operator, argument, `different ${kinds}, at least one`, value);
}

/** Of a file whose lines end with carriage returns alone, all is the header. */
function checkLineEnds(path: string, header: readonly string[]): void {
  if (!header.some((name) => /\r(?!\n)/.test(name))) return;
  const remedy = "lines end with \\n or \\r\\n; convert the file, as with \"tr '\\r' '\\n'\"";
  throw misfit(path, `has a carriage return in its header: ${remedy}`);
}

function findColumn(path: string, header: readonly string[], column: DeclaredColumn): ReadColumn {
  const index = header.indexOf(column.name!);
  if (index < 0 && column.default === undefined) {
    throw misfit(path, `has no column ${show(column.name)}, which is required${namesOf(header)}`);
  }
  if (header.lastIndexOf(column.name!) !== index) {
    throw misfit(path, `has more than one column ${show(column.name)}${namesOf(header)}`);
  }
  return { ...column, index };
}

function findIndex(
  path: string,
  header: readonly string[] | undefined,
  key: string | number,
): number {
  if (header === undefined) return key as number;
  const index = typeof key === "number" ? key : header.indexOf(key);
  if (index >= 0 && index < header.length) return index;
  throw misfit(path, `has no column ${show(key)}${namesOf(header)}`);
}

function checkHeader(path: string, names: readonly string[]): void {
  const seen = new Set<string>();
  const twice = names.find((name) => seen.size === seen.add(name).size);
  if (twice !== undefined) throw misfit(path, `has more than one column ${show(twice)}`);
  if (names.includes("__proto__")) throw misfit(path, 'has a column "__proto__"');
}

function namesOf(header: readonly string[]): string {
  return `; its header names ${listNames(header.map(show))}`;
}

function tooMany(path: string): LeatError {
  return new LeatError(
    "resource_exhausted",
    `${path} has more columns than ${COLUMNS_MAX} (COLUMNS_MAX); is its delimiter the one that was given?`,
    { details: { path } },
  );
}

function misfit(path: string, what: string): LeatError {
  return new LeatError("data_loss", `${path} ${what}.`, { details: { path } });
}
