/**
 * What confined pipelines reach through their host: decoded images and far files; and that they run
 * like others.
 */
import { tableFromArrays, tableToIPC } from "apache-arrow";
import { parquetWriteBuffer } from "hyparquet-writer";
import { zstdCompressSync } from "node:zlib";
import { Tensor } from "../../../core/tensor.ts";
import { Dataset } from "../../../mod.ts";
import { decodeMessage } from "../../../transport/codec.ts";
import { decompressFrame, isCompressed } from "../../../transport/compression.ts";
import { Images } from "../../../platform/media/images.ts";
import { assert, assertEquals, assertStringIncludes } from "../../assert.ts";
import { tar } from "../../data/formats/tar_writer.ts";
import { PATIENCE_MS } from "../../lib/until.ts";
import { RangeServer } from "../storage/range_server.ts";
import { S3Server } from "../storage/s3_server.ts";
import { evaluating, NO_SPLITS, Sandbox, settingsOf } from "./sandbox_lib.ts";

Deno.test("a confined function decodes images like any other", async () => {
  const images = new Images();
  const picture = new Tensor("uint8", [40, 60, 3], new Uint8Array(7_200).map((_, i) => i % 251));
  const jpeg = await images.encode(picture);
  const decoding = Dataset.from([jpeg]).map(async (bytes, { image }) => {
    const { width, height } = image.size(bytes);
    const crop = { x: 10, y: 0, width: width - 10, height };
    const resize = { width: 20, height: 20 };
    return [
      await image.decode(bytes),
      await image.decode(bytes, { crop, resize, flip: true }),
      await image.decode(bytes, { crop, dtype: "float16", layout: "CHW" }),
    ];
  });
  await using sandbox = await Sandbox.open();
  const crop = { x: 10, y: 0, width: 50, height: 40 };
  const resize = { width: 20, height: 20 };
  // Many at a time, in order, and the function's own bytes are not overwritten.
  const many = Dataset.from([jpeg]).map(async (bytes, { image }) => {
    const all = await Promise.all(Array.from({ length: 100 }, () => image.decode(bytes)));
    return [all.length, bytes.byteLength];
  });
  const wrong = ["undefined", "7", "new Uint8Array(4)", "new Uint8Array([255, 216, 255])"];
  const [decoded, all, ...came] = await sandbox.elementsOf(
    decoding,
    many,
    evaluating(wrong.map((bytes) => `extra.image.decode(${bytes})`)),
  );
  assertEquals(decoded, {
    value: [
      await images.decode(jpeg),
      await images.decode(jpeg, { crop, resize, flip: true }),
      await images.decode(jpeg, { crop, dtype: "float16", layout: "CHW" }),
    ],
  });
  assertEquals(all, { value: [100, jpeg.byteLength] });
  assertEquals(came.map((one) => "code" in one && one.code), [
    ...["invalid_argument", "invalid_argument", "invalid_argument"] as const,
    "data_loss",
  ]);
});

Deno.test("an image over its host's limit is refused in the runner, which continues", async () => {
  await using sandbox = await Sandbox.open();
  const [refused, next] = await sandbox.elementsOf(
    evaluating(["extra.image.decode(new Uint8Array(128 * 2 ** 20))", "1 + 1"]),
  );
  assertEquals("code" in refused! && refused.code, "resource_exhausted");
  assertStringIncludes("message" in refused! ? refused.message : "", "CONFINED_ASK_BYTES_MAX");
  assertEquals(next, { value: 2 });
});

Deno.test("a confined pipeline reads only granted far files", async () => {
  const text = Array.from({ length: 50_000 }, (_, i) => `line ${i}\n`).join("");
  await using server = new RangeServer(new TextEncoder().encode(text));
  const { origin } = server;
  await using sandbox = await Sandbox.open({}, () => ({ dataRoots: [`${origin}/data`] }));
  const lines = (path: string) => Dataset.textLines(`${origin}${path}`);
  const read = await sandbox.elements(
    lines("/data/a.txt").batch(50_000).map((batch) => batch.shape),
  );
  assertEquals(read, [{ value: [50_000] }]);
  const asked = server.ranges.length;
  const elsewhere = lines("/other/a.txt").concatenate(lines("/data/../other/a.txt"));
  // The function itself may not fetch what its pipeline may read.
  const fetching = evaluating([`fetch("${origin}/data/a.txt")`]);
  const denials = await sandbox.elementsOf(elsewhere, fetching);
  assertEquals(denials.length, 3);
  for (const came of denials) assertEquals("code" in came && came.code, "permission_denied");
  for (const came of denials.slice(0, 2)) {
    assertStringIncludes("message" in came ? came.message : "", `--data-root=${origin}`);
  }
  assertEquals(server.ranges.length, asked); // nobody was asked for them
});

Deno.test("a confined pipeline reads an object store below its root, with the credentials of its worker", async () => {
  await using server = await S3Server.start();
  await server.put("shards/a.txt", "one\ntwo\n");
  await server.put("other/a.txt", "three\n");
  const storage = { storage: { s3: server.options } };
  const grants = () => ({ dataRoots: ["s3://bucket/shards"] });
  await using sandbox = await Sandbox.open({}, grants, storage);
  const [one, two, denied] = await sandbox.elementsOf(
    Dataset.textLines(Dataset.listFiles("s3://bucket/shards/*")),
    Dataset.textLines("s3://bucket/other/a.txt"),
  );
  assertEquals([one, two], [{ value: "one" }, { value: "two" }]);
  assertEquals("code" in denied! && denied.code, "permission_denied");
});

Deno.test("redirects lead a confined pipeline only to what was granted", async () => {
  const contents = new TextEncoder().encode("line\n");
  await using server = new RangeServer(contents);
  await using granted = new RangeServer(contents);
  await using other = new RangeServer(new TextEncoder().encode("secret\n"));
  const seen: unknown[] = [];
  const targets: Record<string, string> = {
    "/data/near": "/data/deep/../near.txt",
    "/data/far": `${granted.origin}/data/near`,
    "/data/port": `${other.origin}/data/near.txt`,
    "/data/path": "/other/secret.txt?signature=hidden",
    "/data/up": "/data/../other/secret.txt",
    "/data/escaped": "/data/..%2fother/secret.txt",
    "/data/beside": `${server.origin}/database/secret.txt`,
    "/data/user": `http://127.0.0.1:${new URL(server.origin).port}@localhost/data/secret.txt`,
    "/data/file": "file:///etc/hostname",
  };
  server.fault = ({ url, headers }) => {
    const { pathname } = new URL(url);
    seen.push([pathname, headers.get("x-api-key")]);
    const location = targets[pathname];
    return location === undefined
      ? undefined
      : new Response("moved", { status: 302, headers: { location } });
  };
  granted.fault = ({ url, headers }) => {
    const { pathname } = new URL(url);
    seen.push([`granted ${pathname}`, headers.get("x-api-key")]);
    const location = { "/data/near": "/data/port", "/data/port": `${server.origin}/data/port` };
    return new Response("moved", {
      status: 308,
      headers: { location: location[pathname as keyof typeof location] },
    });
  };
  const headers = { [server.origin]: { "x-api-key": "key" } };
  const dataRoots = [`${server.origin}/data`, `${granted.origin}/data/`];
  await using sandbox = await Sandbox.open({}, () => ({ dataRoots }), {
    // A slow machine is no silent server: a further request would be seen, too.
    storage: { http: { headers }, requests: { timeoutMs: PATIENCE_MS } },
  });
  const lines = (name: string) => Dataset.textLines(`${server.origin}/data/${name}`);
  assertEquals(await sandbox.elements(lines("near")), [{ value: "line" }]);
  assertEquals(seen.splice(0), [["/data/near", "key"], ["/data/near.txt", "key"]]);
  const outside = ["port", "path", "up", "escaped", "beside", "user", "far"];
  const denials = await sandbox.elementsOf(...outside.map(lines));
  assertEquals(denials.map((came) => "code" in came && came.code), [
    ...outside.map(() => "permission_denied" as const),
  ]);
  const told = denials.map((came) => "message" in came ? came.message : "");
  for (const message of told) assertStringIncludes(message, "redirects out of what is granted");
  assertStringIncludes(told[0]!, `read access to "${other.origin}/data/near.txt"`);
  assertStringIncludes(told[0]!, `--data-root=${other.origin}/data)`);
  assertStringIncludes(told[1]!, `read access to "${server.origin}/other/secret.txt?…"`);
  assertStringIncludes(told[1]!, `--data-root=${server.origin}/other)`);
  assertStringIncludes(told[6]!, `--data-root=${other.origin}/data)`);
  assertEquals(seen, [
    ...outside.map((name) => [`/data/${name}`, "key"]),
    ["granted /data/near", null],
    ["granted /data/port", null],
    ["/data/port", null],
  ]);
  assertEquals(other.ranges, []);
  const [noFile] = await sandbox.elements(lines("file"));
  assertEquals(noFile && "code" in noFile && noFile.code, "failed_precondition");
  // Listing sends the same kind of request to the server.
  const [listed] = await sandbox.elements(Dataset.listFiles(`${server.origin}/data/port`));
  assertEquals(listed && "code" in listed && listed.code, "permission_denied");
  assertEquals(other.ranges, []);
});

Deno.test("large elements of a confined pipeline do not overlap, though their memory is reused", async () => {
  await using sandbox = await Sandbox.open();
  // Prefetched, as a task does, and kept.
  const runner = sandbox.runners.start(
    settingsOf(Dataset.range(400_000).map((x) => x + 1).batch(40_000)),
    NO_SPLITS,
  );
  const outcomes = await Promise.all(Array.from({ length: 10 }, () => runner.next()));
  for (const [i, outcome] of outcomes.entries()) {
    assert(outcome.kind === "element");
    const { data } = decodeMessage(outcome.frame) as Tensor;
    assertEquals([data.length, data[0], data[39_999]], [40_000, 40_000 * i + 1, 40_000 * (i + 1)]);
  }
  runner.dispose();
});

Deno.test("confined runners run single splits, list them, and count what they read", async () => {
  await using sandbox = await Sandbox.open({ "data/a.txt": "one\ntwo\n", "data/b.txt": "three\n" });
  const { folder, runners } = sandbox;
  const files = [`${folder}/data/a.txt`, `${folder}/data/b.txt`];
  const none = { next: () => Promise.resolve(null), total: () => Promise.resolve(0) };
  const counting = runners.start(settingsOf(Dataset.textLines(files)), none);
  for (let i = 0; i < 3; i++) assertEquals((await counting.next()).kind, "element");
  assertEquals((await counting.next()).kind, "end");
  assertEquals(counting.bytesRead, 14);
  counting.dispose();
  const batches = Dataset.range(10).batch(2);
  const single = runners.start(settingsOf(batches), none);
  const outcome = await single.next({ index: 3, start: 6, stop: 9, grant: 1 });
  assertEquals(
    outcome.kind === "element" && (decodeMessage(outcome.frame) as Tensor).toArray(),
    [6, 7],
  );
  assertEquals((await single.next({ index: 3, start: 6, stop: 9, grant: 1 })).kind, "remainder");
  single.dispose();
  const smaller = runners.start(settingsOf(Dataset.range(1_000).batch(1_000)), none);
  const compressed = await smaller.next(undefined, { codec: "zstd", isTrial: false });
  assert(compressed.kind === "element" && isCompressed(compressed.frame));
  assertEquals(compressed.trial!.compressedBytes, compressed.frame.length);
  assertEquals((decodeMessage(decompressFrame(compressed.frame)) as Tensor).size, 1_000);
  smaller.dispose();
  const [table] = await runners.listSplits(Dataset.range(600).batch(10).serialize());
  assertEquals([...table!.subarray(0, 2)], [0, 10]);
});

Deno.test("a confined pipeline reads formats that other threads load lazily", async () => {
  await using sandbox = await Sandbox.open({ "data/a.csv": "x\n1\n" });
  const data = `${sandbox.folder}/data`;
  const x = Float64Array.of(2);
  const files = {
    "b.arrow": tableToIPC(tableFromArrays({ x }), "file"),
    "c.parquet": new Uint8Array(
      parquetWriteBuffer({ columnData: [{ name: "x", data: [3], type: "DOUBLE" }] }),
    ),
    "d.tar": tar({ name: "d.cls", contents: "4" }),
    "e.zst": zstdCompressSync("5\n"),
  };
  for (const [name, bytes] of Object.entries(files)) await Deno.writeFile(`${data}/${name}`, bytes);
  const all: Dataset<unknown> = Dataset.csv(`${data}/a.csv`, { columns: { x: "int32" } });
  const read = all
    .concatenate(Dataset.arrow(`${data}/b.arrow`))
    .concatenate(Dataset.parquet(`${data}/c.parquet`))
    .concatenate(Dataset.webDataset(`${data}/d.tar`, { decode: ["cls"] }))
    .concatenate(Dataset.textLines(Dataset.listFiles(`${data}/*.zst`), { compression: "zstd" }));
  assertEquals(await sandbox.elements(read), [
    ...[{ x: 1 }, { x: 2 }, { x: 3 }, { __key__: "d", cls: 4 }, "5"].map((value) => ({ value })),
  ]);
});
