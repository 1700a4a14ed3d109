/** LZ4 in Parquet's pages: bare blocks, and blocks in Hadoop's framing. */
import lz4 from "lz4js";
import { assertEquals, assertThrows } from "../../assert.ts";
import { unlz4Block, unlz4Hadoop } from "../../../data/formats/compression/lz4_blocks.ts";
import { concat } from "./reading.ts";
import { rowsOf } from "./row_laws.ts";
import { node, numbers, write } from "./parquet/written.ts";

const ascii = (text: string) => new TextEncoder().encode(text);

/** A match: how many bytes back it begins, and its length, which is at least 4. */
interface Match {
  readonly offset: number;
  readonly length: number;
}

/** The bytes after a token for a length that does not fit in it. */
function more(length: number): number[] {
  if (length < 15) return [];
  return [...new Array(Math.floor((length - 15) / 255)).fill(255), (length - 15) % 255];
}

/** Literals and a match; without a match at the end of a block. */
function sequence(literals: Uint8Array, match?: Match): Uint8Array {
  const { offset = 0, length = 4 } = match ?? {};
  const [high, low] = [literals.length, length - 4].map((count) => Math.min(count, 15)) as [
    number,
    number,
  ];
  const end = match && [offset & 255, offset >> 8, ...more(length - 4)];
  return new Uint8Array([high << 4 | low, ...more(literals.length), ...literals, ...end ?? []]);
}

function int32(value: number): Uint8Array {
  return new Uint8Array([value >>> 24, value >>> 16, value >>> 8, value]);
}

const content = ascii("a page of text, and of text, and of more of the same text, ".repeat(40));

/** A block as lz4js writes it. */
function blockOf(bytes: Uint8Array): Uint8Array {
  const block = new Uint8Array(lz4.compressBound(bytes.length));
  const length: number = lz4.compressBlock(bytes, block, 0, bytes.length, new Uint32Array(2 ** 16));
  return length > 0 ? block.slice(0, length) : sequence(bytes);
}

function frameOf(...contents: Uint8Array[]): Uint8Array {
  const size = contents.reduce((sum, { length }) => sum + length, 0);
  const blocks = contents.map(blockOf);
  return concat(int32(size), ...blocks.flatMap((block) => [int32(block.length), block]));
}

Deno.test("unlz4Block copies literals and matches of every length", () => {
  for (const length of [...numbers(300).slice(4), 524, 525, 526, 5_000]) {
    const block = concat(sequence(ascii("abc"), { offset: 3, length }), sequence(ascii("stop")));
    const wanted = ascii("abc".repeat(length).slice(0, 3 + length) + "stop");
    assertEquals(unlz4Block(block, wanted.length), wanted, `a match of ${length} bytes`);
    const literals = ascii("xyz".repeat(length).slice(0, length));
    assertEquals(unlz4Block(sequence(literals), length), literals, `${length} literals`);
  }
  assertEquals(unlz4Block(new Uint8Array([0]), 0), new Uint8Array(0));
  assertEquals(unlz4Block(new Uint8Array(0), 0), new Uint8Array(0));
});

Deno.test("unlz4Block refuses damage, and any content but that of the claimed size", () => {
  const refuses = (block: Uint8Array, sizeBytes: number, message: string) =>
    assertThrows(() => unlz4Block(block, sizeBytes), Error, message);
  const end = sequence(ascii("stop"));
  for (const offset of [0, 4, 65_535]) {
    const block = concat(sequence(ascii("abc"), { offset, length: 5 }), end);
    refuses(block, 12, `begins ${offset} bytes before byte 3`);
  }
  const block = concat(sequence(ascii("abc"), { offset: 3, length: 19 }), end);
  assertEquals(unlz4Block(block, 26).length, 26);
  refuses(block, 27, "claims 27 decompressed bytes, and it has 26");
  refuses(block, 25, "more than the 25 bytes");
  refuses(block, 21, "more than the 21 bytes");
  for (const length of [1, 2, 3, 5, 6, block.length - 1]) {
    assertThrows(() => unlz4Block(block.subarray(0, length), 26), Error);
  }
  // It would copy 255 bytes for each of its bytes.
  refuses(concat(sequence(ascii("a"), { offset: 1, length: 2 ** 24 })), 100, "more than the 100");
});

Deno.test("unlz4Hadoop reads frames of one and more blocks, and bare blocks", () => {
  const [a, b, c] = [content.subarray(0, 900), content.subarray(900, 930), content.subarray(930)];
  const pages = [
    frameOf(content),
    frameOf(a, b, c),
    concat(frameOf(a), frameOf(b), frameOf(c)),
    concat(frameOf(a), frameOf(b, c)),
    blockOf(content),
  ];
  for (const page of pages) assertEquals(unlz4Hadoop(page, content.length), content);
  for (const page of [new Uint8Array(0), int32(0), concat(int32(0), int32(1), new Uint8Array(1))]) {
    assertEquals(unlz4Hadoop(page, 0), new Uint8Array(0));
  }
});

Deno.test("unlz4Hadoop refuses damaged frames", () => {
  const page = concat(frameOf(content.subarray(0, 900)), frameOf(content.subarray(900)));
  for (let length = 0; length < page.length; length++) {
    assertThrows(() => unlz4Hadoop(page.subarray(0, length), content.length), Error);
  }
  // A block of no bytes does not come nearer to the end of its frame.
  const empty = concat(int32(9), int32(0), int32(0), int32(0));
  assertThrows(() => unlz4Hadoop(empty, 9), Error, "it ends within a block of LZ4");
  const far = concat(int32(4), int32(2 ** 32 - 1), sequence(ascii("abcd")));
  assertThrows(() => unlz4Hadoop(far, 4), Error, "it ends within a block of LZ4");
});

Deno.test("parquet reads codec LZ4 in Hadoop's framing, and as bare blocks", async () => {
  const rows = numbers(500).map((i) => ({ x: BigInt(i % 100 > 40 ? 7 : i), s: `text ${i % 7}` }));
  const columns = [
    { name: "x", type: "INT64" as const, data: rows.map(({ x }) => x) },
    { name: "s", type: "STRING" as const, data: rows.map(({ s }) => s) },
  ];
  for (const LZ4 of [(page: Uint8Array) => frameOf(page), blockOf]) {
    const bytes = write(columns, { codec: "LZ4", compressors: { LZ4 } });
    assertEquals(await rowsOf(node(), bytes), rows);
  }
});
