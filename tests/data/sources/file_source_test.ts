/** Sources that read files: textLines, tfRecords and jsonLines over real files, some of them missing or damaged. */

import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";
import { deflateSync, gzipSync } from "node:zlib";
import { LeatError } from "../../../core/error.ts";
import { Tensor } from "../../../core/tensor.ts";
import { NodeFunction } from "../../../data/udf/call.ts";
import { openIterator } from "../../../data/dataset_iterator.ts";
import { encodeTfRecord } from "../../../data/formats/tfrecord/tfrecord.ts";
import type { Files, OpenFile } from "../../../data/host.ts";
import { Dataset } from "../../../data/mod.ts";
import { UNKNOWN_CARDINALITY } from "../../../data/node.ts";
import { InterleaveNode } from "../../../data/operators/combining/interleave.ts";
import { FromNode } from "../../../data/operators/sources/from.ts";
import { AUTOTUNE } from "../../../data/parallelism.ts";
import { fileNumber } from "../../../data/sources/files.ts";
import { PARALLEL_READS_MAX } from "../../../data/sources/file_source.ts";
import { JsonLinesNode } from "../../../data/sources/json_lines.ts";
import { ListFilesNode } from "../../../data/sources/list_files.ts";
import { TextLinesNode } from "../../../data/sources/text_lines.ts";
import { TfRecordsNode } from "../../../data/sources/tf_records.ts";
import { isSplittable, listSplitTable } from "../../../data/sharding/splits.ts";
import { TensorSpec } from "../../../data/elements/spec.ts";
import { udf } from "../../../data/udf/module_function.ts";
import { deserializeGraph, serializeGraph } from "../../../data/wire.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { DenoFiles, withStorageLatency } from "../../../platform/storage/files.ts";
import { concat } from "../formats/reading.ts";
import "../lib/collect.ts";
import { withFiles } from "../../lib/temp_folder.ts";
import { collect, splitsOf } from "./running.ts";

const records = (...texts: string[]) =>
  concat(...texts.map((text) => encodeTfRecord(new TextEncoder().encode(text))));

/** Elements as text, errors as their codes. */
function shown(found: readonly unknown[]): unknown[] {
  return found.map((element) => {
    if (element instanceof Uint8Array) return new TextDecoder().decode(element);
    return element instanceof LeatError ? element.code : element;
  });
}

/** Files that count how many of them are open. */
class WatchedFiles implements Files {
  openNow = 0;
  openMax = 0;
  readonly #near: Files;
  /** Each settles when a file could not be opened, or was read, or closed again. */
  readonly #begun: Promise<unknown>[] = [];

  constructor(near: Files) {
    this.#near = near;
  }

  list(pattern: string): Promise<string[]> {
    return this.#near.list(pattern);
  }

  async open(path: string): Promise<OpenFile> {
    const gone = Promise.withResolvers<void>();
    this.#begun.push(gone.promise);
    const file = await this.#near.open(path).catch((error) => {
      gone.resolve();
      throw error;
    });
    this.openMax = Math.max(this.openMax, ++this.openNow);
    let closed = false;
    return {
      sizeBytes: file.sizeBytes,
      read: (into, offset) => {
        const reading = file.read(into, offset);
        this.#begun.push(Promise.resolve(reading).catch(() => {}));
        return reading;
      },
      close: () => {
        if (!closed) this.openNow--;
        closed = true;
        file.close();
        gone.resolve();
      },
    };
  }

  /** Resolves when nothing is pending and no file is open. */
  async settled(): Promise<void> {
    while (this.#begun.length > 0) await this.#begun.pop();
  }
}

const LINES = { a: "a1\na2\na3\na4", b: "b1\n", empty: "", c: "c1\r\nc2" };

Deno.test("textLines reads file after file", async () => {
  await withFiles(LINES, async (folder) => {
    const paths = ["a", "b", "empty", "c"].map((name) => `${folder}/${name}`);
    const lines = ["a1", "a2", "a3", "a4", "b1", "c1", "c2"];
    assertEquals(await collect(new TextLinesNode(paths)), lines);
    assertEquals(await collect(new TextLinesNode(paths[1])), ["b1"]);
    assertEquals(await collect(new TextLinesNode([])), []);
    assertEquals(await collect(new TextLinesNode({ node: new FromNode(paths) })), lines);
    const listed = new ListFilesNode(`${folder}/[ac]`, { shuffle: false });
    assertEquals((await collect(new TextLinesNode({ node: listed }))).length, 6);
  });
});

Deno.test("tfRecords and jsonLines read file after file", async () => {
  const files = { a: records("a1", "", "a3"), b: records("b1"), c: '{"x":1}\n\n[2]\n' };
  await withFiles(files, async (folder) => {
    const found = await collect(new TfRecordsNode([`${folder}/a`, `${folder}/b`]));
    assertEquals(shown(found), ["a1", "", "a3", "b1"]);
    assertEquals(await collect(new JsonLinesNode(`${folder}/c`)), [{ x: 1 }, [2]]);
  });
});

Deno.test("file sources decompress gzip and zlib", async () => {
  const plain = records("one", "two");
  await withFiles(
    { gz: gzipSync(plain), zz: deflateSync(plain), l: gzipSync("x\ny") },
    async (folder) => {
      for (const [name, compression] of [["gz", "gzip"], ["zz", "zlib"]] as const) {
        const found = await collect(new TfRecordsNode(`${folder}/${name}`, { compression }));
        assertEquals(shown(found), ["one", "two"]);
      }
      assertEquals(await collect(new TextLinesNode(`${folder}/l`, { compression: "gzip" })), [
        "x",
        "y",
      ]);
      const wrong = await collect(
        new TfRecordsNode([`${folder}/gz`, `${folder}/zz`], { compression: "gzip" }),
      );
      assertEquals(shown(wrong), ["one", "two", "data_loss"]);
    },
  );
});

Deno.test("a file that cannot be read is one error that names it, and the next file is read", async () => {
  await withFiles(LINES, async (folder) => {
    const paths = ["missing", "a", "gone", ".", "b"].map((name) => `${folder}/${name}`);
    for (const numParallelReads of [1, 2, 5]) {
      const found = await collect(new TextLinesNode(paths, { numParallelReads }));
      const errors = found.filter((element) => element instanceof LeatError);
      assertEquals(errors.map((error) => error.code).toSorted(), [
        "invalid_argument",
        "not_found",
        "not_found",
      ]);
      assertStringIncludes(errors[0]!.message, `${folder}/missing`);
      assertEquals(
        found.filter((element) => typeof element === "string").toSorted(),
        ["a1", "a2", "a3", "a4", "b1"],
      );
    }
    const found = await collect(new TextLinesNode(paths));
    const expected = ["not_found", "a1", "a2", "a3", "a4", "not_found", "invalid_argument", "b1"];
    assertEquals(shown(found), expected);
  });
});

Deno.test("a source given a pattern hints at listFiles, and gives no hint for other missing files", async () => {
  for (
    const [node, instead] of [
      [new TfRecordsNode("gone/*.tfrecord"), 'Dataset.tfRecords(Dataset.listFiles("gone/*.tfr'],
      [new TextLinesNode(["gone/a", "gone/?"]), 'Dataset.textLines(Dataset.listFiles("gone/?"))'],
    ] as const
  ) {
    const last = (await collect(node)).at(-1) as LeatError;
    assertEquals(last.code, "not_found");
    assertStringIncludes(last.message, instead);
  }
  const [plain] = await collect(new TextLinesNode("gone/a"));
  assert(!(plain as LeatError).message.includes("listFiles"));
});

Deno.test("errors of a source name a URL without its password and query, and do not advise listFiles", async () => {
  const url = (origin: string, path: string) =>
    `${origin}/${path}?signature=secret`.replace("//", "//user:secret@");
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    (request) => new Response("1234567", { status: request.url.includes("gone") ? 404 : 200 }),
  );
  const origin = `http://127.0.0.1:${server.addr.port}`;
  for (
    const [code, node] of [
      ["not_found", new TextLinesNode(url(origin, "gone"))],
      ["data_loss", new TfRecordsNode(url(origin, "damaged"))],
      ["data_loss", Dataset.parquet(url(origin, "damaged")).node],
      [
        "invalid_argument",
        Dataset.fixedLengthRecords(url(origin, "damaged"), { recordBytes: 4 }).node,
      ],
    ] as const
  ) {
    const error = (await collect(node)).at(-1) as LeatError;
    assertEquals(error.code, code, error.message);
    const told = `${Deno.inspect(error)} ${JSON.stringify(error.toWire())}`;
    assertStringIncludes(told, `${origin}/`);
    assert(!/secret|listFiles/.test(told), told);
  }
});

Deno.test("errors of a listing, a load and a module name a URL without its password and query", async () => {
  const url = "http://user:secret@127.0.0.1:1/x?signature=secret";
  const failures = [
    () => Array.fromAsync(Dataset.listFiles(url)),
    () => Dataset.load(url),
    () => Promise.try(() => udf(url.replace("127", "1 27"), "f")),
  ];
  for (const failure of failures) {
    const { message } = await assertRejects(failure, LeatError) as LeatError;
    assert(!message.includes("secret"), message);
  }
});

Deno.test("a damaged file gives the records before the damage, one error, then the next file", async () => {
  const cut = records("a1", "a2").slice(0, -3);
  const badData = records("b1", "b2", "b3");
  badData[18 + 12]! ^= 1;
  const badLength = records("c1", "c2", "c3");
  badLength[18]! ^= 1;
  await withFiles({ cut, badData, badLength, ok: records("ok") }, async (folder) => {
    const paths = ["cut", "badData", "badLength", "ok"].map((name) => `${folder}/${name}`);
    const found = await collect(new TfRecordsNode(paths));
    assertEquals(
      shown(found),
      ["a1", "data_loss", "b1", "data_loss", "b3", "c1", "data_loss", "ok"],
    );
    const errors = found.filter((element) => element instanceof LeatError);
    const details = [
      { path: paths[0], offset: 18 },
      { path: paths[1], offset: 18, crc: "data" },
      { path: paths[2], offset: 18, crc: "length" },
    ];
    assertEquals(errors.map((error) => error.details), details);
  });
});

Deno.test("an invalid path or an error in a dataset of files loses only that entry", async () => {
  await withFiles(LINES, async (folder) => {
    for (const numParallelReads of [1, 3]) {
      const files = new FromNode([`${folder}/b`, 7, `${folder}/c`]);
      const found = await collect(new TextLinesNode({ node: files }, { numParallelReads }));
      assertEquals(shown(found).toSorted(), ["b1", "c1", "c2", "invalid_argument"]);
      const none = new ListFilesNode(`${folder}/none*`);
      const failed = await collect(new TextLinesNode({ node: none }, { numParallelReads }));
      assertEquals(shown(failed), ["not_found"]);
    }
  });
});

Deno.test("numParallelReads reads in round-robin order, whichever file responds first", async () => {
  const files = { a: "a1\na2\na3\na4\na5", b: "b1", c: "c1\nc2", d: "d1\nd2", empty: "" };
  const inTurn: Record<number, string> = {
    1: "a1 a2 a3 a4 a5 b1 c1 c2 d1 d2",
    // The end of a file takes a turn: after b1 that of b, then that of the empty file, then c is
    // next.
    2: "a1 b1 a2 a3 a4 c1 a5 c2 d1 d2",
    4: "a1 b1 c1 a2 d1 c2 a3 d2 a4 a5",
    9: "a1 b1 c1 d1 a2 c2 d2 a3 a4 a5",
  };
  await withFiles(files, async (folder) => {
    const paths = ["a", "b", "empty", "c", "d"].map((name) => `${folder}/${name}`);
    const near = new DenoFiles();
    let turn = 0;
    /** Completes some requests much later than others. */
    const uneven: Files = {
      list: (pattern) => near.list(pattern),
      open: (path) => withStorageLatency(near, ++turn % 3).open(path),
    };
    for (const [lanes, expected] of Object.entries(inTurn)) {
      const node = new TextLinesNode(paths, { numParallelReads: Number(lanes) });
      for (const host of [new DenoHost(), new DenoHost({ files: uneven })]) {
        assertEquals((await collect(node, { host })).join(" "), expected, `${lanes} lanes`);
      }
      const read = (path: string) => ({ node: new TextLinesNode(path) });
      const fn = new NodeFunction("interleave", "fn", read);
      const cycle = new InterleaveNode(new FromNode(paths), fn, { cycleLength: Number(lanes) });
      assertEquals((await collect(cycle)).join(" "), expected, "as interleave has it");
    }
  });
});

Deno.test("numParallelReads limits the open files, and closes every one", async () => {
  const names = Array.from({ length: 10 }, (_, i) => String(i));
  await withFiles(Object.fromEntries(names.map((name) => [name, "x\ny\nz"])), async (folder) => {
    for (const numParallelReads of [1, 4, 20]) {
      const files = new WatchedFiles(new DenoFiles());
      const host = new DenoHost({ files });
      const node = new TextLinesNode(names.map((name) => `${folder}/${name}`), {
        numParallelReads,
      });
      assertEquals((await collect(node, { host })).length, 30);
      assertEquals([files.openNow, files.openMax], [0, Math.min(numParallelReads, 10)]);
      const iterator = openIterator(node, { host });
      await iterator.next();
      await iterator[Symbol.asyncDispose]();
      await files.settled();
      assertEquals(files.openNow, 0);
    }
  });
});

Deno.test({
  name: "an iterator that is disposed while it opens or reads gives its files back",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    await withFiles({ a: records("a1"), gz: gzipSync(records("b1", "b2")) }, async (folder) => {
      const cases: [string, "gzip" | undefined][] = [["a", undefined], ["gz", "gzip"]];
      for (const [name, compression] of cases) {
        for (const numParallelReads of [1, 2]) {
          const files = new WatchedFiles(withStorageLatency(new DenoFiles(), 3));
          const host = new DenoHost({ files });
          const node = new TfRecordsNode(`${folder}/${name}`, { compression, numParallelReads });
          for (const waitMs of [0, 1, 4, 7]) {
            const iterator = openIterator(node, { host });
            const pending = iterator.next();
            await host.sleep(waitMs);
            await iterator[Symbol.asyncDispose]();
            await pending;
            await files.settled();
            assertEquals(files.openNow, 0);
          }
        }
      }
    });
  },
});

Deno.test("file sources whose files do not divide are split file by file", async () => {
  const files = { a: records("a1"), b: records("b1"), c: records("c1", "c2") };
  await withFiles(files, async (folder) => {
    const host = new DenoHost();
    const paths = ["a", "b", "c"].map((name) => `${folder}/${name}`);
    const node = new TfRecordsNode(paths);
    const perFile = [{ start: 0, stop: 1 }, { start: 1, stop: 2 }, { start: 2, stop: 3 }];
    assertEquals(await listSplitTable(node, host), [perFile]);
    assertEquals(isSplittable(node), false); // what is split is the dataset of files below it
    assertEquals(
      shown(await collect(node, { splits: splitsOf([2, 3], [1, 2]) })),
      ["c1", "c2", "b1"],
    );
    const listed = new TfRecordsNode({ node: new ListFilesNode(`${folder}/[abc]`) });
    const numbers = paths.map((_, index) => fileNumber(paths, index));
    const perNumber = numbers.map((start) => ({ start, stop: start + 1 }));
    assertEquals(await listSplitTable(listed, host), [perNumber]);
    const second = splitsOf([numbers[1]!, numbers[1]! + 1]);
    assertEquals(shown(await collect(listed, { splits: second })), ["b1"]);
    assertEquals(isSplittable(new TextLinesNode(paths, { compression: "gzip" })), false);
    const through = new TextLinesNode(Dataset.listFiles(`${folder}/*`).take(2));
    assertEquals(isSplittable(through), false); // its files are not listed directly below it
  });
});

Deno.test("file sources know their spec and, where possible, their cardinality", () => {
  assertEquals(new TextLinesNode("x").elementSpec, new TensorSpec("string", []));
  assertEquals(new TfRecordsNode("x").elementSpec, new TensorSpec("bytes", []));
  assertEquals(new JsonLinesNode("x").elementSpec, undefined);
  assertEquals(new TextLinesNode("x").cardinality, UNKNOWN_CARDINALITY);
  assertEquals(new TextLinesNode([]).cardinality, 0);
});

Deno.test("file sources check their arguments", () => {
  const cases: [unknown, Record<string, unknown>][] = [
    [undefined, {}],
    ["", {}],
    [["a", ""], {}],
    [{}, {}],
    ["a", { compression: "zip" }],
    ["a", { numParallelReads: 0 }],
    ["a", { numParallelReads: PARALLEL_READS_MAX + 1 }],
    ["a", { numParallelReads: 1.5 }],
  ];
  for (const [files, options] of cases) {
    for (
      const [kind, Node] of Object.entries({ textLines: TextLinesNode, tfRecords: TfRecordsNode })
    ) {
      const error = assertThrows(() => new Node(files, options), LeatError) as LeatError;
      assertEquals(error.code, "invalid_argument");
      assertStringIncludes(error.message, kind);
    }
  }
});

Deno.test("file sources can be serialised, with the value of AUTOTUNE", async () => {
  await withFiles({ a: "1\n2", b: "3" }, async (folder) => {
    const paths = [`${folder}/a`, `${folder}/b`];
    const nodes = [
      new TextLinesNode(paths, { numParallelReads: AUTOTUNE }),
      new JsonLinesNode({ node: new ListFilesNode(`${folder}/*`, { seed: 1 }) }),
      new TfRecordsNode(paths, { compression: "gzip" }),
    ];
    assertEquals(nodes[0]!.numParallelReads, 4);
    for (const node of nodes) {
      const copy = deserializeGraph(serializeGraph(node), { isOwn: true });
      assertEquals(serializeGraph(copy), serializeGraph(node));
      assertEquals(shown(await collect(copy)), shown(await collect(node)));
    }
  });
});

Deno.test("batch stacks records of any length as bytes, functions get each as a Uint8Array", async () => {
  const texts = ["a", "", "ccc"].map((text) => new TextEncoder().encode(text));
  await withFiles({ "1": records("a", ""), "2": records("ccc") }, async (folder) => {
    const files = [`${folder}/1`, `${folder}/2`];
    const spec = new TensorSpec("bytes", []);
    const datasets: Dataset<Uint8Array>[] = [
      Dataset.tfRecords(files),
      Dataset.deserialize(Dataset.tfRecords(files).serialize(), { trustPipeline: true }) as Dataset<
        Uint8Array
      >,
      Dataset.tfRecords(files).filter((record) => record instanceof Uint8Array).prefetch(1),
      Dataset.tfRecords(files).map((record) => record.slice(), { spec }),
      Dataset.from(files).flatMap((file, { Dataset }) => Dataset.tfRecords(file), { spec }),
      Dataset.from(files).interleave((file, { Dataset }) => Dataset.tfRecords(file), {
        cycleLength: 1,
        spec,
      }),
    ];
    for (const dataset of datasets) {
      assertEquals(dataset.batch(3).elementSpec, new TensorSpec("bytes", [null]));
      for (const batches of [dataset.batch(3), dataset.paddedBatch(3)]) {
        for await (const batch of batches) assertEquals(batch, new Tensor("bytes", [3], texts));
      }
      const rows: unknown[] = [];
      for await (const row of dataset.batch(2).unbatch()) rows.push(row);
      assertEquals(rows, texts);
    }
    const unspecified = Dataset.tfRecords(files).map((record) => record).batch(3).iterator();
    await assertRejects(() => unspecified.next(), LeatError, `new TensorSpec("bytes", [])`);
    await unspecified.return();
  });
});
