/** Arrow: files and streams, every type, compression, parts, positions, and damaged files. */

import {
  Binary,
  Bool,
  compressionRegistry,
  CompressionType,
  type Data,
  type DataType,
  DateDay,
  DateMillisecond,
  Decimal,
  Dictionary,
  DurationMillisecond,
  Field,
  FixedSizeBinary,
  FixedSizeList,
  Float16,
  Float32,
  Float64,
  Int32,
  Int64,
  Int8,
  IntervalDayTime,
  LargeUtf8,
  List,
  makeData,
  Map_,
  Null,
  RecordBatch,
  RecordBatchReader,
  RecordBatchStreamWriter,
  Schema,
  Struct,
  Table,
  tableToIPC,
  TimeMicrosecond,
  TimeMillisecond,
  TimestampMicrosecond,
  TimestampSecond,
  Uint16,
  Uint64,
  Utf8,
  Vector,
  vectorFromArray,
} from "apache-arrow";
import { Builder } from "flatbuffers";
import lz4 from "lz4js";
import { zstdCompressSync } from "node:zlib";
import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertLess,
  assertStringIncludes,
} from "../../../assert.ts";
import { LeatError } from "../../../../core/error.ts";
import { Tensor, tensor } from "../../../../core/tensor.ts";
import { vectorValues } from "../../../../data/formats/arrow/arrow_values.ts";
import { ArrowNode } from "../../../../data/sources/arrow.ts";
import { assertLaws, fileOf, rowsOf } from "../row_laws.ts";
// The writer uses its codecs, too.
import { openArrow } from "../../../../data/formats/arrow/arrow.ts";
import { concat } from "../reading.ts";

const node = (columns?: string[]) => new ArrowNode("my data", { columns });
const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);

type Format = "file" | "stream";
const FORMATS: readonly Format[] = ["file", "stream"];

function write(table: Table, format: Format = "file", compression?: CompressionType) {
  return new Uint8Array(tableToIPC(table, format, compression));
}

/** Writes values of a type to a file and a stream, in batches, and reads them back. */
async function values(type: DataType, ...batches: unknown[][]): Promise<unknown[]> {
  const [first, ...others] = batches.map((batch) => new Table({ x: vectorFromArray(batch, type) }));
  const table = first!.concat(...others);
  const found: unknown[][] = [];
  for (const format of FORMATS) {
    const rows = await assertLaws(node(), write(table, format));
    found.push(rows.map((row) => (row as { x: unknown }).x));
  }
  assertEquals(found[0], found[1]);
  return found[0]!;
}

/** Writes a dictionary that grows by a chunk in each batch, and reads its values, a null after each. */
async function dictionaryValues(...chunks: Data[]): Promise<unknown[]> {
  const type = new Dictionary(chunks[0]!.type, new Int32(), 1);
  const schema = new Schema([new Field("x", type, true)]);
  let start = 0;
  const batches = chunks.map(({ length }, i) => {
    const data = new Int32Array(numbers(2 * length).map((at) => start + (at >> 1)));
    const nullBitmap = new Uint8Array([0b01010101]);
    const dictionary = new Vector(chunks.slice(0, i + 1));
    const keys = makeData({ type, length: 2 * length, data, nullBitmap, dictionary });
    start += length;
    const struct = new Struct(schema.fields);
    return new RecordBatch(
      schema,
      makeData({ type: struct, length: 2 * length, children: [keys] }),
    );
  });
  const writer = RecordBatchStreamWriter.writeAll(batches);
  const rows = await rowsOf(node(), await writer.toUint8Array());
  return rows.map((row) => (row as { x: unknown }).x);
}

/** Batches with ten rows in total. */
function ten(...sizes: number[]): Table {
  let start = 0;
  const tables = sizes.map((size) => {
    const rows = numbers(size).map((i) => start + i);
    start += size;
    return new Table({
      i: vectorFromArray(rows, new Int32()),
      s: vectorFromArray(rows.map((i) => `text ${i}`), new Utf8()),
    });
  });
  return tables[0]!.concat(...tables.slice(1));
}
const TEN = numbers(10).map((i) => ({ i, s: `text ${i}` }));

Deno.test("arrow reads scalars of every type, and nulls", async () => {
  const bytes = (...items: number[]) => new Uint8Array(items);
  const same: [DataType, unknown[]][] = [
    [new Int8(), [1, -1, null]],
    [new Uint16(), [65535, null, 0]],
    [new Int32(), [null, -(2 ** 31), 7]],
    [new Int64(), [-(2n ** 63n), null, 5n]],
    [new Uint64(), [2n ** 64n - 1n, null, 0n]],
    [new Float16(), [0.5, null, -2]],
    [new Float32(), [0.5, null, -Infinity]],
    [new Float64(), [0.1, null, NaN]],
    [new Bool(), [true, false, null]],
    [new Utf8(), ["ünï", "", null]],
    [new Binary(), [bytes(1, 2), bytes(), null]],
    [new FixedSizeBinary(2), [bytes(1, 2), null, bytes(3, 4)]],
    [new Null(), [null, null]],
  ];
  for (const [type, data] of same) {
    assertEquals(await values(type, data, data), [...data, ...data], String(type));
  }
});

Deno.test("arrow copies bytes and lists out of the batch", async () => {
  const [data] = await values(new Binary(), [new Uint8Array(3)]);
  assertEquals((data as Uint8Array).buffer.byteLength, 3);
  const [list] = await values(new List(new Field("item", new Int32())), [[1, 2]]);
  assertEquals((list as Int32Array).buffer.byteLength, 8);
});

Deno.test("arrow leaves times as they are stored, in the unit of the column", async () => {
  const dates = [new Date(0), new Date(86_400_000), null];
  assertEquals(await values(new DateDay(), dates), [0, 1, null]);
  assertEquals(await values(new DateMillisecond(), dates), [0n, 86_400_000n, null]);
  assertEquals(await values(new TimestampSecond(), dates), [0n, 86_400n, null]);
  assertEquals(await values(new TimestampMicrosecond(), [1.5, null]), [1500n, null]);
  assertEquals(await values(new TimeMillisecond(), [5, null]), [5, null]);
  assertEquals(await values(new TimeMicrosecond(), [5n, null]), [5n, null]);
  assertEquals(await values(new DurationMillisecond(), [5n, null]), [5n, null]);
  const times = new List(new Field("item", new TimestampSecond()));
  assertEquals(await values(times, [[dates[0]], [dates[1], dates[0]]]), [
    new BigInt64Array([0n]),
    new BigInt64Array([86_400n, 0n]),
  ]);
});

Deno.test("arrow reads decimals as the nearest numbers", async () => {
  const words = (value: bigint) =>
    new Uint32Array([0, 1, 2, 3].map((i) => Number(BigInt.asUintN(32, value >> BigInt(32 * i)))));
  const data = [7n, -113n, 123_456_789n].map(words);
  assertEquals(await values(new Decimal(2, 18, 128), [...data, null]), [
    0.07,
    -1.13,
    1_234_567.89,
    null,
  ]);
});

Deno.test("arrow reads dictionaries as the values that they stand for", async () => {
  const type = new Dictionary(new Utf8(), new Int32(), 1);
  const data = ["a", "b", null, "a"];
  assertEquals(await values(type, data), data);
});

Deno.test("arrow refuses texts that are not UTF-8, and keeps byte order marks", async () => {
  const kept = "\ufeffa\ufffd";
  for (const type of [new Utf8(), new LargeUtf8()]) {
    const { data: [data] } = vectorFromArray(["bad", kept], type);
    data!.values[0] = 0xff;
    const [error, row] = await rowsOf(node(), write(new Table({ x: new Vector([data!]) })));
    assertInstanceOf(error, LeatError);
    assertEquals(error.code, "data_loss");
    assertStringIncludes(error.message, "column x: a text is not UTF-8");
    assertStringIncludes(error.message, "write the column as binary");
    assertEquals(row, { x: kept });
  }
});

Deno.test("arrow reads times, maps and structs of a dictionary that later batches add to", async () => {
  const time = new TimestampSecond();
  const times = (...values: bigint[]) =>
    makeData({ type: time, length: values.length, data: new BigInt64Array(values) });
  const struct = new Struct<{ at: TimestampSecond }>([new Field("at", time)]);
  const structs = (...values: bigint[]) =>
    makeData({ type: struct, length: values.length, children: [times(...values)] });
  const entry = new Struct<{ key: Utf8; value: TimestampSecond }>([
    new Field("key", new Utf8()),
    new Field("value", time),
  ]);
  const map = new Map_<Utf8, TimestampSecond>(new Field("entries", entry));
  const maps = (...values: bigint[]) => {
    const { length } = values;
    const key = vectorFromArray(values.map(() => "at"), new Utf8()).data[0]!;
    const child = makeData({ type: entry, length, children: [key, times(...values)] });
    return makeData({
      type: map,
      length,
      child,
      valueOffsets: new Int32Array(numbers(length + 1)),
    });
  };
  const expected = [10n, null, 20n, null, 30n, null, 40n, null, 50n, null];
  assertEquals(await dictionaryValues(times(10n, 20n), times(30n), times(40n, 50n)), expected);
  const inStructs = expected.map((at) => at && { at });
  assertEquals(
    await dictionaryValues(structs(10n, 20n), structs(30n), structs(40n, 50n)),
    inStructs,
  );
  assertEquals(await dictionaryValues(maps(10n, 20n), maps(30n), maps(40n, 50n)), inStructs);
});

Deno.test("vectorValues takes a dictionary apart once, not for each list of the column", () => {
  const dictionary = vectorFromArray(["a", "b", "c"], new Utf8());
  const { data } = dictionary;
  let reads = 0;
  Object.defineProperty(dictionary, "data", {
    get() {
      reads++;
      return data;
    },
  });
  const type = new Dictionary(new Utf8(), new Int32());
  const child = makeData({ type, length: 6, data: new Int32Array([0, 1, 2, 1, 0, 2]), dictionary });
  const lists = makeData({
    type: new List(new Field("item", type)),
    length: 3,
    valueOffsets: new Int32Array([0, 2, 4, 6]),
    child,
  });
  const valueAt = vectorValues(new Vector([lists]));
  assertEquals(valueAt(0), tensor(["a", "b"]));
  const readsOfOne = reads;
  assertEquals([valueAt(1), valueAt(2)], [tensor(["c", "b"]), tensor(["a", "c"])]);
  assertEquals(reads, readsOfOne);
});

Deno.test("arrow reads lists as typed arrays and tensors, structs and maps as objects", async () => {
  const list = (type: DataType) => new List(new Field("item", type));
  assertEquals(await values(list(new Float32()), [[1, 2], [], null, [3, null]]), [
    new Float32Array([1, 2]),
    new Float32Array(0),
    null,
    [3, null],
  ]);
  assertEquals(await values(list(new Float16()), [[0.5]]), [new Float16Array([0.5])]);
  assertEquals(await values(list(new Int64()), [[1n], [2n, 3n]]), [
    new BigInt64Array([1n]),
    new BigInt64Array([2n, 3n]),
  ]);
  assertEquals(await values(list(new Bool()), [[true, false]]), [tensor([true, false])]);
  assertEquals(await values(list(new Utf8()), [["a", "bc"], []]), [
    tensor(["a", "bc"]),
    Tensor.zeros("string", [0]),
  ]);
  const pair = new FixedSizeList(2, new Field("item", new Int32()));
  assertEquals(await values(pair, [[1, 2], null, [3, 4]]), [
    new Int32Array([1, 2]),
    null,
    new Int32Array([3, 4]),
  ]);
  assertEquals(await values(list(pair), [[[1, 2], [3, 4]], [], [[5, 6]]]), [
    tensor(new Int32Array([1, 2, 3, 4]), { shape: [2, 2] }),
    Tensor.zeros("int32", [0, 0]),
    tensor(new Int32Array([5, 6]), { shape: [1, 2] }),
  ]);
  const struct = new Struct([new Field("a", new Int32()), new Field("b", new Utf8())]);
  const structs = [{ a: 1, b: "x" }, null, { a: null, b: "y" }];
  assertEquals(await values(struct, structs), structs);
  assertEquals(await values(list(struct), [[structs[0]], [structs[2], structs[0]]]), [
    [structs[0]],
    [structs[2], structs[0]],
  ]);
  const entries = new Struct<{ key: Utf8; value: Float64 }>([
    new Field("key", new Utf8()),
    new Field("value", new Float64(), true),
  ]);
  const map = new Map_<Utf8, Float64>(new Field("entries", entries));
  const maps = [new Map([["a", 1], ["b", 2]]), null, new Map([["a", 3]])];
  assertEquals(await values(map, maps), [{ a: 1, b: 2 }, null, { a: 3 }]);
});

Deno.test("arrow refuses maps, in lists too, whose keys are structs or bytes", async () => {
  for (const key of [new Struct([new Field("q", new Int32())]), new Binary()]) {
    const entries = new Struct<{ key: DataType; value: Int32 }>([
      new Field("key", key),
      new Field("value", new Int32(), true),
    ]);
    const map = new Map_<DataType, Int32>(new Field("entries", entries));
    for (const type of [map, new List(new Field("item", map))]) {
      const { code, message } = await refusal(
        write(new Table({ x: vectorFromArray([null], type) })),
      );
      assertEquals(code, "unimplemented");
      assertStringIncludes(message, "column x: keys of a map can only be texts, numbers");
    }
  }
});

Deno.test("arrow's record batches are parts of files, and reading continues from every position", async () => {
  for (const format of FORMATS) {
    for (const sizes of [[10], [3, 4, 3], [1, 0, 9]]) {
      const bytes = write(ten(...sizes), format);
      assertEquals(await assertLaws(node(), bytes), TEN, `${format} of ${sizes}`);
      const parts = format === "file" ? sizes.filter((size) => size > 0).length : 1;
      assert(await node().countParts(fileOf(bytes)) >= parts);
    }
  }
  assertEquals(await node().countParts(fileOf(write(ten(3, 4, 3)))), 3);
  assertEquals(await node().countParts(fileOf(write(ten(3, 4, 3), "stream"))), 1);
});

Deno.test("arrow refuses a chosen column whose name another one has", async () => {
  const [first, second] = ["a", "b"].map((text) => vectorFromArray([text], new Utf8()).data[0]!);
  const fields = ["s", "i", "s"].map((name) => new Field(name, new Utf8(), true));
  const type = new Struct(fields);
  const data = makeData({ type, length: 1, children: [first!, second!, second!] });
  const table = new Table(new RecordBatch(new Schema(fields), data));
  for (const format of FORMATS) {
    const bytes = write(table, format);
    for (const columns of [undefined, ["i", "s"]]) {
      const { code, message } = await refusal(bytes, columns);
      assertEquals(code, "unimplemented");
      assertStringIncludes(message, 'Arrow file my data: it has several columns "s"; rename them');
    }
    assertEquals(await rowsOf(node(["i"]), bytes), [{ i: "b" }]);
  }
});

Deno.test("arrow refuses a struct with two fields of one name", async () => {
  const children = [[1], [2]].map((values) => vectorFromArray(values, new Int32()).data[0]!);
  const type = new Struct(children.map(() => new Field("q", new Int32(), true)));
  const struct = new Vector([makeData({ type, length: 1, children })]);
  for (const format of FORMATS) {
    const { code, message } = await refusal(write(new Table({ x: struct }), format));
    assertEquals(code, "unimplemented");
    assertStringIncludes(
      message,
      'column x: a struct has several fields "q"; leave the column out',
    );
  }
});

Deno.test("arrow reads columns in the order in which they were chosen", async () => {
  for (const format of FORMATS) {
    const rows = await rowsOf(node(["s", "i"]), write(ten(10), format));
    assertEquals(JSON.stringify(rows[0]), '{"s":"text 0","i":0}');
    assertEquals(
      await rowsOf(node(["i"]), write(ten(10), format)),
      numbers(10).map((i) => ({ i })),
    );
  }
});

const ENCODERS = {
  [CompressionType.LZ4_FRAME]: (data: Uint8Array) => new Uint8Array(lz4.compress(data)),
  [CompressionType.ZSTD]: (data: Uint8Array) => new Uint8Array(zstdCompressSync(data)),
};

function writeCompressed(table: Table, format: Format, type: keyof typeof ENCODERS) {
  const codec = compressionRegistry.get(type)!;
  compressionRegistry.set(type, { ...codec, encode: ENCODERS[type] });
  try {
    return write(table, format, type);
  } finally {
    compressionRegistry.set(type, codec);
  }
}

Deno.test("arrow decompresses LZ4 and Zstandard", async () => {
  const table = new Table({ x: vectorFromArray(new Array(1000).fill("the same"), new Utf8()) });
  for (const type of [CompressionType.LZ4_FRAME, CompressionType.ZSTD] as const) {
    for (const format of FORMATS) {
      const bytes = writeCompressed(table, format, type);
      assertLess(bytes.length, write(table, format).length);
      assertEquals(await rowsOf(node(), bytes), new Array(1000).fill({ x: "the same" }));
    }
  }
});

async function refusal(bytes: Uint8Array, columns?: string[]): Promise<LeatError> {
  const found = await rowsOf(node(columns), bytes);
  assertEquals(found.length, 1);
  assertInstanceOf(found[0], LeatError);
  assertStringIncludes(found[0].message, "my data");
  assertEquals(found[0].details, { path: "my data" });
  return found[0];
}

Deno.test("arrow names a missing column, and an unsupported type", async () => {
  for (const format of FORMATS) {
    const missing = await refusal(write(ten(10), format), ["age"]);
    assertEquals(missing.code, "not_found");
    assertStringIncludes(missing.message, "no column age in Arrow file my data; it has i, s");
    const intervals = vectorFromArray([new Int32Array([1, 2])], new IntervalDayTime());
    const odd = await refusal(write(new Table({ x: intervals }), format));
    assertEquals(odd.code, "unimplemented");
    assertStringIncludes(odd.message, "column x");
  }
});

/** The schema, of one column, that PyArrow 26 writes for `pa.string_view()`. */
const STRING_VIEW_SCHEMA =
  "/////3AAAAAQAAAAAAAKAAwABgAFAAgACgAAAAABBAAMAAAACAAIAAAABAAIAAAABAAAAAEAAAAUAAAAEAAUAAgABgAH" +
  "AAwAAAAQABAAAAAAAAEYEAAAABgAAAAEAAAAAAAAAAEAAABhAAAABAAEAAQAAAAAAAAA";

Deno.test("arrow names a type that its library does not read, and calls no such file damaged", async () => {
  const schema = Uint8Array.fromBase64(STRING_VIEW_SCHEMA);
  const { code, message } = await refusal(schema);
  assertEquals(code, "unimplemented");
  assertStringIncludes(message, "my data: a column has the type string_view; cast it to string");
  const large = await refusal(schema.with(schema.indexOf(24), 21));
  assertStringIncludes(large.message, "a column has the type large_list; cast it to list");
  const unknown = schema.with(schema.indexOf(24), 99);
  assertEquals((await refusal(unknown)).code, "data_loss");
});

Deno.test("arrow refuses Feather files of version 1 by their name, and calls them not damaged", async () => {
  const { code, message } = await refusal(new TextEncoder().encode("FEA1, columns, and FEA1"));
  assertEquals(code, "unimplemented");
  assertStringIncludes(
    message,
    "my data: it is a Feather file of version 1; write it in version 2",
  );
});

Deno.test("arrow reads files without rows", async () => {
  for (const format of FORMATS) {
    assertEquals(await values(new Int32(), []), []);
    const none = new Table(ten(1).schema, []);
    assertEquals(await assertLaws(node(), write(none, format)), []);
  }
});

Deno.test("arrow reports damaged and truncated files as data_loss", async () => {
  const bytes = write(ten(5, 5));
  const stream = write(ten(5, 5), "stream");
  const withFooterOf = (byteLength: number) => {
    const damaged = bytes.slice();
    new DataView(damaged.buffer).setInt32(damaged.length - 10, byteLength, true);
    return damaged;
  };
  const cases: [Uint8Array, string][] = [
    [withFooterOf(2 ** 31 - 1), "its footer claims 2147483647 bytes"],
    [withFooterOf(-1), "its footer claims -1 bytes"],
    [new Uint8Array(0), "it is empty"],
    [bytes.slice(0, -3), "truncated"],
    [bytes.slice(0, 10), "truncated"],
    [new TextEncoder().encode("name,age\nada,36\n"), "its schema"],
    [stream.slice(0, 100), "its schema"],
    [stream.slice(0, 2), "its schema"],
  ];
  for (const [damaged, part] of cases) {
    const error = await refusal(damaged);
    assertEquals(error.code, "data_loss", part);
    assertStringIncludes(error.message, part);
  }
  // Batches before the damage are given.
  const found = await rowsOf(node(), stream.slice(0, -100));
  const error = found.pop();
  assertInstanceOf(error, LeatError);
  assertEquals(error.code, "data_loss");
  assertStringIncludes(error.message, "my data: record batch 1");
  assertEquals(found, TEN.slice(0, 5));
});

/** A stream whose schema is that of `make`, which gets a builder of fields. */
function streamOfFields(make: (schema: SchemaBuilder) => number[]): Uint8Array {
  const schema = new SchemaBuilder();
  const built = schema.message(make(schema));
  const message = new Uint8Array(Math.ceil(built.length / 8) * 8);
  message.set(built);
  const head = new Uint8Array(new Uint32Array([0xffff_ffff, message.length]).buffer);
  return new Uint8Array([...head, ...message, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
}

/** Writes schemas as flatbuffers, whose parts may be shared. */
class SchemaBuilder {
  readonly #builder = new Builder();

  text(text: string): number {
    return this.#builder.createString(text);
  }

  /** An Int32, or a struct of these children. */
  field(name: number, children: readonly number[] = []): number {
    const b = this.#builder;
    const isStruct = children.length > 0;
    const parts = this.#vector(children);
    b.startObject(2);
    if (!isStruct) {
      b.addFieldInt32(0, 32, 0);
      b.addFieldInt8(1, 1, 0);
    }
    const type = b.endObject();
    b.startObject(7);
    b.addFieldOffset(0, name, 0);
    b.addFieldInt8(2, isStruct ? 13 : 2, 0);
    b.addFieldOffset(3, type, 0);
    b.addFieldOffset(5, parts, 0);
    return b.endObject();
  }

  message(fields: readonly number[]): Uint8Array {
    const b = this.#builder;
    const parts = this.#vector(fields);
    b.startObject(4);
    b.addFieldOffset(1, parts, 0);
    const schema = b.endObject();
    b.startObject(5);
    b.addFieldInt16(0, 4, 0);
    b.addFieldInt8(1, 1, 0);
    b.addFieldOffset(2, schema, 0);
    b.finish(b.endObject());
    return b.asUint8Array();
  }

  #vector(offsets: readonly number[]): number {
    const b = this.#builder;
    b.startVector(4, offsets.length, 4);
    for (const offset of offsets.toReversed()) b.addOffset(offset);
    return b.endVector();
  }
}

Deno.test("arrow refuses a schema whose fields share children or names, before it takes memory for each", async () => {
  const plain = streamOfFields((schema) => [
    schema.field(schema.text("s"), [
      schema.field(schema.text("a")),
      schema.field(schema.text("b")),
    ]),
  ]);
  assertEquals(await rowsOf(node(), plain), []);
  const children = streamOfFields((schema) => {
    let field = schema.field(schema.text("v"));
    for (let level = 0; level < 40; level++) field = schema.field(schema.text("s"), [field, field]);
    return [field];
  });
  const names = streamOfFields((schema) => {
    const name = schema.text("n".repeat(100_000));
    return Array.from({ length: 100 }, () => schema.field(name));
  });
  for (const [stream, what] of [[children, "parts"], [names, "texts"]] as const) {
    const { code, message } = await refusal(stream);
    assertEquals(code, "data_loss");
    assertStringIncludes(message, `its schema: its ${what} are read too often`);
  }
});

Deno.test("arrow reports any damage quickly, with its own errors", async () => {
  for (const format of FORMATS) {
    const bytes = write(ten(5, 5), format);
    for (let at = 0; at < bytes.length; at++) {
      const damaged = bytes.slice();
      damaged[at] = damaged[at]! ^ (at % 2 === 0 ? 0xff : 0x11);
      for (const found of await rowsOf(node(), damaged)) {
        if (!(found instanceof Error)) continue;
        assertInstanceOf(found, LeatError, `${format} ${at}`);
        assertEquals(
          /Cannot (read properties|destructure)/.test(found.message),
          false,
          found.message,
        );
      }
    }
  }
});

Deno.test("arrow continues with the next batch after a damaged one", async () => {
  const bytes = write(ten(5, 5));
  const { offset } = RecordBatchReader.from(bytes).open().footer!.getRecordBatch(0)!;
  const damaged = bytes.slice();
  // The length of the metadata, after the marker that begins a message.
  damaged.fill(0x7f, offset + 4, offset + 8);
  const found = await rowsOf(node(), damaged);
  assertInstanceOf(found[0], LeatError);
  assertEquals(found[0].code, "data_loss");
  assertEquals(found.slice(1), TEN.slice(5));
});

Deno.test("arrow refuses lists, maps, strings and bytes that share items, before it makes a value", async () => {
  const int = new Int32();
  const ints = makeData({ type: int, data: new Int32Array(2) });
  const list = new List(new Field("item", int));
  const entries = new Struct<{ key: Utf8; value: Int32 }>([
    new Field("key", new Utf8()),
    new Field("value", int),
  ]);
  const map = new Map_(new Field("entries", entries));
  const keys = vectorFromArray(["a", "b"], new Utf8()).data[0]!;
  const pairs = makeData({ type: entries, length: 2, nullCount: 0, children: [keys, ints] });
  const text = new Uint8Array([97, 98]);
  const shapes = (valueOffsets: Int32Array): Data[] => {
    const common = { length: valueOffsets.length - 1, nullCount: 0, valueOffsets };
    const lists = makeData({ type: list, ...common, child: ints });
    const outer = new List(new Field("item", list));
    const whole = Int32Array.of(0, common.length);
    return [
      lists,
      makeData({ type: outer, length: 1, nullCount: 0, valueOffsets: whole, child: lists }),
      makeData({ type: map, ...common, child: pairs }),
      makeData({ type: new Utf8(), ...common, data: text }),
      makeData({ type: new Binary(), ...common, data: text }),
    ];
  };
  const writeData = (data: Data) => write(new Table({ x: new Vector([data]) }));
  for (const data of shapes(Int32Array.of(0, 2, 2))) await assertLaws(node(), writeData(data));
  for (const data of [...shapes(Int32Array.of(0, 2, 0, 2)), ...shapes(Int32Array.of(0, 2, 9))]) {
    const found = await rowsOf(node(), writeData(data));
    const [error] = found;
    assertEquals(found.length, 1);
    assertInstanceOf(error, LeatError);
    assertEquals(error.code, "data_loss");
    assertStringIncludes(error.message, "offset 2 of its");
  }
});

Deno.test("arrow refuses lists of more items without bytes than it may hold in memory", async () => {
  const list = (type: DataType) => new List(new Field("item", type));
  const listOf = (child: Data) =>
    makeData({
      type: list(child.type),
      length: 1,
      nullCount: 0,
      valueOffsets: Int32Array.of(0, child.length),
      child,
    });
  const fixedOf = (child: Data) =>
    makeData({
      type: new FixedSizeList(child.length, new Field("item", child.type)),
      length: 1,
      nullCount: 0,
      child,
    });
  const nulls = (length: number) => makeData({ type: new Null(), length, nullCount: length });
  for (const wrap of [listOf, fixedOf]) {
    const writeData = (data: Data) => write(new Table({ x: new Vector([data]) }));
    const [row] = await assertLaws(node(), writeData(wrap(nulls(3))));
    assertEquals(row, { x: [null, null, null] });
    const [error] = await rowsOf(node(), writeData(wrap(nulls(2 ** 31 - 1))));
    assertInstanceOf(error, LeatError);
    assertEquals(error.code, "data_loss");
  }
});

Deno.test("arrow refuses a list that repeats a large dictionary entry, and reads others", async () => {
  const keyed = (entries: Vector, ...lengths: number[]) => {
    const valueOffsets = new Int32Array(lengths.length + 1);
    lengths.forEach((length, i) => valueOffsets[i + 1] = valueOffsets[i]! + length);
    const count = valueOffsets.at(-1)!;
    const keys = makeData({
      type: new Dictionary(entries.type, new Int32(), 1),
      length: count,
      nullCount: 0,
      data: new Int32Array(count),
      dictionary: entries,
    });
    const type = new List(new Field("item", keys.type));
    const rows = { type, length: lengths.length, nullCount: 0, valueOffsets, child: keys };
    return write(new Table({ x: new Vector([makeData(rows)]) }));
  };
  const texts = (text: string) => vectorFromArray([text], new Utf8()) as Vector;
  assertEquals(await rowsOf(node(), keyed(texts("ab"), 3, 1)), [
    { x: tensor(["ab", "ab", "ab"]) },
    { x: tensor(["ab"]) },
  ]);
  const large = "x".repeat(1 << 20);
  const [error] = await rowsOf(node(), keyed(texts(large), 2049));
  assertInstanceOf(error, LeatError);
  assertEquals(error.code, "resource_exhausted");
  assertStringIncludes(error.message, "ARROW_BATCH_BYTES_MAX");
  // No row has all of them.
  const several = await rowsOf(node(), keyed(texts(large), ...new Array(2049).fill(1)));
  assertEquals(several.length, 2049);
  // Entries without bytes take none here, either, however many the file claims.
  const nulls = new Vector([makeData({ type: new Null(), length: 2 ** 31 - 1, nullCount: 0 })]);
  assertEquals(await rowsOf(node(), keyed(nulls as Vector, 2)), [{ x: [null, null] }]);
});

Deno.test("arrow refuses dictionaries that together take more memory than it may hold", async () => {
  const keyed = (id: number) => {
    const entries = vectorFromArray([`${id}`.repeat(100_000)], new Utf8()) as Vector;
    const type = new Dictionary(entries.type, new Int32(), id);
    const keys = { type, length: 1, nullCount: 0, data: new Int32Array(1), dictionary: entries };
    return new Vector([makeData(keys)]);
  };
  const one = new Table({ a: keyed(1) });
  const three = new Table({ a: keyed(1), b: keyed(2), c: keyed(3) });
  const zstd = (table: Table, format: Format) =>
    writeCompressed(table, format, CompressionType.ZSTD);
  /** How many batches can be read, and the code of the error after them. */
  const readable = async (bytes: Uint8Array, bytesMax: number) => {
    let count = 0;
    try {
      const blocks = await openArrow(fileOf(bytes), ["a"], bytesMax);
      for (;; count++) {
        const reading = blocks.read(count);
        let step = await reading.next();
        while (!step.done) step = await reading.next();
        if (step.value === undefined) return [count];
      }
    } catch (error) {
      assertInstanceOf(error, LeatError);
      assertStringIncludes(error.message, `${bytesMax} (ARROW_BATCH_BYTES_MAX)`);
      return [count, error.code];
    }
  };
  const stream = zstd(three, "stream");
  assertEquals(await readable(stream, 301_000), [1]);
  assertEquals(await readable(stream, 299_000), [0, "resource_exhausted"]);
  assertEquals(await readable(zstd(three, "file"), 299_000), [0, "resource_exhausted"]);
  // A stream ends with 8 bytes. Without these it may have another schema, with other dictionaries.
  const joined = concat(zstd(one, "stream").subarray(0, -8), stream);
  assertEquals(await readable(joined, 301_000), [2]);
  assertEquals(await readable(joined, 299_000), [1, "resource_exhausted"]);
  // Not compressed, they take no more than the file.
  assertEquals(await readable(write(three, "stream"), 1), [1]);
});
