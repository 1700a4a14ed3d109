/**
 * Checks the pages of a column before they are decoded, because the library trusts their headers and
 * ignores checksums. A damaged count makes it run for seconds, and a missing count for ever. It also
 * accepts damaged values.
 */
import type { ColumnMetaData } from "hyparquet";
import { LeatError } from "../../../core/error.ts";
import { deserializeTCompactProtocol } from "hyparquet/src/thrift.js";
import { crc32 } from "node:zlib";
import { checkEncoding, type PageData } from "./page_data_check.ts";
import { thriftEnd } from "./thrift_check.ts";
import { isCount } from "../../../core/count.ts";

/** A Thrift structure by field numbers. A damaged structure may hold anything. */
type Fields = Readonly<Record<`field_${number}`, unknown>>;

/**
 * The most output bytes per input byte of each codec whose format limits them. The library allocates
 * as many bytes as a header claims.
 */
const EXPANSION_MAX: Readonly<Partial<Record<ColumnMetaData["codec"], number>>> = {
  UNCOMPRESSED: 1,
  // A copy of 64 bytes takes 3 bytes.
  SNAPPY: 22,
  GZIP: 1_032,
  LZ4: 255,
  LZ4_RAW: 255,
};

/**
 * Maximum values of a page. While the library decodes one, each value takes about 40 bytes of
 * memory, also if the page has only a few bytes.
 */
const PAGE_VALUES_MAX = 2 ** 25;

/**
 * Maximum pages of a column of a row group, in all its leaves. Each takes about 240 bytes of memory, and
 * may be as short as 5 bytes.
 */
export const PAGES_MAX = 2 ** 20;

/** A page of a column, from its header to the end of its data. */
export interface Page {
  readonly start: number;
  readonly stop: number;
  /** Number of values of the column in it. */
  readonly values: number;
  /** Number of entries, if it is a dictionary. */
  readonly entries: number;
  /** Where its data begins, after its header. */
  readonly dataStart: number;
  /** What its data are; `undefined` for a dictionary. */
  readonly data: PageData | undefined;
}

/**
 * Checks and returns the pages of a column. They must be within the column, have no more values than
 * the column, and match their checksums if they have any.
 *
 * @param bytesMax Maximum decompressed bytes of all pages together.
 * @param pagesMax Maximum pages: what other leaves of the column have left of {@linkcode PAGES_MAX}.
 * @throws {LeatError} `resource_exhausted` beyond `bytesMax` or `pagesMax`, `unimplemented` for an
 * encoding that the library does not decode.
 * @throws {Error} Names the damaged page.
 */
export function checkPages(
  chunk: ArrayBuffer,
  column: ColumnMetaData,
  bytesMax: number,
  pagesMax = PAGES_MAX,
): Page[] {
  const reader = { view: new DataView(chunk), offset: 0 };
  const pages: Page[] = [];
  let values = 0;
  let decompressed = 0;
  for (let page = 0; reader.offset < chunk.byteLength - 1; page++) {
    if (page === pagesMax) {
      throw new LeatError(
        "resource_exhausted",
        `it has more than ${PAGES_MAX} pages (PAGES_MAX); write larger pages`,
      );
    }
    const start = reader.offset;
    try {
      thriftEnd(new Uint8Array(chunk), start);
    } catch (cause) {
      const { message } = LeatError.from(cause);
      throw new Error(`the header of page ${page} is damaged: ${message}`, { cause });
    }
    const header: Fields = deserializeTCompactProtocol(reader);
    const { field_2: decompressedBytes, field_3: bytes, field_4: checksum } = header;
    const { offset } = reader;
    if (!isCountUpTo(bytes, chunk.byteLength - offset) || !isCount(decompressedBytes)) {
      throw new Error(`the sizes of page ${page} are damaged`);
    }
    const possibleBytes = 64 + bytes * (EXPANSION_MAX[column.codec] ?? Infinity);
    if (decompressedBytes > possibleBytes) {
      throw new Error(
        `page ${page} claims that ${bytes} bytes decompress to ${decompressedBytes}`,
      );
    }
    decompressed += decompressedBytes;
    if (decompressed > bytesMax) {
      throw new LeatError(
        "resource_exhausted",
        `its pages decompress to more than ${bytesMax} bytes (ROW_GROUP_BYTES_MAX)`,
      );
    }
    if (typeof checksum === "number") {
      const computed = crc32(new Uint8Array(chunk, offset, bytes));
      if (computed !== checksum >>> 0) throw new Error(`the checksum of page ${page} is wrong`);
    }
    const count = valuesOf(header, bytes, decompressedBytes) ?? NaN;
    if (count > PAGE_VALUES_MAX) {
      throw new LeatError(
        "resource_exhausted",
        `page ${page} has ${count} values, more than ${PAGE_VALUES_MAX} (PAGE_VALUES_MAX); write ` +
          "smaller pages",
      );
    }
    values += count;
    if (!(values <= column.num_values)) throw new Error(`the header of page ${page} is damaged`);
    reader.offset += bytes;
    const entries = (header.field_7 as Fields | undefined)?.field_1 as number | undefined ?? 0;
    const data = dataOf(header);
    if (data !== undefined) checkEncoding(data);
    pages.push({ start, stop: reader.offset, values: count, entries, dataStart: offset, data });
  }
  return pages;
}

/** Returns how many values a page adds to the column; `undefined` if its header is invalid. */
function valuesOf(header: Fields, bytes: number, decompressedBytes: number): number | undefined {
  // The library takes the one that the type says, and the others would be unchecked.
  if ([header.field_5, header.field_7, header.field_8].filter(isPresent).length > 1) {
    return undefined;
  }
  const data = header.field_5 as Fields | undefined;
  if (data !== undefined) {
    const { field_1: count, field_2: encoding } = data;
    return isCount(count) && isCount(encoding) ? count : undefined;
  }
  const dictionary = header.field_7 as Fields | undefined;
  if (dictionary !== undefined) {
    return isCountUpTo(dictionary.field_1, decompressedBytes) ? 0 : undefined;
  }
  const data2 = header.field_8 as Fields | undefined;
  if (data2 === undefined) return 0;
  const { field_1: count, field_2: nulls, field_3: rows, field_4: encoding } = data2;
  const { field_5: definitionBytes, field_6: repetitionBytes } = data2;
  const isWhole = isCount(count) && isCountUpTo(nulls, count) && isCountUpTo(rows, count) &&
    isCount(encoding) && isCountUpTo(definitionBytes, bytes) &&
    isCountUpTo(repetitionBytes, bytes - definitionBytes);
  return isWhole ? count : undefined;
}

/** Returns what valid headers say about the data of a page. */
function dataOf(header: Fields): PageData | undefined {
  const data = header.field_5 as Fields | undefined;
  if (data !== undefined) {
    return { count: data.field_1 as number, encoding: data.field_2 as number };
  }
  const data2 = header.field_8 as Fields | undefined;
  if (data2 === undefined) return undefined;
  return {
    count: data2.field_1 as number,
    encoding: data2.field_4 as number,
    levels: {
      nulls: data2.field_2 as number,
      definitionBytes: data2.field_5 as number,
      repetitionBytes: data2.field_6 as number,
      isCompressed: data2.field_7 !== false,
    },
  };
}

function isPresent(value: unknown): boolean {
  return value !== undefined;
}

function isCountUpTo(value: unknown, max: number): value is number {
  return isCount(value) && value <= max;
}
