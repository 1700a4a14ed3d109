/** Checks of Parquet's pages: checksums and counts. */

import type { ColumnMetaData } from "hyparquet";
import { crc32 } from "node:zlib";
import { assertEquals, assertStringIncludes, assertThrows } from "../../../assert.ts";
import { LeatError } from "../../../../core/error.ts";
import { checkPages, PAGES_MAX } from "../../../../data/formats/parquet/parquet_pages.ts";
import { concat } from "../reading.ts";

const DATA = new TextEncoder().encode("the values of a page");
const column = { num_values: 5n } as ColumnMetaData;

/** An integer in Thrift's compact protocol. */
function varint(value: number): number[] {
  let left = BigInt.asUintN(32, BigInt(value << 1 ^ value >> 31));
  const bytes = [];
  for (; left > 127n; left >>= 7n) bytes.push(Number(left & 127n) | 128);
  return [...bytes, Number(left)];
}

/** A data page: the fields of its header are 32-bit integers with consecutive numbers. */
function page(
  count: number,
  checksum: number | undefined,
  sizeBytes = DATA.length,
  decompressedBytes = sizeBytes,
): Uint8Array {
  const field = (value: number) => [0x15, ...varint(value)];
  const sizes = [...field(0), ...field(decompressedBytes), ...field(sizeBytes)];
  const check = checksum === undefined ? [0x2c] : [...field(checksum), 0x1c];
  const header = [...sizes, ...check, ...field(count), ...field(0), ...field(3), ...field(3), 0, 0];
  return concat(new Uint8Array(header), DATA);
}

const check = (...pages: Uint8Array[]) =>
  checkPages(concat(...pages).buffer, column, 3 * DATA.length);

Deno.test("checkPages verifies checksums if there are some", () => {
  const checksum = crc32(DATA) | 0;
  check(page(2, checksum), page(3, checksum), page(0, undefined));
  assertThrows(() => check(page(2, checksum), page(3, checksum ^ 1)), Error, "checksum of page 1");
});

Deno.test("checkPages refuses counts and sizes beyond the column's", () => {
  assertThrows(() => check(page(6, undefined)), Error, "page 0");
  assertThrows(() => check(page(3, undefined), page(3, undefined)), Error, "page 1");
  assertThrows(() => check(page(-1, undefined)), Error, "page 0");
  assertThrows(() => check(page(1, undefined, DATA.length + 1)), Error, "sizes of page 0");
  assertThrows(() => check(page(1, undefined, -1)), Error, "sizes of page 0");
  assertThrows(() => check(page(1, undefined), new Uint8Array(9)), Error, "page 1");
});

Deno.test("checkPages refuses pages that claim more than their compression can yield", () => {
  const grown = (codec: ColumnMetaData["codec"], times: number) =>
    checkPages(
      concat(page(1, undefined, DATA.length, times * DATA.length)).buffer,
      { ...column, codec },
      1e9,
    );
  grown("SNAPPY", 21);
  grown("GZIP", 1_000);
  grown("ZSTD", 10_000);
  assertThrows(() => grown("SNAPPY", 40), Error, "page 0 claims");
  assertThrows(() => grown("GZIP", 2_000), Error, "page 0 claims");
  assertThrows(() => grown("UNCOMPRESSED", 10), Error, "page 0 claims");
});

Deno.test("checkPages refuses pages that decompress to more than its limit, and lists longer than the page", () => {
  const pages = Array.from({ length: 4 }, () => page(1, undefined));
  check(...pages.slice(1));
  const error = assertThrows(() => check(...pages), LeatError) as LeatError;
  assertEquals(error.code, "resource_exhausted");
  assertStringIncludes(error.message, "ROW_GROUP_BYTES_MAX");
  // A list of 2^30 structures, in an unknown field.
  const list = new Uint8Array([0x99, 0xfc, ...[0x80, 0x80, 0x80, 0x80, 0x04], 0]);
  assertThrows(() => check(concat(list, DATA)), Error, "a list claims 1073741824 items");
});

Deno.test("checkPages refuses more pages than PAGES_MAX, or than other leaves have left of them", () => {
  const refusal = (bytes: ArrayBuffer, pagesMax?: number) =>
    assertThrows(() => checkPages(bytes, column, 1_000, pagesMax), LeatError, "(PAGES_MAX)");
  // Two sizes of 0.
  const shortest = new Uint8Array([0x25, 0, 0x15, 0, 0]);
  const pagesOf = (count: number) =>
    new Uint8Array(count * shortest.length).map((_, i) => shortest[i % shortest.length]!).buffer;
  assertEquals(checkPages(pagesOf(3), column, 1_000, 3).length, 3);
  assertEquals(refusal(pagesOf(4), 3).code, "resource_exhausted");
  refusal(pagesOf(PAGES_MAX + 1));
});
