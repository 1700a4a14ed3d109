/** Checks the columns of CSV files, and converts the fields of records to elements. */
import { LeatError } from "../../../core/error.ts";
import { isPlainObject } from "../../../core/tree.ts";
import { invalidArgument, show } from "../../check.ts";
import { type ElementSpec, TensorSpec } from "../../elements/spec.ts";
import { COLUMNS_MAX } from "../column_rows.ts";
import {
  CSV_DTYPES,
  csvDefault,
  type CsvDType,
  csvParser,
  type CsvValue,
  isCsvDType,
} from "./csv_values.ts";

/** What a column holds. */
export interface CsvColumn<D extends CsvDType = CsvDType> {
  /** How its fields are parsed. */
  readonly dtype: D;
  /** The value of missing fields. Without a default, a missing field is an error. */
  readonly default?: CsvValue<D> | (D extends "int64" | "uint64" ? number : never) | undefined;
}

/** A declared column: its dtype, or a {@linkcode CsvColumn}. */
export type AnyCsvColumn = { [D in CsvDType]: D | CsvColumn<D> }[CsvDType];

/** Columns by name, or by position. */
export type CsvColumns = Readonly<Record<string, AnyCsvColumn>> | readonly AnyCsvColumn[];

/** The dtype of a declared column. */
export type CsvColumnDType<C> = C extends CsvDType ? C
  : C extends { readonly dtype: infer D } ? D
  : never;

/** An element of a dataset whose columns were declared. */
export type CsvRow<C> = {
  -readonly [K in keyof C]: CsvColumnDType<C[K]> extends infer D extends CsvDType ? CsvValue<D>
    : never;
};

/** A declared column after its check. */
export interface DeclaredColumn {
  /** `undefined` if elements are tuples. */
  readonly name: string | undefined;
  readonly dtype: CsvDType;
  readonly default: unknown;
}

export type DescribeRecord = () => { text: string; details: Record<string, unknown> };

/** Makes an element from a record's fields. Throws `data_loss` if they do not fit. */
export type RecordConversion = (fields: readonly string[], describe: DescribeRecord) => unknown;

/**
 * Checks columns from the user or from a serialised node.
 *
 * @throws {LeatError} `invalid_argument` naming the column.
 */
export function checkDeclaredColumns(operator: string, value: unknown): readonly DeclaredColumn[] {
  if (Array.isArray(value)) {
    return value.map((column, i) => checkColumn(operator, undefined, `${i}`, column));
  }
  if (!isPlainObject(value)) {
    throw invalidArgument(operator, "columns", "an object of columns, or an array of them", value);
  }
  return Object.entries(value).map(([name, column]) => checkColumn(operator, name, name, column));
}

function checkColumn(
  operator: string,
  given: string | undefined,
  label: string,
  value: unknown,
): DeclaredColumn {
  const column = typeof value === "string" ? { dtype: value } : value;
  if (!isPlainObject(column) || !isCsvDType(column.dtype)) {
    const wanted = `one of ${CSV_DTYPES.join(", ")}, or an object with one as its dtype`;
    throw invalidArgument(operator, `column ${show(label)}`, wanted, value);
  }
  const { dtype, default: fallback, name = given } = column;
  if (name !== undefined) checkName(operator, name);
  const converted = fallback === undefined ? undefined : csvDefault(dtype, fallback);
  if (fallback !== undefined && converted === undefined) {
    throw invalidArgument(operator, `the default of column ${show(label)}`, dtype, fallback);
  }
  return { name: name as string | undefined, dtype, default: converted };
}

export function columnsSpec(columns: readonly DeclaredColumn[]): ElementSpec {
  const specs = columns.map(({ dtype }) => new TensorSpec(dtype, []));
  return elementOf(columns.map(({ name }) => name), specs) as ElementSpec;
}

export interface ReadColumn extends DeclaredColumn {
  readonly index: number;
}

export interface RecordPlan {
  readonly columns: readonly ReadColumn[];
  /** Required number of fields of a record; `undefined` if a record may have more fields than are read. */
  readonly fieldCount: number | undefined;
  /** The text that means a missing value, besides the empty text. */
  readonly naValue: string;
  /** Whether fields stay text, because no columns are declared. */
  readonly isText: boolean;
}

/** Returns the conversion of one file's records to elements. */
export function recordConversion(plan: RecordPlan): RecordConversion {
  const { columns, fieldCount, naValue, isText } = plan;
  const names = columns.map(({ name }) => name);
  const parsers = columns.map(({ dtype }) => csvParser(dtype));
  const fieldCountMin = columns.reduce((count, { index }) => Math.max(count, index + 1), 0);
  return (fields, describe) => {
    if (fieldCount === undefined ? fields.length < fieldCountMin : fields.length !== fieldCount) {
      const wanted = fieldCount ?? `at least ${fieldCountMin}`;
      const { length } = fields;
      const found = length > COLUMNS_MAX ? `more than ${COLUMNS_MAX}` : length;
      throw misfit(describe, `has ${found} fields, and ${wanted} are expected`);
    }
    const values = columns.map((column, i) => {
      const text = column.index < 0 ? "" : fields[column.index]!;
      if (isText) return text;
      if (text === "" || text === naValue) {
        if (column.default !== undefined) return column.default;
        throw misfit(describe, `has no value in column ${label(column)}, which has no default`);
      }
      const value = parsers[i]!(text);
      if (value !== undefined) return value;
      throw misfit(
        describe,
        `has ${show(text)} in column ${label(column)}, which is no ${column.dtype}`,
      );
    });
    return elementOf(names, values);
  };
}

/** Makes an object of the named values, or a tuple if the columns have no names. */
function elementOf(names: readonly (string | undefined)[], values: unknown[]): unknown {
  if (names[0] === undefined) return values;
  const element: Record<string, unknown> = {};
  for (let i = 0; i < names.length; i++) element[names[i]!] = values[i];
  return element;
}

function label({ name, index }: ReadColumn): string {
  return name === undefined ? `${index}` : show(name);
}

function misfit(describe: DescribeRecord, what: string): LeatError {
  const { text, details } = describe();
  return new LeatError("data_loss", `${text} ${what}.`, { details });
}

/** Refuses `__proto__`, which elements must not have as a key. */
function checkName(operator: string, name: unknown): void {
  if (typeof name === "string" && name !== "__proto__") return;
  throw invalidArgument(operator, "a column's name", 'any text but "__proto__"', name);
}
