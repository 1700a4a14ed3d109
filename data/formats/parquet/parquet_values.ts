/** Converts hyparquet's values to values that elements can hold. */
import type { FileMetaData, ParquetParsers, SchemaElement, SchemaTree } from "hyparquet";
import { utf8Text } from "../../../core/bytes.ts";
import type { DType } from "../../../core/dtype.ts";
import { LeatError } from "../../../core/error.ts";
import { parseJson } from "../../../core/json.ts";
import { checkFieldNames, columnText } from "../column_rows.ts";
import { decimal, isKeyType, MAP_KEYS_WANTED, packList, type ValueType } from "./lists.ts";
import { VariantReader } from "./variants.ts";

/** The conversion of the values of a column, or of a part of a nested column. */
export interface ParquetValues extends ValueType {
  /** Returns `null` for an absent value. Copies bytes, because they are views of the whole column. */
  convert(value: unknown): unknown;
}

const asBytes = (bytes: Uint8Array) => bytes;

/**
 * Decode only strings. By default the library makes `Date`s, which elements cannot hold. A text that
 * is not UTF-8 stays bytes, so that only its row is lost.
 */
export const PARSERS: ParquetParsers = {
  timestampFromMilliseconds: (time) => time,
  timestampFromMicroseconds: (time) => time,
  timestampFromNanoseconds: (time) => time,
  dateFromDays: (days) => days,
  stringFromBytes: (bytes) => bytes && (utf8Text(bytes) ?? bytes),
  geometryFromBytes: asBytes,
  geographyFromBytes: asBytes,
  uuidFromBytes: asBytes,
};

/** Annotations that the library interprets. This module interprets or ignores all others. */
const KEPT_CONVERTED: ReadonlySet<unknown> = new Set(["LIST", "UTF8", "UINT_32", "UINT_64"]);
const KEPT_LOGICAL: ReadonlySet<unknown> = new Set(["FLOAT16", "INTEGER", "LIST", "STRING"]);

/**
 * Removes annotations from the schema, so that the library leaves times, decimals and JSON as they
 * are stored. Otherwise it would make `Date`s, which elements cannot hold, and decimals with rounding
 * errors. It would also refuse a whole row group if one JSON text is invalid, and decode all variants of
 * it at once. It would make objects of maps before their keys are converted; now they are lists of keys
 * and values.
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

const BRACKET = 0x5b, BRACE = 0x7b, COLON = 0x3a;

/** The most bytes in memory of a list, an object or a field, and of a byte of numbers and texts. */
const STRUCTURE_BYTES = 300;
const SCALAR_EXPANSION = 8;
/** The most bytes in memory of a byte of a variant, of which two may be a structure. */
const VARIANT_EXPANSION = 150;

/**
 * The memory that the texts and bytes in one row may take. The items of a list may all be one entry of a
 * dictionary, which is in the file only once, and each gets a copy of it.
 */
class RowBudget {
  readonly #bytesMax: number;
  #bytes = 0;
  /** JSON and variants in the row, to find entries that it repeats. */
  readonly #parsed = new Set<unknown>();

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  startRow(): void {
    this.#bytes = this.#bytesMax;
    this.#parsed.clear();
  }

  /**
   * Counts a text or bytes.
   *
   * @throws {LeatError} `resource_exhausted` if the row has too many bytes.
   */
  spend(value: string | Uint8Array): void {
    this.#spend(value.length);
  }

  /** Counts what is parsed, as its bytes the first time: only repeated ones are more than the file has. */
  spendParsed(value: Uint8Array, parsedBytes: (value: Uint8Array) => number): void {
    const isRepeated = this.#parsed.size === this.#parsed.add(value).size;
    this.#spend(isRepeated ? parsedBytes(value) : value.length);
  }

  #spend(bytes: number): void {
    this.#bytes -= bytes;
    if (this.#bytes >= 0) return;
    throw new LeatError(
      "resource_exhausted",
      `its lists repeat dictionary entries to more than ${this.#bytesMax} bytes (ROW_GROUP_BYTES_MAX)`,
    );
  }
}

function variantBytes({ length }: Uint8Array): number {
  return VARIANT_EXPANSION * length;
}

/** Returns how much memory JSON may take when it is parsed. Its texts may look like structures. */
function jsonBytes(json: Uint8Array): number {
  let structures = 0;
  for (const byte of json) if (byte === BRACKET || byte === BRACE || byte === COLON) structures++;
  return SCALAR_EXPANSION * json.length + STRUCTURE_BYTES * structures;
}

/**
 * Returns the conversion for a column of the file's schema. It refuses a text that is still bytes,
 * because they are not UTF-8.
 *
 * @param bytesMax Maximum bytes of the texts and bytes in a row's lists.
 * @throws {LeatError} `unimplemented` for a map or a struct whose keys cannot be those of an object.
 */
export function valuesOf(tree: SchemaTree, bytesMax: number): ParquetValues {
  const { element, children } = tree;
  if (children.length === 0 && element.repetition_type !== "REPEATED") return scalarValues(element);
  const budget = new RowBudget(bytesMax);
  const part = partOf(tree, budget);
  const convert = (value: unknown) => {
    budget.startRow();
    return part.convert(value);
  };
  return { ...part, convert };
}

function partOf(tree: SchemaTree, budget: RowBudget): ParquetValues {
  const single = singleValuesOf(tree, budget);
  return tree.element.repetition_type === "REPEATED" ? listValues(single) : single;
}

function singleValuesOf(tree: SchemaTree, budget: RowBudget): ParquetValues {
  const { element, children } = tree;
  if (element.logical_type?.type === "VARIANT") return variantValues(tree, budget);
  if (children.length === 0) return countedValues(element, budget);
  const [inner] = children;
  if (element.converted_type === "LIST" && isOnly(tree) && inner!.children.length < 2) {
    // Lists have three levels in the current format, and two in an older format.
    const [item] = inner!.children;
    if (item === undefined) return listValues(singleValuesOf(inner!, budget));
    const items = partOf(item, budget);
    return listValues(isOldItem(tree, inner!) ? onlyField(item.element.name, items) : items);
  }
  if (element.converted_type === "MAP" && isOnly(tree) && isEntries(inner!)) {
    return mapValues(tree, inner!, budget);
  }
  return structValues(children, budget);
}

/**
 * Whether the group in a list is an item, a struct of one field. The format says so of these names,
 * which older writers give, such as that of Avro. In other lists the group only marks an item.
 */
function isOldItem(list: SchemaTree, { element: { name } }: SchemaTree): boolean {
  return name === "array" || name === `${list.element.name}_tuple`;
}

/** Conversion to structs of one field. The library leaves these structs out. */
function onlyField(name: string, field: ParquetValues): ParquetValues {
  checkFieldNames([name]);
  const convert = (value: unknown) => ({ [name]: field.convert(value) });
  return { dtype: undefined, depth: 0, convert };
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

function structValues(children: readonly SchemaTree[], budget: RowBudget): ParquetValues {
  checkFieldNames(children.map(({ element }) => element.name));
  const parts = children.map((child) => [child.element.name, partOf(child, budget)] as const);
  return values(undefined, (struct) => {
    const record: Record<string, unknown> = {};
    for (const [name, part] of parts) {
      record[name] = part.convert((struct as Record<string, unknown>)[name]);
    }
    return record;
  });
}

function mapValues(
  { path }: SchemaTree,
  entries: SchemaTree,
  budget: RowBudget,
): ParquetValues {
  const [keyPart, valuePart] = entries.children as [SchemaTree, SchemaTree];
  const keys = partOf(keyPart, budget), items = partOf(valuePart, budget);
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

/** Conversion of variants. Equal metadata of neighbours are one entry of a dictionary, and read once. */
function variantValues(tree: SchemaTree, budget: RowBudget): ParquetValues {
  const part = variantPart(tree, budget);
  let reader: VariantReader | undefined;
  return values(undefined, (variant) => {
    const { metadata } = variant as { readonly metadata: Uint8Array };
    if (!reader?.reads(metadata)) {
      budget.spend(metadata);
      reader = new VariantReader(metadata, PARSERS);
    }
    return part(variant, reader) ?? null;
  });
}

/** Reads a variant or a part of one; `undefined` if the part is missing. */
type VariantPart = (part: unknown, reader: VariantReader) => unknown;

/** A variant is in the bytes of `value` or, if the schema has its type, in `typed_value`. */
function variantPart({ children }: SchemaTree, budget: RowBudget): VariantPart {
  const typedTree = children.find(({ element }) => element.name === "typed_value");
  const readTyped = typedTree && typedPart(typedTree, budget);
  return (part, reader) => {
    const { value, typed_value: stored } = (part ?? {}) as Record<string, unknown>;
    const typed = stored == null ? undefined : readTyped?.(stored, reader);
    if (value == null) return typed;
    budget.spendParsed(value as Uint8Array, variantBytes);
    const read = reader.read(value as Uint8Array);
    // An object has the fields in `value` for which the schema has no type.
    return typed === undefined ? read : { ...read as object, ...typed };
  };
}

function typedPart(tree: SchemaTree, budget: RowBudget): VariantPart {
  const { element, children } = tree;
  const [inner] = children;
  if (inner === undefined) return countedValues(element, budget).convert;
  if (element.converted_type === "LIST" && isOnly(tree) && isOnly(inner)) {
    const item = variantPart(inner.children[0]!, budget);
    return (list, reader) => (list as unknown[]).map((part) => item(part, reader) ?? null);
  }
  checkFieldNames(children.map((child) => child.element.name));
  const parts = children.map((child) => [child.element.name, variantPart(child, budget)] as const);
  return (struct, reader) => {
    const fields = struct as Record<string, unknown>;
    const read = parts.map(([name, part]) => [name, part(fields[name], reader)] as const);
    return Object.fromEntries(read.filter(([, value]) => value !== undefined));
  };
}

/** Conversion of scalars that counts texts and bytes. */
function countedValues(element: SchemaElement, budget: RowBudget): ParquetValues {
  const scalars = scalarValues(element);
  if (element.type !== "BYTE_ARRAY" && element.type !== "FIXED_LEN_BYTE_ARRAY") return scalars;
  // The library makes numbers of these bytes.
  if (scalars.dtype === "float16") return scalars;
  const isJson = annotationOf(element) === "JSON";
  const convert = (value: unknown) => {
    if (value == null) return null;
    if (isJson) budget.spendParsed(value as Uint8Array, jsonBytes);
    else budget.spend(value as string | Uint8Array);
    return scalars.convert(value);
  };
  return { ...scalars, convert };
}

function annotationOf({ converted_type: converted, logical_type: logical }: SchemaElement) {
  return converted ?? logical?.type;
}

function scalarValues(element: SchemaElement): ParquetValues {
  const logical = element.logical_type;
  const annotation = annotationOf(element);
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
