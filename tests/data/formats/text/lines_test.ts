/** Lines: ends, encodings, limits, and the edges of the buffer. */

import { assert, assertEquals, assertInstanceOf, assertStringIncludes } from "../../../assert.ts";
import { LeatError } from "../../../../core/error.ts";
import { ByteReader, READ_BYTES } from "../../../../data/formats/byte_reader.ts";
import { parseJsonLine } from "../../../../data/formats/text/json_lines.ts";
import { LINE_BYTES_MAX, LineReader } from "../../../../data/formats/text/lines.ts";
import { ANSWERS, BytesFile, concat, open, readAll } from "../reading.ts";

const utf8 = (value: string) => new TextEncoder().encode(value);
const read = (bytes: Uint8Array, options = {}) => readAll(new LineReader(open(bytes, options)));
const readJson = (text: string) => readAll(new LineReader(open(utf8(text)), parseJsonLine));

Deno.test("LineReader removes \\n and \\r\\n, and needs neither after the last line", async () => {
  const cases: [string, string[]][] = [
    ["", []],
    ["\n", [""]],
    ["\r\n", [""]],
    ["a", ["a"]],
    ["a\n", ["a"]],
    ["a\nb", ["a", "b"]],
    ["a\r\nb\r\n", ["a", "b"]],
    ["a\n\nb\n\n", ["a", "", "b", ""]],
    ["a\rb\n", ["a\rb"]],
    ["a\r\r\n", ["a\r"]],
    ["a\r", ["a\r"]],
    ["  spaces\t\n", ["  spaces\t"]],
    ["ünïcödé 🙂\n日本", ["ünïcödé 🙂", "日本"]],
    ["nul\0nul\n", ["nul\0nul"]],
  ];
  for (const answer of ANSWERS) {
    for (const [file, lines] of cases) {
      assertEquals(await read(utf8(file), answer), lines, JSON.stringify(file));
    }
  }
});

Deno.test("LineReader removes a byte order mark only at the beginning", async () => {
  assertEquals(await read(utf8("\ufeffa\n\ufeffb")), ["a", "\ufeffb"]);
  assertEquals(await read(utf8("\ufeff")), [""]);
});

Deno.test("LineReader reports each line that is not UTF-8, with a remedy, and reads the others", async () => {
  const bytes = concat(
    utf8("a"),
    new Uint8Array([0xff]),
    utf8('b\n"\ufffd"\n'),
    new Uint8Array([0xe6, 0x97]),
  );
  for (const [convert, text] of [[undefined, '"\ufffd"'], [parseJsonLine, "\ufffd"]] as const) {
    const [first, second, last] = await readAll(new LineReader(open(bytes), convert));
    assertEquals(second, text);
    for (const [error, line] of [[first, 1], [last, 3]] as const) {
      assertInstanceOf(error, LeatError);
      assertEquals(error.code, "data_loss");
      assertStringIncludes(error.message, `Line ${line} of data is not UTF-8`);
      assertStringIncludes(error.message, "iconv");
    }
  }
});

Deno.test("LineReader finds line ends wherever the buffer ends", async () => {
  for (let shift = -3; shift <= 3; shift++) {
    const lines = [
      "x".repeat(READ_BYTES + shift),
      "y",
      "z".repeat(3 * READ_BYTES),
      "",
      "é".repeat(9),
    ];
    for (const end of ["\n", "\r\n"]) {
      const file = utf8(lines.map((line) => line + end).join(""));
      for (const answer of [{}, { later: true }]) {
        assertEquals(await read(file, answer), lines, `${shift}`);
      }
    }
  }
});

Deno.test("LineReader reports a line beyond its limit once, and reads the next", async () => {
  const long = new Uint8Array(LINE_BYTES_MAX + READ_BYTES).fill(0x78);
  const found = await read(concat(utf8("a\n"), long, utf8("\nb\n"), long));
  assertEquals([found[0], found[2]], ["a", "b"]);
  assertEquals(found.length, 4);
  for (const [at, line] of [[1, 2], [3, 4]] as const) {
    const error = found[at];
    assertInstanceOf(error, LeatError);
    assertEquals(error.code, "resource_exhausted");
    assertStringIncludes(error.message, `Line ${line} of data`);
  }
});

Deno.test("LineReader searches each byte of a long line about once", async () => {
  const file = utf8("x".repeat(64 * READ_BYTES) + "\n");
  const { indexOf } = Uint8Array.prototype;
  let searched = 0;
  Uint8Array.prototype.indexOf = function (this: Uint8Array, value: number, from = 0): number {
    searched += this.length - from;
    return indexOf.call(this, value, from);
  };
  try {
    assertEquals((await read(file)).length, 1);
  } finally {
    Uint8Array.prototype.indexOf = indexOf;
  }
  assert(searched < 2 * file.length, `${searched} of ${file.length}`);
});

Deno.test("LineReader accepts a line of exactly its limit, but not one byte more", async () => {
  const line = new Uint8Array(LINE_BYTES_MAX + 1).fill(0x78);
  const [whole] = await read(concat(line.subarray(1), utf8("\n")));
  assertEquals((whole as string).length, LINE_BYTES_MAX);
  const [error, next] = await read(concat(line, utf8("\nb")));
  assertInstanceOf(error, LeatError);
  assertEquals(next, "b");
});

Deno.test("LineReader reports a failure of the file once, without the interrupted line", async () => {
  for (const answer of ANSWERS) {
    const found = await read(utf8("one\ntwo\nthree"), { ...answer, failsAt: 10 });
    assertEquals(found.slice(0, 2), ["one", "two"]);
    assertEquals(found.length, 3);
    assertStringIncludes((found[2] as Error).message, "on fire");
  }
});

Deno.test("a closed LineReader ends, also in the middle of a read", async () => {
  const file = new BytesFile(utf8("a\nb\n"), { later: true });
  const reader = new LineReader(new ByteReader("data", file));
  const pending = reader.step();
  reader.close();
  await pending;
  assertEquals(typeof await reader.step(), "symbol");
  assert(reader.disposed);
  assertEquals(file.closes, 1);
});

Deno.test("parseJsonLine gives values, skips blank lines, and names invalid lines", async () => {
  const found = await readJson('{"a": [1, null]}\r\n\n \t\n"text"\n{"a": \n7\n[1] x\n0');
  assertEquals([found[0], found[1], found[3], found[5]], [{ a: [1, null] }, "text", 7, 0]);
  assertEquals(found.length, 6);
  for (const [at, line] of [[2, 5], [4, 7]] as const) {
    const error = found[at];
    assertInstanceOf(error, LeatError);
    assertEquals(error.code, "data_loss");
    assertStringIncludes(error.message, `Line ${line} of data`);
  }
});

Deno.test("parseJsonLine refuses a line that nests too deep, and reads the next", async () => {
  const [error, next] = await readJson(`${"[".repeat(1_000_000)}\n7`);
  assertInstanceOf(error, LeatError);
  assertEquals(error.code, "resource_exhausted");
  assertStringIncludes(error.message, "Line 1 of data cannot be read as JSON: it nests deeper");
  assertEquals(next, 7);
});
