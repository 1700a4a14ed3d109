/**
 * .npy: headers of every version, every dtype, byte orders, parts, positions, and damaged files.
 */

import { assertEquals, assertInstanceOf, assertStringIncludes } from "../../../assert.ts";
import { type DType, TYPED_ARRAYS } from "../../../../core/dtype.ts";
import { LeatError } from "../../../../core/error.ts";
import { shownText } from "../../../../core/shown_text.ts";
import { Tensor, tensor } from "../../../../core/tensor.ts";
import { NPY_HEADER_BYTES_MAX } from "../../../../data/formats/npy/npy_header.ts";
import { NpyNode } from "../../../../data/sources/npy.ts";
import { npyBytes } from "../npy_bytes.ts";
import { BytesFile, readAll } from "../reading.ts";
import { assertLaws, fileOf, rowsOf } from "../row_laws.ts";

const node = new NpyNode("my data");
const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);

/** What `np.save` writes for `np.array([[1, 2, 3], [4, 5, 6]], dtype=np.int16)`. */
const SAVED =
  "93 4e 55 4d 50 59 01 00 76 00 7b 27 64 65 73 63 72 27 3a 20 27 3c 69 32 27 2c 20 27 " +
  "66 6f 72 74 72 61 6e 5f 6f 72 64 65 72 27 3a 20 46 61 6c 73 65 2c 20 27 73 68 61 70 65 27 3a " +
  "20 28 32 2c 20 33 29 2c 20 7d " + "20 ".repeat(58) + "0a 01 00 02 00 03 00 04 00 05 00 06 00";

Deno.test("npy reads what NumPy saved, byte for byte", async () => {
  const bytes = Uint8Array.fromHex(SAVED.replaceAll(" ", ""));
  assertEquals(bytes.length, 128 + 12);
  assertEquals(npyBytes("<i2", [2, 3], new Int16Array([1, 2, 3, 4, 5, 6])), bytes);
  assertEquals(await assertLaws(node, bytes), [
    tensor(new Int16Array([1, 2, 3]), { shape: [3] }),
    tensor(new Int16Array([4, 5, 6]), { shape: [3] }),
  ]);
});

Deno.test("npy takes any byte of a bool but 0 for true, as NumPy does", async () => {
  const rows = await assertLaws(node, npyBytes("|b1", [2, 2], new Uint8Array([0, 1, 2, 255])));
  assertEquals(rows, [[false, true], [true, true]].map((row) => tensor(row)));
});

Deno.test("npy reads a string of more characters than a call may have arguments", async () => {
  const characters = new Uint32Array(200_000).fill(0x1f600);
  const [text] = await assertLaws(node, npyBytes("<U200000", [1], characters));
  assertEquals(text, "😀".repeat(200_000));
});

Deno.test("npy reads headers of versions 1 to 3", async () => {
  for (const version of [1, 2, 3] as const) {
    const bytes = npyBytes("<f4", [2], new Float32Array([0.5, -1]), { version });
    assertEquals(await assertLaws(node, bytes), [0.5, -1]);
  }
  // Spaces and the order of keys vary between writers; Python 2 wrote long integers with an L.
  const header = `{ 'shape' :( 2L , ) ,'fortran_order':False,'descr' : '<f4'}`;
  // Texts in double quotes are Python, too.
  for (const written of [header, header.replaceAll("'", '"')]) {
    const bytes = npyBytes("", [], new Float32Array([0.5, -1]), { header: written });
    assertEquals(await rowsOf(node, bytes), [0.5, -1]);
  }
});

Deno.test("npy reads every dtype in both byte orders", async () => {
  const dtypes: [name: string, dtype: DType & keyof typeof TYPED_ARRAYS][] = [
    ["i1", "int8"],
    ["i2", "int16"],
    ["i4", "int32"],
    ["i8", "int64"],
    ["u1", "uint8"],
    ["u2", "uint16"],
    ["u4", "uint32"],
    ["u8", "uint64"],
    ["f2", "float16"],
    ["f4", "float32"],
    ["f8", "float64"],
  ];
  for (const [name, dtype] of dtypes) {
    const stored = new TYPED_ARRAYS[dtype](3);
    const big = dtype.endsWith("int64");
    for (const [i, value] of [1, 100, 0].entries()) {
      (stored as { [index: number]: unknown })[i] = big ? BigInt(value) : value;
    }
    const values = [...stored as Iterable<unknown>];
    assertEquals(await rowsOf(node, npyBytes(`<${name}`, [3], stored)), values, name);
    const swapped = new Uint8Array(stored.buffer.slice(0));
    const width = stored.BYTES_PER_ELEMENT;
    for (let at = 0; at < swapped.length; at += width) swapped.subarray(at, at + width).reverse();
    assertEquals(await rowsOf(node, npyBytes(`>${name}`, [3], swapped)), values, `> ${name}`);
    const [row] = await rowsOf(node, npyBytes(`<${name}`, [1, 3], stored));
    assertInstanceOf(row, Tensor);
    assertEquals([row.dtype, row.shape, row.data], [dtype, [3], stored]);
  }
  const flags = new Uint8Array([1, 0]);
  assertEquals(await rowsOf(node, npyBytes("|b1", [2], flags)), [true, false]);
  const [row] = await rowsOf(node, npyBytes("|b1", [1, 2], flags));
  assertEquals(row, tensor([true, false]));
});

Deno.test("npy reads texts of both kinds as strings, without trailing zeros", async () => {
  const bytes = new TextEncoder().encode("ab\0\0é\0\0\0\0\0");
  assertEquals(await assertLaws(node, npyBytes("|S3", [3], bytes.subarray(0, 9))), [
    "ab",
    "\0é",
    "",
  ]);
  const points = new Uint32Array([...["a", "🙂"].map((text) => text.codePointAt(0)!), 0, 0x65]);
  assertEquals(await assertLaws(node, npyBytes("<U2", [2], points)), ["a🙂", "\0e"]);
  assertEquals(await rowsOf(node, npyBytes("<U1", [2, 2], points)), [
    tensor(["a", "🙂"]),
    tensor(["", "e"]),
  ]);
  const big = new Uint8Array(points.buffer.slice(0, 8));
  big.subarray(0, 4).reverse();
  big.subarray(4, 8).reverse();
  assertEquals(await rowsOf(node, npyBytes(">U2", [1], big)), ["a🙂"]);
  const wrong = await rowsOf(node, npyBytes("<U1", [1], new Uint32Array([0x110000])));
  assertInstanceOf(wrong[0], LeatError);
  assertEquals(wrong[0].code, "data_loss");
});

Deno.test("npy loses only the rows with texts that are not UTF-8, and keeps byte order marks", async () => {
  const stored = new Uint8Array([65, 66, 67, 255, 216, 1, 68, 69, 70, 71, 72, 73]);
  const [first, error, ...others] = await rowsOf(node, npyBytes("|S3", [4], stored));
  assertEquals([first, ...others], ["ABC", "DEF", "GHI"]);
  assertInstanceOf(error, LeatError);
  assertEquals([error.code, error.details], ["data_loss", { path: "my data" }]);
  assertStringIncludes(error.message, "my data: the texts of row 1: text 0 of them is not UTF-8");
  assertStringIncludes(error.message, '.view("uint8")');
  const [lost, pair] = await rowsOf(node, npyBytes("|S3", [2, 2], stored));
  assertInstanceOf(lost, LeatError);
  assertStringIncludes(lost.message, "the texts of row 0: text 1 of them is not UTF-8");
  assertEquals(pair, tensor(["DEF", "GHI"]));
  const marked = new TextEncoder().encode("\ufeffa\ufffd");
  assertEquals(await rowsOf(node, npyBytes("|S7", [1], marked)), ["\ufeffa\ufffd"]);
});

Deno.test("npy divides into parts, continues from every position, and reads only what it gives", async () => {
  // Rows of 64 KiB: four to a block, and sixteen blocks to a part.
  const width = 8192;
  const data = new Float64Array(70 * width).map((_, i) => i);
  const bytes = npyBytes("<f8", [70, width], data);
  const rows = await assertLaws(node, bytes);
  assertEquals(rows.map((row) => (row as Tensor).data[0]), numbers(70).map((i) => i * width));
  assertEquals(await node.countParts(fileOf(bytes)), 2);
  assertEquals((await rowsOf(node, bytes, { part: 1 })).length, 6);
  let read = 0;
  class Counting extends BytesFile {
    override read(into: Uint8Array, offset: number): number | Promise<number> {
      read += into.length;
      return super.read(into, offset);
    }
  }
  const source = { path: "data", file: new Counting(bytes), compression: undefined };
  const last = await node.openReader(source, { position: { block: 16, row: 2 } });
  assertEquals((await readAll(last)).length, 4);
  assertEquals(read, 128 + 6 * 8 * width);
});

Deno.test("npy copies rows out of its buffer", async () => {
  for (const row of await rowsOf(node, npyBytes("<f4", [2, 3], new Float32Array(6)))) {
    assertEquals(((row as Tensor).data as Float32Array).buffer.byteLength, 12);
  }
});

Deno.test("npy reads arrays without rows, and rows without elements", async () => {
  assertEquals(await assertLaws(node, npyBytes("<f4", [0], new Float32Array(0))), []);
  assertEquals(await assertLaws(node, npyBytes("<f4", [0, 3], new Float32Array(0))), []);
  const empty = tensor(new Float32Array(0), { shape: [0] });
  assertEquals(await assertLaws(node, npyBytes("<f4", [2, 0], new Float32Array(0))), [
    empty,
    empty,
  ]);
});

async function refusal(bytes: Uint8Array): Promise<LeatError> {
  const found = await rowsOf(node, bytes);
  assertEquals(found.length, 1);
  assertInstanceOf(found[0], LeatError);
  assertStringIncludes(found[0].message, "my data");
  assertEquals(found[0].details, { path: "my data" });
  return found[0];
}

Deno.test("npy reports unsupported arrays with the reason", async () => {
  const data = new Uint8Array(64);
  const unimplemented: [Uint8Array, string][] = [
    [npyBytes("<f4", [2, 2], data, { fortranOrder: true }), "np.ascontiguousarray"],
    [npyBytes("<c8", [2], data), "dtype is <c8"],
    [npyBytes("|O", [2], data), "dtype is |O"],
    [npyBytes("|S0", [1, 2 ** 32 - 1], data), "its dtype has items of no bytes"],
    [npyBytes("<U0", [2], data), "its dtype has items of no bytes"],
    [npyBytes("<M8[ns]", [2], data), "dtype is <M8[ns]"],
    [
      npyBytes("", [], data, {
        header: "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2,), }",
      }),
      "array of records",
    ],
    [npyBytes("<f4", [2], data).with(6, 4), "version is 4"],
  ];
  for (const [bytes, part] of unimplemented) {
    const error = await refusal(bytes);
    assertEquals(error.code, "unimplemented", part);
    assertStringIncludes(error.message, part);
  }
  // For one axis both orders are the same.
  const line = npyBytes("<f4", [2], new Float32Array([1, 2]), { fortranOrder: true });
  assertEquals(await rowsOf(node, line), [1, 2]);
  assertEquals((await refusal(npyBytes("<f4", [], data))).code, "invalid_argument");
  assertEquals((await refusal(npyBytes("<f8", [1, 2 ** 30], data))).code, "resource_exhausted");
});

Deno.test("npy refuses more axes than NumPy has, which each row would carry along", async () => {
  const ones = (count: number) =>
    npyBytes("|u1", new Array(count).fill(1), new Uint8Array(1), { version: 2 });
  assertEquals((await rowsOf(node, ones(64))).length, 1);
  const error = await refusal(ones(200_000));
  assertEquals(error.code, "data_loss");
  assertStringIncludes(error.message, "it has 200000 axes, more than 64 (NPY_AXES_MAX)");
});

Deno.test("npy refuses more rows without elements than NPY_EMPTY_ROWS_MAX", async () => {
  const error = await refusal(npyBytes("<f4", [2 ** 24 + 1, 0], new Float32Array(0)));
  assertEquals(error.code, "resource_exhausted");
  assertStringIncludes(error.message, "16777217 rows without elements, more than 16777216");
});

Deno.test("npy reports damaged and truncated files as data_loss", async () => {
  const bytes = npyBytes("<f4", [4], new Float32Array(4));
  const long = npyBytes("<f4", [4], new Float32Array(4), { version: 2 });
  new DataView(long.buffer).setUint32(8, NPY_HEADER_BYTES_MAX + 1, true);
  const cases: [Uint8Array, string][] = [
    [new Uint8Array(0), "it is empty"],
    [bytes.slice(0, 9), "ends within the header, after 9 bytes"],
    [bytes.slice(0, 60), "refers to bytes 10 to 128"],
    [bytes.slice(0, -1), "takes 144 bytes, and it has 143"],
    [new TextEncoder().encode("1,2,3\n4,5,6\n"), "does not begin"],
    [npyBytes("", [], bytes, { header: "{'descr': '<f4'}" }), "its header is"],
    [
      npyBytes("", [], bytes, {
        header: "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
      }),
      "its header is",
    ],
    [npyBytes("<f4", [2 ** 52], bytes), "is truncated"],
    [npyBytes("<U0", [2 ** 53], bytes), "its shape is [9007199254740992]"],
    [long, "NPY_HEADER_BYTES_MAX"],
  ];
  for (const [damaged, part] of cases) {
    const error = await refusal(damaged);
    assertEquals(error.code, "data_loss", part);
    assertStringIncludes(error.message, part);
  }
});

Deno.test("npy escapes control characters of a header in errors", async () => {
  const headers = [
    "{'descr': '\x1b[2J', 'fortran_order': False, 'shape': (2,), }",
    "{'descr': '<f4', 'shape': '\x9b\u200b'}",
  ];
  for (const header of headers) {
    const bytes = npyBytes("", [], new Float32Array(2), { header, version: 3 });
    const { message } = await refusal(bytes);
    assertEquals(message, shownText(message));
  }
});
