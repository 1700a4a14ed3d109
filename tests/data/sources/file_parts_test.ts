/**
 * Files as parts: every element is in exactly one, and files that changed since they were counted.
 */

import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertLess,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";
import { parquetWriteBuffer } from "hyparquet-writer";
import { gzipSync } from "node:zlib";
import { LeatError, type LeatErrorCode } from "../../../core/error.ts";
import type { OpenFile } from "../../../data/host.ts";
import { END } from "../../../data/iterator.ts";
import { CsvNode } from "../../../data/sources/csv.ts";
import { fileNumber, fileOfNumber, PARTS_PER_FILE_MAX } from "../../../data/sources/files.ts";
import type { FileSourceNode } from "../../../data/sources/file_source.ts";
import { FixedLengthRecordsNode } from "../../../data/sources/fixed_length_records.ts";
import { JsonLinesNode } from "../../../data/sources/json_lines.ts";
import { ListFilesNode } from "../../../data/sources/list_files.ts";
import { ParquetNode } from "../../../data/sources/parquet.ts";
import { TextLinesNode } from "../../../data/sources/text_lines.ts";
import { JUMP_RANGE_BYTES } from "../../../platform/storage/far_file.ts";
import { noise, RangeServer } from "../../platform/storage/range_server.ts";
import {
  isSplittable,
  listSplitTable,
  type Split,
  type SplitSource,
} from "../../../data/sharding/splits.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import "../lib/collect.ts";
import { withFiles } from "../../lib/temp_folder.ts";
import { MemoryHost } from "../lib/memory_host.ts";
import { collect } from "./running.ts";

const host = new DenoHost();
const LISTING = { operator: "listFiles", description: "/files/*" };

/** Assigns all splits of a table, in order, to one task. */
function handOut(splits: readonly Split[]): SplitSource {
  const left = [...splits];
  return {
    next: () => Promise.resolve(left.shift() ?? END),
    total: () => Promise.resolve(splits.length),
  };
}

async function splitsOf(node: FileSourceNode): Promise<readonly Split[]> {
  return (await listSplitTable(node, host))[0]!;
}

/** The elements of each split. */
async function readParts(node: FileSourceNode): Promise<unknown[][]> {
  const splits = await splitsOf(node);
  return await Promise.all(splits.map((split) => collect(node, { splits: handOut([split]) })));
}

const TEXTS = {
  mixed: "one\ntwo\r\n\n\nthree, which is longer than the others\nfour\r\n5",
  marked: "\ufeffa\n\ufeffb\nüñ🙂\n",
  newlines: "\n\n\r\n\n",
  single: "no end of line",
  empty: "",
};

Deno.test("a line belongs to the part in which it begins, whatever the size of parts", async () => {
  await withFiles(TEXTS, async (folder) => {
    for (const [name, text] of Object.entries(TEXTS)) {
      const path = `${folder}/${name}`;
      const whole = await collect(new TextLinesNode(path));
      const size = new TextEncoder().encode(text).length;
      for (let partBytes = 1; partBytes <= size + 1; partBytes++) {
        const parts = await readParts(new TextLinesNode(path, { partBytes }));
        assertEquals(parts.length, Math.max(1, Math.ceil(size / partBytes)));
        assertEquals(parts.flat(), whole, `${name} by ${partBytes}`);
      }
    }
  });
});

Deno.test("parts of several files come in the order of the files, and parallel reads keep them separate", async () => {
  await withFiles(TEXTS, async (folder) => {
    const listed = { node: new ListFilesNode(`${folder}/*`) };
    const whole = await collect(
      new TextLinesNode({ node: new ListFilesNode(`${folder}/*`, { shuffle: false }) }),
    );
    const node = new TextLinesNode(listed, { partBytes: 7 });
    assertEquals((await readParts(node)).flat(), whole);
    const parallel = new TextLinesNode(listed, { partBytes: 7, numParallelReads: 3 });
    const found = await collect(parallel, { splits: handOut(await splitsOf(parallel)) });
    assertEquals(found.toSorted(), whole.toSorted());
  });
});

Deno.test("jsonLines divides files, and names bad lines by their number or their byte", async () => {
  const text = Array.from({ length: 40 }, (_, i) => i % 10 === 3 ? "bad" : `{"i": ${i}}`).join(
    "\n",
  );
  await withFiles({ a: text }, async (folder) => {
    const path = `${folder}/a`;
    const codes = (found: unknown[]) => found.map((at) => at instanceof LeatError ? at.code : at);
    const whole = await collect(new JsonLinesNode(path));
    for (const partBytes of [1, 5, 64, 1000]) {
      const parts = await readParts(new JsonLinesNode(path, { partBytes }));
      assertEquals(codes(parts.flat()), codes(whole));
    }
    const [first, second] = await readParts(new JsonLinesNode(path, { partBytes: 100 }));
    const messages = [...first!, ...second!].filter((at) => at instanceof LeatError)
      .map(({ message }) => message);
    assertStringIncludes(messages[0]!, `Line 4 of ${path}`);
    assertStringIncludes(messages[1]!, `The line at byte ${text.indexOf("bad", 100)} of ${path}`);
  });
});

Deno.test("csv without quoting divides files after their headers", async () => {
  const rows = Array.from({ length: 20 }, (_, i) => `${i},${"x".repeat(i % 7)}`);
  await withFiles({ a: `number,text\n${rows.join("\n")}` }, async (folder) => {
    const options = { useQuoteDelim: false, columns: { number: "int32" } };
    for (let partBytes = 1; partBytes < 150; partBytes += 4) {
      const parts = await readParts(new CsvNode(`${folder}/a`, { ...options, partBytes }));
      assertEquals(parts.flat(), rows.map((_, number) => ({ number })), `by ${partBytes}`);
    }
  });
});

Deno.test("files of usual size are one split each", async () => {
  await withFiles(TEXTS, async (folder) => {
    const splits = await splitsOf(new TextLinesNode({ node: new ListFilesNode(`${folder}/*`) }));
    assertEquals(splits.length, Object.keys(TEXTS).length);
    for (const { start, stop } of splits) {
      assertEquals([start % PARTS_PER_FILE_MAX, stop - start], [0, PARTS_PER_FILE_MAX]);
      assert(Number.isSafeInteger(stop));
    }
  });
});

Deno.test("compression by name divides the files that are not compressed", async () => {
  const text = "one\ntwo\nthree\n";
  await withFiles({ "a.txt": text, "b.txt.gz": gzipSync(text) }, async (folder) => {
    const files = { node: new ListFilesNode(`${folder}/*`) };
    const node = new TextLinesNode(files, { compression: "auto", partBytes: 5 });
    const parts = await readParts(node);
    assertEquals(parts, [["one", "two"], ["three"], [], ["one", "two", "three"]]);
    assert(isSplittable(node));
  });
});

Deno.test("a file that changed since its parts were listed is reported", async () => {
  const text = "one\ntwo\nthree\n";
  for (const [changed, bad] of [["one\n", 2], [text.repeat(3), 2], [text.repeat(3), 0]] as const) {
    await withFiles({ a: text }, async (folder) => {
      const path = `${folder}/a`;
      const node = new TextLinesNode(path, { partBytes: 5 });
      const splits = await splitsOf(node);
      await Deno.writeTextFile(path, changed);
      const found = await collect(node, { splits: handOut([splits[bad]!]) });
      if (bad === 0) return assertEquals(found, ["one", "two"]);
      assertInstanceOf(found[0], LeatError);
      assertEquals([found.length, found[0].code], [1, "data_loss"]);
      assertStringIncludes(found[0].message, path);
      assertStringIncludes(found[0].message, "has changed since its parts were listed");
    });
  }
});

Deno.test("a file that was one part is read to its end, even if it has grown", async () => {
  await withFiles({ a: "one\n" }, async (folder) => {
    const node = new TextLinesNode(`${folder}/a`, { partBytes: 5 });
    const splits = await splitsOf(node);
    await Deno.writeTextFile(`${folder}/a`, "one\ntwo\nthree\n");
    assertEquals(await collect(node, { splits: handOut(splits) }), ["one", "two", "three"]);
  });
});

Deno.test("the number of a file is refused for each of a thousand other names", () => {
  const names = Array.from({ length: 1_000 }, (_, i) => `/files/${i}`);
  const number = fileNumber(["/files/a"], 0);
  assertEquals(fileOfNumber(["/files/a"], number, LISTING), "/files/a");
  for (const name of names) assertThrows(() => fileOfNumber([name], number, LISTING), LeatError);
});

Deno.test("a listing of other files is reported, even of as many, and the others are read", async () => {
  const node = new TextLinesNode({ node: new ListFilesNode("/files/*") });
  const divided = new MemoryHost({ "/files/a": "a", "/files/c": "c" });
  const [[a, c]] = await listSplitTable(node, divided) as [[Split, Split]];
  for (const first of ["/files/", "/files/b"]) {
    const files = { ...(first === "/files/" ? {} : { [first]: "b" }), "/files/c": "c" };
    const found = await collect(node, { host: new MemoryHost(files), splits: handOut([a, c]) });
    assertInstanceOf(found[0], LeatError);
    assertEquals(found[0].code, "data_loss");
    assertStringIncludes(found[0].message, "the listing has changed");
    if (first === "/files/b") assertEquals(found.slice(1), ["c"]);
  }
});

Deno.test("a file that cannot be opened is one split, whose reader gets the error", async () => {
  await withFiles({ a: "a" }, async (folder) => {
    const node = new TextLinesNode([`${folder}/missing`, folder, `${folder}/a`]);
    const [missing, directory, a] = await readParts(node);
    assertEquals((missing![0] as LeatError).code, "not_found");
    assertEquals((directory![0] as LeatError).code, "invalid_argument");
    assertEquals(a, ["a"]);
  });
});

/** This machine with storage whose request `failing` fails. Each file opened and each read is one. */
function failingAt(failing: number, code: LeatErrorCode): DenoHost {
  const { files } = host;
  let requests = 0;
  const request = () => {
    if (++requests === failing) throw new LeatError(code, "the storage is away");
  };
  const open = async (path: string): Promise<OpenFile> => {
    request();
    const file = await files.open(path);
    const read: OpenFile["read"] = (into, offset) => (request(), file.read(into, offset));
    return { sizeBytes: file.sizeBytes, read, close: () => file.close() };
  };
  return new DenoHost({ files: { open, list: (pattern) => files.list(pattern) } });
}

Deno.test("listSplits fails if the storage cannot answer, so that no file has other parts then", async () => {
  const rows = new Uint8Array(parquetWriteBuffer({
    columnData: [{ name: "x", type: "INT32", data: [1, 2, 3, 4] }],
    rowGroupSize: 2,
  }));
  const text = "one\ntwo\nthree\n";
  await withFiles({ a: text, b: text, "a.rows": rows, "b.rows": rows }, async (folder) => {
    const lines = new TextLinesNode([`${folder}/a`, `${folder}/b`], { partBytes: 5 });
    const parquet = new ParquetNode([`${folder}/a.rows`, `${folder}/b.rows`]);
    for (const [node, requests] of [[lines, 2], [parquet, 4]] as const) {
      for (const code of ["unavailable", "deadline_exceeded", "resource_exhausted"] as const) {
        for (let failing = 1; failing <= requests; failing++) {
          const listing = listSplitTable(node, failingAt(failing, code));
          const error = await assertRejects(() => listing, LeatError, "the storage is away");
          assertEquals(error.code, code);
        }
      }
    }
  });
});

Deno.test("listSplits requests the first KiB of a far file whose parts follow from its size", async () => {
  await using server = new RangeServer(noise(100));
  const node = new TextLinesNode(`${server.origin}/file.txt`, { partBytes: 30 });
  const count = async () => (await listSplitTable(node, host))[0]!.length;
  assertEquals([await count(), ...server.ranges], [4, "bytes=0-1023"]);
  // Servers that ignore ranges, and empty files.
  server.fault = () => new Response(server.contents);
  assertEquals(await count(), 4);
  server.fault = () => undefined;
  server.contents = noise(0);
  assertEquals(await count(), 1);
});

Deno.test("parts of far lines and records request their own bytes, and little else", async () => {
  const partBytes = 2 * 2 ** 20;
  const contents = new Uint8Array(4 * partBytes).map((_, i) => i % 1_000 === 999 ? 10 : 97);
  for (
    const nodeOf of [
      (url: string) => new TextLinesNode(url, { partBytes }),
      (url: string) => new FixedLengthRecordsNode(url, { recordBytes: 1_024, partBytes }),
    ]
  ) {
    await using server = new RangeServer(contents);
    const parts = await readParts(nodeOf(`${server.origin}/file`));
    assertEquals(parts.length, 4);
    // The first part opens the file with its first MiB; a line may go on after the end of its part.
    const most = contents.length + 2 ** 20 + parts.length * JUMP_RANGE_BYTES;
    assertLess(server.requestedBytes, most, `${server.ranges}`);
  }
});

Deno.test("a dataset of no files has no splits", async () => {
  assertEquals(await listSplitTable(new TextLinesNode([]), host), [[]]);
});
