/**
 * CRC-32C (Castagnoli): the checksum of TFRecord files.
 *
 * Long inputs use native code if the platform has it, which is more than ten times as fast. Short
 * inputs, such as the eight bytes of a record's length, use tables: a native call would take longer.
 */

/** The polynomial, with its bits reversed. */
const POLYNOMIAL = 0x82f63b78;
const SLICES = 16;

/**
 * `TABLES[s * 256 + b]`: the effect of byte `b` on the checksum, `s` bytes before the end of a
 * slice.
 */
const TABLES = makeTables();

function makeTables(): Int32Array {
  const tables = new Int32Array(SLICES * 256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    tables[byte] = crc;
  }
  for (let at = 256; at < tables.length; at++) {
    const before = tables[at - 256]!;
    tables[at] = (before >>> 8) ^ tables[before & 0xff]!;
  }
  return tables;
}

/** Inputs from this length on use native code. */
const NATIVE_BYTES_MIN = 192;

export type Crc32c = (bytes: Uint8Array) => number;

let loadNative: (() => Crc32c | undefined) | undefined;
let native: Crc32c | undefined;

/**
 * Sets a native implementation. The platform calls it once.
 *
 * @param load Returns the implementation, or `undefined` if this machine has none. Called before the
 * first long input.
 */
export function installCrc32c(load: () => Crc32c | undefined): void {
  loadNative = load;
}

/**
 * Returns the CRC-32C of `bytes` from `start` to `stop`, as an integer from 0 to 2³² - 1.
 *
 * @example
 * ```ts
 * import { crc32c } from "./crc32c.ts";
 * crc32c(new TextEncoder().encode("123456789")); // 0xe3069283
 * ```
 */
export function crc32c(bytes: Uint8Array, start = 0, stop = bytes.length): number {
  if (stop - start < NATIVE_BYTES_MIN) return tableCrc32c(bytes, start, stop);
  if (loadNative !== undefined) {
    native = loadNative();
    loadNative = undefined;
  }
  return native?.(bytes.subarray(start, stop)) ?? tableCrc32c(bytes, start, stop);
}

/**
 * Computes the CRC by slicing: looks up sixteen bytes at a time, each in its own table (Kounavis and
 * Berry, "Novel Table Lookup-Based Algorithms for High-Performance CRC Generation", IEEE Transactions
 * on Computers 57, 2008).
 */
function tableCrc32c(bytes: Uint8Array, start: number, stop: number): number {
  const t = TABLES, b = bytes;
  let crc = -1;
  let i = start;
  for (; i + SLICES <= stop; i += SLICES) {
    crc ^= b[i]! | b[i + 1]! << 8 | b[i + 2]! << 16 | b[i + 3]! << 24;
    crc = t[0xf00 + (crc & 0xff)]! ^ t[0xe00 + (crc >>> 8 & 0xff)]! ^
      t[0xd00 + (crc >>> 16 & 0xff)]! ^ t[0xc00 + (crc >>> 24)]! ^
      t[0xb00 + b[i + 4]!]! ^ t[0xa00 + b[i + 5]!]! ^ t[0x900 + b[i + 6]!]! ^
      t[0x800 + b[i + 7]!]! ^
      t[0x700 + b[i + 8]!]! ^ t[0x600 + b[i + 9]!]! ^ t[0x500 + b[i + 10]!]! ^
      t[0x400 + b[i + 11]!]! ^ t[0x300 + b[i + 12]!]! ^ t[0x200 + b[i + 13]!]! ^
      t[0x100 + b[i + 14]!]! ^ t[b[i + 15]!]!;
  }
  for (; i < stop; i++) crc = t[(crc ^ b[i]!) & 0xff]! ^ (crc >>> 8);
  return ~crc >>> 0;
}

/**
 * Returns the CRC as TFRecord files store it: rotated, plus a constant, because the CRC of data that
 * contains a CRC is weak.
 */
export function maskedCrc32c(bytes: Uint8Array, start = 0, stop = bytes.length): number {
  const crc = crc32c(bytes, start, stop);
  return ((crc >>> 15 | crc << 17) + 0xa282ead8) >>> 0;
}
