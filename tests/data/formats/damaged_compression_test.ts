/** Damaged compressed files: everything before the damage is given, then one error names it. */

import {
  constants,
  deflateSync,
  gunzipSync,
  gzipSync,
  inflateSync,
  zstdCompressSync,
} from "node:zlib";
import { LeatError } from "../../../core/error.ts";
import { RandomStream } from "../../../core/philox.ts";
import { byteSource } from "../../../data/formats/byte_source.ts";
import { compressionOf } from "../../../data/formats/compression/compression.ts";
import { PADDING_BYTES_MAX } from "../../../data/formats/compression/zlib_decoder.ts";
import { zstdDecoder } from "../../../data/formats/compression/zstd_decoder.ts";
import { encodeTfRecord } from "../../../data/formats/tfrecord/tfrecord.ts";
import type { OpenFile } from "../../../data/host.ts";
import { Dataset } from "../../../data/mod.ts";
import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertRejects,
  assertStringIncludes,
} from "../../assert.ts";
import { withFiles } from "../../lib/temp_folder.ts";
import { collect } from "../sources/running.ts";
import { concat } from "./reading.ts";

type Compression = "gzip" | "zlib" | "zstd";

const COMPRESS: Record<Compression, (bytes: Uint8Array, options?: object) => Uint8Array> = {
  gzip: gzipSync,
  zlib: deflateSync,
  zstd: zstdCompressSync,
};
const KINDS = Object.keys(COMPRESS) as Compression[];
const JUNK = new TextEncoder().encode("this is none of it");

/** Text that compresses to about half. */
const contents = (() => {
  const randomState = new RandomStream(1n, []);
  return Uint8Array.from({ length: 300_000 }, () => 97 + randomState.int(16));
})();

function inMemory(bytes: Uint8Array): OpenFile {
  return {
    sizeBytes: bytes.length,
    read(into, offset) {
      const part = bytes.subarray(offset, offset + into.length);
      into.set(part);
      return part.length;
    },
    close() {},
  };
}

/** Everything that compressed bytes give, and the final error. */
async function undo(bytes: Uint8Array, compression: Compression, offset = 0) {
  const source = byteSource("f", inMemory(bytes), compression, offset);
  const parts: Uint8Array[] = [];
  const buffer = new Uint8Array(50_000);
  try {
    for (let count; (count = await source.read(buffer)) > 0;) parts.push(buffer.slice(0, count));
    return { given: concat(...parts), error: undefined };
  } catch (error) {
    assertInstanceOf(error, LeatError);
    assertEquals(error.code, "data_loss");
    return { given: concat(...parts), error };
  } finally {
    source.close();
  }
}

function assertBeginsWith(given: Uint8Array, wanted: Uint8Array, what: string): void {
  assert(given.length >= wanted.length, `${what}: ${given.length} of ${wanted.length} bytes`);
  assertEquals(given.subarray(0, wanted.length), wanted, what);
}

/** The file offset that an error names. */
function offsetOf(error: LeatError | undefined): number {
  assert(error !== undefined, "no error");
  assertEquals(error.details!.path, "f");
  assert(error.message.includes("f: its ") && error.message.includes("cannot be undone from byte"));
  return error.details!.offset as number;
}

for (const kind of KINDS) {
  const whole = COMPRESS[kind](contents);

  Deno.test(`${kind}: several members are read as one, from any offset`, async () => {
    const file = concat(whole, COMPRESS[kind](new Uint8Array(0)), whole);
    assertEquals(await undo(file, kind), { given: concat(contents, contents), error: undefined });
    const { given } = await undo(file, kind, contents.length + 5);
    assertEquals(given, contents.slice(5));
  });

  Deno.test(`${kind}: junk after the last member is one error, after all contents`, async () => {
    for (const junk of [JUNK, JUNK.subarray(0, 1), whole.subarray(1, 5000)]) {
      for (const before of [whole, concat(whole, whole)]) {
        const { given, error } = await undo(concat(before, junk), kind);
        assertEquals(given.length, before.length / whole.length * contents.length);
        const offset = offsetOf(error);
        assert(offset >= before.length, `${offset}`);
        assert(offset <= before.length + 20, `${offset}`);
      }
    }
  });
}

const PARTLY = { finishFlush: constants.Z_SYNC_FLUSH };
const SOUND = {
  gzip: (bytes: Uint8Array) => gunzipSync(bytes, PARTLY),
  zlib: (bytes: Uint8Array) => inflateSync(bytes, PARTLY),
};

for (const kind of ["gzip", "zlib"] as const) {
  const whole = COMPRESS[kind](contents);
  const sound = (stop: number) => new Uint8Array(SOUND[kind](whole.subarray(0, stop)));

  Deno.test(`${kind}: a truncated file gives everything that can be decompressed, then one error`, async () => {
    for (const stop of [1, 11, 32_768, 65_537, whole.length - 300, whole.length - 5]) {
      const { given, error } = await undo(whole.subarray(0, stop), kind);
      assertEquals(given, stop < 20 ? new Uint8Array(0) : sound(stop), `at ${stop}`);
      assertEquals(offsetOf(error), stop);
    }
  });

  Deno.test(`${kind}: damage loses nothing before it`, async () => {
    for (const at of [20, 1000, 32_767, 40_000, 100_001, whole.length - 400, whole.length - 6]) {
      const damaged = concat(whole);
      for (let i = at; i < Math.min(at + 60, whole.length); i++) damaged[i]! ^= 0xa5 + i;
      const { given, error } = await undo(damaged, kind);
      assertBeginsWith(given, sound(at), `damage at ${at}`);
      assert(offsetOf(error) >= at);
    }
  });

  Deno.test(`${kind}: members that end at the end of a read are recognised by what follows`, async () => {
    // Stored, not compressed, so that they are only a little longer than the contents.
    const stored = (length: number) => COMPRESS[kind](contents.subarray(0, length), { level: 0 });
    const extra = stored(32_000).length - 32_000;
    const member = stored(32_768 - extra);
    assertEquals(member.length, 32_768);
    const given = contents.slice(0, 32_768 - extra);
    assertEquals(await undo(member, kind), { given, error: undefined });
    assertEquals(await undo(concat(member, member), kind), {
      given: concat(given, given),
      error: undefined,
    });
    const junk = await undo(concat(member, JUNK), kind);
    assertEquals(junk.given, given);
    assert(Math.abs(offsetOf(junk.error) - member.length) <= 2);
    const filled = await undo(concat(member, new Uint8Array(600)), kind);
    assertEquals(filled.given, given);
    assertEquals(filled.error === undefined, kind === "gzip");
    const again = await undo(concat(whole, new Uint8Array(600), whole), kind);
    assertEquals(again.given.length, (kind === "gzip" ? 2 : 1) * contents.length);
  });
}

const CHECKED = { params: { [constants.ZSTD_c_checksumFlag]: 1 } };

Deno.test("zstd: damage loses its block and nothing before it, wherever it is", async () => {
  const randomState = new RandomStream(2n, []);
  // A block of the second becomes 128 KiB from a few bytes, so that buffers of output fill up.
  for (const text of [contents, contents.subarray(0, 1000), new Uint8Array(2_000_000).fill(97)]) {
    const whole = zstdCompressSync(text, CHECKED);
    for (let trial = 0; trial < 60; trial++) {
      const at = 6 + randomState.int(whole.length - 6);
      const damaged = concat(whole, whole);
      damaged[whole.length + at]! ^= 1 + randomState.int(255);
      const { given, error } = await undo(damaged, "zstd");
      // Without an error, the damaged bits were unused: the checksum is right.
      assert(error !== undefined || given.length === 2 * text.length, `${at}`);
      assertBeginsWith(given, text, `damage at ${at}`);
      if (error !== undefined) assert(offsetOf(error) <= damaged.length);
    }
    const { given, error } = await undo(whole.subarray(0, -5), "zstd");
    assert(given.length >= text.length - 131_072);
    assertEquals(offsetOf(error), whole.length - 5);
  }
});

Deno.test("zstd: a wrong checksum is damage, after all contents", async () => {
  const file = zstdCompressSync(contents, CHECKED);
  file[file.length - 1]! ^= 1;
  const { given, error } = await undo(file, "zstd");
  assertEquals(given, contents);
  assertEquals(offsetOf(error), file.length - 4);
});

Deno.test("zstd: a file that needs a dictionary is refused with its number, not called damaged", async () => {
  // The frame of "text" without compression, by dictionary 258.
  const frame = [
    0x28,
    0xb5,
    0x2f,
    0xfd,
    0x22,
    2,
    1,
    4,
    0x21,
    0,
    0,
    ...new TextEncoder().encode("text"),
  ];
  const source = byteSource("f", inMemory(new Uint8Array(frame)), "zstd", 0);
  const read = async () => await source.read(new Uint8Array(10));
  const { code, message } = await assertRejects(read, LeatError);
  source.close();
  assertEquals(code, "unimplemented");
  assertStringIncludes(
    message,
    "Cannot read f: zstd asks for the dictionary with number 258; comp",
  );
});

Deno.test("zstd: short frames are decompressed at once, without a stream for each", async () => {
  const lines = Array.from({ length: 200 }, (_, i) => new TextEncoder().encode(`line ${i}\n`));
  const file = concat(...lines.map((line) => zstdCompressSync(line, CHECKED)));
  const decoder = zstdDecoder("f", inMemory(file));
  let hasTurned = false;
  // A stream waits for a turn of the event loop.
  const turn = setTimeout(() => hasTurned = true);
  const parts = await Array.fromAsync({ [Symbol.asyncIterator]: () => decoder });
  assertEquals(hasTurned, false);
  clearTimeout(turn);
  assertEquals(concat(...parts), concat(...lines));
});

Deno.test("zstd: frames and skippable frames may be cut anywhere by reads", async () => {
  const skippable = new Uint8Array([0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
  const line = (text: string) => zstdCompressSync(new TextEncoder().encode(text), CHECKED);
  for (let before = 8192 - 60; before <= 8192; before++) {
    const stored = new Uint8Array([
      0x5a,
      0x2a,
      0x4d,
      0x18,
      before - 8 & 255,
      before - 8 >> 8,
      0,
      0,
    ]);
    const file = concat(stored, new Uint8Array(before - 8), line("a"), skippable, line("b"));
    const { given, error } = await undo(file, "zstd");
    assertEquals([new TextDecoder().decode(given), error], ["ab", undefined], `${before}`);
  }
});

Deno.test("a damaged compressed file gives every whole record before the damage, one data_loss, then the next file", async () => {
  const records = Array.from({ length: 4000 }, (_, i) => contents.subarray(i * 70, i * 70 + 70));
  const text = new TextDecoder();
  for (const kind of KINDS) {
    const lines = new TextEncoder().encode(
      records.map((line) => `${text.decode(line)}\n`).join(""),
    );
    const files = {
      "lines": concat(COMPRESS[kind](lines), JUNK),
      "records": concat(COMPRESS[kind](concat(...records.map(encodeTfRecord))), JUNK),
      "next lines": COMPRESS[kind](new TextEncoder().encode("next\n")),
      "next records": COMPRESS[kind](encodeTfRecord(new Uint8Array(1))),
    };
    await withFiles(files, async (folder) => {
      const read = async (
        make: typeof Dataset.textLines | typeof Dataset.tfRecords,
        name: string,
      ) => {
        const paths = [`${folder}/${name}`, `${folder}/next ${name}`];
        const found = await collect(make(paths, { compression: kind }).node);
        assertEquals(found.map((at) => at instanceof LeatError).indexOf(true), records.length);
        assertEquals(found.length, records.length + 2, "an error and the next file");
        const error = found[records.length] as LeatError;
        assertEquals(error.code, "data_loss");
        assertEquals(error.details!.path, paths[0]);
        return found.slice(0, records.length);
      };
      assertEquals(
        await read(Dataset.textLines, "lines"),
        records.map((line) => text.decode(line)),
      );
      assertEquals(
        await read(Dataset.tfRecords, "records"),
        records.map((at) => new Uint8Array(at)),
      );
    });
  }
});

Deno.test("a gzip file may end with some zeros, and not with as many as a sparse file may have", async () => {
  const member = gzipSync(contents);
  const padded = concat(member, new Uint8Array(PADDING_BYTES_MAX / 2));
  assertEquals(await undo(padded, "gzip"), { given: contents, error: undefined });
  let readBytes = 0;
  const sparse: OpenFile = {
    sizeBytes: 2 ** 40,
    read(into, offset) {
      readBytes += into.length;
      into.fill(0);
      into.set(member.subarray(offset, offset + into.length));
      return into.length;
    },
    close() {},
  };
  const source = byteSource("sparse.gz", sparse, "gzip", 0);
  const error = await assertRejects(
    async () => {
      while (await source.read(new Uint8Array(50_000)) > 0);
    },
    LeatError,
    "PADDING_BYTES_MAX",
  );
  assertEquals([error.code, error.details?.["offset"]], ["data_loss", member.length]);
  assert(readBytes < 2 * PADDING_BYTES_MAX + 2 * member.length, `${readBytes} bytes were read`);
  source.close();
});

Deno.test("an error of a compressed file that is read as it is names the option compression", async () => {
  const lines = gzipSync(new TextEncoder().encode("x,y\n1,2\n"));
  const files = {
    "lines.txt.gz": lines,
    "records.zst": zstdCompressSync(encodeTfRecord(new Uint8Array(9))),
    "samples.tgz": lines,
    "unnamed": lines,
    "unnamed2": zstdCompressSync(encodeTfRecord(new Uint8Array(9))),
    "latin1.txt": Uint8Array.of(0xe4, 10),
  };
  await withFiles(files, async (folder) => {
    const path = (name: keyof typeof files) => `${folder}/${name}`;
    const option = (compression: string) =>
      `set the option compression to "${compression}" or "auto"`;
    const begins = (compression: string) =>
      `It begins as a ${compression} file does: set the option compression to "${compression}".`;
    for (
      const [dataset, remedy] of [
        [Dataset.textLines(path("lines.txt.gz")), option("gzip")],
        [Dataset.jsonLines(path("lines.txt.gz")), option("gzip")],
        [Dataset.csv(path("lines.txt.gz")), option("gzip")],
        [Dataset.csv(path("lines.txt.gz"), { useQuoteDelim: false }), option("gzip")],
        [Dataset.tfRecords(path("records.zst")), option("zstd")],
        [Dataset.webDataset(path("samples.tgz")), option("gzip")],
        [Dataset.textLines(path("unnamed"), { compression: "auto" }), begins("gzip")],
        [Dataset.csv(path("unnamed")), begins("gzip")],
        [Dataset.csv(path("unnamed"), { useQuoteDelim: false }), begins("gzip")],
        [Dataset.webDataset(path("unnamed")), begins("gzip")],
        [Dataset.tfRecords(path("unnamed2")), begins("zstd")],
        [Dataset.textLines(path("latin1.txt")), "iconv"],
      ] as const
    ) {
      const [error] = await collect(dataset.node);
      assertInstanceOf(error, LeatError);
      assertEquals(error.code, "data_loss");
      assertStringIncludes(error.message, remedy);
    }
  });
});

Deno.test("compressionOf reads the name in a URL, without its query and fragment", () => {
  for (const behind of ["", "?X-Amz-Signature=a.zst", "#x", "?a=1#b.zz"]) {
    assertEquals(compressionOf(`https://host/a.jsonl.gz${behind}`, "auto"), "gzip", behind);
    assertEquals(compressionOf(`HTTP://host/a.jsonl${behind}`, "auto"), undefined, behind);
  }
  assertEquals(compressionOf("/data/a?b#c.gz", "auto"), "gzip");
});

Deno.test("compressionOf reads the query of a URL whose path names no file", () => {
  for (const behind of ["", "#x", "#b.zz"]) {
    assertEquals(compressionOf(`https://host.org/get?file=a.gz${behind}`, "auto"), "gzip", behind);
    assertEquals(compressionOf(`https://host.org/v1.2/?a.gz${behind}`, "auto"), "gzip", behind);
    assertEquals(compressionOf(`https://host.org/get${behind}`, "auto"), undefined, behind);
  }
  assertEquals(compressionOf("https://host.org/a.jsonl?from=index.gz", "auto"), undefined);
});
