/** Tar archives as samples: every kind of header, every truncation, every flipped byte, limits, and positions. */

import type { LeatError } from "../../../../core/error.ts";
import { ByteReader, READ_BYTES } from "../../../../data/formats/byte_reader.ts";
import type { Compression } from "../../../../data/formats/compression/compression.ts";
import {
  EXTENDED_HEADER_BYTES_MAX,
  MEMBER_BYTES_MAX,
  NAME_LENGTH_MAX,
} from "../../../../data/formats/tar/tar.ts";
import { type SamplePosition, WebDatasetReader } from "../../../../data/formats/tar/web_dataset.ts";
import { END } from "../../../../data/iterator.ts";
import { AGAIN } from "../../../../data/iterators/stepping.ts";
import { assert, assertEquals, assertLess, assertStringIncludes } from "../../../assert.ts";
import { ANSWERS, BytesFile, concat, open, readAll } from "../reading.ts";
import {
  longName,
  paxHeader,
  tar,
  TAR_END,
  type TarEntry,
  tarHeader,
  tarMember,
} from "../tar_writer.ts";
import { errorIn, files, keysOf, OPTIONS, read } from "./samples.ts";
import { gzipSync } from "node:zlib";

Deno.test("WebDatasetReader combines files of one name, up to the first dot after the last slash", async () => {
  const names = ["a/b.c/001.txt", "a/b.c/001.SEG.txt", "001.txt", "a/b.c/001.txt", "./x.y.z.txt"];
  assertEquals(await read(tar(...files(...names))), [
    { __key__: "a/b.c/001", txt: "a/b.c/001.txt", "seg.txt": "a/b.c/001.SEG.txt" },
    { __key__: "001", txt: "001.txt" },
    { __key__: "a/b.c/001", txt: "a/b.c/001.txt" },
    { __key__: "./x", "y.z.txt": "./x.y.z.txt" },
  ]);
});

Deno.test("WebDatasetReader skips members that are no files of a sample", async () => {
  const entries: TarEntry[] = [
    { name: "folder/", type: "5" },
    { name: "old folder/" },
    { name: "a.lnk", type: "1", claims: 99n },
    { name: "a.sym", type: "2" },
    ...files("__meta__/info.txt", "__index__", "README", "a/.hidden.txt", "a.txt"),
    { name: "a.dev", type: "3" },
    { name: "a.fifo", type: "6" },
    { name: "a.new", type: "Z", contents: new Uint8Array(700).fill(1) },
    ...files("a.cls"),
  ];
  const [sample, ...rest] = await read(tar(...entries));
  assertEquals(rest, []);
  assertEquals(Object.keys(sample as object), ["__key__", "txt", "cls"]);
});

Deno.test("WebDatasetReader reads long names of ustar, GNU and pax", async () => {
  const folder = "f/".repeat(70) + "é".repeat(60);
  const entries: TarEntry[] = [
    { name: "1.txt", prefix: "a/prefix", contents: "ustar" },
    longName(`${folder}/2.txt`),
    { name: "truncated", contents: "gnu" },
    longName("elsewhere", "K"),
    longName(`${folder}/3.txt`),
    { name: "truncated", contents: "gnu, and a link's" },
    paxHeader({ comment: "all of it" }, "g"),
    paxHeader({ mtime: "1.5", path: `${folder}/4.txt` }),
    { name: "truncated", prefix: "of/no/use", contents: "pax" },
    paxHeader({ path: "5.txt" }),
    paxHeader({ comment: "between" }, "g"),
    { name: "truncated", contents: "pax, and a global one" },
    { name: "6.txt", contents: "nothing of it is left" },
  ];
  const sample = (key: string, txt: string) => ({ __key__: key, txt });
  assertEquals(await read(tar(...entries)), [
    sample("a/prefix/1", "ustar"),
    sample(`${folder}/2`, "gnu"),
    sample(`${folder}/3`, "gnu, and a link's"),
    sample(`${folder}/4`, "pax"),
    sample("5", "pax, and a global one"),
    sample("6", "nothing of it is left"),
  ]);
});

Deno.test("WebDatasetReader keeps names distinct that are not UTF-8, in headers, prefixes, GNU's and pax", async () => {
  const latin = (text: string) => Uint8Array.from(text, (char) => char.charCodeAt(0));
  const named = (name: string): TarEntry => ({ name: latin(name), contents: name });
  const gnu = (name: string) => ({ ...longName(""), contents: latin(`${name}\0`) });
  // 15 bytes: the length of the whole record.
  const pax = (name: string) => ({ ...paxHeader({}), contents: latin(`15 path=${name}\n`) });
  const entries = [
    named("é.txt"),
    named("è.cls"),
    { ...named("1.txt"), prefix: latin("à") },
    { ...named("1.cls"), prefix: "à" },
    { ...named("1.cls"), prefix: latin("á") },
    ...[gnu("î.txt"), named("x"), gnu("í.cls"), named("x")],
    ...[pax("û.txt\x20"), named("x"), pax("ú.cls\x20"), named("x")],
  ];
  const found = await read(tar(...entries));
  assertEquals(keysOf(found), ["é", "è", "à/1", "á/1", "î", "í", "û", "ú"]);
});

Deno.test("WebDatasetReader reads a file whose long name is cut after a slash in its header", async () => {
  // Taken for a folder, it would have no contents, and they would be read as a member.
  const contents = tarMember({ name: "inner.txt", contents: "inner" });
  const folder = `${"f".repeat(99)}/`;
  for (const long of [longName(`${folder}a.jpg`), paxHeader({ path: `${folder}a.jpg` })]) {
    assertEquals(await read(tar(long, { name: folder, contents }, ...files("b.txt"))), [
      { __key__: `${folder}a`, jpg: contents },
      { __key__: "b", txt: "b.txt" },
    ]);
  }
});

Deno.test("WebDatasetReader skips an old folder with a long name", async () => {
  const folder = `${"f".repeat(150)}/`;
  for (const long of [longName(folder), paxHeader({ path: folder })]) {
    const archive = tar(long, { name: folder.slice(0, 100) }, ...files("b.txt"));
    assertEquals(keysOf(await read(archive)), ["b"]);
  }
});

Deno.test("WebDatasetReader takes the size from a pax record if there is one", async () => {
  const pax = paxHeader({ size: "5", path: "a.txt" });
  const member = tarHeader({ name: "x", claims: 0n });
  const contents = new Uint8Array(512);
  contents.set(new TextEncoder().encode("fives"));
  const file = concat(tarMember(pax), member, contents, tarMember(files("b.txt")[0]!), TAR_END);
  assertEquals(await read(file), [
    { __key__: "a", txt: "fives" },
    { __key__: "b", txt: "b.txt" },
  ]);
});

Deno.test("WebDatasetReader reads an archive for all read sizes and timings, and is synchronous if the file is", async () => {
  const sizes = [
    0,
    1,
    511,
    512,
    513,
    READ_BYTES - 1,
    READ_BYTES,
    READ_BYTES + 1,
    3 * READ_BYTES + 7,
  ];
  const entries = sizes.map((size, i): TarEntry => ({
    name: `${i >> 1}.${i % 2 ? "jpg" : "png"}`,
    contents: new Uint8Array(size).fill(i + 1),
  }));
  const archive = tar(...entries);
  const expected = await read(archive);
  assertEquals(expected.length, 5);
  assertEquals((expected[4] as { png: Uint8Array }).png, entries[8]!.contents);
  for (const answer of ANSWERS) assertEquals(await read(archive, {}, answer), expected);
  const reader = new WebDatasetReader(open(archive), OPTIONS);
  for (let step = 0; step < 20; step++) assert(!(reader.step() instanceof Promise));
  reader.close();
});

Deno.test("parts are copies: none shares memory with another", async () => {
  for (const sample of await read(tar(...files("a.jpg", "a.png", "b.jpg")))) {
    for (const part of Object.values(sample as object)) {
      if (part instanceof Uint8Array) assertEquals(part.byteLength, part.buffer.byteLength);
    }
  }
});

Deno.test("WebDatasetReader keeps the requested extensions, and drops samples without any", async () => {
  const archive = tar(...files("a.jpg", "a.txt", "b.jpg", "c.seg.txt", "c.txt"));
  assertEquals(await read(archive, { extensions: new Set(["txt"]) }), [
    { __key__: "a", txt: "a.txt" },
    { __key__: "c", txt: "c.txt" },
  ]);
  // Skipped files are not read.
  const file = new BytesFile(
    tar({ name: "a.mp4", contents: new Uint8Array(4e6) }, ...files("a.txt")),
  );
  const reader = new WebDatasetReader(new ByteReader("data", file), {
    ...OPTIONS,
    extensions: new Set(["txt"]),
  });
  assertEquals(await readAll(reader), [{ __key__: "a", txt: "a.txt" }]);
  assert(file.reads < 5, `${file.reads} reads`);
});

Deno.test("WebDatasetReader loses a sample that has only some of the requested extensions", async () => {
  const archive = tar(...files("a.txt", "a.cls", "b.txt", "c.jpg", "d.cls", "d.txt"));
  const found = await read(archive, { extensions: new Set(["txt", "cls"]) });
  assertEquals(keysOf(found), ["a", "data_loss", "d"]);
  errorIn(found, "data_loss", 'Sample "b"', 'has no part "cls"', "leave `extensions` out");
});

Deno.test("WebDatasetReader decodes the requested parts by the end of their extension", async () => {
  const archive = tar(
    { name: "a.json", contents: `{"x": [1, "é"]}` },
    { name: "a.meta.json", contents: "null" },
    { name: "a.cls", contents: " 17\n" },
    { name: "a.txt", contents: "" },
    { name: "a.__proto__", contents: "p" },
  );
  const [sample] = await read(archive, { decode: new Set(["json", "cls"]) });
  assertEquals(Object.entries(sample as object), [
    ["__key__", "a"],
    ["json", { x: [1, "é"] }],
    ["meta.json", null],
    ["cls", 17],
    ["txt", new Uint8Array(0)],
    ["__proto__", new TextEncoder().encode("p")],
  ]);
});

Deno.test("a part that cannot be decoded, or occurs twice, loses its sample", async () => {
  const archive = tar(
    { name: "a.json", contents: "{" },
    { name: "b.cls", contents: "1.5" },
    { name: "c.txt", contents: new Uint8Array([0xff]) },
    ...files("d.txt", "d.jpg", "d.TXT", "d.png"),
    ...files("e.__key__"),
    ...files("f.txt"),
  );
  const found = await read(archive, { decode: new Set(["json", "cls", "txt"]) });
  const loss = "data_loss";
  assertEquals(keysOf(found), [loss, loss, loss, loss, loss, "f"]);
  const messages = found.slice(0, 5).map((error) => (error as LeatError).message);
  assertStringIncludes(messages[0]!, `Sample "a" of data, at byte 0, has a part "json"`);
  assertStringIncludes(messages[1]!, `"1.5" is no whole number`);
  assertStringIncludes(messages[3]!, `has two parts "txt"`);
  assertStringIncludes(messages[4]!, `has two parts "__key__"`);
});

Deno.test("an error shows the beginning of a class that is no number", async () => {
  const archive = tar({ name: "a.cls", contents: "x".repeat(100_000) });
  const [error] = await read(archive, { decode: new Set(["cls"]) });
  assertStringIncludes((error as LeatError).message, `xxx"… is no whole number`);
  assertLess((error as LeatError).message.length, 300);
});

Deno.test("a class beyond int32 loses its sample, and is not rounded", async () => {
  const numbers = ["2147483647", "-2147483648", "2147483648", "-2147483649", "9007199254740993"];
  const archive = tar(...numbers.map((contents, i) => ({ name: `${i}.cls`, contents })));
  const found = await read(archive, { decode: new Set(["cls"]) });
  assertEquals(found.slice(0, 2), [
    { __key__: "0", cls: 2147483647 },
    { __key__: "1", cls: -2147483648 },
  ]);
  assertEquals(keysOf(found.slice(2)), ["data_loss", "data_loss", "data_loss"]);
  for (const [i, error] of found.slice(2).entries()) {
    assertStringIncludes((error as LeatError).message, `"${numbers[i + 2]}" is beyond int32`);
  }
});

Deno.test("an empty file is an archive without samples, as are blocks of zeros", async () => {
  for (const length of [0, 100, 512, 1024, 10_240]) {
    assertEquals(await read(new Uint8Array(length)), [], `${length} bytes`);
  }
  // A single zero block ends an archive, whatever follows.
  const file = concat(
    ...files("a.txt").map(tarMember),
    new Uint8Array(512),
    ...files("b.txt").map(tarMember),
  );
  assertEquals(keysOf(await read(file)), ["a"]);
});

Deno.test("WebDatasetReader reports a truncation at any byte once, after the samples before it", async () => {
  const long = longName(`${"l".repeat(200)}.txt`);
  const entries = [...files("a.txt", "a.cls", "b.txt"), long, ...files("x.txt"), ...files("c.txt")];
  const members = entries.map(tarMember);
  const archive = concat(...members, TAR_END);
  const ends = members.map((_, i) => concat(...members.slice(0, i + 1)).length);
  const keys = ["a", "b", "l".repeat(200), "c"];
  /** Offsets where a sample is complete, and the header of the next one is known. */
  const begins = [ends[2]! - 512, ends[4]! - 512, ends[5]! - 512];
  // Some offsets in every header and its contents, and on both sides of every end.
  const edges = [0, ...ends.slice(0, 5)].flatMap((end) => [end, end + 1, end + 511]);
  for (const answer of ANSWERS) {
    const step = answer === ANSWERS[0] ? 11 : 97;
    const between = Array.from({ length: Math.ceil(ends[5]! / step) }, (_, i) => i * step);
    for (const length of [...edges, ...between]) {
      const found = await read(archive.slice(0, length), {}, answer);
      const isAtMember = length === 0 || (ends.includes(length) && length !== ends[3]);
      const whole = begins.filter((begin) => begin <= length).length;
      if (isAtMember) {
        // Indistinguishable from an archive whose writer omitted the end.
        const expected = keys.slice(0, length === 0 ? 0 : ends[1]! >= length ? 1 : whole + 1);
        assertEquals(keysOf(found), expected, `${length} bytes`);
        continue;
      }
      assertEquals(keysOf(found), [...keys.slice(0, whole), "data_loss"], `${length} bytes`);
      const error = errorIn(found, "data_loss", "it is truncated", "at byte");
      assert((error.details?.offset as number) <= length);
    }
  }
});

Deno.test("WebDatasetReader detects a flip of any bit of a header, and reports it once", async () => {
  const before = tarMember(files("a.txt")[0]!);
  const archive = concat(before, tar(...files("b.txt", "c.txt")));
  for (let at = before.length; at < before.length + 512; at++) {
    for (const bit of [0, 5, 7]) {
      const flipped = archive.slice();
      flipped[at]! ^= 1 << bit;
      const found = await read(flipped);
      // Spaces and zeros around the checksum are equivalent.
      if (keysOf(found).length === 3) assert(at >= before.length + 148 && at < before.length + 156);
      else {
        assertEquals(keysOf(found), ["data_loss"], `byte ${at}`);
        errorIn(found, "data_loss", `at byte ${before.length}`, "checksum", `lost sample "a"`);
      }
    }
  }
});

Deno.test("WebDatasetReader refuses a member's size beyond its limits, before allocating memory", async () => {
  const claiming = (claims: bigint) =>
    concat(
      ...files("a.txt", "b.txt").map(tarMember),
      tarHeader({ name: "b.jpg", claims }),
      new Uint8Array(99),
    );
  for (const claims of [2n ** 60n, 2n ** 53n]) {
    const found = await read(claiming(claims));
    assertEquals(keysOf(found), ["a", "resource_exhausted"]);
    errorIn(found, "resource_exhausted", `${MEMBER_BYTES_MAX} (MEMBER_BYTES_MAX)`);
  }
  for (const claims of [2n ** 50n, 10_000_000n]) {
    const found = await read(claiming(claims));
    assertEquals(keysOf(found), ["a", "resource_exhausted"]);
    errorIn(found, "resource_exhausted", `Sample "b"`, "more than 10000000 (sampleBytesMax)");
  }
  assertEquals(keysOf(await read(claiming(9_000_000n))), ["a", "data_loss"]);
  const pax = concat(
    tarMember(paxHeader({ size: String(2n ** 60n) })),
    tarHeader({ name: "a.txt" }),
  );
  errorIn(await read(pax), "resource_exhausted", "MEMBER_BYTES_MAX");
  const negative = concat(tarMember(paxHeader({ size: "-5" })), tarHeader({ name: "a.txt" }));
  errorIn(await read(negative), "data_loss", "claims -5 bytes");
  const name = tarHeader({
    name: "a.txt",
    type: "L",
    claims: BigInt(EXTENDED_HEADER_BYTES_MAX) + 1n,
  });
  errorIn(await read(name), "resource_exhausted", "EXTENDED_HEADER_BYTES_MAX");
});

Deno.test("a sample beyond its limit is lost, and the next one is read", async () => {
  const contents = new Uint8Array(600);
  const archive = tar(
    ...files("a.txt"),
    { name: "b.jpg", contents },
    { name: "b.png", contents },
    ...files("b.txt", "c.txt"),
    { name: "d.jpg", contents: new Uint8Array(1000) },
  );
  for (const answer of ANSWERS) {
    const found = await read(archive, { sampleBytesMax: 2000 }, answer);
    assertEquals(keysOf(found), ["a", "resource_exhausted", "c", "d"]);
    errorIn(found, "resource_exhausted", `Sample "b" of data, at byte 1024`, "at least 2234 bytes");
  }
});

Deno.test("the names and the number of a sample's parts count towards its limit", async () => {
  const empty = Array.from({ length: 100 }, (_, i) => ({ name: `b.${i}` }));
  const long = ["x", "y"].flatMap((part) => [
    longName(`c.${part.repeat(30_000)}`),
    { name: "truncated" },
  ]);
  const archive = tar(...files("a.txt"), ...empty, ...long, ...files("d.txt"));
  const found = await read(archive, { sampleBytesMax: 50_000 });
  assertEquals(keysOf(found), ["a", "resource_exhausted", "resource_exhausted", "d"]);
  for (const error of found.slice(1, 3)) {
    assertStringIncludes(String(error), "more than 50000 (sampleBytesMax)");
  }
});

Deno.test("WebDatasetReader refuses a name that is too long, of GNU or pax", async () => {
  for (const [length, key] of [[NAME_LENGTH_MAX, "b"], [NAME_LENGTH_MAX + 1]] as const) {
    const name = "b.".padEnd(length, "x");
    for (const header of [longName(name), paxHeader({ path: name })]) {
      const found = await read(tar(...files("a.txt", "lost.txt"), header, { name: "truncated" }));
      assertEquals(
        keysOf(found),
        key === undefined ? ["a", "resource_exhausted"] : ["a", "lost", key],
      );
      if (key === undefined) errorIn(found, "resource_exhausted", "(NAME_LENGTH_MAX)");
    }
  }
});

Deno.test("WebDatasetReader refuses sparse files by name", async () => {
  const gnu = tar(...files("a.txt", "b.txt"), { name: "c.bin", type: "S" });
  const pax = tar(
    ...files("a.txt", "b.txt"),
    paxHeader({ "GNU.sparse.major": "1", "GNU.sparse.name": "c.bin" }),
    ...files("c.bin"),
  );
  for (const archive of [gnu, pax]) {
    const found = await read(archive);
    assertEquals(keysOf(found), ["a", "unimplemented"]);
    errorIn(found, "unimplemented", "without --sparse");
  }
});

Deno.test("WebDatasetReader reads a pax name with a newline, and passes empty values and padding", async () => {
  const padded = { name: "pax", type: "x", contents: "14 path=b.txt\n\0\0\0" };
  const archive = tar(
    paxHeader({ path: "a/1\n 2.txt" }),
    { name: "truncated", contents: "newline" },
    padded,
    { name: "truncated", contents: "padding" },
    paxHeader({ path: "", size: "" }),
    { name: "c.txt", contents: "empty" },
  );
  assertEquals(await read(archive), [
    { __key__: "a/1\n 2", txt: "newline" },
    { __key__: "b", txt: "padding" },
    { __key__: "c", txt: "empty" },
  ]);
});

Deno.test("WebDatasetReader reports a damaged pax header", async () => {
  const records = [
    "path=b.txt\n",
    "14 path=b.txt",
    "13 path=b.txt\n",
    "99 path=b.txt\n",
    "-4 path=b.txt\n",
    "9 b.txt\n",
    "10 =b.txt\n",
    "14 path=b.txt\n5 ",
    "000000014 path=b.txt\n",
  ];
  for (const contents of records) {
    const header = { name: "pax", type: "x", contents };
    const found = await read(tar(...files("a.txt", "lost.txt"), header, ...files("b.txt")));
    errorIn(found, "data_loss", "a pax header has a record that is not LENGTH KEY=VALUE");
  }
  for (const size of ["many", "1.5", "0x10"]) {
    const found = await read(tar(...files("a.txt"), paxHeader({ size }), ...files("b.txt")));
    errorIn(found, "data_loss", `the size in a pax header is ${size}, no number`);
  }
});

Deno.test("WebDatasetReader reports an extended header without a member", async () => {
  const archive = tar(...files("a.txt"), paxHeader({ path: "b.txt" }));
  errorIn(await read(archive), "data_loss", "its last header has no member");
});

Deno.test("WebDatasetReader reports a failure of the file once, and ends", async () => {
  const archive = tar(...files("a.txt", "b.txt"), { name: "b.jpg", contents: new Uint8Array(1e6) });
  for (const answer of ANSWERS) {
    const found = await read(archive, {}, { ...answer, failsAt: READ_BYTES + 100 });
    assertEquals(found.length, 2);
    assertStringIncludes((found[1] as Error).message, "on fire");
  }
});

/** Opens an archive at each position of another reader. Returns the keys that both gave. */
async function keysFromAnyPosition(bytes: Uint8Array, compression: Compression | undefined) {
  const options = { ...OPTIONS, sampleBytesMax: 3000 };
  const openAt = (from?: SamplePosition) =>
    new WebDatasetReader(
      new ByteReader("data", new BytesFile(bytes), compression, from?.offset),
      options,
      from?.ended,
    );
  const all = await readAll(openAt());
  const reader = openAt();
  for (let given = 0;;) {
    const position = structuredClone(reader.save());
    assertEquals(await readAll(openAt(position)), all.slice(given));
    try {
      const element = await reader.step();
      if (element === END) break;
      if (element !== AGAIN) given++;
    } catch {
      given++;
    }
  }
  reader.close();
  return keysOf(all);
}

Deno.test("a reader opened at any position of another continues from there, compressed or not", async () => {
  const entries = [
    ...files("a.txt", "a.jpg"),
    paxHeader({ comment: "all" }, "g"),
    longName("b.txt"),
    ...files("x"),
    ...files("b.cls", "README", "c.txt"),
    { name: "folder/", type: "5" },
    { name: "d.jpg", contents: new Uint8Array(2000) },
    { name: "d.png", contents: new Uint8Array(2000) },
    paxHeader({ path: "e.txt" }),
    paxHeader({ comment: "between" }, "g"),
    ...files("y"),
    ...files("f.txt", "f.txt", "f.jpg", "g.txt"),
  ];
  const whole = tar(...entries);
  for (const bytes of [whole, whole.slice(0, -TAR_END.length - 700)]) {
    for (const compression of [undefined, "gzip"] as const) {
      const archive = compression === undefined ? bytes : gzipSync(bytes);
      const keys = await keysFromAnyPosition(archive, compression);
      assertEquals(keys.slice(0, 6), ["a", "b", "c", "resource_exhausted", "e", "data_loss"]);
    }
  }
});

Deno.test("a reader opened before padding that is cut off reports the truncation, compressed or not", async () => {
  const bytes = tarMember(files("README")[0]!).slice(0, -100);
  assertEquals(await keysFromAnyPosition(bytes, undefined), ["data_loss"]);
  assertEquals(await keysFromAnyPosition(gzipSync(bytes), "gzip"), ["data_loss"]);
});

Deno.test("a closed WebDatasetReader ends, even in the middle of a read, and closes its file once", async () => {
  const archive = tar({ name: "a.jpg", contents: new Uint8Array(3 * READ_BYTES) });
  for (const steps of [0, 1]) {
    const file = new BytesFile(archive, { later: true });
    const reader = new WebDatasetReader(new ByteReader("data", file), OPTIONS);
    for (let step = 0; step < steps; step++) assertEquals(await reader.step(), AGAIN);
    const pending = reader.step();
    assert(pending instanceof Promise);
    reader.close();
    reader.close();
    assertEquals(await pending, END);
    assertEquals(await reader.step(), END);
    assertEquals(file.closes, 1);
    assert(reader.disposed);
  }
});
