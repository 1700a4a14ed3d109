/** Parquet: every type, projection, parts, positions, codecs, and damaged files. */
import { LeatError } from "../../../../core/error.ts";
import { Tensor, tensor } from "../../../../core/tensor.ts";
import { FOOTER_BYTES, openParquet } from "../../../../data/formats/parquet/parquet.ts";
import {
  assertEquals,
  assertInstanceOf,
  assertLess,
  assertStringIncludes,
} from "../../../assert.ts";
import { decimal } from "../../../../data/formats/parquet/lists.ts";
import { BytesFile, readAll } from "../reading.ts";
import { assertLaws, fileOf, rowsOf } from "../row_laws.ts";
import {
  LIST,
  listOf,
  node,
  numbers,
  refusal,
  TEN,
  values,
  write,
  writeColumn,
} from "./written.ts";
import { parquetMetadata } from "hyparquet";
import type { ColumnSource, SchemaElement } from "hyparquet-writer";
import { brotliCompressSync, deflateRawSync, gzipSync, zstdCompressSync } from "node:zlib";

Deno.test("parquet reads scalars of every type, and nulls", async () => {
  const text = (value: string) => new TextEncoder().encode(value);
  const bytes = write([
    { name: "int32", type: "INT32", data: [1, -2, null] },
    { name: "int64", type: "INT64", data: [1n, null, -(2n ** 63n)] },
    { name: "float", type: "FLOAT", data: [0.5, null, -1.5] },
    { name: "double", type: "DOUBLE", data: [0.1, NaN, Infinity] },
    { name: "boolean", type: "BOOLEAN", data: [true, null, false] },
    { name: "string", type: "STRING", data: ["ünï", "", null] },
    { name: "bytes", type: "BYTE_ARRAY", data: [text("\xff"), text(""), null] },
    { name: "float16", type: "FLOAT16", data: [0.5, null, -2] },
    { name: "uuid", type: "UUID", data: [text("0123456789abcdef"), null, text("x".repeat(16))] },
    { name: "all null", type: "INT32", data: [null, null, null] },
  ]);
  const rows = await assertLaws(node(), bytes);
  const none = null;
  assertEquals(rows, [
    {
      int32: 1,
      int64: 1n,
      float: 0.5,
      double: 0.1,
      boolean: true,
      string: "ünï",
      bytes: text("\xff"),
      float16: 0.5,
      uuid: "30313233-3435-3637-3839-616263646566",
      "all null": none,
    },
    {
      int32: -2,
      int64: none,
      float: none,
      double: NaN,
      boolean: none,
      string: "",
      bytes: text(""),
      float16: none,
      uuid: none,
      "all null": none,
    },
    {
      int32: none,
      int64: -(2n ** 63n),
      float: -1.5,
      double: Infinity,
      boolean: false,
      string: none,
      bytes: none,
      float16: -2,
      uuid: "78787878-7878-7878-7878-787878787878",
      "all null": none,
    },
  ]);
});

Deno.test("parquet copies bytes out of the column", async () => {
  const data = numbers(4).map((i) => new Uint8Array(8).fill(i));
  for (const value of await values(write([{ name: "x", type: "BYTE_ARRAY", data }]))) {
    assertInstanceOf(value, Uint8Array);
    assertEquals(value.buffer.byteLength, 8);
  }
});

Deno.test("parquet leaves times as they are stored, in the unit of the column", async () => {
  const dates = [0, 1, null].map((day) => day === null ? null : new Date(day * 86_400_000));
  const required = { repetition_type: "OPTIONAL" } as const;
  assertEquals(
    await values(writeColumn(dates, [{ type: "INT32", converted_type: "DATE", ...required }])),
    [0, 1, null],
  );
  const millis = { type: "INT64", converted_type: "TIMESTAMP_MILLIS", ...required } as const;
  assertEquals(await values(writeColumn(dates, [millis])), [0n, 86_400_000n, null]);
  const nanos = {
    type: "INT64",
    logical_type: { type: "TIMESTAMP", isAdjustedToUTC: true, unit: "NANOS" },
    ...required,
  } as const;
  assertEquals(await values(writeColumn(dates, [nanos])), [0n, 86_400_000_000_000n, null]);
});

Deno.test("parquet reads decimals as the nearest numbers", async () => {
  const decimal = { converted_type: "DECIMAL", scale: 2, precision: 9 } as const;
  const required = { repetition_type: "REQUIRED" } as const;
  const data = [0.07, -1.13, 1234567.89, 0];
  assertEquals(
    await values(writeColumn(data, [{ type: "INT32", ...decimal, ...required }])),
    data,
  );
  const fixed = { type: "FIXED_LEN_BYTE_ARRAY", type_length: 5, ...decimal, ...required } as const;
  assertEquals(await values(writeColumn(data, [fixed])), data);
});

Deno.test("decimal rounds once, however many digits and whatever scale", () => {
  const cases: [unscaled: number | bigint, scale: number, nearest: number][] = [
    [7, 2, 0.07],
    [2n ** 53n - 1n, 22, 9.007199254740991e-7],
    [2n ** 53n + 1n, 1, 900719925474099.3],
    [-123456789012345678901234567890n, 25, -12345.678901234567890123456789],
    [3, 23, 3e-23],
    [3, -2, 300],
  ];
  for (const [unscaled, scale, nearest] of cases) assertEquals(decimal(unscaled, scale), nearest);
  for (let i = 1n; i < 1000n; i++) {
    const unscaled = 2n ** 60n + i * 7_919n;
    assertEquals(decimal(unscaled, 9), Number(`${unscaled}e-9`));
  }
});

Deno.test("parquet reads unsigned integers, enumerations and JSON", async () => {
  const required = { repetition_type: "REQUIRED" } as const;
  const unsigned = { type: "INT32", converted_type: "UINT_32", ...required } as const;
  assertEquals(await values(writeColumn([1, 2 ** 32 - 1], [unsigned])), [1, 2 ** 32 - 1]);
  const enumeration = { type: "BYTE_ARRAY", converted_type: "ENUM", ...required } as const;
  const texts = ["red", "green"].map((text) => new TextEncoder().encode(text));
  assertEquals(await values(writeColumn(texts, [enumeration])), ["red", "green"]);
  const json = [{ a: [1, 2] }, { b: null }];
  assertEquals(await values(write([{ name: "x", type: "JSON", data: json }])), json);
});

Deno.test("parquet refuses texts that are not UTF-8, and keeps byte order marks", async () => {
  const marked = new TextEncoder().encode("\ufeffa\ufffd");
  const required = { type: "BYTE_ARRAY", repetition_type: "REQUIRED" } as const;
  const [text, enumeration, json] = [
    { ...required, converted_type: "UTF8" },
    { ...required, converted_type: "ENUM" },
    { ...required, logical_type: { type: "JSON" } },
  ] as const;
  for (const element of [text, enumeration, json]) {
    const written = writeColumn([new Uint8Array([0x22, 0xff, 0x22])], [element]);
    const { code, message } = await refusal(written);
    assertEquals(code, "data_loss");
    assertStringIncludes(message, "row group 0, column x: a text is not UTF-8");
    assertStringIncludes(message, "write the column as binary");
  }
  for (const element of [text, enumeration]) {
    assertEquals(await values(writeColumn([marked], [element])), ["\ufeffa\ufffd"]);
  }
});

Deno.test("parquet loses only the rows with texts that are not UTF-8, also in lists and structs", async () => {
  const bad = new Uint8Array([0xff]);
  const good = new TextEncoder().encode("good");
  const text = {
    type: "BYTE_ARRAY",
    converted_type: "UTF8",
    repetition_type: "REQUIRED",
  } as const;
  const enumeration = { ...text, converted_type: "ENUM" } as const;
  const struct = [{ repetition_type: "REQUIRED", num_children: 1 } as const, text];
  const expected = tensor(["good", "good"]);
  const cases: [bytes: Uint8Array, value: unknown][] = [
    [writeColumn([good, bad, good, bad], [text]), "good"],
    [writeColumn([good, bad, good, bad], [enumeration]), "good"],
    [
      writeColumn([[good, good], [good, bad], [good, good], [bad]], listOf(text), LIST),
      expected,
    ],
    [
      writeColumn([good, bad, good, bad].map((s) => ({ s })), struct, ["x", "s"]),
      { s: "good" },
    ],
  ];
  for (const [bytes, value] of cases) {
    const [first, error, third, fourth] = await rowsOf(node(), bytes);
    assertEquals([first, third], [{ x: value }, { x: value }]);
    assertInstanceOf(fourth, LeatError);
    assertInstanceOf(error, LeatError);
    assertEquals([error.code, error.details], ["data_loss", { path: "my data" }]);
    assertStringIncludes(error.message, "row 1 of row group 0, column x: a text is not UTF-8");
  }
});

Deno.test("parquet refuses texts of maps and variants that are not UTF-8", async () => {
  const map: Omit<SchemaElement, "name">[] = [
    { repetition_type: "REQUIRED", converted_type: "MAP", num_children: 1 },
    { repetition_type: "REPEATED", num_children: 2 },
    { type: "BYTE_ARRAY", converted_type: "UTF8", repetition_type: "REQUIRED" },
    { type: "DOUBLE", repetition_type: "OPTIONAL" },
  ];
  const names = ["x", "key_value", "key", "value"];
  const variant: ColumnSource[] = [{
    name: "x",
    type: "VARIANT",
    data: [{ t: "bad" }],
    shredding: { t: "STRING" },
  }];
  for (const bytes of [writeColumn([{ bad: 1 }], map, names), write(variant)]) {
    bytes[new TextDecoder("latin1").decode(bytes).indexOf("bad")] = 0xff;
    const { message } = await refusal(bytes);
    assertStringIncludes(message, "row group 0, column x: a text is not UTF-8");
  }
});

Deno.test("parquet reads JSON that begins with a byte order mark", async () => {
  const json = {
    type: "BYTE_ARRAY",
    repetition_type: "REQUIRED",
    logical_type: { type: "JSON" },
  } as const;
  const marked = new TextEncoder().encode('\ufeff{"a":1}');
  assertEquals(await values(writeColumn([marked], [json])), [{ a: 1 }]);
});

Deno.test("parquet reads texts whose statistics end within a character", async () => {
  const bytes = write([{ name: "x", type: "STRING", data: ["aé"] }]);
  // The last text of the file is the column's maximum.
  bytes[bytes.lastIndexOf(new TextEncoder().encode("é")[1]!)] = 0x61;
  assertEquals(await values(bytes), ["aé"]);
});

Deno.test("parquet reads lists of numbers as typed arrays", async () => {
  const types = [
    ["FLOAT", Float32Array],
    ["DOUBLE", Float64Array],
    ["INT32", Int32Array],
  ] as const;
  for (const [type, TypedArray] of types) {
    const bytes = writeColumn([[1, 2], [], null, [3], [4, null]], [
      ...listOf({ type, repetition_type: "OPTIONAL" }),
    ], LIST);
    assertEquals(await values(bytes), [
      new TypedArray([1, 2]),
      new TypedArray(0),
      null,
      new TypedArray([3]),
      [4, null],
    ]);
  }
  const long = writeColumn(
    [[1n, -1n]],
    listOf({ type: "INT64", repetition_type: "REQUIRED" }),
    LIST,
  );
  assertEquals(await values(long), [new BigInt64Array([1n, -1n])]);
});

Deno.test("parquet reads lists of strings and booleans as tensors", async () => {
  const strings = listOf({
    type: "BYTE_ARRAY",
    converted_type: "UTF8",
    repetition_type: "OPTIONAL",
  });
  assertEquals(await values(writeColumn([["a", "bc"], [], ["d", null]], strings, LIST)), [
    tensor(["a", "bc"]),
    Tensor.zeros("string", [0]),
    ["d", null],
  ]);
  const flags = listOf({ type: "BOOLEAN", repetition_type: "REQUIRED" });
  assertEquals(await values(writeColumn([[true, false]], flags, LIST)), [tensor([true, false])]);
});

Deno.test("parquet reads lists of lists as one tensor where they are of one length", async () => {
  const nested: Omit<SchemaElement, "name">[] = [
    ...listOf({ repetition_type: "REQUIRED", converted_type: "LIST", num_children: 1 }),
    { repetition_type: "REPEATED", num_children: 1 },
    { type: "INT32", repetition_type: "REQUIRED" },
  ];
  const data = [[[1, 2], [3, 4]], [[5], [6, 7]], [], [[]]];
  assertEquals(await values(writeColumn(data, nested, [...LIST, "list", "element"])), [
    tensor(new Int32Array([1, 2, 3, 4]), { shape: [2, 2] }),
    [new Int32Array([5]), new Int32Array([6, 7])],
    Tensor.zeros("int32", [0, 0]),
    Tensor.zeros("int32", [1, 0]),
  ]);
});

Deno.test("parquet reads lists of structs of one field, by the names that older writers give them", async () => {
  const rows = [[1, null], [], null];
  const read = (names: string[]) =>
    values(writeColumn(rows, listOf({ type: "INT32", repetition_type: "OPTIONAL" }), names));
  const structs = [[{ f: 1 }, { f: null }], [], null];
  assertEquals(await read(["x", "array", "f"]), structs);
  assertEquals(await read(["x", "x_tuple", "f"]), structs);
  assertEquals(await read(["x", "bag", "f"]), [[1, null], new Int32Array(0), null]);
});

Deno.test("parquet reads 16-bit floats in lists and structs", async () => {
  const float16 = {
    type: "FIXED_LEN_BYTE_ARRAY",
    type_length: 2,
    logical_type: { type: "FLOAT16" },
    repetition_type: "OPTIONAL",
  } as const;
  const lists = writeColumn([[0.5, -2], [], null], listOf(float16), LIST);
  assertEquals(await values(lists), [new Float16Array([0.5, -2]), new Float16Array(0), null]);
  const group = { repetition_type: "OPTIONAL", num_children: 1 } as const;
  const structs = writeColumn([{ half: 0.5 }, { half: null }], [group, float16], ["x", "half"]);
  assertEquals(await values(structs), [{ half: 0.5 }, { half: null }]);
});

Deno.test("parquet reads structs and maps as objects, and lists of structs as arrays", async () => {
  const struct: Omit<SchemaElement, "name">[] = [
    { repetition_type: "OPTIONAL", num_children: 2 },
    { type: "INT64", repetition_type: "OPTIONAL" },
    { type: "BYTE_ARRAY", converted_type: "UTF8", repetition_type: "REQUIRED" },
  ];
  const people = [{ age: 7n, name: "a" }, { age: null, name: "b" }];
  assertEquals(
    await values(writeColumn([...people, null], struct, ["x", "age", "name"])),
    [...people, null],
  );
  const structs = [...listOf(struct[0]!), ...struct.slice(1)];
  assertEquals(
    await values(writeColumn([people, []], structs, [...LIST, "age", "name"])),
    [people, []],
  );
  const map: Omit<SchemaElement, "name">[] = [
    { repetition_type: "OPTIONAL", converted_type: "MAP", num_children: 1 },
    { repetition_type: "REPEATED", num_children: 2 },
    { type: "BYTE_ARRAY", converted_type: "UTF8", repetition_type: "REQUIRED" },
    { type: "DOUBLE", repetition_type: "OPTIONAL" },
  ];
  const maps = [{ a: 1, b: null }, {}, null];
  assertEquals(await values(writeColumn(maps, map, ["x", "key_value", "key", "value"])), maps);
});

Deno.test("parquet reads decimal, integer and boolean keys of maps as texts, and refuses keys without texts", async () => {
  const mapOf = (...key: Omit<SchemaElement, "name">[]): Omit<SchemaElement, "name">[] => [
    { repetition_type: "REQUIRED", converted_type: "MAP", num_children: 1 },
    { repetition_type: "REPEATED", num_children: 2 },
    ...key,
    { type: "INT32", repetition_type: "OPTIONAL" },
  ];
  const required = { repetition_type: "REQUIRED" } as const;
  const names = ["x", "key_value", "key", "value"];
  const fixed = { type: "FIXED_LEN_BYTE_ARRAY", type_length: 3, ...required } as const;
  const price = { ...fixed, converted_type: "DECIMAL", precision: 5, scale: 2 } as const;
  const prices = writeColumn([new Map([[1.5, 7]]), new Map()], mapOf(price), names);
  assertEquals(await values(prices), [{ "1.5": 7 }, {}]);
  const count = { type: "INT64", ...required } as const;
  const flag = { type: "BOOLEAN", ...required } as const;
  assertEquals(await values(writeColumn([new Map([[9n, 7]])], mapOf(count), names)), [{ "9": 7 }]);
  const flags = new Map([[true, 7], [false, null]]);
  assertEquals(await values(writeColumn([flags], mapOf(flag), names)), [{ true: 7, false: null }]);
  const struct = [{ num_children: 1, ...required }, { type: "INT32", ...required }] as const;
  for (
    const file of [
      writeColumn([new Map([[Uint8Array.of(1, 2, 3), 7]])], mapOf(fixed), names),
      writeColumn([new Map([[{ q: 1 }, 5], [{ q: 2 }, 6]])], mapOf(...struct), [
        ...["x", "key_value", "key", "q", "value"],
      ]),
    ]
  ) {
    const { code, message } = await refusal(file);
    assertEquals(code, "unimplemented");
    assertStringIncludes(message, "column x: keys of a map can only be texts, numbers");
  }
});

Deno.test("parquet's row groups are parts, and reading continues from every position", async () => {
  for (const rowGroupSize of [1, 3, 10, [4, 1, 100]]) {
    const bytes = write(TEN, { rowGroupSize });
    const rows = await assertLaws(node(), bytes);
    assertEquals(rows, numbers(10).map((i) => ({ i, s: `text ${i}` })));
  }
  assertEquals(await node().countParts(fileOf(write(TEN, { rowGroupSize: 3 }))), 4);
  const [error] = await rowsOf(node(), write(TEN), { part: 1 });
  assertInstanceOf(error, LeatError);
  assertEquals(error.code, "out_of_range");
});

Deno.test("parquet reads columns in the order in which they were chosen", async () => {
  const [row] = await rowsOf(node(["s", "i"]), write(TEN));
  assertEquals(JSON.stringify(row), '{"s":"text 0","i":0}');
});

Deno.test("parquet reads only the footer and the chosen columns of the chosen part", async () => {
  const count = 40_000;
  const bytes = write([
    { name: "big", type: "DOUBLE", data: numbers(count).map(Math.sqrt) },
    { name: "small", type: "INT32", data: numbers(count) },
    { name: "other", type: "DOUBLE", data: numbers(count).map(Math.cos) },
  ], { rowGroupSize: count / 4, codec: "UNCOMPRESSED", statistics: false });
  const bytesOf = async (columns: string[] | undefined, part: number | undefined) => {
    let read = 0;
    class Counting extends BytesFile {
      override read(into: Uint8Array, offset: number): number | Promise<number> {
        read += into.length;
        return super.read(into, offset);
      }
    }
    const source = { path: "data", file: new Counting(bytes), compression: undefined };
    const found = await readAll(await node(columns).openReader(source, { part }));
    assertEquals(found.length, part === undefined ? count : count / 4);
    return read;
  };
  const footer = FOOTER_BYTES + 4;
  assertLess(await bytesOf(["small"], undefined), footer + 1.05 * 4 * count);
  assertLess(await bytesOf(["small"], 2), footer + 1.05 * count);
  assertLess(await bytesOf(["small", "big"], 0), footer + 1.05 * 3 * count);
  assertLess(bytes.length, await bytesOf(undefined, undefined));
});

Deno.test("parquet reads neighbouring columns together, or one after the other", async () => {
  let inFlight = 0, inFlightMax = 0;
  let ranges: [start: number, bytes: number][] = [];
  class Counting extends BytesFile {
    override async read(into: Uint8Array, offset: number): Promise<number> {
      ranges.push([offset, into.length]);
      inFlightMax = Math.max(inFlightMax, ++inFlight);
      await Promise.resolve();
      inFlight--;
      return super.read(into, offset);
    }
  }
  const readsOf = async (count: number, columns?: string[]) => {
    const data = (scale: number) => Float64Array.from({ length: count }, (_, i) => i * scale);
    const names = ["a", "b", "c", "d"];
    const bytes = write(
      names.map((name, i) => ({ name, type: "DOUBLE" as const, data: data(i + 1) })),
      { rowGroupSize: count, codec: "UNCOMPRESSED", statistics: false },
    );
    const source = { path: "data", file: new Counting(bytes), compression: undefined };
    ranges = [];
    inFlightMax = 0;
    const rows = await readAll(await node(columns).openReader(source, {}));
    const row = { a: 9, b: 18, c: 27, d: 36 };
    const wanted = columns === undefined ? row : { a: 9, b: 18, d: 36 };
    assertEquals([rows.length, rows[9]], [count, wanted]);
    return ranges.length - 2; // without the magic and the footer
  };
  assertEquals([await readsOf(1_000), inFlightMax], [1, 1]);
  // Columns of 3.2 MB: two in a read.
  assertEquals([await readsOf(400_000), inFlightMax], [2, 1]);
  assertEquals([await readsOf(1_000, ["a", "b", "d"]), inFlightMax], [2, 2]);
});

Deno.test("parquet decompresses the codecs of other writers", async () => {
  const rows = numbers(500).map((i) => ({ x: `text ${i % 7}` }));
  const data = rows.map(({ x }) => x);
  const compressors = {
    BROTLI: (page: Uint8Array) => new Uint8Array(brotliCompressSync(page)),
    GZIP: (page: Uint8Array) => new Uint8Array(gzipSync(page)),
    ZSTD: (page: Uint8Array) => new Uint8Array(zstdCompressSync(page)),
  };
  for (const codec of ["UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "ZSTD"] as const) {
    const bytes = write([{ name: "x", type: "STRING", data }], { codec, compressors });
    assertEquals(await rowsOf(node(), bytes), rows, codec);
  }
  const odd = write([{ name: "x", type: "STRING", data }], {
    codec: "LZO",
    compressors: { LZO: (page) => new Uint8Array(deflateRawSync(page)) },
  });
  const [error] = await rowsOf(node(), odd);
  assertInstanceOf(error, LeatError);
  assertEquals(error.code, "unimplemented");
  assertStringIncludes(error.message, "LZO");
});

Deno.test("parquet names a missing column, the file, and its columns", async () => {
  const error = await refusal(write(TEN), ["i", "age"]);
  assertEquals(error.code, "not_found");
  assertStringIncludes(error.message, "no column age in Parquet file my data; it has i, s");
});

Deno.test("parquet reads a file of no rows and no row groups", async () => {
  const none = write([{ name: "x", type: "INT32", data: [] }]);
  assertEquals(await assertLaws(node(), none), []);
  assertEquals(await node().countParts(fileOf(none)), 1);
  assertEquals(parquetMetadata(none.buffer).row_groups, []);
});

Deno.test("parquet decodes a long column in pieces, and yields in between", async () => {
  const count = 100_000;
  const columns: ColumnSource[] = [
    { name: "plain", type: "DOUBLE", data: numbers(count) },
    { name: "nulls", type: "INT32", data: numbers(count).map((i) => i % 3 === 0 ? null : i) },
    { name: "few", type: "STRING", data: numbers(count).map((i) => `value ${i % 300}`) },
    { name: "many", type: "STRING", data: numbers(count).map((i) => `value ${i}`) },
  ];
  const bytes = write(columns, { pageSize: 4096, rowGroupSize: count });
  for (const { name, data } of columns) {
    const blocks = await openParquet(fileOf(bytes), [name]);
    const reading = blocks.read(0);
    let turns = 0;
    let step = await reading.next();
    for (; !step.done; turns++) step = await reading.next();
    const rows = step.value!;
    assertEquals(rows.length, count);
    assertLess(3, turns);
    const valueAt = (row: number) => (rows.at(row) as Record<string, unknown>)[name];
    const wanted = data as unknown[];
    assertEquals(numbers(count).map(valueAt), wanted, name);
    for (const row of [count - 1, 0, 16_384, 16_383]) assertEquals(valueAt(row), wanted[row]);
  }
});

Deno.test("parquet decodes lists together, because they may continue in the next page", async () => {
  const count = 30_000;
  const schema: SchemaElement[] = [
    { name: "root", num_children: 1 },
    { name: "x", repetition_type: "OPTIONAL", converted_type: "LIST", num_children: 1 },
    { name: "list", repetition_type: "REPEATED", num_children: 1 },
    { name: "element", repetition_type: "REQUIRED", type: "INT32" },
  ];
  const lists = numbers(count).map((i) => numbers(i % 3));
  const bytes = write([{ name: "x", data: lists }], { schema, pageSize: 4096 });
  const rows = await rowsOf(node(), bytes) as { x: Iterable<number> | Tensor }[];
  const plain = rows.map(({ x }) => x instanceof Tensor ? x.toArray() : [...x]);
  assertEquals(plain, lists);
});

Deno.test("a parquet reader that is closed gives nothing more", async () => {
  const source = fileOf(write(TEN), { later: true });
  const reader = await node().openReader(source, {});
  const pending = reader.step();
  reader.close();
  await pending;
  assertEquals(await readAll(reader), []);
  assertEquals((source.file as BytesFile).closes, 1);
});

Deno.test("parquet refuses a column, and a field of a struct, with the name __proto__", async () => {
  const column = write([{ name: "__proto__", data: [1, 2] }, { name: "x", data: [3, 4] }]);
  const [error] = await rowsOf(node(), column) as [LeatError];
  assertEquals(error.code, "unimplemented");
  assertStringIncludes(error.message, "it has the column __proto__");
  assertEquals(await rowsOf(node(["x"]), column), [{ x: 3 }, { x: 4 }]);
  const schema = [{ num_children: 1 }, { type: "INT32" as const }];
  const struct = writeColumn([JSON.parse('{"__proto__": 1}')], schema, ["x", "__proto__"]);
  const [nested] = await rowsOf(node(), struct) as [LeatError];
  assertStringIncludes(nested.message, "a field has the name __proto__");
});

Deno.test("parquet refuses a chosen column whose name another one has", async () => {
  const other: ColumnSource = {
    name: "s",
    type: "STRING",
    data: numbers(10).map((i) => `other ${i}`),
  };
  const bytes = write([TEN[0]!, other, TEN[1]!]);
  for (const columns of [undefined, ["i", "s"]]) {
    const { code, message } = await refusal(bytes, columns);
    assertEquals(code, "unimplemented");
    assertStringIncludes(message, 'Parquet file my data: it has several columns "s"; rename them');
  }
  assertEquals(await rowsOf(node(["i"]), bytes), numbers(10).map((i) => ({ i })));
});

Deno.test("parquet refuses a struct with two fields of one name", async () => {
  const field = { type: "INT32", repetition_type: "REQUIRED" } as const;
  const schema = [{ repetition_type: "REQUIRED", num_children: 2 } as const, field, field];
  const { code, message } = await refusal(writeColumn([{ q: 1 }], schema, ["x", "q", "q"]));
  assertEquals(code, "unimplemented");
  assertStringIncludes(message, 'a struct has several fields "q"; leave the column out');
});
