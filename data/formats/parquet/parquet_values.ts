/** Converts hyparquet's values to values that elements can hold. */
import type { FileMetaData, SchemaElement, SchemaTree } from "hyparquet";
import type { DType } from "../../../core/dtype.ts";
import { LeatError } from "../../../core/error.ts";
import { parseJson } from "../../../core/json.ts";
import { checkFieldNames, columnText } from "../column_rows.ts";
import { decimal, isKeyType, MAP_KEYS_WANTED, packList, type ValueType } from "./lists.ts";

/** The conversion of the values of a column, or of a part of a nested column. */
export interface ParquetValues extends ValueType {
  /** Returns `null` for an absent value. Copies bytes, because they are views of the whole column. */
  convert(value: unknown): unknown;
}

/** Annotations that the library interprets. This module interprets or ignores all others. */
const KEPT_CONVERTED: ReadonlySet<unknown> = new Set(["LIST", "UTF8", "UINT_32", "UINT_64"]);
const KEPT_LOGICAL: ReadonlySet<unknown> = new Set(
  ["FLOAT16", "INTEGER", "LIST", "STRING", "VARIANT"],
);

/**
 * Removes annotations from the schema, so that the library leaves times, decimals and JSON as they
 * are stored. Otherwise it would make `Date`s, which elements cannot hold, and decimals with rounding
 * errors. It would also refuse a whole row group if one JSON text is invalid. It would make objects of
 * maps before their keys are converted; now they are lists of keys and values.
 */
export function plainSchema(schema: FileMetaData["schema"]): FileMetaData["schema"] {
  return schema.map((element) => {
    const { converted_type: converted, logical_type: logical, ...rest } = element;
    return {
      ...rest,
      ...(converted !== undefined && KEPT_CONVERTED.has(converted)
        ? { converted_type: converted }
        : {}),
      ...(logical !== undefined && KEPT_LOGICAL.has(logical.type) ? { logical_type: logical } : {}),
    };
  });
}

/**
 * Whether the library itself uses texts of a column: within variants. The bytes of a text that is not
 * UTF-8 would then give a wrong value.
 */
export function usesTexts({ element, children }: SchemaTree): boolean {
  return element.logical_type?.type === "VARIANT" || children.some(usesTexts);
}

/**
 * Returns the conversion for a part of the file's schema. It refuses a text that is still bytes,
 * because they are not UTF-8.
 *
 * @throws {LeatError} `unimplemented` for a map or a struct whose keys cannot be those of an object.
 */
export function valuesOf(tree: SchemaTree): ParquetValues {
  const single = singleValuesOf(tree);
  return tree.element.repetition_type === "REPEATED" ? listValues(single) : single;
}

function singleValuesOf(tree: SchemaTree): ParquetValues {
  const { element, children } = tree;
  if (element.logical_type?.type === "VARIANT") return values(undefined, (value) => value);
  if (children.length === 0) return scalarValues(element);
  const [inner] = children;
  if (element.converted_type === "LIST" && isOnly(tree) && inner!.children.length < 2) {
    // Lists have three levels in the current format, and two in an older format.
    const [item] = inner!.children;
    return listValues(item === undefined ? singleValuesOf(inner!) : valuesOf(item));
  }
  if (element.converted_type === "MAP" && isOnly(tree) && isEntries(inner!)) {
    return mapValues(tree, inner!);
  }
  return structValues(children);
}

/** Whether a part of the schema is the keys and values of a map. */
function isEntries({ element, children }: SchemaTree): boolean {
  return element.repetition_type === "REPEATED" && children.length === 2;
}

function isOnly({ children }: SchemaTree): boolean {
  return children.length === 1;
}

function values(
  dtype: DType | undefined,
  convert: (value: NonNullable<unknown>) => unknown,
): ParquetValues {
  return { dtype, depth: 0, convert: (value) => value == null ? null : convert(value) };
}

function listValues(items: ParquetValues): ParquetValues {
  const { dtype, depth } = items;
  const convert = (list: unknown) =>
    list == null ? null : packList((list as unknown[]).map(items.convert), items);
  return { dtype, depth: depth + 1, convert };
}

function structValues(children: readonly SchemaTree[]): ParquetValues {
  checkFieldNames(children.map(({ element }) => element.name));
  const parts = children.map((child) => [child.element.name, valuesOf(child)] as const);
  return values(undefined, (struct) => {
    const record: Record<string, unknown> = {};
    for (const [name, part] of parts) {
      record[name] = part.convert((struct as Record<string, unknown>)[name]);
    }
    return record;
  });
}

function mapValues({ path }: SchemaTree, entries: SchemaTree): ParquetValues {
  const [keyPart, valuePart] = entries.children as [SchemaTree, SchemaTree];
  const keys = valuesOf(keyPart), items = valuesOf(valuePart);
  if (!isKeyType(keys)) {
    throw new LeatError("unimplemented", `column ${path.join(".")}: ${MAP_KEYS_WANTED}`);
  }
  const { name } = entries.element, key = keyPart.element.name, value = valuePart.element.name;
  return values(undefined, (map) => {
    const stored = (map as Record<string, readonly Record<string, unknown>[]>)[name]!;
    return Object.fromEntries(
      stored.map((entry) => [String(keys.convert(entry[key])), items.convert(entry[value])]),
    );
  });
}

function scalarValues(element: SchemaElement): ParquetValues {
  const logical = element.logical_type;
  const annotation = element.converted_type ?? logical?.type;
  if (annotation === "DECIMAL") {
    const scale = element.scale ?? (logical?.type === "DECIMAL" ? logical.scale : 0);
    return values("float64", (value) => decimal(unscaled(value), scale));
  }
  switch (element.type) {
    case "BOOLEAN":
      return values("bool", (value) => value);
    case "INT32":
    case "INT64":
      return values(integerDType(element), (value) => value);
    case "INT96":
      return values("int64", (value) => value);
    case "FLOAT":
      return values("float32", (value) => value);
    case "DOUBLE":
      return values("float64", (value) => value);
  }
  if (annotation === "FLOAT16") return values("float16", (value) => value);
  if (annotation === "UTF8" || annotation === "STRING") {
    return values(
      "string",
      (value) => typeof value === "string" ? value : columnText(value as Uint8Array),
    );
  }
  if (annotation === "UUID") return values("string", (value) => uuid(value as Uint8Array));
  if (annotation === "ENUM") return values("string", (value) => columnText(value as Uint8Array));
  if (annotation === "JSON") {
    return values(undefined, (value) => parseJson(withoutMark(columnText(value as Uint8Array))));
  }
  return values("bytes", (value) => (value as Uint8Array).slice());
}

/** JSON without a byte order mark, which some writers put before it. */
function withoutMark(json: string): string {
  return json.replace(/^\ufeff/, "");
}

function integerDType(
  { type, converted_type: converted, logical_type: logical }: SchemaElement,
): DType {
  const name = /^(U?INT)_(8|16|32|64)$/.exec(converted ?? "");
  if (name !== null) return `${name[1]!.toLowerCase()}${name[2]}` as DType;
  if (logical?.type === "INTEGER") {
    return `${logical.isSigned ? "int" : "uint"}${logical.bitWidth}` as DType;
  }
  return type === "INT32" ? "int32" : "int64";
}

/**
 * Returns the unscaled integer of a decimal, which is stored as a number, a bigint, or big-endian bytes
 * in two's complement.
 */
function unscaled(value: unknown): number | bigint {
  if (!(value instanceof Uint8Array)) return value as number | bigint;
  const magnitude = value.length === 0 ? 0n : BigInt(`0x${value.toHex()}`);
  return BigInt.asIntN(8 * value.length, magnitude);
}

/** Returns the text form of a UUID: `00112233-4455-6677-8899-aabbccddeeff`. */
function uuid(bytes: Uint8Array): string {
  return bytes.toHex().replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
