/** Parses the fields of CSV files, by dtype. */
import type { DType } from "../../../core/dtype.ts";

/** The dtypes that a field may hold. */
export type CsvDType = Exclude<DType, "bytes">;

/** A field's value, by the dtype of its column. */
export type CsvValue<D extends CsvDType> = D extends "string" ? string
  : D extends "bool" ? boolean
  : D extends "int64" | "uint64" ? bigint
  : number;

/** Returns `undefined` for text that is no value of the dtype. */
type Parser = (text: string) => string | boolean | bigint | number | undefined;

const INTEGER = /^\s*[+-]?\d+\s*$/;
/** 64 bits have at most 20 digits. The time to parse more grows faster than their number. */
const BIG_INTEGER = /^\s*([+-]?)0*(\d{1,20})\s*$/;
// Digits match in one way only: two runs in a row would take the square of their number of steps.
const FLOAT = /^\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?\s*$/i;
const NOT_FINITE = /^\s*([+-]?)(?:(nan)|inf(?:inity)?)\s*$/i;

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["false", false],
  ["1", true],
  ["0", false],
]);

const PARSERS: Readonly<Record<CsvDType, Parser>> = {
  int8: integer(-(2 ** 7), 2 ** 7 - 1),
  uint8: integer(0, 2 ** 8 - 1),
  int16: integer(-(2 ** 15), 2 ** 15 - 1),
  uint16: integer(0, 2 ** 16 - 1),
  int32: integer(-(2 ** 31), 2 ** 31 - 1),
  uint32: integer(0, 2 ** 32 - 1),
  int64: bigInteger(-(2n ** 63n), 2n ** 63n - 1n),
  uint64: bigInteger(0n, 2n ** 64n - 1n),
  float16: float(Math.f16round),
  float32: float(Math.fround),
  float64: float((value) => value),
  bool: (text) => BOOLEANS.get(text.trim().toLowerCase()),
  string: (text) => text,
};

/** Whether fields may be of this dtype. */
export function isCsvDType(value: unknown): value is CsvDType {
  return typeof value === "string" && Object.hasOwn(PARSERS, value);
}

export const CSV_DTYPES: readonly CsvDType[] = Object.keys(PARSERS) as CsvDType[];

/** Returns the parser of a dtype. It ignores white space around numbers and booleans. */
export function csvParser(dtype: CsvDType): Parser {
  return PARSERS[dtype];
}

/** Converts a default to the type of the column's values; `undefined` if it does not fit the dtype. */
export function csvDefault(dtype: CsvDType, value: unknown): unknown {
  if (dtype === "string") return typeof value === "string" ? value : undefined;
  if (dtype === "bool") return typeof value === "boolean" ? value : undefined;
  if (typeof value !== "number" && typeof value !== "bigint") return undefined;
  return PARSERS[dtype](String(value));
}

function integer(min: number, max: number): Parser {
  return (text) => {
    if (!INTEGER.test(text)) return undefined;
    const value = Number(text);
    return value >= min && value <= max ? value + 0 : undefined; // -0 is no integer
  };
}

function bigInteger(min: bigint, max: bigint): Parser {
  return (text) => {
    const [, sign, digits] = BIG_INTEGER.exec(text) ?? [];
    if (digits === undefined) return undefined;
    const value = BigInt(sign === "-" ? `-${digits}` : digits);
    return value >= min && value <= max ? value : undefined;
  };
}

/** @param round Rounds to the dtype. A batch would round a number beyond its range to infinity. */
function float(round: (value: number) => number): Parser {
  return (text) => {
    if (FLOAT.test(text)) {
      const value = Number(text);
      return Number.isFinite(round(value)) ? value : undefined; // as of "1e400"
    }
    const [, sign, isNaN] = NOT_FINITE.exec(text) ?? [];
    if (sign === undefined) return undefined;
    if (isNaN !== undefined) return NaN;
    return sign === "-" ? -Infinity : Infinity;
  };
}
