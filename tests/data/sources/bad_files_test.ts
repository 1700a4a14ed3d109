/** Unusual files: truncated while they are read, missing, folders, empty, oddly named. */

import { assertEquals, assertInstanceOf, assertStringIncludes } from "../../assert.ts";
import { deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { LeatError } from "../../../core/error.ts";
import { READ_BYTES } from "../../../data/formats/byte_reader.ts";
import { encodeTfRecord } from "../../../data/formats/tfrecord/tfrecord.ts";
import { Dataset } from "../../../data/mod.ts";
import { UNKNOWN_CARDINALITY } from "../../../data/node.ts";
import "../lib/collect.ts";
import { withFiles } from "../../lib/temp_folder.ts";
import { collect } from "./running.ts";

const ROWS = 40_000;

/** The same number of elements in every format, each several reads long. */
const CONTENTS: Record<string, Uint8Array> = {
  textLines: new TextEncoder().encode("0123456789abcde\n".repeat(ROWS)),
  jsonLines: new TextEncoder().encode('"0123456789abc"\n'.repeat(ROWS)),
  csv: new TextEncoder().encode("a,b\n" + '"0123456","abc"\n'.repeat(ROWS)),
  fixedLengthRecords: new Uint8Array(16 * ROWS),
  tfRecords: (() => {
    const record = encodeTfRecord(new Uint8Array(2));
    const file = new Uint8Array(record.length * ROWS);
    for (let i = 0; i < ROWS; i++) file.set(record, i * record.length);
    return file;
  })(),
};

function open(kind: string, files: string[], compression?: "auto"): Dataset<unknown> {
  switch (kind) {
    case "textLines":
      return Dataset.textLines(files, { compression });
    case "jsonLines":
      return Dataset.jsonLines(files, { compression });
    case "csv":
      return Dataset.csv(files, { compression });
    case "tfRecords":
      return Dataset.tfRecords(files, { compression });
    default:
      return Dataset.fixedLengthRecords(files, { recordBytes: 16, compression });
  }
}

Deno.test("a file that is truncated while it is read is reported once, and the next file is read", async () => {
  for (const [kind, bytes] of Object.entries(CONTENTS)) {
    await withFiles({ a: bytes, b: bytes }, async (folder) => {
      const [a, b] = [`${folder}/a`, `${folder}/b`];
      await using iterator = open(kind, [a, b]).iterator();
      await iterator.next();
      await Deno.truncate(a, READ_BYTES - 7);
      const errors: LeatError[] = [];
      let count = 1;
      for (;;) {
        try {
          if ((await iterator.next()).done) break;
          count++;
        } catch (error) {
          errors.push(LeatError.from(error));
        }
      }
      assertEquals(errors.map(({ code }) => code), ["data_loss"], kind);
      assertStringIncludes(errors[0]!.message, `${a} was cut short while it was read`);
      assertEquals(count > ROWS && count < 2 * ROWS, true, `${kind}: ${count}`);
    });
  }
});

Deno.test("a file that is removed while it is read is read to its end", async () => {
  for (const [kind, bytes] of Object.entries(CONTENTS)) {
    await withFiles({ a: bytes }, async (folder) => {
      await using iterator = open(kind, [`${folder}/a`]).iterator();
      await iterator.next();
      await Deno.remove(`${folder}/a`);
      assertEquals((await Array.fromAsync(iterator)).length, ROWS - 1, kind);
    });
  }
});

Deno.test("folders given as files, and missing files, are the only ones lost", async () => {
  for (const [kind, bytes] of Object.entries(CONTENTS)) {
    await withFiles({ a: bytes }, async (folder) => {
      const found = await collect(open(kind, [folder, `${folder}/none`, `${folder}/a`]).node);
      const [directory, missing] = found as LeatError[];
      assertEquals([directory!.code, missing!.code], ["invalid_argument", "not_found"]);
      assertStringIncludes(directory!.message, folder);
      assertStringIncludes(missing!.message, `${folder}/none`);
      assertEquals(found.length, ROWS + 2);
    });
  }
});

Deno.test("empty files have no elements, in any format and compression", async () => {
  const empty = new Uint8Array(0);
  const files = {
    a: empty,
    "a.gz": gzipSync(empty),
    "a.zz": deflateSync(empty),
    "a.zst": zstdCompressSync(empty),
  };
  await withFiles(files, async (folder) => {
    const paths = Object.keys(files).map((name) => `${folder}/${name}`);
    for (const kind of Object.keys(CONTENTS)) {
      assertEquals(await collect(open(kind, paths, "auto").node), [], kind);
    }
  });
});

Deno.test("names may contain spaces and all other characters of the file system", async () => {
  const names = ["with space", "per%20cent", "ha#sh?", "ünï 🙂", "semi;colon & more", "new\nline"];
  const files = Object.fromEntries(
    names.map((name) => [`${name}.txt`, `${JSON.stringify(name)}\n`]),
  );
  await withFiles(files, async (folder) => {
    const listed = await collect(Dataset.jsonLines(Dataset.listFiles(`${folder}/*.txt`)).node);
    assertEquals(listed.toSorted(), names.toSorted());
    const paths = names.map((name) => `${folder}/${name}.txt`);
    assertEquals(await collect(Dataset.jsonLines(paths).node), names);
  });
});

Deno.test("a dataset of no files has no elements, and cardinality 0", async () => {
  for (const kind of Object.keys(CONTENTS)) {
    const dataset = open(kind, []);
    assertEquals([dataset.cardinality(), await collect(dataset.node)], [0, []]);
    assertEquals(open(kind, ["a"]).cardinality(), UNKNOWN_CARDINALITY);
  }
});

Deno.test("one damaged record among many is lost alone", async () => {
  const damaged = new Uint8Array(CONTENTS.tfRecords!);
  damaged[18 * 100 + 12]! ^= 0x40;
  await withFiles({ a: damaged }, async (folder) => {
    const found = await collect(Dataset.tfRecords(`${folder}/a`).node);
    assertEquals(found.length, ROWS);
    const errors = found.filter((at) => at instanceof LeatError);
    assertEquals(errors.length, 1);
    assertEquals(found.indexOf(errors[0]), 100);
    assertStringIncludes(errors[0]!.message, "at byte 1800");
  });
});

Deno.test("a truncated or damaged compressed file is reported, and the next file is read", async () => {
  const lines = CONTENTS.textLines!;
  const compressed = { gz: gzipSync(lines), zz: deflateSync(lines), zst: zstdCompressSync(lines) };
  for (const [suffix, whole] of Object.entries(compressed)) {
    const garbage = new Uint8Array(whole);
    garbage.fill(0xff, 0, 6);
    const files = {
      [`1.${suffix}`]: whole.subarray(0, whole.length - 9),
      [`2.${suffix}`]: garbage,
      [`3.${suffix}`]: whole,
    };
    await withFiles(files, async (folder) => {
      const paths = Object.keys(files).map((name) => `${folder}/${name}`);
      const found = await collect(Dataset.textLines(paths, { compression: "auto" }).node);
      const errors = found.filter((at) => at instanceof LeatError);
      assertEquals(errors.map(({ code }) => code), ["data_loss", "data_loss"], suffix);
      assertStringIncludes(errors[0]!.message, `Damaged file ${paths[0]}`);
      assertStringIncludes(errors[1]!.message, `Damaged file ${paths[1]}`);
      assertEquals(found.slice(-ROWS).every((line) => line === "0123456789abcde"), true);
      assertInstanceOf(errors[0], LeatError);
    });
  }
});
