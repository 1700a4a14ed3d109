/** Records of one length: headers, footers, parts, positions, and files whose sizes do not add up. */

import {
  assertEquals,
  assertInstanceOf,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";
import { gzipSync } from "node:zlib";
import { LeatError } from "../../../core/error.ts";
import { FixedLengthRecordsNode } from "../../../data/sources/fixed_length_records.ts";
import { TensorSpec } from "../../../data/elements/spec.ts";
import type { ReadFrom, SourceFile } from "../../../data/formats/format_reader.ts";
import { ANSWERS, BytesFile, type FileOptions, readAll } from "./reading.ts";

type Options = ConstructorParameters<typeof FixedLengthRecordsNode>[1];

function sourceOf(text: string, answer?: FileOptions, compression?: "gzip"): SourceFile {
  const bytes = new TextEncoder().encode(text);
  const contents = compression === undefined ? bytes : gzipSync(bytes);
  return { path: "data.bin", file: new BytesFile(contents, answer), compression };
}

/** Records as text; errors in place of records. */
async function read(source: SourceFile, options: Options, from: ReadFrom = {}): Promise<unknown[]> {
  try {
    const reader = new FixedLengthRecordsNode("x", options).openReader(source, from);
    const found = await readAll(reader);
    return found.map((at) => at instanceof Uint8Array ? new TextDecoder().decode(at) : at);
  } catch (error) {
    return [error];
  }
}

const LAYOUT = { recordBytes: 3, headerBytes: 2, footerBytes: 4 };

Deno.test("fixedLengthRecords skips header and footer, compressed or not", async () => {
  for (const compression of [undefined, "gzip"] as const) {
    for (const answer of ANSWERS) {
      const open = (text: string) => sourceOf(text, answer, compression);
      assertEquals(await read(open("hhabcdefffff"), LAYOUT), ["abc", "def"]);
      assertEquals(await read(open("hhffff"), LAYOUT), []);
      assertEquals(await read(open("abcdef"), { recordBytes: 3 }), ["abc", "def"]);
      assertEquals(await read(open(""), { recordBytes: 3 }), []);
      assertEquals(await read(open("habc"), { recordBytes: 3, headerBytes: 1 }), ["abc"]);
      assertEquals(await read(open("abcf"), { recordBytes: 3, footerBytes: 1 }), ["abc"]);
    }
  }
});

Deno.test("a file with bytes left over is refused, naming all sizes", async () => {
  for (const text of ["hhabcdffff", "hhabcdeffff", "hhfff", "h", ""]) {
    for (const compression of [undefined, "gzip"] as const) {
      const found = await read(sourceOf(text, {}, compression), LAYOUT);
      const error = found.at(-1);
      assertInstanceOf(error, LeatError);
      assertEquals(error.code, "invalid_argument");
      assertStringIncludes(error.message, `data.bin has ${text.length} bytes`);
      for (const part of ["a header of 2", "a footer of 4", "recordBytes, 3"]) {
        assertStringIncludes(error.message, part);
      }
      // A compressed file shows a wrong size only at its end.
      const before = compression === "gzip" && text.length >= 9 ? ["abc"] : [];
      assertEquals(found.slice(0, -1), before);
    }
  }
});

Deno.test("parts of fixedLengthRecords have whole records, each in exactly one part", async () => {
  const text = `hh${"abcdefghijklmnopqrstu"}ffff`;
  for (let partBytes = 1; partBytes <= 40; partBytes++) {
    const options = { ...LAYOUT, partBytes };
    const node = new FixedLengthRecordsNode("x", options);
    const found: unknown[] = [];
    for (let part = 0; part < node.countParts(sourceOf(text)); part++) {
      found.push(...await read(sourceOf(text), options, { part }));
    }
    assertEquals(found, ["abc", "def", "ghi", "jkl", "mno", "pqr", "stu"]);
  }
});

Deno.test("a reader of fixedLengthRecords continues from every saved position", async () => {
  for (const compression of [undefined, "gzip"] as const) {
    for (const text of ["hhabcdefghiffff", "hhabcdeffff", "hhffff"]) {
      if (compression === undefined && text.length === 11) continue; // refused at once
      const whole = (await read(sourceOf(text, {}, compression), LAYOUT)).map(String);
      const node = new FixedLengthRecordsNode("x", LAYOUT);
      const reader = node.openReader(sourceOf(text, {}, compression), {});
      for (let given = 0; given <= whole.length; given++) {
        const position = structuredClone(reader.save());
        const rest = await read(sourceOf(text, {}, compression), LAYOUT, { position });
        assertEquals(rest.map(String), whole.slice(given));
        try {
          await reader.step();
        } catch { /* compared above */ }
      }
      reader.close();
    }
  }
});

Deno.test("fixedLengthRecords gives bytes, and checks its sizes", () => {
  const node = new FixedLengthRecordsNode("x", { recordBytes: 3 });
  assertEquals(node.elementSpec, new TensorSpec("bytes", []));
  const cases: Options[] = [
    {},
    { recordBytes: 0 },
    { recordBytes: 1.5 },
    { recordBytes: 2 ** 60 },
    { recordBytes: 1, headerBytes: -1 },
    { recordBytes: 1, footerBytes: "4" },
  ];
  for (const options of cases) {
    const error = assertThrows(() => new FixedLengthRecordsNode("x", options), LeatError);
    assertEquals((error as LeatError).code, "invalid_argument");
    assertStringIncludes((error as LeatError).message, "fixedLengthRecords");
  }
});
