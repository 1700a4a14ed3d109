/**
 * .npz: archives stored and compressed, combined arrays, parts, positions, and damaged archives.
 */

import { Uint8ArrayReader, Uint8ArrayWriter, ZipWriter } from "@zip.js/zip.js";
import {
  assertEquals,
  assertInstanceOf,
  assertLess,
  assertStringIncludes,
} from "../../../assert.ts";
import { LeatError } from "../../../../core/error.ts";
import { tensor } from "../../../../core/tensor.ts";
import { NpzNode } from "../../../../data/sources/npz.ts";
import { npyBytes } from "../npy_bytes.ts";
import { BytesFile, concat, readAll } from "../reading.ts";
import { assertLaws, fileOf, rowsOf } from "../row_laws.ts";

/** A zip archive; level 0 stores. */
async function zip(
  files: Record<string, Uint8Array>,
  options: { level?: number; password?: string; zip64?: boolean } = {},
): Promise<Uint8Array<ArrayBuffer>> {
  const writer = new ZipWriter(new Uint8ArrayWriter(), {
    useWebWorkers: false,
    level: 0,
    ...options,
  });
  for (const [name, bytes] of Object.entries(files)) {
    await writer.add(name, new Uint8ArrayReader(bytes));
  }
  return new Uint8Array(await writer.close());
}

const node = (columns?: string[]) => new NpzNode("my data", { columns });
const ARRAYS = {
  "x.npy": npyBytes("<f4", [3, 2], new Float32Array([1, 2, 3, 4, 5, 6])),
  "my labels.npy": npyBytes("<i8", [3], new BigInt64Array([7n, 8n, 9n])),
  "README.txt": new TextEncoder().encode("no array"),
};
const ROWS = [
  { x: tensor(new Float32Array([1, 2])), "my labels": 7n },
  { x: tensor(new Float32Array([3, 4])), "my labels": 8n },
  { x: tensor(new Float32Array([5, 6])), "my labels": 9n },
];

Deno.test("npz combines the rows of arrays, stored or compressed", async () => {
  for (const options of [{ level: 0 }, { level: 6 }, { level: 0, zip64: true }]) {
    const bytes = await zip(ARRAYS, options);
    assertEquals(await assertLaws(node(), bytes), ROWS);
    const labels = ROWS.map(({ "my labels": label }) => ({ "my labels": label }));
    assertEquals(await rowsOf(node(["my labels"]), bytes), labels);
  }
});

Deno.test("npz divides stored archives, and reads only what it gives", async () => {
  const count = 80;
  const width = 8192;
  const files = {
    "x.npy": npyBytes("<f8", [count, width], new Float64Array(count * width).map((_, i) => i)),
    "y.npy": npyBytes("<i4", [count], new Int32Array(count).map((_, i) => i)),
  };
  const bytes = await zip(files);
  const rows = await rowsOf(node(), bytes);
  assertEquals(rows.length, count);
  const parts = await node().countParts(fileOf(bytes));
  assertEquals(parts, 2);
  const byPart = [];
  for (let part = 0; part < parts; part++) byPart.push(...await rowsOf(node(), bytes, { part }));
  assertEquals(byPart, rows);
  let read = 0;
  class Counting extends BytesFile {
    override read(into: Uint8Array, offset: number): number | Promise<number> {
      read += into.length;
      return super.read(into, offset);
    }
  }
  const source = { path: "data", file: new Counting(bytes), compression: undefined };
  assertEquals((await readAll(await node(["y"]).openReader(source, {}))).length, count);
  assertLess(read, bytes.length / 10);
  assertEquals(await node().countParts(fileOf(await zip(files, { level: 1 }))), 1);
});

async function refusal(bytes: Uint8Array, columns?: string[]): Promise<LeatError> {
  const found = await rowsOf(node(columns), bytes);
  assertEquals(found.length, 1);
  assertInstanceOf(found[0], LeatError);
  assertStringIncludes(found[0].message, "my data");
  return found[0];
}

Deno.test("npz names an array that is missing, too long, or unreadable", async () => {
  const missing = await refusal(await zip(ARRAYS), ["y"]);
  assertEquals(missing.code, "not_found");
  assertStringIncludes(missing.message, "no array y in .npz file my data; it has x, my labels");
  const y = npyBytes("<f4", [2], new Float32Array(2));
  const uneven = await refusal(await zip({ ...ARRAYS, "y.npy": y }));
  assertEquals(uneven.code, "invalid_argument");
  assertStringIncludes(uneven.message, "x 3, my labels 3, y 2");
  const complex = npyBytes("<c8", [3], new Uint8Array(24));
  const odd = await refusal(await zip({ ...ARRAYS, "z.npy": complex }));
  assertEquals(odd.code, "unimplemented");
  assertStringIncludes(odd.message, "z.npy in my data");
  const steering = await refusal(await zip({ ...ARRAYS, "\x1b[2J.npy": complex }));
  assertStringIncludes(steering.message, "\\x1b[2J.npy in my data");
  const locked = await refusal(await zip(ARRAYS, { password: "secret" }));
  assertEquals(locked.code, "unimplemented");
  assertStringIncludes(locked.message, "encrypted");
});

Deno.test("npz reports damaged and truncated archives as data_loss", async () => {
  const stored = await zip(ARRAYS);
  const waves = new Float64Array(512).map((_, i) => Math.sin(i));
  const damaged = await zip({ "x.npy": npyBytes("<f8", [512], waves) }, { level: 6 });
  damaged.fill(0xff, 2000, 2010);
  const cases: [Uint8Array, string][] = [
    [new Uint8Array(0), "it is empty"],
    [stored.slice(0, -30), "its directory"],
    [new TextEncoder().encode("x,y\n1,2\n".repeat(20)), "its directory"],
    [await zip({ "README.txt": ARRAYS["README.txt"] }), "no arrays"],
    [damaged, "x.npy in it"],
    [await zip({ "x.npy": ARRAYS["x.npy"].slice(0, -1) }), "truncated"],
    [
      withDirectory(new Uint8Array(99), [entryOf("x.npy", 9), entryOf("x.npy", 9)]),
      "two arrays named x",
    ],
  ];
  for (const [bytes, part] of cases) {
    const error = await refusal(bytes);
    assertEquals(error.code, "data_loss", part);
    assertStringIncludes(error.message, part);
  }
});

/** An archive of some bytes, whose directory has these entries, at offset `bytes.length`. */
function withDirectory(bytes: Uint8Array, entries: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const directory = concat(...entries);
  // The records of zip64, whose count has more than 16 bits: the end, its locator, and the old end.
  const end = new Uint8Array(56 + 20 + 22);
  const view = new DataView(end.buffer);
  view.setUint32(0, 0x06064b50, true);
  view.setBigUint64(4, 44n, true);
  for (const at of [24, 32]) view.setBigUint64(at, BigInt(entries.length), true);
  view.setBigUint64(40, BigInt(directory.length), true);
  view.setBigUint64(48, BigInt(bytes.length), true);
  view.setUint32(56, 0x07064b50, true);
  view.setBigUint64(64, BigInt(bytes.length + directory.length), true);
  view.setUint32(72, 1, true);
  view.setUint32(76, 0x06054b50, true);
  end.fill(0xff, 84, 96);
  return concat(bytes, directory, end);
}

/** A directory's entry of an uncompressed file at the beginning of the archive. */
function entryOf(name: string, sizeBytes: number, extraBytes = 0): Uint8Array {
  const entry = new Uint8Array(46 + name.length + extraBytes);
  const view = new DataView(entry.buffer);
  view.setUint32(0, 0x02014b50, true);
  for (const at of [20, 24]) view.setUint32(at, sizeBytes, true);
  view.setUint16(28, name.length, true);
  view.setUint16(30, extraBytes, true);
  entry.set(new TextEncoder().encode(name), 46);
  return entry;
}

Deno.test("npz refuses a directory that would take many times its bytes", async () => {
  const entry = entryOf("a", 0);
  const many = await refusal(withDirectory(new Uint8Array(0), new Array(16_385).fill(entry)));
  assertEquals(many.code, "resource_exhausted");
  assertStringIncludes(many.message, "16384 files (NPZ_FILES_MAX)");
  const long = entryOf("a", 0, 65_000);
  const large = await refusal(withDirectory(new Uint8Array(0), new Array(300).fill(long)));
  assertEquals(large.code, "resource_exhausted");
  assertStringIncludes(large.message, "(DIRECTORY_BYTES_MAX)");
});

Deno.test("npz refuses uncompressed arrays that share bytes of the file", async () => {
  const contents = npyBytes("<f8", [1, 1_000], new Float64Array(1_000));
  const local = new Uint8Array(30);
  new DataView(local.buffer).setUint32(0, 0x04034b50, true);
  const read = async (count: number) => {
    const entries = Array.from({ length: count }, (_, i) => entryOf(`${i}.npy`, contents.length));
    return await rowsOf(node(), withDirectory(concat(local, contents), entries));
  };
  assertEquals(await read(1), [{ 0: tensor(new Float64Array(1_000)) }]);
  const [error] = await read(100);
  assertInstanceOf(error, LeatError);
  assertEquals(error.code, "data_loss");
  assertStringIncludes(error.message, "more than it has");
});
