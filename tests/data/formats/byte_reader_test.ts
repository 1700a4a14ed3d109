/** Compressed files: whole, with several members, damaged, and closed early. */

import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertRejects,
  assertStringIncludes,
} from "../../assert.ts";
import { deflateSync, gzipSync } from "node:zlib";
import { LeatError } from "../../../core/error.ts";
import { RandomStream } from "../../../core/philox.ts";
import { ByteReader, READ_BYTES } from "../../../data/formats/byte_reader.ts";
import { LineReader } from "../../../data/formats/text/lines.ts";
import { ANSWERS, BytesFile, concat, open, readAll } from "./reading.ts";

const random = new RandomStream(9n, ["bytes"]);
/** Incompressible, so that the compressed file needs several reads, too. */
const NOISE = Uint8Array.from({ length: 3 * READ_BYTES + 17 }, () => random.int(256));

async function readWhole(reader: ByteReader): Promise<Uint8Array> {
  const into = new Uint8Array(2 * NOISE.length);
  const count = await reader.takeInto(into);
  assertEquals(await reader.fill(1), 0);
  reader.close();
  return into.slice(0, count);
}

Deno.test("ByteReader decompresses gzip and zlib, for all read sizes and timings", async () => {
  for (const answer of [{}, { later: true }, { bytesPerRead: 1000 }]) {
    assertEquals(await readWhole(open(gzipSync(NOISE), answer, "gzip")), NOISE);
    assertEquals(await readWhole(open(deflateSync(NOISE), answer, "zlib")), NOISE);
  }
});

Deno.test("ByteReader reads gzip files of several members, and of none", async () => {
  const members = concat(gzipSync(NOISE.subarray(0, 1000)), gzipSync(NOISE.subarray(1000)));
  assertEquals(await readWhole(open(members, {}, "gzip")), NOISE);
  assertEquals(await readWhole(open(gzipSync(new Uint8Array(0)), {}, "gzip")), new Uint8Array(0));
});

Deno.test("ByteReader reports a damaged compressed file as data_loss naming it, and ends", async () => {
  const whole = gzipSync(NOISE);
  const flipped = new Uint8Array(whole);
  flipped[whole.length - 6]! ^= 1; // in the checksum of the contents
  const files = [
    whole.subarray(0, whole.length - 20),
    flipped,
    new TextEncoder().encode("not gzip"),
  ];
  for (const file of files) {
    const reader = open(file, {}, "gzip");
    const error = await assertRejects(
      async () => await reader.takeInto(new Uint8Array(2 * NOISE.length)),
      LeatError,
    );
    assertEquals((error as LeatError).code, "data_loss");
    assertStringIncludes((error as LeatError).message, "Damaged file data: its gzip");
    assertEquals(await reader.fill(1), 0);
    reader.close();
  }
});

Deno.test("ByteReader passes on errors of the file", async () => {
  const reader = open(gzipSync(NOISE), { failsAt: READ_BYTES }, "gzip");
  const error = await assertRejects(
    async () => await reader.takeInto(new Uint8Array(2 * NOISE.length)),
  );
  assertStringIncludes((error as Error).message, "on fire");
  reader.close();
});

Deno.test({
  name: "ByteReader closed before the end leaves nothing running",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    for (const compression of ["gzip", undefined] as const) {
      for (const answer of ANSWERS) {
        const file = new BytesFile(compression ? gzipSync(NOISE) : NOISE, answer);
        const reader = new ByteReader("data", file, compression);
        await reader.fill(10);
        const pending = reader.fill(READ_BYTES);
        reader.close();
        if (pending instanceof Promise) assertEquals(await pending, 0);
        assertEquals(await reader.takeInto(new Uint8Array(5)), 0);
        assertEquals(file.closes, 1);
      }
    }
  },
});

Deno.test("ByteReader reads a file no more often than its size requires", async () => {
  const cases: [size: number, reads: number][] = [[0, 0], [10, 1], [READ_BYTES, 1], [
    READ_BYTES + 1,
    2,
  ]];
  for (const [size, reads] of cases) {
    const file = new BytesFile(new Uint8Array(size).fill(0x0a));
    const lines = await readAll(new LineReader(new ByteReader("data", file)));
    assertEquals(lines.length, size);
    assertEquals(file.reads, reads, `${size} bytes`);
  }
});

Deno.test("ByteReader copies the next bytes, buffered or not, for all read sizes and timings", async () => {
  const counts = [5, 40_000, 3, 100_000, 20_000, 1, READ_BYTES, 2 * READ_BYTES, NOISE.length];
  for (const answer of ANSWERS) {
    for (const [bytes, compression] of [[NOISE], [gzipSync(NOISE), "gzip"]] as const) {
      const reader = open(bytes, answer, compression);
      for (let at = 0, i = 0; i < counts.length; i++) {
        await reader.fill(i * 7);
        const copy = await reader.takeCopy(counts[i]!);
        assertEquals(copy, NOISE.slice(at, at + counts[i]!));
        at += copy.length;
        assertEquals(reader.position, at);
      }
      assertEquals(await reader.fill(1), 0);
      reader.close();
    }
  }
});

Deno.test("ByteReader reads large parts straight into their copies where reads answer at once", async () => {
  const part = 50_000;
  for (const later of [false, true]) {
    const file = new BytesFile(NOISE, { later });
    const lengths: number[] = [];
    const read = file.read.bind(file);
    file.read = (into, offset) => {
      lengths.push(into.length);
      return read(into, offset);
    };
    const reader = new ByteReader("data", file);
    while (await reader.fill(4) > 0) await reader.takeCopy(part);
    // Once the first buffer is used up, all but the beginning of a part is read without it.
    const straight = lengths.filter((length) => length < part && length > part - 10_000).length;
    const expected = Math.floor((NOISE.length - READ_BYTES) / part) - 1;
    if (later) assertEquals(lengths.length, 4);
    else assert(straight >= expected, `${straight} of ${expected}: ${lengths}`);
    reader.close();
  }
});

Deno.test("ByteReader keeps a buffer no larger than the request or a chunk", async () => {
  const reader = open(NOISE);
  await reader.fill(10);
  assertEquals(reader.buffer.length, READ_BYTES);
  await reader.fill(READ_BYTES + 5);
  assert(reader.buffer.length <= 2 * READ_BYTES);
  assertEquals(reader.take(20), NOISE.slice(0, 20));
  assertEquals(reader.position, 20);
  assertInstanceOf(reader.take(1).buffer, ArrayBuffer);
  reader.close();
});

Deno.test("ByteReader starts at an offset, with or without compression, and counts from there", async () => {
  const starts = [0, 1, READ_BYTES - 1, READ_BYTES, 2 * READ_BYTES + 5, NOISE.length];
  for (const start of starts) {
    const readers = [
      new ByteReader("data", new BytesFile(NOISE, { bytesPerRead: 5000 }), undefined, start),
      new ByteReader("data", new BytesFile(gzipSync(NOISE), { later: true }), "gzip", start),
    ];
    for (const reader of readers) {
      assertEquals(reader.position, start);
      assertEquals(await readWhole(reader), NOISE.slice(start));
      assertEquals(reader.position, NOISE.length);
    }
  }
  const beyond = open(gzipSync(NOISE.subarray(0, 10)), {}, "gzip");
  assertEquals(await beyond.pass(99), 10);
  beyond.close();
});

Deno.test("ByteReader skips bytes, without reading them in uncompressed files", async () => {
  const file = new BytesFile(NOISE);
  const readers = [new ByteReader("data", file), open(gzipSync(NOISE), { later: true }, "gzip")];
  for (const reader of readers) {
    await reader.fill(10);
    assertEquals(await reader.pass(4), 4);
    assertEquals(await reader.pass(2 * READ_BYTES), 2 * READ_BYTES);
    assertEquals(reader.position, 2 * READ_BYTES + 4);
    const next = new Uint8Array(100);
    assertEquals(await reader.takeInto(next), 100);
    assertEquals(next, NOISE.slice(2 * READ_BYTES + 4, 2 * READ_BYTES + 104));
    assertEquals(await reader.pass(NOISE.length), NOISE.length - 2 * READ_BYTES - 104);
    assertEquals(await reader.pass(1), 0);
    assertEquals(reader.position, NOISE.length);
    reader.close();
  }
  assertEquals(file.reads, 2);
});
