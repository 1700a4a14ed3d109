/** CSV files: fields, quotes, columns, and everything that can be wrong with them. */

import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertStringIncludes,
  assertThrows,
} from "../../../assert.ts";
import { gzipSync } from "node:zlib";
import { LeatError } from "../../../../core/error.ts";
import { COLUMNS_MAX } from "../../../../data/formats/column_rows.ts";
import { openCsv } from "../../../../data/formats/csv/csv.ts";
import { CsvSchema } from "../../../../data/formats/csv/csv_schema.ts";
import { csvParser } from "../../../../data/formats/csv/csv_values.ts";
import { CsvNode } from "../../../../data/sources/csv.ts";
import { TensorSpec } from "../../../../data/elements/spec.ts";
import { ANSWERS, BytesFile, type FileOptions, readAll } from "../reading.ts";

type Options = Record<string, unknown>;

/** All records of a text; errors in place of records. */
async function read(
  text: string | Uint8Array,
  options: Options = {},
  answer?: FileOptions,
): Promise<unknown[]> {
  const { delimiter = ",", useQuoteDelim = true, ...schema } = options;
  const source = {
    path: "data.csv",
    file: new BytesFile(typeof text === "string" ? new TextEncoder().encode(text) : text, answer),
    compression: undefined,
  };
  const dialect = { delimiter, useQuoteDelim } as { delimiter: string; useQuoteDelim: boolean };
  try {
    return await readAll(await openCsv(source, {}, new CsvSchema("csv", schema), dialect, 1 << 20));
  } catch (error) {
    return [error];
  }
}

function assertBad(found: unknown, ...parts: string[]): void {
  assertInstanceOf(found, LeatError);
  assertEquals(found.code, "data_loss");
  for (const part of ["data.csv", ...parts]) assertStringIncludes(found.message, part);
}

Deno.test("csv without declared columns gives texts by name or in order", async () => {
  const text = 'id,name\n1,"one, or ""a"""\n\n2,"two\nlines"\r\n';
  for (const answer of ANSWERS) {
    assertEquals(await read(text, {}, answer), [
      { id: "1", name: 'one, or "a"' },
      { id: "2", name: "two\nlines" },
    ]);
    assertEquals((await read(text, { header: false }, answer))[2], ["2", "two\nlines"]);
    assertEquals(await read(text, { select: ["name"] }, answer), [
      { name: 'one, or "a"' },
      { name: "two\nlines" },
    ]);
    assertEquals(await read(text, { exclude: [1] }, answer), [{ id: "1" }, { id: "2" }]);
  }
});

Deno.test("csv without quoting treats quotes as text", async () => {
  const options = { useQuoteDelim: false, delimiter: "\t" };
  assertEquals(await read('a\tb\n"x\ty"\n\n5" pipe\t\r\n', options), [
    { a: '"x', b: 'y"' },
    { a: '5" pipe', b: "" },
  ]);
});

Deno.test("csv finds declared columns in the header, among any others", async () => {
  const columns = {
    price: { dtype: "float32", default: -1 },
    id: "int64",
    name: { dtype: "string", default: "?" },
    flag: { dtype: "bool", default: false },
    extra: { dtype: "uint8", default: 7 },
  };
  for (const useQuoteDelim of [true, false]) {
    const text = "x,id,price,name,flag\n0,9007199254740993,1.5,a,TRUE\n,-2,NA,,\n";
    assertEquals(await read(text, { columns, naValue: "NA", useQuoteDelim }), [
      { price: 1.5, id: 9007199254740993n, name: "a", flag: true, extra: 7 },
      { price: -1, id: -2n, name: "?", flag: false, extra: 7 },
    ]);
  }
});

Deno.test("csv takes columns without a header in order, or those that are selected", async () => {
  const text = "1,a,2.5\n3,b,4\n";
  const columns = ["int32", { dtype: "float64" }];
  assertEquals(await read(text, { header: false, columns, select: [0, 2] }), [[1, 2.5], [3, 4]]);
  assertEquals(await read(text, { header: false, columns, exclude: [1] }), [[1, 2.5], [3, 4]]);
  assertEquals(await read(text, { header: false, columns: { n: "int8" }, select: [0] }), [
    { n: 1 },
    { n: 3 },
  ]);
  const swapped = { header: false, columns: ["float64", "int32"], select: [2, 0] };
  assertEquals(await read(text, swapped), [[2.5, 1], [4, 3]]);
  const named = { columns: ["float64"], select: ["c"] };
  assertEquals(await read(`a,b,c\n${text}`, named), [[2.5], [4]]);
});

Deno.test("csv names file, line and column of a missing or invalid value, which loses the record", async () => {
  const columns = { id: "int32", name: "string" };
  for (const useQuoteDelim of [true, false]) {
    const text = "id,name\n1,a\n,b\n3,\nx,d\n5\n6,f,g\n3000000000,h\n8,i\n";
    const found = await read(text, { columns, useQuoteDelim });
    assertEquals([found[0], found.at(-1)], [{ id: 1, name: "a" }, { id: 8, name: "i" }]);
    assertEquals(found.length, 8);
    assertBad(found[1], "Line 3", 'no value in column "id"');
    assertBad(found[2], "Line 4", 'no value in column "name"');
    assertBad(found[3], "Line 5", '"x" in column "id"', "int32");
    assertBad(found[4], "Line 6", "has 1 fields, and 2");
    assertBad(found[5], "Line 7", "has 3 fields, and 2");
    assertBad(found[6], "Line 8", '"3000000000"');
  }
});

Deno.test("csv ends a file at a record with too many fields, wherever its parts end", async () => {
  const wide = ",".repeat(COLUMNS_MAX); // one field more than there are delimiters
  const columns = { id: "int32", name: "string" };
  for (const bytesPerRead of [2 ** 20, 1_000]) {
    const found = await read(`id,name\n1,a\n${wide}\n2,b\n`, { columns }, { bytesPerRead });
    assertEquals([found.length, found[0]], [2, { id: 1, name: "a" }]);
    assertInstanceOf(found[1], LeatError);
    assertEquals(found[1].code, "resource_exhausted");
    for (const part of ["data.csv", "line 3", `${COLUMNS_MAX} fields (COLUMNS_MAX)`]) {
      assertStringIncludes(found[1].message, part);
    }
  }
  // A record of the maximum width that does not fit the schema is lost alone.
  const [, bad, good] = await read(`id,name\n1,a\n${wide.slice(1)}\n2,b\n`, { columns });
  assertBad(bad, "Line 3", `has ${COLUMNS_MAX} fields, and 2`);
  assertEquals(good, { id: 2, name: "b" });
});

Deno.test("csv buffers at most one part of an endless record", async () => {
  // 60 million fields, generated while they are read.
  const sizeBytes = 60_000_000;
  let readBytes = 0;
  const file = {
    sizeBytes,
    read(into: Uint8Array, offset: number) {
      const count = Math.min(into.length, sizeBytes - offset);
      into.subarray(0, count).fill(0x2c);
      readBytes += count;
      return count;
    },
    close() {},
  };
  const source = { path: "data.csv", file, compression: undefined };
  const dialect = { delimiter: ",", useQuoteDelim: true };
  const schema = new CsvSchema("csv", { columns: ["int32"], header: false });
  const [error, ...others] = await readAll(await openCsv(source, {}, schema, dialect, 1 << 20));
  assertInstanceOf(error, LeatError);
  assertStringIncludes(error.message, "COLUMNS_MAX");
  assertEquals(others, []);
  assert(readBytes < sizeBytes / 4, `${readBytes}`);
});

Deno.test("csv refuses a file whose header lacks a column or has it twice", async () => {
  const [lacking] = await read("a,b\n1,2\n", { columns: { a: "int8", c: "int8" } });
  assertBad(lacking, 'no column "c"', 'names "a", "b"');
  assertBad((await read("a,b,a\n", { columns: { a: "int8" } }))[0], 'more than one column "a"');
  assertBad((await read("a,a\n"))[0], 'more than one column "a"');
  assertBad((await read("a,b\n", { select: ["c"] }))[0], 'no column "c"');
  assertBad((await read("a,b\n", { columns: ["int8"] }))[0], "gives 2 columns, and 1 are declared");
  assertEquals(await read("a,b,a\n1,2,3\n", { columns: { b: "int8" } }), [{ b: 2 }]);
});

Deno.test("csv accepts empty files, files with only a header, byte order marks, all line ends and spaces", async () => {
  for (const useQuoteDelim of [true, false]) {
    const how = { useQuoteDelim };
    for (const text of ["", "\n\n", "a,b", "a,b\r\n"]) assertEquals(await read(text, how), []);
    assertEquals(await read("", { ...how, columns: { a: "int8" } }), []);
    assertEquals(await read("", { ...how, header: false }), []);
    const found = await read("\ufeffa,b\r\n1,2\r\n3,4", how);
    assertEquals(found, [{ a: "1", b: "2" }, { a: "3", b: "4" }]);
    const spaced = await read("a\n 7 \n", { ...how, columns: { a: "int8" } });
    assertEquals(spaced, [{ a: 7 }]);
    assertEquals(await read(" a \n x \n", how), [{ " a ": " x " }]);
  }
});

Deno.test("a damaged record is lost, up to where quotes make sense again", async () => {
  const found = await read('a,b\n1,2\n3,x"y"z\n5,6\n"7"8,"9"\n"10",11\n12,"13\n14,15');
  assertEquals(found.length, 6);
  assertEquals(found[0], { a: "1", b: "2" });
  assertBad(found[1], "line 3", "a quote is within a field");
  assertEquals(found[2], { a: "5", b: "6" });
  assertBad(found[3], "line 5", "continues after its closing quote");
  assertEquals(found[4], { a: "10", b: "11" });
  assertBad(found[5], "ends within a quoted field");
});

Deno.test("csv counts lines by line feeds, also where fields hold other ends of line", async () => {
  const columns = { b: "int32" };
  for (const eol of ["\n", "\r\n"]) {
    const review = `"${Array(100).fill("x").join(eol)}",1`;
    const lines = [
      "a,b",
      "",
      review,
      "3,4",
      "x\ry,5",
      "3,x",
      '"p',
      'q"8,"9"',
      '"r',
      's",y',
      `"9${eol}`,
    ];
    const [, , , ...found] = await read(lines.join(eol), { columns });
    assertBad(found[0], "Line 105 ", '"x" in column "b"');
    assertBad(found[1], "line 107:", "continues after its closing quote");
    assertBad(found[2], "Line 109 ", '"y" in column "b"');
    assertBad(found[3], "line 110:", "ends within a quoted field");
    assertEquals(found.length, 4);
  }
});

Deno.test("csv counts lines by line feeds, also after damaged records and empty lines", async () => {
  for (const eol of ["\n", "\r\n"]) {
    const lines = ['"a', 'b"x",1', '"c"x,2",3', "", '"d"x",4', "", "5,6", "", '7,"', 'e"x"', "8,9"];
    const how = { header: false, columns: ["string", "string"] };
    const found = await read(lines.join(eol) + eol, how);
    assertBad(found[0], "line 2:", "continues after its closing quote");
    assertBad(found[1], "line 3:", "continues after its closing quote");
    assertBad(found[2], "line 5:", "continues after its closing quote");
    assertEquals(found[3], ["5", "6"]);
    assertBad(found[4], "line 10:", "continues after its closing quote");
    assertEquals(found.slice(5), [["8", "9"]]);
  }
});

Deno.test("csv reports a record once, and the end of the file, however many errors follow a quote that is never closed", async () => {
  const found = await read(`a\n1\n"open\n${'He said "hi" to me.\n'.repeat(1_000)}`);
  assertEquals(found.length, 3);
  assertBad(found[1], "line 4:", "continues after its closing quote");
  assertBad(found[2], "ends within a quoted field");
});

Deno.test("csv copies no field for each quote in it, and keeps the limit of its record", async () => {
  const how = { header: false, columns: ["string", "string"] };
  // If the time grew with the square of the length, this would take minutes.
  const [bad, ...good] = await read(`a${'"'.repeat(200_000)},2\n3,4\n`, how);
  assertBad(bad, "line 1:", "a quote is within a field");
  assertEquals(good, [["3", "4"]]);
  const half = new Uint8Array(40 * 2 ** 20).fill(0x61);
  const long = await new Blob([half, '"', half, ",2\n3,4\n"]).bytes();
  const [quote, limit, ...others] = await read(long, how);
  assertBad(quote, "line 1:", "a quote is within a field");
  assertInstanceOf(limit, LeatError);
  assertStringIncludes(limit.message, "CSV_RECORD_BYTES_MAX");
  assertEquals(others, []);
});

/** A text in Latin-1: a byte for each character. */
const latin1 = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0));

Deno.test("csv loses a record that is not UTF-8, quoted or not, and names it and a remedy", async () => {
  for (const useQuoteDelim of [true, false]) {
    const how = { useQuoteDelim };
    const found = await read(latin1("a,b\n1,2\nn\xe9e,4\n5,6\n\xff\xfe\n"), how);
    assertEquals([found[0], found[2]], [{ a: "1", b: "2" }, { a: "5", b: "6" }]);
    assertBad(found[1], "Line 3", "not UTF-8", "iconv");
    assertBad(found[3], "Line 5", "not UTF-8");
    assertEquals(found.length, 4);
    assertBad((await read(latin1("n\xe9e\n1\n"), how))[0], "Line 1", "not UTF-8");
  }
});

Deno.test("csv keeps characters of several bytes: quoted, as delimiters, and where chunks end", async () => {
  const texts = ["é", "日本", "🙂", "\ufffd", "\ufeff", "e\u0301"];
  for (const delimiter of [",", "é", "🙂"]) {
    const fields = texts.filter((text) => text !== delimiter);
    const rows = Array.from({ length: 4_000 }, (_, i) => [`${i}`, ...fields]);
    const file = rows.map((row) => row.map((field) => `"${field}"`).join(delimiter)).join("\n");
    assertEquals(await read(file, { delimiter, header: false }), rows);
  }
});

Deno.test("csv tells a record over several chunks that is not UTF-8 from one that is", async () => {
  for (const last of ["\xe9", "\xef\xbf\xbd"]) {
    const [record] = await read(latin1(`"\xef\xbf\xbd${"x\n".repeat(1e5)}${last}"`), {
      header: false,
    });
    if (last.length === 1) assertBad(record, "not UTF-8");
    else assertEquals(record, [`\ufffd${"x\n".repeat(1e5)}\ufffd`]);
  }
});

Deno.test("csv refuses a file whose lines end with carriage returns alone, which was one header", async () => {
  for (const useQuoteDelim of [true, false]) {
    const found = await read("a,b\r1,2\r3,4\r", { useQuoteDelim });
    assertEquals(found.length, 1);
    assertBad(found[0], "carriage return", "tr '\\r' '\\n'");
  }
  assertEquals(await read('"a\r\nb"\n1'), [{ "a\r\nb": "1" }]);
});

Deno.test("csv parses the values of every dtype strictly", () => {
  const cases: [Parameters<typeof csvParser>[0], string, unknown][] = [
    ["int8", "-128", -128],
    ["int8", "128", undefined],
    ["uint8", "-1", undefined],
    ["uint8", " 255 ", 255],
    ["int16", "+7", 7],
    ["int32", "1.0", undefined],
    ["int32", "", undefined],
    ["uint32", "4294967295", 4294967295],
    ["int64", "-9223372036854775808", -9223372036854775808n],
    ["int64", "9223372036854775808", undefined],
    ["int64", ` -${"0".repeat(30)}7 `, -7n],
    ["int64", "9".repeat(2 ** 24), undefined],
    ["uint64", "+18446744073709551615", 18446744073709551615n],
    ["float32", "1e-3", 0.001],
    ["float32", ".5", 0.5],
    ["float32", "5.", 5],
    ["float32", ".", undefined],
    ["float64", `${"0".repeat(4_000_000)}E`, undefined],
    ["float64", "-inf", -Infinity],
    ["float64", "NaN", NaN],
    ["float64", "1e308", 1e308],
    ["float64", "1e309", undefined],
    ["float32", "-1e400", undefined],
    ["float32", "1e39", undefined],
    ["float32", "3.4028235e38", 3.4028235e38],
    ["float16", "-65520", undefined],
    ["float16", "65519", 65519],
    ["float16", "inf", Infinity],
    ["float64", "0x10", undefined],
    ["float64", "1,5", undefined],
    ["float64", "5.", 5],
    ["float64", ".", undefined],
    ["float64", `${"1".repeat(2 ** 20)}x`, undefined],
    ["float64", `1.${"1".repeat(2 ** 20)}e${"1".repeat(2 ** 20)}x`, undefined],
    ["float64", " ", undefined],
    ["bool", "False", false],
    ["bool", "yes", undefined],
    ["string", " x ", " x "],
  ];
  for (const [dtype, text, value] of cases) {
    assertEquals(csvParser(dtype)(text), value, `${dtype} ${JSON.stringify(text.slice(0, 40))}`);
  }
});

Deno.test("a csv reader continues from every saved position", async () => {
  const texts = [
    'a,b\n1,"2\n\n3"\n\n4,x"y\n5,"6"7\n"8",9\nüñ,🙂\n10,11,12\n13,"14',
    "\ufeffa,b\r\n1,2\r\n3,4\r\n5",
    "",
    latin1('a,b\n1,\xe9\n\xe9,"x"y\n3,\xc3\xa9\n\xff,4\n\xff,5'),
  ];
  for (const text of texts) {
    for (const useQuoteDelim of [true, false]) {
      for (const compression of [undefined, "gzip"] as const) {
        const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
        const open = (position?: unknown) => {
          const contents = compression === undefined ? bytes : gzipSync(bytes);
          const source = { path: "data.csv", file: new BytesFile(contents), compression };
          const dialect = { delimiter: ",", useQuoteDelim };
          return openCsv(source, { position }, new CsvSchema("csv", {}), dialect, 1 << 20);
        };
        const reader = await open();
        const whole = (await readAll(await open())).map(String);
        for (let given = 0;; given++) {
          const rest = await readAll(await open(structuredClone(reader.save())));
          assertEquals(rest.map(String), whole.slice(given), `${JSON.stringify(text)} at ${given}`);
          if (given === whole.length) break;
          for (;;) {
            try {
              if (typeof await reader.step() !== "symbol") break;
            } catch {
              break;
            }
          }
        }
        reader.close();
      }
    }
  }
});

Deno.test("csv knows its spec, can be serialised, and keeps the order of its columns", () => {
  const node = new CsvNode("x", { columns: { b: "int64", a: { dtype: "float32", default: NaN } } });
  const spec = { b: new TensorSpec("int64", []), a: new TensorSpec("float32", []) };
  assertEquals(node.elementSpec, spec);
  assertEquals(new CsvNode("x").elementSpec, undefined);
  const copy = new CsvNode("x", node.attributes);
  assertEquals(Object.keys(copy.elementSpec as object), ["b", "a"]);
  assertEquals(copy.schema.columns, node.schema.columns);
  assertEquals(node.isDivided, false);
  assertEquals(new CsvNode("x", { useQuoteDelim: false }).isDivided, true);
});

Deno.test("csv checks its options", () => {
  const cases: Options[] = [
    { columns: 7 },
    { columns: [] },
    { columns: {} },
    { columns: { a: "float" } },
    { columns: { a: { dtype: "bytes" } } },
    { columns: { a: { dtype: "int8", default: 300 } } },
    { columns: { a: { dtype: "string", default: 1 } } },
    { columns: { ["__proto__"]: "int8" } },
    { columns: { a: "int8" }, select: ["a"] },
    { columns: ["int8"], select: [0, 1] },
    { header: 1 },
    { header: false, select: ["a"] },
    { select: [0], exclude: [1] },
    { select: [] },
    { select: [1, 1] },
    { select: [-1] },
    { delimiter: "" },
    { delimiter: "ab" },
    { delimiter: '"' },
    { naValue: 0 },
    { useQuoteDelim: "no" },
  ];
  for (const options of cases) {
    const error = assertThrows(() => new CsvNode("x", options), LeatError) as LeatError;
    assertEquals(error.code, "invalid_argument", JSON.stringify(options));
    assertStringIncludes(error.message, "csv");
  }
});
