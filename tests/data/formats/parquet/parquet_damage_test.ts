/** Damaged parquet files, and values that cannot be read. */
import { brotliCompressSync, zstdCompressSync } from "node:zlib";
import { LeatError } from "../../../../core/error.ts";
import { Tensor } from "../../../../core/tensor.ts";
import { valuesOf } from "../../../../data/formats/parquet/parquet_values.ts";
import {
  assertEquals,
  assertInstanceOf,
  assertStringIncludes,
  assertThrows,
} from "../../../assert.ts";
import { concat } from "../reading.ts";
import { rowsOf } from "../row_laws.ts";
import { fileOfEmptyStructures, fileOfGroups, fileOfLists, fileOfNulls } from "./footers.ts";
import { LIST, listOf, node, numbers, refusal, TEN, write, writeColumn } from "./written.ts";
import { parquetSchema } from "hyparquet";

Deno.test("parquet reports damaged and truncated files as data_loss", async () => {
  const bytes = write(TEN);
  const cases: [string, Uint8Array, string][] = [
    ["empty", new Uint8Array(0), "it is empty"],
    ["short", bytes.slice(0, 6), "only 6 bytes"],
    ["truncated", bytes.slice(0, -9), "PAR1"],
    ["without a beginning", bytes.slice(60), "row group 0"],
    ["text", new TextEncoder().encode("name,age\nada,36\n"), "PAR1"],
  ];
  for (const [what, damaged, part] of cases) {
    const error = await refusal(damaged);
    assertEquals(error.code, "data_loss", what);
    assertStringIncludes(error.message, "my data");
    assertStringIncludes(error.message, part);
  }
  const encrypted = bytes.slice();
  encrypted[bytes.length - 1] = "E".charCodeAt(0);
  assertEquals((await refusal(encrypted)).code, "unimplemented");
});

Deno.test("parquet reports any damage quickly, with its own errors", async () => {
  const bytes = write(TEN, { rowGroupSize: 4 });
  const masks = [0xff, 0x80, 0x11];
  for (let at = 0; at < bytes.length; at++) {
    const damaged = bytes.slice();
    damaged[at] = damaged[at]! ^ masks[at % masks.length]!;
    for (const found of await rowsOf(node(), damaged)) {
      if (found instanceof Error) assertInstanceOf(found, LeatError);
    }
  }
});

Deno.test("parquet refuses a schema of deep groups before it takes memory for their paths", async () => {
  assertEquals(await rowsOf(node(), fileOfGroups(3, 126)), []);
  for (const [chains, depth] of [[1, 128], [30, 4_000]] as const) {
    const { code, message } = await refusal(fileOfGroups(chains, depth));
    assertEquals(code, "data_loss");
    assertStringIncludes(message, "its schema nests more than 128 deep");
  }
});

Deno.test("parquet refuses a footer of more structures than its bytes or its memory allow", async () => {
  for (
    const [count, code, said] of [
      [100_000, "data_loss", "too many"],
      [30_000_000, "resource_exhausted", "more than 4194304 structures"],
    ] as const
  ) {
    const error = await refusal(fileOfEmptyStructures(count));
    assertEquals(error.code, code);
    assertStringIncludes(error.message, said);
  }
});

Deno.test("parquet refuses a footer of lists in lists before they fill the stack", async () => {
  const { code, message } = await refusal(fileOfLists(1_000_000));
  assertEquals(code, "data_loss");
  assertStringIncludes(message, "structures and lists are nested more than 32 deep");
});

Deno.test("parquet decompresses no page to more than its header says", async () => {
  const longer = (page: Uint8Array) => concat(page, new Uint8Array(1_000_000));
  const compressors = {
    BROTLI: (page: Uint8Array) => new Uint8Array(brotliCompressSync(longer(page))),
    ZSTD: (page: Uint8Array) => new Uint8Array(zstdCompressSync(longer(page))),
  };
  for (const codec of ["BROTLI", "ZSTD"] as const) {
    const { code, message } = await refusal(write(TEN, { codec, compressors }));
    assertEquals(code, "resource_exhausted");
    assertStringIncludes(message, "decompresses to more than");
  }
});

Deno.test("parquet refuses columns that share bytes, of which each would take memory", async () => {
  const column = { pageValues: 3, values: 3, compressedBytes: 70 };
  const bytes = fileOfNulls(["a", "b", "c", "d", "e"].map((name) => ({ ...column, name })), 3);
  const { code, message } = await refusal(bytes);
  assertEquals(code, "data_loss");
  assertStringIncludes(message, `of row group 0 claim 350 bytes, and the file has ${bytes.length}`);
  const negative = fileOfNulls([{ ...column, name: "a", compressedBytes: -1 }], 3);
  assertStringIncludes(
    (await refusal(negative)).message,
    "column a of row group 0 claims -1 bytes",
  );
});

Deno.test("parquet refuses an encrypted column as unimplemented, and reads others", async () => {
  const column = { pageValues: 1, values: 1 };
  const columns = [{ ...column, name: "secret", isEncrypted: true }, { ...column, name: "x" }];
  const bytes = fileOfNulls(columns, 1);
  const { code, message } = await refusal(bytes);
  assertEquals(code, "unimplemented");
  assertStringIncludes(message, "column secret is encrypted; leave it out with `columns`");
  assertEquals(await rowsOf(node(["x"]), bytes), [{ x: null }]);
});

Deno.test("parquet refuses a row whose lists repeat more of a dictionary than ROW_GROUP_BYTES_MAX", async () => {
  const text = { type: "BYTE_ARRAY", repetition_type: "OPTIONAL" } as const;
  const fileOf = (entry: string, count: number, converted_type: "UTF8" | "JSON") => {
    const schema = [
      { name: "root", num_children: 1 },
      ...listOf({ ...text, converted_type }).map((element, i) => ({ ...element, name: LIST[i]! })),
    ];
    const data = [new Array(count).fill(entry), [entry]];
    return write([{ name: "x", data, encoding: "RLE_DICTIONARY" }], { schema });
  };
  const itemsOf = async (count: number, type: "UTF8" | "JSON", character = "x") =>
    (await rowsOf(node(), fileOf(character.repeat(1_000_000), count, type))).map((found) => {
      if (found instanceof LeatError) return [found.code, found.message.includes("row 0")];
      const { x } = found as { x: Tensor | unknown[] };
      return x instanceof Tensor ? x.shape[0] : x.length;
    });
  assertEquals(await itemsOf(2_000, "UTF8"), [2_000, 1]);
  assertEquals(await itemsOf(2_200, "UTF8"), [["resource_exhausted", true], 1]);
  // Parsed, lists, objects and fields of JSON may take many times their bytes.
  assertEquals(await itemsOf(7, "JSON", "["), [7, 1]);
  assertEquals(await itemsOf(8, "JSON", "["), [["resource_exhausted", true], 1]);
});

Deno.test("valuesOf counts repeated JSON by its structures, so that plain ones may repeat more", () => {
  const [tree] = parquetSchema({
    schema: [
      { name: "root", num_children: 1 },
      { name: "x", type: "BYTE_ARRAY", converted_type: "JSON", repetition_type: "REPEATED" },
    ],
  }).children;
  const { convert } = valuesOf(tree!, 10_000);
  const repeated = (json: string, count: number) => () =>
    convert(new Array(count).fill(new TextEncoder().encode(json)));
  const long = JSON.stringify("x".repeat(98));
  assertEquals(repeated(long, 13)(), new Array(13).fill("x".repeat(98)));
  assertThrows(repeated(long, 14), LeatError, "repeat dictionary entries");
  const wide = JSON.stringify([[], [], []]);
  assertEquals(repeated(wide, 8)(), new Array(8).fill([[], [], []]));
  assertThrows(repeated(wide, 9), LeatError, "repeat dictionary entries");
});

Deno.test("parquet gives a damaged row group as one error, and reads the next", async () => {
  const bytes = write(TEN, { rowGroupSize: 4, codec: "SNAPPY" });
  const damaged = bytes.slice();
  // The header of the first page, after the four bytes of magic.
  damaged.fill(0xff, 4, 20);
  const found = await rowsOf(node(), damaged);
  const [error] = found;
  assertInstanceOf(error, LeatError);
  assertEquals(error.code, "data_loss");
  assertStringIncludes(error.message, "my data");
  assertStringIncludes(error.message, "row group 0, column i");
  assertEquals(found.slice(1), numbers(10).slice(4).map((i) => ({ i, s: `text ${i}` })));
});

Deno.test("parquet gives invalid JSON as an error of its row", async () => {
  const utf8 = { type: "BYTE_ARRAY", converted_type: "UTF8", repetition_type: "REQUIRED" } as const;
  const bytes = writeColumn(["[1]", "{", "2"], [utf8]);
  // The writer writes only valid JSON, so its annotation (19) replaces that of text (0), after the
  // name.
  const name = [0x18, 1, "x".charCodeAt(0), 0x25, 0];
  const at = bytes.findIndex((_, start) => name.every((byte, i) => bytes[start + i] === byte));
  bytes[at + 4] = 19 << 1;
  const found = await rowsOf(node(), bytes);
  const [error] = found.splice(1, 1);
  assertEquals(found, [{ x: [1] }, { x: 2 }]);
  assertInstanceOf(error, LeatError);
  assertEquals(error.code, "data_loss");
  assertStringIncludes(error.message, "my data: row 1 of row group 0, column x");
});

Deno.test("parquet passes on an error of the file", async () => {
  const bytes = write(TEN);
  const found = await rowsOf(node(), bytes, {}, { failsAt: 4 });
  assertEquals(found.length, 1);
  assertStringIncludes((found[0] as Error).message, "the disk is on fire");
});

Deno.test("parquet reports a text that is longer than its page as data_loss", async () => {
  const text = "a text that no other bytes of the file equal";
  const utf8 = { type: "BYTE_ARRAY", converted_type: "UTF8", repetition_type: "REQUIRED" } as const;
  const bytes = write([{ name: "x", data: [text, "b"], encoding: "PLAIN" }], {
    codec: "UNCOMPRESSED",
    schema: [{ name: "root", num_children: 1 }, { ...utf8, name: "x" }],
    statistics: false,
  });
  const at = new TextDecoder("latin1").decode(bytes).indexOf(text) - 4;
  for (const length of [2 ** 32 - 1, 2 ** 31, 1_000]) {
    new DataView(bytes.buffer).setUint32(at, length, true);
    const { code, message, cause } = await refusal(bytes);
    assertEquals(code, "data_loss", message);
    assertEquals(cause, undefined, "no message about the library's variables");
  }
});
