/** Parquet files whose counts no writer would write. */
import { concat } from "../reading.ts";

const MAGIC = new TextEncoder().encode("PAR1");

/** A value of Thrift's compact protocol: its type, and its bytes. */
interface Thrift {
  readonly type: number;
  readonly bytes: readonly number[];
}

function varint(value: bigint): number[] {
  return value < 128n ? [Number(value)] : [Number(value & 127n) | 128, ...varint(value >> 7n)];
}

function integer(type: number, value: number): Thrift {
  const wide = BigInt(value);
  return { type, bytes: varint(wide < 0n ? -2n * wide - 1n : 2n * wide) };
}

const int32 = (value: number) => integer(5, value);
const int64 = (value: number) => integer(6, value);

function text(value: string): Thrift {
  return { type: 8, bytes: [value.length, ...new TextEncoder().encode(value)] };
}

function list(...items: Thrift[]): Thrift {
  const { length } = items;
  const type = items[0]?.type ?? 12;
  const head = length < 15 ? [length << 4 | type] : [15 << 4 | type, ...varint(BigInt(length))];
  return { type: 9, bytes: [...head, ...items.flatMap(({ bytes }) => bytes)] };
}

/** @param fields By their ids, in ascending order. */
function struct(fields: Record<number, Thrift>): Thrift {
  let last = 0;
  const bytes = Object.entries(fields).flatMap(([id, { type, bytes }]) => {
    const head = Number(id) - last << 4 | type;
    last = Number(id);
    return [head, ...bytes];
  });
  return { type: 12, bytes: [...bytes, 0] };
}

/** An optional column of INT32s, all null, in one page; and what the footer says about it. */
export interface NullColumn {
  readonly name: string;
  readonly pageValues: number;
  readonly values: number;
  readonly uncompressedBytes?: number;
  readonly compressedBytes?: number;
  readonly isEncrypted?: boolean;
}

/** A file of a row group with these columns. */
export function fileOfNulls(columns: readonly NullColumn[], rows: number): Uint8Array {
  let at = MAGIC.length;
  const chunks: Uint8Array[] = [];
  const described = columns.map((column) => {
    const { name, pageValues, values, uncompressedBytes, compressedBytes } = column;
    const run = [...varint(2n * BigInt(pageValues)), 0];
    const levels = [run.length, 0, 0, 0, ...run];
    const page = struct({
      ...{ 1: int32(0), 2: int32(levels.length), 3: int32(levels.length) },
      5: struct({ 1: int32(pageValues), 2: int32(0), 3: int32(3), 4: int32(3) }),
    });
    const chunk = new Uint8Array([...page.bytes, ...levels]);
    chunks.push(chunk);
    const start = at;
    at += chunk.length;
    const meta = struct({
      ...{ 1: int32(1), 2: list(int32(0)), 3: list(text(name)), 4: int32(0), 5: int64(values) },
      ...{
        6: int64(uncompressedBytes ?? chunk.length),
        7: int64(compressedBytes ?? chunk.length),
        9: int64(start),
      },
    });
    // With the key of the footer.
    const encryption = column.isEncrypted ? { 8: struct({ 1: struct({}) }) } : {};
    return struct({ 2: int64(start), 3: meta, ...encryption });
  });
  const footer = struct({
    1: int32(1),
    2: list(
      struct({ 4: text("root"), 5: int32(columns.length) }),
      ...columns.map(({ name }) => struct({ 1: int32(1), 3: int32(1), 4: text(name) })),
    ),
    3: int64(rows),
    4: list(struct({ 1: list(...described), 2: int64(0), 3: int64(rows) })),
  });
  return fileOf(chunks, footer);
}

function fileOf(chunks: readonly Uint8Array[], footer: Thrift): Uint8Array {
  const length = new Uint8Array(new Uint32Array([footer.bytes.length]).buffer);
  return concat(MAGIC, ...chunks, new Uint8Array(footer.bytes), length, MAGIC);
}

/** A file without rows, whose schema has chains of nested groups with a leaf at the end of each. */
export function fileOfGroups(chains: number, depth: number): Uint8Array {
  const group = (name: string) => struct({ 4: text(name), 5: int32(1) });
  const leaf = struct({ 1: int32(1), 3: int32(1), 4: text("x") });
  const rest = [...Array<Thrift>(depth - 1).fill(group("g")), leaf];
  const elements = Array.from({ length: chains }, (_, i) => [group(`g${i}`), ...rest]).flat();
  const footer = struct({
    1: int32(1),
    2: list(struct({ 4: text("root"), 5: int32(chains) }), ...elements),
    ...{ 3: int64(0), 4: list() },
  });
  return fileOf([], footer);
}

/** A file whose footer is a list of structures without fields, of one byte each. */
export function fileOfEmptyStructures(count: number): Uint8Array {
  const head = new Uint8Array([0x15, 2, 0x19, 15 << 4 | 12, ...varint(BigInt(count))]);
  const footerBytes = head.length + count + 1;
  const length = new Uint8Array(new Uint32Array([footerBytes]).buffer);
  return concat(MAGIC, head, new Uint8Array(count + 1), length, MAGIC);
}

/** A file whose footer is a list in a list, and so on. */
export function fileOfLists(depth: number): Uint8Array {
  const footer = new Uint8Array([0x19, ...new Array<number>(depth).fill(1 << 4 | 9), 0x03, 0]);
  const length = new Uint8Array(new Uint32Array([footer.length]).buffer);
  return concat(MAGIC, footer, length, MAGIC);
}
