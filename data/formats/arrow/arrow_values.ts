/** Converts Arrow's vectors to values that elements can hold. */
import { type Data, DataType, Precision, Vector } from "apache-arrow";
import { type DType, isTypedArray } from "../../../core/dtype.ts";
import { LeatError } from "../../../core/error.ts";
import { checkFieldNames, columnText } from "../column_rows.ts";
import { decimal, isKeyType, MAP_KEYS_WANTED, packList, type ValueType } from "../parquet/lists.ts";

/** Returns the value at an index, in memory of its own; `null` if it is absent. */
export type ValueAt = (index: number) => unknown;

/** Returns the type of a vector's values. A dictionary-encoded type has the dtype of its values. */
function valueTypeOf(type: DataType): ValueType {
  if (DataType.isDictionary(type)) return valueTypeOf(type.dictionary);
  if (DataType.isList(type) || DataType.isFixedSizeList(type)) {
    const { dtype, depth } = valueTypeOf(type.children[0]!.type);
    return { dtype, depth: depth + 1 };
  }
  return { dtype: dtypeOf(type), depth: 0 };
}

const FLOATS: Readonly<Record<Precision, DType>> = {
  [Precision.HALF]: "float16",
  [Precision.SINGLE]: "float32",
  [Precision.DOUBLE]: "float64",
};

function dtypeOf(type: DataType): DType | undefined {
  if (DataType.isInt(type)) return `${type.isSigned ? "int" : "uint"}${type.bitWidth}` as DType;
  if (DataType.isFloat(type)) return FLOATS[type.precision];
  if (DataType.isBool(type)) return "bool";
  if (DataType.isUtf8(type) || DataType.isLargeUtf8(type)) return "string";
  if (isBinary(type)) return "bytes";
  if (DataType.isDecimal(type)) return "float64";
  if (isTime(type)) return type.ArrayType === Int32Array ? "int32" : "int64";
  return undefined;
}

function isBinary(type: DataType): boolean {
  return DataType.isBinary(type) || DataType.isLargeBinary(type) ||
    DataType.isFixedSizeBinary(type);
}

/** Whether a type stores a time as an integer. Elements get that integer. */
function isTime(type: DataType): boolean {
  return DataType.isDate(type) || DataType.isTime(type) || DataType.isTimestamp(type) ||
    DataType.isDuration(type);
}

/** @throws {LeatError} `unimplemented` for a map, also within a type, whose keys cannot be keys of an object. */
export function checkMapKeys(type: DataType): void {
  if (DataType.isDictionary(type)) return checkMapKeys(type.dictionary);
  if (DataType.isMap(type) && !isKeyType(valueTypeOf(type.keyType))) {
    throw new LeatError("unimplemented", MAP_KEYS_WANTED);
  }
  for (const child of type.children ?? []) checkMapKeys(child.type);
}

/**
 * Returns the access to the values of a vector.
 *
 * @throws {LeatError} `unimplemented` for unions and intervals.
 */
export function vectorValues(vector: Vector): ValueAt {
  if (vector.data.length > 1) return chunkedValues(vector);
  const plain = plainValuesOf(vector);
  return vector.nullCount === 0 ? plain : (index) => vector.isValid(index) ? plain(index) : null;
}

/** A dictionary has a chunk for each message that added values to it. */
function chunkedValues(vector: Vector): ValueAt {
  const chunks = vector.data.map((data) => vectorValues(new Vector([data])));
  const starts = [0];
  for (const { length } of vector.data) starts.push(starts.at(-1)! + length);
  return (index) => {
    let chunk = 0;
    for (let end = chunks.length; end - chunk > 1;) {
      const middle = (chunk + end) >> 1;
      if (starts[middle]! <= index) chunk = middle;
      else end = middle;
    }
    return chunks[chunk]!(index - starts[chunk]!);
  };
}

function plainValuesOf(vector: Vector): ValueAt {
  const { type } = vector;
  if (DataType.isNull(type)) return () => null;
  if (DataType.isDictionary(type)) return dictionaryValues(vector);
  if (DataType.isList(type) || DataType.isFixedSizeList(type)) return listValues(vector);
  if (DataType.isMap(type)) return mapValues(vector);
  if (DataType.isStruct(type)) return structValues(vector);
  if (DataType.isUtf8(type) || DataType.isLargeUtf8(type)) return textValues(vector);
  if (isBinary(type)) return (index) => (vector.get(index) as Uint8Array).slice();
  if (DataType.isDecimal(type)) {
    return (index) => decimal(integerOf(vector.get(index) as Uint32Array), type.scale);
  }
  if (isTime(type)) {
    const { values } = onlyData(vector);
    return (index) => values[index];
  }
  if (dtypeOf(type) === undefined) throw new LeatError("unimplemented", `its type is ${type}`);
  return (index) => vector.get(index);
}

/** Returns the only chunk of a vector: {@linkcode vectorValues} takes others apart. */
function onlyData(vector: Vector): Data {
  return vector.data[0]!;
}

/** The library replaces bytes that are not UTF-8, and drops byte order marks. */
function textValues(vector: Vector): ValueAt {
  const { values, valueOffsets } = onlyData(vector);
  return (index) => {
    const start = valueOffsets[index];
    const stop = valueOffsets[index + 1];
    if (start === undefined || stop === undefined) return null; // a damaged key of a dictionary
    return columnText(values.subarray(Number(start), Number(stop)));
  };
}

/** The lists of a column have one dictionary, and each is a vector of its own. */
const dictionaries = new WeakMap<Vector, ValueAt>();

function dictionaryValues(vector: Vector): ValueAt {
  const { values: keys, dictionary } = onlyData(vector);
  const valueAt = dictionaries.getOrInsertComputed(dictionary as Vector, vectorValues);
  return (index) => valueAt(Number(keys[index]));
}

function listValues(vector: Vector): ValueAt {
  const items = valueTypeOf(vector.type.children![0]!.type as DataType);
  const isNumeric = items.depth === 0 && items.dtype !== undefined &&
    !["bool", "float16", "string", "bytes"].includes(items.dtype);
  return (index) => {
    const list = vector.get(index) as Vector;
    if (isNumeric && list.nullCount === 0 && !DataType.isDecimal(list.type)) {
      const numbers: unknown = list.toArray();
      if (isTypedArray(numbers)) return numbers.slice();
    }
    const valueAt = vectorValues(list);
    return packList(Array.from({ length: list.length }, (_, i) => valueAt(i)), items);
  };
}

function mapValues(vector: Vector): ValueAt {
  const { children, valueOffsets } = onlyData(vector);
  const [keyAt, valueAt] = children[0]!.children.map((data) => vectorValues(new Vector([data])));
  return (index) => {
    const entries: [string, unknown][] = [];
    for (let i = valueOffsets[index]!; i < valueOffsets[index + 1]!; i++) {
      entries.push([String(keyAt!(i)), valueAt!(i)]);
    }
    return Object.fromEntries(entries);
  };
}

function structValues(vector: Vector): ValueAt {
  const { type } = vector;
  const parts = (type.children as { name: string }[]).map(({ name }, i) =>
    [name, vectorValues(vector.getChildAt(i)!)] as const
  );
  checkFieldNames(parts.map(([name]) => name));
  return (index) => {
    const record: Record<string, unknown> = {};
    for (const [name, valueAt] of parts) record[name] = valueAt(index);
    return record;
  };
}

/** Decodes a little-endian integer of 32-bit words in two's complement. */
function integerOf(words: Uint32Array): bigint {
  const unsigned = words.reduceRight((value, word) => value << 32n | BigInt(word), 0n);
  return BigInt.asIntN(32 * words.length, unsigned);
}
