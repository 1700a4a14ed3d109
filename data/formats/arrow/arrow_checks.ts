/**
 * Checks the counts and offsets of Arrow's columns before their values are made.
 *
 * The library trusts them. If several lists shared the same items, at each of a few levels, one row
 * of a small file would have billions of items.
 */
import { type Data, DataType, type Vector } from "apache-arrow";
import { LeatError } from "../../../core/error.ts";

/**
 * Maximum number of items in the lists of a column that take no bytes in the file, such as nulls.
 * Each takes 8 bytes in memory.
 */
const ARROW_EMPTY_ITEMS_MAX = 1 << 24;

/** Returns how many rows the buffers of a column can hold. Its header may claim more. */
export function rowsHeld({ type, values, valueOffsets, children, stride }: Data): number {
  if (DataType.isNull(type)) return Infinity;
  if (DataType.isFixedSizeList(type)) return Math.floor(itemsHeld(children[0]!) / stride);
  if (children.length > 0 && DataType.isStruct(type)) return Math.min(...children.map(rowsHeld));
  if (valueOffsets !== undefined) return Math.max(0, valueOffsets.length - 1);
  if (values === undefined) return Infinity;
  return DataType.isBool(type) ? 8 * values.length : Math.floor(values.length / stride);
}

function itemsHeld(items: Data): number {
  const held = rowsHeld(items);
  return Math.min(items.length, held === Infinity ? ARROW_EMPTY_ITEMS_MAX : held);
}

/** Dictionaries whose offsets are checked: all batches of a file share them. */
const checkedDictionaries = new WeakSet<Data>();

/**
 * Checks the offsets of the lists, maps, strings and bytes of a column, at every level, and how many
 * bytes the dictionary keys in each list stand for.
 *
 * @param bytesMax Maximum bytes of the dictionary entries that a list repeats.
 * @throws {Error} if offsets descend, are missing, or exceed what they divide.
 * @throws {LeatError} `resource_exhausted` if a list repeats more than `bytesMax` bytes.
 */
export function checkColumn(data: Data, bytesMax: number): void {
  checkOffsets(data);
  checkRepeated(data, bytesMax);
}

function checkOffsets(data: Data): void {
  const { type, children, dictionary } = data;
  if (DataType.isList(type) || DataType.isMap(type)) {
    checkAscending(data, itemsHeld(children[0]!));
  } else if (hasByteOffsets(type)) {
    checkAscending(data, (data.values as Uint8Array | undefined)?.length ?? 0);
  }
  for (const child of children) checkOffsets(child);
  for (const entries of dictionary?.data ?? []) {
    if (checkedDictionaries.has(entries)) continue;
    checkOffsets(entries);
    checkedDictionaries.add(entries);
  }
}

function hasByteOffsets(type: DataType): boolean {
  return DataType.isUtf8(type) || DataType.isLargeUtf8(type) || DataType.isBinary(type) ||
    DataType.isLargeBinary(type);
}

function checkAscending({ type, length, valueOffsets }: Data, max: number): void {
  if (length === 0) return;
  // Large types have offsets of 64 bits.
  const offsets: ArrayLike<number | bigint> = valueOffsets;
  let previous: number | bigint = 0;
  for (let i = 0; i <= length; i++) {
    const offset = offsets[i];
    if (offset === undefined || offset < previous || offset > max) {
      throw new Error(`offset ${i} of its ${type} is ${offset}, not from ${previous} to ${max}`);
    }
    previous = offset;
  }
}

/** Rows are made one by one, so only the entries that one list repeats are in memory together. */
function checkRepeated(data: Data, bytesMax: number): void {
  const { type, length, children, dictionary } = data;
  const parts = [...children, ...dictionary?.data ?? []];
  if (!isList(type)) return parts.forEach((part) => checkRepeated(part, bytesMax));
  if (!hasDictionary(data)) return;
  for (let row = 0; row < length; row++) {
    const bytes = repeatedBytes(data, row, row + 1);
    if (bytes <= bytesMax) continue;
    throw new LeatError(
      "resource_exhausted",
      `a list repeats dictionary entries to ${bytes} bytes, more than ${bytesMax} ` +
        "(ARROW_BATCH_BYTES_MAX)",
    );
  }
}

function isList(type: DataType): boolean {
  return DataType.isList(type) || DataType.isMap(type) || DataType.isFixedSizeList(type);
}

function hasDictionary({ children, dictionary }: Data): boolean {
  return dictionary !== undefined || children.some(hasDictionary);
}

/** Returns the bytes of the dictionary entries that the keys in some rows of `data` stand for. */
function repeatedBytes(data: Data, from: number, to: number): number {
  const { type, values: keys, valueOffsets, children, dictionary, stride } = data;
  if (dictionary !== undefined) {
    let bytes = 0;
    for (let i = from; i < to; i++) bytes += entryBytes(dictionary.data, Number(keys[i]));
    return bytes;
  }
  let [first, last] = [from, to];
  if (DataType.isFixedSizeList(type)) [first, last] = [from * stride, to * stride];
  else if (isList(type)) [first, last] = [Number(valueOffsets[from]), Number(valueOffsets[to])];
  return children.reduce((bytes, child) => bytes + repeatedBytes(child, first, last), 0);
}

/** Returns the bytes of an entry. One with parts counts as large as all entries together. */
function entryBytes(chunks: readonly Data[], entry: number): number {
  for (const chunk of chunks) {
    const { type, length, valueOffsets: offsets, children, dictionary, stride } = chunk;
    if (entry >= length) {
      entry -= length;
      continue;
    }
    if (hasByteOffsets(type)) return Number(offsets[entry + 1]) - Number(offsets[entry]);
    return children.length > 0 || dictionary !== undefined ? chunk.byteLength : 8 * (stride ?? 1);
  }
  return 0;
}

/** The dictionaries of a file or stream, by their ids. */
type Dictionaries = Map<number, Vector>;

/**
 * Makes the library's dictionaries refuse what exceeds `bytesMax` together: it holds them all, and each
 * may be compressed to a few bytes.
 */
export function limitDictionaries(dictionaries: Dictionaries, bytesMax: number): void {
  let bytes = 0;
  dictionaries.set = (id, vector) => {
    bytes += vector.byteLength - (dictionaries.get(id)?.byteLength ?? 0);
    if (bytes <= bytesMax) return Map.prototype.set.call(dictionaries, id, vector) as Dictionaries;
    throw new LeatError(
      "resource_exhausted",
      `its dictionaries have ${bytes} bytes, more than ${bytesMax} (ARROW_BATCH_BYTES_MAX)`,
    );
  };
}
