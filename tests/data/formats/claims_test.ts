/**
 * Small files that claim to be huge are refused, naming the limit, before memory or time is spent.
 */

import lz4 from "lz4js";
import { brotliCompressSync, zstdCompressSync } from "node:zlib";
import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertMatch,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";
import { LeatError } from "../../../core/error.ts";
import { unbrotli, unlz4, unzstd } from "../../../data/formats/compression/bounded_codecs.ts";
import { xxHash32 } from "../../../data/formats/compression/xx_hash.ts";
import { openParquet } from "../../../data/formats/parquet/parquet.ts";
import { thriftEnd } from "../../../data/formats/parquet/thrift_check.ts";
import {
  ZSTD_WINDOW_BYTES_MAX,
  ZSTD_WINDOWS_BYTES_MAX,
  ZstdFrames,
} from "../../../data/formats/compression/zstd_frames.ts";
import { ParquetNode } from "../../../data/sources/parquet.ts";
import { Dataset } from "../../../mod.ts";
import { withFiles } from "../../lib/temp_folder.ts";
import { fileOfNulls } from "./parquet/footers.ts";
import { BytesFile, concat } from "./reading.ts";
import { rowsOf } from "./row_laws.ts";

/** The error of the first element. */
async function failure(dataset: Dataset<unknown>): Promise<LeatError> {
  return await assertRejects(async () => {
    for await (const _ of dataset) return;
  }, LeatError) as LeatError;
}

Deno.test("csv refuses a header with two million columns, and a record with as many fields", async () => {
  const names = Array.from({ length: 2_000_000 }, (_, i) => `c${i}`).join(",");
  const files = { "wide.csv": `${names}\n1\n`, "long.csv": `a,b\n${",".repeat(2_000_000)}\n1,2\n` };
  await withFiles(files, async (folder) => {
    const whatFails = async (name: string, useQuoteDelim: boolean) => {
      const { code, message } = await failure(Dataset.csv(`${folder}/${name}`, { useQuoteDelim }));
      return `${code}: ${message}`;
    };
    const restOf = (useQuoteDelim: boolean) =>
      Array.fromAsync(Dataset.csv(`${folder}/long.csv`, { useQuoteDelim }).ignoreErrors());

    const tooMany = /^resource_exhausted: .*more than 65536 fields \(COLUMNS_MAX\)/;
    assertMatch(await whatFails("wide.csv", true), tooMany);
    assertMatch(await whatFails("long.csv", true), tooMany);
    assertEquals(await restOf(true), []); // No quote says where such a record ends.

    assertMatch(await whatFails("wide.csv", false), /^resource_exhausted: .*65536 \(COLUMNS_MAX\)/);
    assertMatch(
      await whatFails("long.csv", false),
      /^data_loss: .*has more than 65536 fields, and 2 are expected/,
    );
    assertEquals(await restOf(false), [{ a: "1", b: "2" }]);
  });
});

Deno.test("csv names only some of many columns, and the beginning of a long name", async () => {
  const names = Array.from({ length: 50_000 }, (_, i) => `${"x".repeat(500)}${i}`).join(",");
  await withFiles({ "a.csv": `${names}\n` }, async (folder) => {
    const error = await failure(Dataset.csv(`${folder}/a.csv`, { select: ["missing"] }));
    assertStringIncludes(error.message, "and 49980 more");
    assert(error.message.length < 4_000, `${error.message.length}`);
  });
});

Deno.test("csv shows the beginning of a long field that does not fit", async () => {
  await withFiles({ "a.csv": `a\n${"x".repeat(100_000)}\n` }, async (folder) => {
    const error = await failure(Dataset.csv(`${folder}/a.csv`, { columns: { a: "int32" } }));
    assertStringIncludes(error.message, `xxx"… in column "a", which is no int32`);
    assert(error.message.length < 1_000, `${error.message.length}`);
  });
});

Deno.test("a Parquet footer with a list longer than the file is refused", async () => {
  // Field 2, a list of 2^28 structures that are not there.
  const footer = [0x29, 0xfc, 0x80, 0x80, 0x80, 0x80, 0x01];
  const magic = new TextEncoder().encode("PAR1");
  const file = concat(magic, new Uint8Array([...footer, footer.length, 0, 0, 0]), magic);
  const source = { path: "a.parquet", file: new BytesFile(file), compression: undefined };
  const error = await assertRejects(() => openParquet(source, undefined), LeatError) as LeatError;
  assertEquals(error.code, "data_loss");
  assertStringIncludes(error.message, "a list claims 268435456 items");
});

Deno.test("a Parquet file of few bytes and 200 million nulls is refused", async () => {
  const read = async (values: number) => {
    const columns = [{ name: "a", pageValues: values, values }];
    return await rowsOf(new ParquetNode("few.parquet"), fileOfNulls(columns, values));
  };
  assertEquals(await read(3), [{ a: null }, { a: null }, { a: null }]);
  const [error] = await read(200_000_000);
  assertInstanceOf(error, LeatError);
  assertEquals(error.code, "resource_exhausted");
  assertStringIncludes(error.message, "PAGE_VALUES_MAX");
});

Deno.test("a Parquet column with a negative size or count offsets no other column", async () => {
  const values = 2 ** 29;
  const large = { name: "a", pageValues: 3, values };
  for (const claim of [{ uncompressedBytes: -(2 ** 40), values: -(2 ** 40) }, { values: -1 }]) {
    const columns = [large, { name: "b", pageValues: 3, ...claim }];
    const [error] = await rowsOf(new ParquetNode("few.parquet"), fileOfNulls(columns, 3));
    assertInstanceOf(error, LeatError);
    assertEquals(error.code, "data_loss");
    assertStringIncludes(error.message, "column b of row group 0 claims");
  }
});

Deno.test("thriftEnd refuses an integer of more bytes than 64 bits need, as of a list's length", () => {
  const endless = [...new Array(150).fill(0x80), 0x01];
  const list = new Uint8Array([0x29, 0xfc, ...endless, 0x00]);
  assertThrows(() => thriftEnd(list), Error, "an integer has more than 10 bytes");
});

Deno.test("thriftEnd finds the end of whole structures, and refuses those nested too deeply", () => {
  const whole = [0x15, 0x02, 0x1c, 0x15, 0x04, 0x00, 0x28, 0x02, 0x61, 0x62, 0x11, 0x00];
  assertEquals(thriftEnd(new Uint8Array([...whole, 9, 9])), whole.length);
  for (let length = 0; length < whole.length; length++) {
    assertThrows(() => thriftEnd(new Uint8Array(whole.slice(0, length))), Error, "it ends within");
  }
  assertThrows(() => thriftEnd(new Uint8Array(1_000_000).fill(0x1c)), Error, "nested");
});

Deno.test("unzstd, unbrotli and unlz4 decompress no more than their limit", () => {
  const zeros = new Uint8Array(50_000_000);
  const packed = new Uint8Array(zstdCompressSync(zeros));
  assertEquals(unzstd(packed, zeros.length, "LIMIT").length, zeros.length);
  const zstd = assertThrows(() => unzstd(packed, zeros.length - 1, "LIMIT"), LeatError);
  assertEquals((zstd as LeatError).code, "resource_exhausted");
  assertStringIncludes((zstd as LeatError).message, "49999999 bytes (LIMIT)");
  const brotli = new Uint8Array(brotliCompressSync(new Uint8Array(1_001)));
  assertEquals(unbrotli(brotli, 1_001, "LIMIT").length, 1_001);
  const wide = assertThrows(() => unbrotli(brotli, 1_000, "LIMIT"), LeatError);
  assertEquals((wide as LeatError).code, "resource_exhausted");
  // Claims a content of 2^30 bytes, and has none.
  const settings = [0x68, 0x40, 0, 0, 0, 0x40, 0, 0, 0, 0];
  const hash = xxHash32(new Uint8Array(settings)) >>> 8 & 0xff;
  const claim = new Uint8Array([4, 0x22, 0x4d, 0x18, ...settings, hash, 0, 0, 0, 0]);
  assertThrows(() => unlz4(claim, 1_000, "LIMIT"), Error, "claims 1073741824 decompressed bytes");
  const frame = new Uint8Array(lz4.compress(new Uint8Array(1_001)));
  const long = assertThrows(() => unlz4(frame, 1_000, "LIMIT"), LeatError);
  assertEquals(long.code, "resource_exhausted");
});

Deno.test("a zstd frame with a larger window than the default of zstd is refused, at any position", async () => {
  const frame = new Uint8Array(zstdCompressSync(new TextEncoder().encode("one line\n")));
  const skippable = new Uint8Array([0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
  const greedy = new Uint8Array([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x90, 0x01, 0x00, 0x00]);
  const files = { "a.zst": greedy, "b.zst": concat(frame, skippable, frame, greedy) };
  await withFiles(files, async (folder) => {
    for (const name of Object.keys(files)) {
      const lines = Dataset.textLines(`${folder}/${name}`, { compression: "zstd" });
      const error = await failure(lines.filter(() => false));
      assertEquals(error.code, "resource_exhausted");
      assertStringIncludes(error.message, `${ZSTD_WINDOW_BYTES_MAX} (ZSTD_WINDOW_BYTES_MAX)`);
      assertStringIncludes(error.message, name);
    }
  });
  for (const step of [1, 2, 5]) {
    const frames = new ZstdFrames();
    const bytes = concat(frame, skippable, frame, greedy);
    assertThrows(() => {
      for (let at = 0; at < bytes.length; at += step) {
        Array.from(frames.push(bytes.subarray(at, at + step)));
      }
    }, LeatError);
  }
});

Deno.test("short zstd frames may not claim windows without end", async () => {
  // Each has a window of 128 MiB and an empty last block.
  const frame = new Uint8Array([0x28, 0xb5, 0x2f, 0xfd, 0x00, 17 << 3, 0x01, 0x00, 0x00]);
  const line = new Uint8Array(zstdCompressSync(new TextEncoder().encode("one line\n")));
  const bytes = concat(line, ...new Array(9).fill(frame));
  const error = assertThrows(() => [...new ZstdFrames().push(bytes)], LeatError) as LeatError;
  assertEquals(error.code, "resource_exhausted");
  assertStringIncludes(error.message, `${ZSTD_WINDOWS_BYTES_MAX} (ZSTD_WINDOWS_BYTES_MAX)`);
  assertThrows(() => unzstd(bytes, 1_000, "LIMIT"), LeatError, "ZSTD_WINDOWS_BYTES_MAX");
  assertEquals([...new ZstdFrames().push(concat(...new Array(8).fill(frame)))].length, 8 * 2);

  await withFiles({ "a.zst": bytes }, async (folder) => {
    const lines = Dataset.textLines(`${folder}/a.zst`, { compression: "zstd" });
    assertEquals(await Array.fromAsync(lines.ignoreErrors()), ["one line"]);
    const refusal = await failure(lines.filter(() => false));
    assertEquals(refusal.code, "resource_exhausted");
    assertStringIncludes(refusal.message, "ZSTD_WINDOWS_BYTES_MAX");
  });
});

Deno.test("many short zstd blocks under a large window cost no more than their bytes", async () => {
  // A library that moves the whole window for each block takes minutes.
  const count = 5_000;
  const block = (i: number) => [i === count - 1 ? 0x0b : 0x0a, 0x00, 0x00, 0x0a];
  const blocks = Array.from({ length: count }, (_, i) => block(i)).flat();
  const bytes = new Uint8Array([0x28, 0xb5, 0x2f, 0xfd, 0x00, 17 << 3, ...blocks]);
  assertEquals(unzstd(bytes, count, "LIMIT"), new Uint8Array(count).fill(0x0a));
  await withFiles({ "a.zst": bytes }, async (folder) => {
    const lines = Dataset.textLines(`${folder}/a.zst`, { compression: "zstd" });
    assertEquals((await Array.fromAsync(lines)).length, count);
  });
});

Deno.test("a zstd block larger than its window or 128 KiB is damage, and nothing before it is lost", async () => {
  const runOf = (size: number, isLast: boolean) => {
    const header = size << 3 | 1 << 1 | (isLast ? 1 : 0);
    return [header & 255, header >> 8 & 255, header >> 16, 0x0a];
  };
  /** Frames with runs of newlines and a window of 1 KiB or 2 MiB. */
  const frame = (windowBits: number, ...sizes: number[]) => {
    const runs = sizes.flatMap((size, i) => runOf(size, i === sizes.length - 1));
    return new Uint8Array([0x28, 0xb5, 0x2f, 0xfd, 0x00, windowBits - 10 << 3, ...runs]);
  };
  assertEquals(unzstd(frame(21, 131_072, 131_072), 2 ** 20, "LIMIT").length, 262_144);
  for (const content of [255, 256, 300, 70_000]) {
    const text = new Uint8Array(content).fill(97);
    assertEquals(unzstd(new Uint8Array(zstdCompressSync(text)), content, "LIMIT"), text);
  }
  for (const [windowBits, sizeMax] of [[21, 131_072], [10, 1024]] as const) {
    const bytes = frame(windowBits, 3, 4, 5, sizeMax + 1);
    const what = `a block has ${sizeMax + 1} bytes, more than ${sizeMax}`;
    assertThrows(() => unzstd(bytes, 2 ** 30, "LIMIT"), Error, what);
    await withFiles({ "a.zst": bytes }, async (folder) => {
      const lines = Dataset.textLines(`${folder}/a.zst`, { compression: "zstd" });
      assertEquals(await Array.fromAsync(lines.ignoreErrors()), new Array(12).fill(""));
      const error = await failure(lines.filter(() => false));
      assertEquals(error.code, "data_loss");
      assertStringIncludes(error.message, what);
    });
  }
});
