/** Object stores: a real S3-compatible server, which checks signatures, in a process of its own. */

import { assert, assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";
import { LeatError, type LeatErrorCode } from "../../../core/error.ts";
import { Dataset, LocalCluster } from "../../../mod.ts";
import { openIterator } from "../../../data/dataset_iterator.ts";
import { ByteReader } from "../../../data/formats/byte_reader.ts";
import { encodeTfRecord } from "../../../data/formats/tfrecord/tfrecord.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import {
  StorageFiles,
  type StorageOptions,
  workerFiles,
} from "../../../platform/storage/storage.ts";
import { FaultyWire } from "./faulty_wire.ts";
import { noise } from "./range_server.ts";
import { S3Server } from "./s3_server.ts";
import { TempFolder } from "../../lib/temp_folder.ts";
import { PATIENCE_MS } from "../../lib/until.ts";

const MIB = 1024 * 1024;
const text = (value: string) => new TextEncoder().encode(value);

let server: S3Server;

Deno.test.beforeAll(async () => {
  server = await S3Server.start();
});
Deno.test.afterAll(() => server[Symbol.asyncDispose]());

/** A slow machine is no silent store: a further request would be counted. */
function storage({ s3, requests }: Pick<StorageOptions, "s3" | "requests"> = {}): StorageFiles {
  return new StorageFiles({
    s3: { ...server.options, ...s3 },
    requests: { timeoutMs: PATIENCE_MS, ...requests },
  });
}

async function failure(work: () => Promise<unknown>, code: LeatErrorCode): Promise<string> {
  const error = await assertRejects(work, LeatError);
  assertEquals(error.code, code, error.message);
  return error.message;
}

async function textOf(files: StorageFiles, path: string): Promise<string> {
  const file = await files.open(path);
  const bytes = new Uint8Array(file.sizeBytes);
  assertEquals(await file.read(bytes, 0), bytes.length);
  file.close();
  return new TextDecoder().decode(bytes);
}

async function elementsOf<T>(dataset: Dataset<T>): Promise<T[]> {
  const host = new DenoHost({ storage: { s3: server.options } });
  await using iterator = openIterator(dataset.node, { host });
  return await Array.fromAsync(iterator) as T[];
}

Deno.test("objects are opened and listed by any key", async () => {
  const keys = [
    "a b.txt",
    "100%.txt",
    "%41.txt",
    "#1.txt",
    "why?.txt",
    "é/ü€😀.txt",
    "a+b=c,@;$:.txt",
  ];
  for (const key of keys) await server.put(`odd/${key}`, key);
  await using wire = new FaultyWire(server.port, [Infinity]);
  const files = storage({ s3: { endpoint: wire.origin } });
  for (const key of keys) assertEquals(await textOf(files, `s3://bucket/odd/${key}`), key);
  const paths = keys.map((key) => `s3://bucket/odd/${key}`).sort();
  assertEquals(await files.list("s3://bucket/odd/**"), paths);
  assertEquals(await files.list("s3://bucket/odd/é/*€*"), ["s3://bucket/odd/é/ü€😀.txt"]);
  assertEquals(await files.list("s3://bucket/odd/why\\?.txt"), ["s3://bucket/odd/why?.txt"]);
  assertEquals(wire.ranges.length, keys.length + 1, "one for each object that was opened");
});

Deno.test("s3:// patterns match like local ones", async () => {
  const names = [
    "1.txt",
    "2.rec",
    "b/3.txt",
    "b/c/4.txt",
    ".hidden.txt",
    "train-1-of-2",
    "train-2-of-2",
  ];
  await using temporary = await TempFolder.make();
  const folder = temporary.path;
  await Deno.mkdir(`${folder}/b/c`, { recursive: true });
  for (const name of names) {
    await Deno.writeTextFile(`${folder}/${name}`, name);
    await server.put(`glob/${name}`, name);
  }
  await server.put("globe/1.txt", "beside");
  const files = storage();
  const patterns = [
    "*.txt",
    "**",
    "**/*.txt",
    "?.{txt,rec}",
    "train-*",
    "train-[2-9]*",
    ".*",
    "b/*/4.txt",
  ];
  for (const pattern of [...patterns, "{b/c,b}/*.txt", "1.txt", "none.txt", "none/*", "b"]) {
    const near = await files.list(`${folder}/${pattern}`);
    const far = await files.list(`s3://bucket/glob/${pattern}`);
    const names = (paths: string[], root: string) => paths.map((path) => path.slice(root.length));
    assertEquals(names(far, "s3://bucket/glob/"), names(near, `${folder}/`), pattern);
  }
});

Deno.test("a listing of several pages is complete", async () => {
  // A page has a thousand.
  const names = Array.from({ length: 1050 }, (_, i) => `${i}.txt`);
  await server.putEmpty("many", names);
  const expected = names.map((name) => `s3://bucket/many/${name}`).sort();
  assertEquals(await storage().list("s3://bucket/many/*.txt"), expected);
});

Deno.test("an object read by ranges equals its bytes", async () => {
  const contents = noise(10 * MIB + 3);
  await server.put("large", contents);
  await using wire = new FaultyWire(server.port, [Infinity]);
  const files = storage({ s3: { endpoint: wire.origin } });
  const reader = new ByteReader("large", await files.open("s3://bucket/large"));
  const bytes = new Uint8Array(contents.length);
  assertEquals(await reader.takeInto(bytes), contents.length);
  reader.close();
  assert(Buffer.compare(bytes, contents) === 0);
  const stops = [MIB, 3 * MIB, 7 * MIB, contents.length];
  const ranges = stops.map((stop, i) => `bytes=${stops[i - 1] ?? 0}-${stop - 1}`);
  assertEquals(wire.ranges.sort(), ranges.sort());
});

Deno.test("an empty object has no bytes", async () => {
  await server.put("empty", "");
  assertEquals(await textOf(storage(), "s3://bucket/empty"), "");
});

Deno.test("datasets over s3:// give the same as over local files", async () => {
  await using temporary = await TempFolder.make();
  const folder = temporary.path;
  const records = Array.from(
    { length: 3 },
    (_, shard) =>
      Array.from({ length: 500 }, (_, i) => [...encodeTfRecord(text(`${shard}: ${"x".repeat(i)}`))])
        .flat(),
  );
  for (const [shard, bytes] of records.entries()) {
    const lines = `first ${shard}\r\nlast ${shard}`;
    await Deno.writeFile(`${folder}/train-${shard}.tfrecord`, Uint8Array.from(bytes));
    await Deno.writeTextFile(`${folder}/text-${shard}.txt`, lines);
    await server.put(`data/train-${shard}.tfrecord`, Uint8Array.from(bytes));
    await server.put(`data/text-${shard}.txt`, lines);
  }
  const datasets = (root: string) => {
    const listed = (pattern: string) => Dataset.listFiles(`${root}/${pattern}`, { shuffle: false });
    return [
      Dataset.tfRecords(listed("train-*.tfrecord")),
      Dataset.tfRecords(listed("*.tfrecord"), { numParallelReads: 2 }),
      Dataset.textLines([`${root}/text-0.txt`, `${root}/text-1.txt`]),
    ];
  };
  const near = datasets(folder), far = datasets("s3://bucket/data");
  for (const [i, dataset] of far.entries()) {
    const elements = await elementsOf<unknown>(dataset as Dataset<unknown>);
    assert(elements.length >= 4);
    assertEquals(elements, await elementsOf<unknown>(near[i] as Dataset<unknown>));
  }
});

Deno.test("a cluster's workers read from the configured store", async () => {
  await server.put("lines/1.txt", "one\ntwo");
  for (const runners of ["thread", "inline"] as const) {
    await using cluster = await LocalCluster.start({
      workers: 1,
      carrier: "inline",
      runners,
      storage: { s3: server.options },
    });
    const lines = Dataset.textLines(Dataset.listFiles("s3://bucket/lines/*.txt"));
    const distributed = lines.distribute({ service: cluster, processingMode: "DYNAMIC" });
    assertEquals(await Array.fromAsync(distributed), ["one", "two"]);
  }
});

Deno.test("withStorageLatency also delays far storage", async () => {
  await server.put("slow", "slow");
  const files = workerFiles({ storage: { s3: server.options }, storageLatencyMs: 1 });
  assertEquals(await files.list("s3://bucket/sl*"), ["s3://bucket/slow"]);
  const file = await files.open("s3://bucket/slow");
  assertEquals(await file.read(new Uint8Array(8), 0), 4);
  file.close();
});

Deno.test("a store's refusal is explained", async () => {
  await server.put("here", "here");
  const cases: [path: string, options: StorageOptions["s3"], code: LeatErrorCode, said: string][] =
    [
      ["bucket/none", {}, "not_found", "NoSuchKey"],
      ["nowhere/here", {}, "not_found", "NoSuchBucket"],
      ["bucket/here", { secretAccessKey: "wrong" }, "permission_denied", "SignatureDoesNotMatch"],
      ["bucket/here", { accessKeyId: "wrong" }, "permission_denied", "InvalidAccessKeyId"],
      ["bucket/../here", {}, "invalid_argument", "no URL has such a path"],
      ["b?cket/here", {}, "invalid_argument", "s3://BUCKET/KEY"],
      ["bucket", {}, "invalid_argument", "s3://BUCKET/KEY"],
      ["../here", {}, "invalid_argument", 'not "." or ".."'],
      ["./here", {}, "invalid_argument", 'not "." or ".."'],
    ];
  for (const [path, s3 = {}, code, said] of cases) {
    const message = await failure(() => storage({ s3 }).open(`s3://${path}`), code);
    assertStringIncludes(message, `s3://${path}`);
    assertStringIncludes(message, said);
  }
  const wrong = storage({ s3: { secretAccessKey: "wrong" } });
  await failure(() => wrong.list("s3://bucket/*"), "permission_denied");
  await failure(() => storage().list("s3://nowhere/*"), "not_found");
  assertEquals(await storage().list("s3://bucket/none"), []);
});

Deno.test("requests without credentials are not signed", async () => {
  await server.put("public", "public");
  assertEquals(await textOf(storage({ s3: { anonymous: true } }), "s3://bucket/public"), "public");
});

Deno.test("gs:// is a store of its own", async () => {
  await server.put("google", "google");
  const files = new StorageFiles({ gs: server.options });
  assertEquals(await textOf(files, "gs://bucket/google"), "google");
  assertEquals(await files.list("gs://bucket/goo*"), ["gs://bucket/google"]);
});

Deno.test("an object that is overwritten while it is read fails", async () => {
  await server.put("changing", noise(4 * MIB));
  const file = await storage().open("s3://bucket/changing");
  await server.put("changing", noise(4 * MIB).reverse());
  const reading = async () => await file.read(new Uint8Array(8), 3 * MIB);
  assertStringIncludes(await failure(reading, "failed_precondition"), "s3://bucket/changing");
  file.close();
});

Deno.test("a connection that breaks, before or within an answer, costs one retry", async () => {
  const contents = noise(3 * MIB);
  await server.put("fragile", contents);
  await using wire = new FaultyWire(server.port, [0, 0, 700_000, 200_000, Infinity]);
  const s3 = { endpoint: wire.origin };
  const file = await storage({ s3, requests: { backoffMs: 1 } }).open("s3://bucket/fragile");
  const reader = new ByteReader("fragile", file);
  const bytes = new Uint8Array(contents.length);
  assertEquals(await reader.takeInto(bytes), contents.length);
  assert(Buffer.compare(bytes, contents) === 0);
  reader.close();
  assert(wire.connections >= 5);
});
