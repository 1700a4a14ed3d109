/** TFRecord framing both ways: byte-exact vectors, every truncation, every flipped byte. */

import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertStringIncludes,
  assertThrows,
} from "../../../assert.ts";
import { gzipSync } from "node:zlib";
import { LeatError } from "../../../../core/error.ts";
import { RandomStream } from "../../../../core/philox.ts";
import { ByteReader, READ_BYTES } from "../../../../data/formats/byte_reader.ts";
import { maskedCrc32c } from "../../../../data/formats/tfrecord/crc32c.ts";
import {
  encodeTfRecord,
  RECORD_BYTES_MAX,
  RecordReader,
} from "../../../../data/formats/tfrecord/tfrecord.ts";
import { ANSWERS, BytesFile, concat, open, readAll } from "../reading.ts";

const text = (value: string) => new TextEncoder().encode(value);
const read = (bytes: Uint8Array, options = {}) => readAll(new RecordReader(open(bytes, options)));

/** Three records, and the offset of each. */
const RECORDS = [text("first"), new Uint8Array(0), text("the third record")];
const FILE = concat(...RECORDS.map(encodeTfRecord));
const OFFSETS = [0, 21, 37, 69];

function damage(found: unknown, code = "data_loss"): LeatError {
  assertInstanceOf(found, LeatError);
  assertEquals(found.code, code);
  assertStringIncludes(found.message, "data");
  return found;
}

Deno.test("encodeTfRecord writes the bytes of the format", () => {
  // Computed from the format's definition by a small program in another language.
  assertEquals(encodeTfRecord(text("hello")).toHex(), "0500000000000000eab2043e68656c6c6fbb1f1c19");
  assertEquals(encodeTfRecord(text("")).toHex(), "000000000000000029039807d8ea82a2");
});

Deno.test("RecordReader reads what encodeTfRecord wrote, for all read sizes and timings", async () => {
  const random = new RandomStream(5n, ["records"]);
  const sizes = [0, 1, 7, 8, 1000, READ_BYTES - 17, READ_BYTES - 4, READ_BYTES - 3, READ_BYTES, 0];
  const odd = [READ_BYTES + 1, 2 * READ_BYTES - 16, 3 * READ_BYTES + 5, 12, 100_003];
  const records = [...sizes, ...odd].map((length) =>
    Uint8Array.from({ length }, () => random.int(256))
  );
  const file = concat(...records.map(encodeTfRecord));
  for (const answer of ANSWERS) {
    const found = await read(file, answer);
    assertEquals(found.length, records.length, JSON.stringify(answer));
    found.forEach((record, i) => assertEquals(record, records[i], `record ${i}`));
  }
});

Deno.test("records are copies: none shares memory with another", async () => {
  const found = await read(FILE) as Uint8Array[];
  for (const record of found) assertEquals(record.byteLength, record.buffer.byteLength);
});

Deno.test("RecordReader is synchronous if the file is", () => {
  const reader = new RecordReader(open(FILE));
  assertEquals(reader.step(), RECORDS[0]);
  assertEquals(reader.step(), RECORDS[1]);
  reader.close();
});

Deno.test("RecordReader finds no record in an empty file", async () => {
  assertEquals(await read(new Uint8Array(0)), []);
});

Deno.test("RecordReader reports a truncation at any byte once, after the records before it", async () => {
  for (const answer of ANSWERS) {
    for (let length = 0; length < FILE.length; length++) {
      const found = await read(FILE.slice(0, length), answer);
      const whole = OFFSETS.findLastIndex((offset) => offset <= length);
      const isCut = OFFSETS[whole]! < length;
      assertEquals(found.slice(0, whole), RECORDS.slice(0, whole), `${length} bytes`);
      assertEquals(found.length, whole + (isCut ? 1 : 0), `${length} bytes`);
      if (isCut) {
        const error = damage(found[whole]);
        assertEquals(error.details?.offset, OFFSETS[whole]);
        assertStringIncludes(error.message, `at byte ${OFFSETS[whole]}`);
      }
    }
  }
});

Deno.test("RecordReader detects a flip of any bit, and loses only that record if the length is valid", async () => {
  for (let at = 0; at < FILE.length; at++) {
    const flipped = FILE.slice();
    flipped[at]! ^= 1 << (at % 8);
    const found = await read(flipped);
    const record = OFFSETS.findLastIndex((offset) => offset <= at);
    const isLength = at - OFFSETS[record]! < 12;
    assertEquals(found.slice(0, record), RECORDS.slice(0, record), `byte ${at}`);
    const error = damage(found[record]);
    assertEquals(error.details, {
      path: "data",
      offset: OFFSETS[record],
      crc: isLength ? "length" : "data",
    });
    assertStringIncludes(error.message, `CRC of a record's ${isLength ? "length" : "data"}`);
    assertEquals(found.slice(record + 1), isLength ? [] : RECORDS.slice(record + 1), `byte ${at}`);
  }
});

Deno.test("RecordReader detects damage in a record larger than its buffer, and continues", async () => {
  const large = new Uint8Array(READ_BYTES * 2).fill(3);
  const file = concat(encodeTfRecord(large), ...RECORDS.map(encodeTfRecord));
  file[READ_BYTES]! ^= 1;
  for (const answer of ANSWERS) {
    const [error, ...rest] = await read(file, answer);
    assertEquals(damage(error).details?.crc, "data");
    assertEquals(rest, RECORDS);
  }
  for (const cut of [READ_BYTES, large.length + 12, large.length + 15]) {
    const found = await read(file.slice(0, cut), { later: true });
    assertEquals(found.length, 1);
    assertStringIncludes(damage(found[0]).message, "truncated");
  }
});

/** The header of a record that claims `length`, with a correct CRC. */
function claim(length: bigint): Uint8Array {
  const header = new Uint8Array(12);
  const view = new DataView(header.buffer);
  view.setBigUint64(0, length, true);
  view.setUint32(8, maskedCrc32c(header, 0, 8), true);
  return header;
}

Deno.test("RecordReader refuses a length beyond its limit or the file before taking memory for it", async () => {
  for (const length of [BigInt(RECORD_BYTES_MAX) + 1n, 2n ** 60n, 2n ** 64n - 1n]) {
    const found = await read(concat(encodeTfRecord(text("a")), claim(length), new Uint8Array(99)));
    assertEquals(found.length, 2);
    assertStringIncludes(damage(found[1], "resource_exhausted").message, "RECORD_BYTES_MAX");
  }
  const [error] = await read(concat(claim(BigInt(RECORD_BYTES_MAX)), new Uint8Array(99)));
  assertStringIncludes(damage(error).message, "99 of 1073741828 bytes are left");
});

Deno.test("encodeTfRecord refuses records that could not be read back", () => {
  const data = { length: RECORD_BYTES_MAX + 1 } as Uint8Array;
  assertThrows(() => encodeTfRecord(data), LeatError);
});

Deno.test("RecordReader names the stream if the file is compressed", async () => {
  const file = FILE.slice();
  file[OFFSETS[2]! + 14]! ^= 1;
  const found = await readAll(new RecordReader(open(gzipSync(file), {}, "gzip")));
  assertEquals(found.slice(0, 2), RECORDS.slice(0, 2));
  assertStringIncludes(damage(found[2]).message, "byte 37 of its decompressed contents");
  const cut = await readAll(new RecordReader(open(gzipSync(FILE.slice(0, 40)), {}, "gzip")));
  assertStringIncludes(damage(cut[2]).message, "ends 3 bytes into a record's header");
  const short = await readAll(new RecordReader(open(gzipSync(FILE.slice(0, 60)), {}, "gzip")));
  assertStringIncludes(damage(short[2]).message, "truncated, 11 of 20 bytes are left");
});

Deno.test("RecordReader reports a failure of the file once, and ends", async () => {
  const large = encodeTfRecord(new Uint8Array(READ_BYTES * 2));
  const file = concat(encodeTfRecord(text("ok")), large, encodeTfRecord(text("never seen")));
  for (const answer of ANSWERS) {
    const found = await read(file, { ...answer, failsAt: READ_BYTES + 100 });
    assertEquals(found.length, 2);
    assertEquals(found[0], text("ok"));
    assertStringIncludes((found[1] as Error).message, "on fire");
  }
});

Deno.test("a closed RecordReader ends, even in the middle of a read, and closes its file once", async () => {
  const file = new BytesFile(FILE, { later: true });
  const reader = new RecordReader(new ByteReader("data", file));
  const pending = reader.step();
  assert(pending instanceof Promise);
  reader.close();
  reader.close();
  assertEquals(typeof await pending, "symbol");
  assertEquals(typeof await reader.step(), "symbol");
  assertEquals(file.closes, 1);
  assert(reader.disposed);
});
