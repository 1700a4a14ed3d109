/** Checks of the levels and values of Parquet's pages, before the library decodes them. */

import type { ColumnMetaData, FileMetaData } from "hyparquet";
import { gzipSync } from "node:zlib";
import { assertEquals, assertStringIncludes, assertThrows } from "../../../assert.ts";
import { LeatError } from "../../../../core/error.ts";
import {
  checkEncoding,
  checkEntries,
  checkLevels,
  checkValues,
  type Leaf,
  leafOf,
  type PageData,
} from "../../../../data/formats/parquet/page_data_check.ts";
import { checkPages } from "../../../../data/formats/parquet/parquet_pages.ts";
import { refusal, values, write } from "./written.ts";

const PLAIN = 0;
const RLE = 3;
const DELTA_BINARY_PACKED = 5;
const DELTA_LENGTH_BYTE_ARRAY = 6;
const DELTA_BYTE_ARRAY = 7;
const RLE_DICTIONARY = 8;
const BYTE_STREAM_SPLIT = 9;

const LEAF: Leaf = {
  ...{ type: "INT32", isText: false, listsMax: [0], droppedMax: [0] },
  ...{ repetitionBits: 0, definitionBits: 0, definitionMax: 0 },
};
const OPTIONAL: Leaf = { ...LEAF, definitionBits: 1, definitionMax: 1 };

const levels = { repetitionBytes: 0, definitionBytes: 0, nulls: 0, isCompressed: true };

function checked(bytes: number[], data: PageData, leaf = LEAF, budget = { bytes: 1_000 }): number {
  checkValues(new Uint8Array(bytes), data, leaf, budget);
  return budget.bytes;
}

/** A number of 2^31 - 1 and more, as the library reads it: -1. */
const MINUS_ONE = [0xff, 0xff, 0xff, 0xff, 0x0f];

Deno.test("checkEncoding refuses encodings that no version of data pages is decoded with", () => {
  for (const encoding of [PLAIN, RLE, DELTA_BINARY_PACKED, RLE_DICTIONARY, BYTE_STREAM_SPLIT]) {
    checkEncoding({ count: 9, encoding });
    checkEncoding({ count: 9, encoding, levels });
  }
  checkEncoding({ count: 9, encoding: DELTA_BYTE_ARRAY, levels });
  for (const [encoding, name] of [[4, "BIT_PACKED"], [10, "with number 10"]] as const) {
    const refused = () => checkEncoding({ count: 9, encoding, levels });
    const { code, message } = assertThrows(refused, LeatError);
    assertEquals(code, "unimplemented");
    assertStringIncludes(message, `the encoding ${name} is not supported`);
  }
});

Deno.test("checkValues refuses runs that are longer than the values that are left", () => {
  const version1 = { count: 9, encoding: RLE_DICTIONARY };
  for (const data of [version1, { ...version1, levels }]) {
    // Nine equal values; two groups of 8, the last one filled up; both kinds.
    checked([8, 18, 1], data);
    checked([1, 5, 0xaa, 0xaa], data);
    checked([1, 2, 1, 3, 0xaa], data);
    assertThrows(() => checked([8, 20, 1], data), Error, "a run of 10 values");
    // Groups of 256 values, as DuckDB fills them up.
    checked([1, 0x41, ...new Array(32).fill(0xaa)], data);
    const long = [0x85, 2, ...new Array(130).fill(0)];
    assertThrows(() => checked([1, ...long], data), Error, "a run of 1040 values");
    assertThrows(() => checked([33, 18, 1], data), Error, "33 bits");
  }
  // Without bits, the library would count from -8 down, for ever.
  const data = { ...version1, levels };
  assertThrows(() => checked([0, ...MINUS_ONE], data), Error, "a run of");
  const booleans: Leaf = { ...LEAF, type: "BOOLEAN" };
  assertThrows(() => checked([2, 0, 0, 0, 20, 1], { count: 9, encoding: RLE }, booleans), Error);
});

Deno.test("checkValues and checkLevels refuse runs of levels that are too long, and count nulls", () => {
  const data = { count: 9, encoding: RLE_DICTIONARY };
  // Eight nulls, then one value.
  const defined = [4, 0, 0, 0, 16, 0, 2, 1];
  checked([...defined, 8, 2, 1], data, OPTIONAL);
  assertThrows(() => checked([...defined, 8, 4, 1], data, OPTIONAL), Error, "a run of 2 values");
  assertThrows(() => checked([2, 0, 0, 0, 20, 0], data, OPTIONAL), Error, "a run of 10 values");
  const version2 = { ...data, levels: { ...levels, definitionBytes: 2 } };
  checkLevels(new Uint8Array([18, 1]), version2, OPTIONAL, { bytes: 1_000 });
  assertThrows(
    () => checkLevels(new Uint8Array([20, 1]), version2, OPTIONAL, { bytes: 1_000 }),
    Error,
    "a run of 10",
  );
});

Deno.test("checkValues refuses differences of more bits, and numbers of more bytes, than 64 bits need", () => {
  for (const encoding of [DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY]) {
    const data = { count: 9, encoding };
    // Blocks of 32 values in one part: the count, the first value, the least difference, the bits.
    checked([32, 1, 9, 4, 0, 0], data);
    const long = new Array(10).fill(0x80);
    assertThrows(() => checked([32, 1, 9, ...long, 0, 0, 0], data), Error, "more than 10 bytes");
    assertThrows(() => checked([32, 1, 9, 4, ...long, 0, 0], data), Error, "more than 10 bytes");
    assertThrows(() => checked([32, 1, 9, 4, 0, 65], data), Error, "65 bits");
    assertThrows(() => checked([32, ...MINUS_ONE, 9, 4, 0, 0], data), Error, "its blocks");
  }
});

Deno.test("checkValues refuses values that repeat more of others than its budget", () => {
  const data = { count: 9, encoding: DELTA_BYTE_ARRAY, levels };
  // Nine prefixes of 30 bytes, and suffixes of 2: zigzag doubles the numbers.
  const page = [32, 1, 9, 60, 0, 0, 32, 1, 9, 4, 0, 0];
  assertEquals(checked(page, data), 1_000 - 9 * 32);
  const error = assertThrows(() => checked(page, data, LEAF, { bytes: 287 }), LeatError);
  assertEquals((error as LeatError).code, "resource_exhausted");
  assertStringIncludes((error as LeatError).message, "ROW_GROUP_BYTES_MAX");
  const negative = [32, 1, 9, 61, ...page.slice(4)];
  assertThrows(() => checked(negative, data), Error, "negative");
});

Deno.test("checkValues refuses split values that have more bytes than their page", () => {
  const types: [Leaf["type"], number][] = [
    ["INT32", 4],
    ["FLOAT", 4],
    ["INT64", 8],
    ["DOUBLE", 8],
    ["FIXED_LEN_BYTE_ARRAY", 3],
  ];
  for (const [type, width] of types) {
    const data = { count: 9, encoding: BYTE_STREAM_SPLIT };
    const leaf = { ...LEAF, type, typeLength: width };
    const check = (bytes: number) =>
      checked(new Array(bytes).fill(0), data, leaf, { bytes: 9 * 128 });
    check(9 * width);
    const message = `9 values of ${width} bytes`;
    assertThrows(() => check(9 * width - 1), Error, message);
  }
  const fixed: Leaf = { ...LEAF, type: "FIXED_LEN_BYTE_ARRAY", typeLength: -1 };
  const data = { count: 9, encoding: BYTE_STREAM_SPLIT };
  assertThrows(() => checked([0], data, fixed, { bytes: 9 * 128 }), Error, "9 values of -1 bytes");
});

Deno.test("what the library makes of values counts in memory, also of values without bytes", () => {
  const spent = (leaf: Leaf, encoding: number) =>
    1_000_000 - checked(
      // Nine times the level 1, as far as there are levels; the values are not looked at.
      leaf.definitionBits > 0 ? [2, 0, 0, 0, 18, 1] : [],
      { count: 9, encoding },
      leaf,
      { bytes: 1_000_000 },
    );
  const of = (type: Leaf["type"], leaf = LEAF): Leaf => ({ ...leaf, type });
  assertEquals(spent(of("BYTE_ARRAY"), PLAIN), 9 * 128);
  assertEquals(spent({ ...of("BYTE_ARRAY"), isText: true }, PLAIN), 9 * 24);
  assertEquals(spent(of("INT64"), PLAIN), 0);
  assertEquals(spent(of("INT64", OPTIONAL), PLAIN), 9 * 24);
  assertEquals(spent(of("DOUBLE", OPTIONAL), PLAIN), 0);
  assertEquals(spent({ ...OPTIONAL, listsMax: [1] }, PLAIN), 9 * 192);
  const bytes = of("BYTE_ARRAY");
  for (
    const check of [
      () => checked([], { count: 9, encoding: PLAIN }, bytes, { bytes: 1_151 }),
      () => checkEntries(9, bytes, { bytes: 1_151 }),
    ]
  ) {
    const error = assertThrows(check, LeatError) as LeatError;
    assertEquals(error.code, "resource_exhausted");
  }
});

Deno.test("lists count where they begin, by their levels, in both versions of pages", () => {
  const leaf: Leaf = { ...OPTIONAL, repetitionBits: 1, listsMax: [2, 1] };
  // A list of one value, and one of eight; no value is absent.
  const repetitions = [4, 0, 14, 1];
  const definitions = [18, 1];
  const budget = { bytes: 1_000_000 };
  const version1 = [4, 0, 0, 0, ...repetitions, 2, 0, 0, 0, ...definitions];
  checked(version1, { count: 9, encoding: PLAIN }, leaf, budget);
  const inBoth = { repetitionBytes: 4, definitionBytes: 2, nulls: 0, isCompressed: false };
  const data = { count: 9, encoding: PLAIN, levels: inBoth };
  checkLevels(new Uint8Array([...repetitions, ...definitions]), data, leaf, budget);
  assertEquals(budget.bytes, 1_000_000 - 2 * (2 * 2 + 7) * 192);
  // The library would decode as many values as the header says, whatever the levels count.
  const lying = { ...data, levels: { ...inBoth, nulls: 1 } };
  assertThrows(
    () => checkLevels(new Uint8Array([...repetitions, ...definitions]), lying, leaf, budget),
    Error,
    "claims 1 absent values, and its levels 0",
  );
});

Deno.test("leafOf knows how many arrays each value may begin", () => {
  const schema = [
    { name: "root", num_children: 2 },
    { name: "list", repetition_type: "OPTIONAL", num_children: 1 },
    { name: "items", repetition_type: "REPEATED", num_children: 1 },
    { name: "item", repetition_type: "OPTIONAL", num_children: 1 },
    { name: "value", repetition_type: "OPTIONAL", type: "INT32" },
    { name: "flat", repetition_type: "OPTIONAL", type: "INT32" },
  ] as FileMetaData["schema"];
  const of = (...path: string[]) =>
    leafOf(schema, { type: "INT32", path_in_schema: path } as ColumnMetaData);
  const nested = of("list", "items", "item", "value");
  assertEquals(nested.listsMax, [3, 1]);
  // Those of `list` and `item` are free once the column is assembled.
  assertEquals(nested.droppedMax, [2, 1]);
  assertEquals(of("flat").listsMax, [0]);
});

Deno.test("checkPages refuses a page with two headers, of which it would check only one", () => {
  // The fields of a header: its type, two sizes, and then those of version 1 and of a dictionary.
  const sizes = [0x15, 0, 0x15, 0, 0x15, 0];
  const data = [0x2c, 0x15, 2, 0x15, 0, 0];
  const column = { num_values: 1n } as ColumnMetaData;
  const check = (...bytes: number[]) => checkPages(new Uint8Array(bytes).buffer, column, 1_000);
  assertEquals(check(...sizes, ...data, 0).length, 1);
  assertThrows(() => check(...sizes, ...data, 0x2c, 0x15, 0, 0, 0), Error, "page 0");
});

Deno.test("parquet refuses a run that is too long, in pages with and without compression", async () => {
  const data = new Array(9).fill(true);
  // A run of nine times true, with its length.
  const run = [2, 0, 0, 0, 18, 1];
  const lengthen = (bytes: Uint8Array) => {
    const at = bytes.toHex().indexOf(new Uint8Array(run).toHex()) / 2;
    return bytes.with(at + 4, 20) as Uint8Array<ArrayBuffer>;
  };
  const column = [{ name: "x", data, type: "BOOLEAN" as const, encoding: "RLE" as const }];
  const gzip = (bytes: Uint8Array) => new Uint8Array(gzipSync(bytes));
  const compressed = (GZIP: typeof gzip) => write(column, { codec: "GZIP", compressors: { GZIP } });
  const stored = write(column, { codec: "UNCOMPRESSED" });
  for (const whole of [stored, compressed(gzip)]) assertEquals(await values(whole), data);
  for (const damaged of [lengthen(stored), compressed((bytes) => gzip(lengthen(bytes)))]) {
    const error = await refusal(damaged);
    assertEquals(error.code, "data_loss");
    assertStringIncludes(error.message, "row group 0, column x: a run of 10 values");
  }
});
