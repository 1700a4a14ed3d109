/**
 * Checks the counts and offsets of Arrow's columns before their values are made.
 *
 * The library trusts them. If several lists shared the same items, at each of a few levels, one row
 * of a small file would have billions of items.
 */
import { type Data, DataType } from "apache-arrow";
import { LeatError } from "../../../core/error.ts";

/**
 * Maximum number of items in the lists of a column that take no bytes in the file, such as nulls.
 * Each takes 8 bytes in memory.
 */
export const ARROW_EMPTY_ITEMS_MAX = 1 << 24;

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
 * bytes the dictionary keys in its lists stand for.
 *
 * @param bytesMax Maximum bytes of the dictionary entries that all items of a list column repeat.
 * @throws {Error} if offsets descend, are missing, or exceed what they divide.
 * @throws {LeatError} `resource_exhausted` if items repeat more than `bytesMax` bytes.
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

/** Outside of lists, a row has one entry of each dictionary, and rows are made one by one. */
function checkRepeated(data: Data, bytesMax: number): void {
  const { type, children, dictionary } = data;
  const isList = DataType.isList(type) || DataType.isMap(type) || DataType.isFixedSizeList(type);
  if (isList) {
    const bytes = repeatedBytes(children[0]!);
    if (bytes <= bytesMax) return;
    throw new LeatError(
      "resource_exhausted",
      `its lists repeat dictionary entries to ${bytes} bytes, more than ${bytesMax} ` +
        "(ARROW_BATCH_BYTES_MAX); write smaller record batches",
    );
  }
  for (const part of [...children, ...dictionary?.data ?? []]) checkRepeated(part, bytesMax);
}

/** Returns the bytes of the dictionary entries that all keys in `data` stand for. */
function repeatedBytes({ values: keys, length, children, dictionary }: Data): number {
  if (dictionary === undefined) {
    return children.reduce((bytes, child) => bytes + repeatedBytes(child), 0);
  }
  const sizeAt = entrySizes(dictionary.data);
  let bytes = 0;
  for (let i = 0; i < length; i++) bytes += sizeAt(Number(keys[i]));
  return bytes;
}

/** Returns the bytes of an entry. One with parts counts as large as all entries together. */
function entrySizes(chunks: readonly Data[]): (entry: number) => number {
  const sizes = chunks.flatMap((chunk) => {
    const { type, length, valueOffsets: offsets, children, dictionary, stride } = chunk;
    if (hasByteOffsets(type)) {
      return Array.from({ length }, (_, i) => Number(offsets[i + 1]) - Number(offsets[i]));
    }
    const hasParts = children.length > 0 || dictionary !== undefined;
    const size = hasParts ? chunk.byteLength + repeatedBytes(chunk) : 8 * stride;
    return new Array<number>(Math.min(length, rowsHeld(chunk))).fill(size);
  });
  return (entry) => sizes[entry] ?? 0;
}
