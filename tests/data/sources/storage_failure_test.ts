/**
 * Storage that cannot answer for a while: the reading ends, no element is lost, and a checkpoint
 * continues from the position before the failure.
 */

import { Uint8ArrayReader, Uint8ArrayWriter, ZipWriter } from "@zip.js/zip.js";
import { tableFromArrays, tableToIPC } from "apache-arrow";
import { parquetWriteBuffer } from "hyparquet-writer";
import { gzipSync } from "node:zlib";
import { LeatError, type LeatErrorCode } from "../../../core/error.ts";
import { type DatasetIterator, openIterator } from "../../../data/dataset_iterator.ts";
import { encodeTfRecord } from "../../../data/formats/tfrecord/tfrecord.ts";
import type { Files, OpenFile } from "../../../data/host.ts";
import { Dataset } from "../../../data/mod.ts";
import type { SplitSource } from "../../../data/sharding/splits.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { FIRST_RANGE_BYTES } from "../../../platform/storage/far_file.ts";
import { StorageFiles } from "../../../platform/storage/storage.ts";
import { assert, assertEquals } from "../../assert.ts";
import { inFolder, withFiles } from "../../lib/temp_folder.ts";
import { RangeServer } from "../../platform/storage/range_server.ts";
import { npyBytes } from "../formats/npy_bytes.ts";
import { concat } from "../formats/reading.ts";
import { tar } from "../formats/tar_writer.ts";
import { rounds } from "../lib/collect.ts";
import { type Outcome, outcomesOf, readOutcomes } from "../lib/outcomes.ts";

const utf8 = (text: string) => new TextEncoder().encode(text);
const ROWS = 12;
const rows = <T>(make: (row: number) => T): T[] => Array.from({ length: ROWS }, (_, i) => make(i));

/** Real files in small reads. From the request `failsFrom` on, every request fails. */
class FailingFiles implements Files {
  requests = 0;
  readonly #files = new DenoHost().files;
  readonly #failsFrom: number;
  readonly #code: LeatErrorCode;

  constructor(failsFrom: number, code: LeatErrorCode = "unavailable") {
    this.#failsFrom = failsFrom;
    this.#code = code;
  }

  async open(path: string): Promise<OpenFile> {
    this.#request();
    const file = await this.#files.open(path);
    return {
      sizeBytes: file.sizeBytes,
      read: (into, offset) => {
        // Some reads fail at once, others later.
        const isLate = this.requests % 3 > 0;
        const read = () => {
          this.#request();
          return file.read(into.subarray(0, 150), offset);
        };
        return isLate ? Promise.resolve().then(read) : read();
      },
      close: () => file.close(),
    };
  }

  list(pattern: string): Promise<string[]> {
    return this.#files.list(pattern);
  }

  #request(): void {
    if (++this.requests >= this.#failsFrom) throw new LeatError(this.#code, "the storage is away");
  }
}

/** Two sound records, one with damaged data, and sound ones. */
const RECORDS = (() => {
  const records = rows((row) => encodeTfRecord(new Uint8Array(100 + row).fill(row)));
  records[2]![20]! ^= 1;
  return concat(...records);
})();

const LINES = utf8(rows((row) => `${row} ${"x".repeat(90)}\n`).join("\n"));
const QUOTED = utf8(`a,b\n${rows((row) => `"${row}\n${"y".repeat(90)}",${row}\n`).join("")}`);
const COLUMN = Float64Array.from(rows((row) => row * 1e6));
const TABLE = tableFromArrays({ x: COLUMN, name: rows((row) => `${"n".repeat(50)} ${row}`) });

async function archive(level: number): Promise<Uint8Array> {
  const writer = new ZipWriter(new Uint8ArrayWriter(), { useWebWorkers: false, level });
  await writer.add("x.npy", new Uint8ArrayReader(npyBytes("<f8", [ROWS], COLUMN)));
  return await writer.close();
}

/** Samples of two parts each. */
const TAR = tar(
  ...[0, 1, 2, 3, 4].map((i) => ({ name: `${i >> 1}.${i % 2}`, contents: "b".repeat(200 * i) })),
);

interface Reading {
  readonly numParallelReads: number;
}

interface Format {
  readonly bytes: Uint8Array;
  open(paths: string[], reading: Reading): Dataset<unknown>;
}

const FORMATS: Record<string, Format> = {
  tfRecords: { bytes: RECORDS, open: (paths, reading) => Dataset.tfRecords(paths, reading) },
  "tfRecords, compressed": {
    bytes: gzipSync(RECORDS, { level: 0 }),
    open: (paths, reading) => Dataset.tfRecords(paths, { ...reading, compression: "gzip" }),
  },
  textLines: { bytes: LINES, open: (paths, reading) => Dataset.textLines(paths, reading) },
  "textLines, compressed": {
    bytes: gzipSync(LINES, { level: 0 }),
    open: (paths, reading) => Dataset.textLines(paths, { ...reading, compression: "gzip" }),
  },
  csv: { bytes: QUOTED, open: (paths, reading) => Dataset.csv(paths, reading) },
  "csv without quotes": {
    bytes: LINES,
    open: (paths, reading) =>
      Dataset.csv(paths, { ...reading, useQuoteDelim: false, delimiter: " " }),
  },
  fixedLengthRecords: {
    bytes: LINES.slice(0, 5 + 9 * 100),
    open: (paths, reading) =>
      Dataset.fixedLengthRecords(paths, { ...reading, recordBytes: 100, headerBytes: 5 }),
  },
  imageFolder: {
    bytes: LINES,
    open: (paths, reading) =>
      Dataset.imageFolder(paths[0]!.replace(/\/[^/]*\/[^/]*$/, ""), {
        ...reading,
        decode: false,
        shuffle: false,
      }),
  },
  webDataset: { bytes: TAR, open: (paths, reading) => Dataset.webDataset(paths, reading) },
  parquet: {
    bytes: new Uint8Array(parquetWriteBuffer({
      columnData: [{ name: "x", type: "DOUBLE", data: [...COLUMN] }],
      rowGroupSize: 4,
    })),
    open: (paths, reading) => Dataset.parquet(paths, reading),
  },
  "arrow file": {
    bytes: tableToIPC(TABLE, "file"),
    open: (paths, reading) => Dataset.arrow(paths, reading),
  },
  "arrow stream": {
    bytes: tableToIPC(TABLE, "stream"),
    open: (paths, reading) => Dataset.arrow(paths, reading),
  },
  npy: {
    bytes: npyBytes("<f8", [ROWS], COLUMN),
    open: (paths, reading) => Dataset.npy(paths, reading),
  },
  npz: { bytes: await archive(0), open: (paths, reading) => Dataset.npz(paths, reading) },
  "npz, compressed": {
    bytes: await archive(9),
    open: (paths, reading) => Dataset.npz(paths, reading),
  },
};

const open = (dataset: Dataset<unknown>, failsFrom = Infinity, code?: LeatErrorCode) =>
  openIterator(dataset.node, { host: new DenoHost({ files: new FailingFiles(failsFrom, code) }) });

/** The outcomes up to a failure of the storage, or to the end. */
async function outcomesUntilFailure(iterator: DatasetIterator<unknown>): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  while (!iterator.hasReadingFailed) {
    const [outcome] = await readOutcomes(iterator, 1);
    if (outcome === undefined) return outcomes;
    if (!iterator.hasReadingFailed) outcomes.push(outcome);
  }
  return outcomes;
}

/**
 * Lets the storage fail from each request on. Saves after the first element, when the failure may be
 * held, and after the failure.
 *
 * @returns the number of iterators that failed.
 */
async function assertLosesNothing(
  dataset: Dataset<unknown>,
  where: string,
  code?: LeatErrorCode,
): Promise<number> {
  const wanted = await outcomesOf(open(dataset));
  const assertReadsOn = async (state: Uint8Array, before: Outcome[], where: string) => {
    await using restored = open(dataset);
    await restored.restore(state);
    assertEquals([...before, ...await outcomesOf(restored)], wanted, where);
  };
  for (let failsFrom = 1;; failsFrom++) {
    const from = `${where}: fails from request ${failsFrom}`;
    await using iterator = open(dataset, failsFrom, code);
    const before = await readOutcomes(iterator, 1);
    if (iterator.hasReadingFailed) before.pop();
    await rounds(50);
    await assertReadsOn(await iterator.save(), before, `${from}, saved early`);
    before.push(...await outcomesUntilFailure(iterator));
    if (!iterator.hasReadingFailed) {
      assertEquals(before, wanted);
      return failsFrom - 1;
    }
    await assertReadsOn(await iterator.save(), before, from);
  }
}

const READS = [1, 4];

for (const [name, format] of Object.entries(FORMATS)) {
  Deno.test(`${name}: a checkpoint loses nothing if the storage fails at any request`, async () => {
    const files = Object.fromEntries(
      ["a/1.jpg", "a/2.jpg", "b/3.jpg"].map((path) => [path, format.bytes]),
    );
    await withFiles(files, async (folder) => {
      const paths = Object.keys(files).map((name) => `${folder}/${name}`);
      for (const numParallelReads of READS) {
        const dataset = format.open(paths, { numParallelReads });
        const where = `${numParallelReads} reads`;
        const failures = await assertLosesNothing(dataset, where);
        assert(failures > 2 * paths.length, `only ${failures} failures`);
        await assertLosesNothing(dataset.prefetch(2), `${where}, prefetched`);
      }
    });
  });
}

Deno.test("load: a checkpoint loses nothing if the storage fails at any request", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/saved`;
    await Dataset.range(100).map((x) => "e".repeat(x)).save(path);
    const failures = await assertLosesNothing(await Dataset.load(path), "load");
    assert(failures > 5, `only ${failures} failures`);
  });
});

Deno.test("storage that cannot answer now ends the reading, a file that is refused is lost alone", async () => {
  await withFiles({ a: LINES, b: LINES }, async (folder) => {
    const dataset = Dataset.textLines([`${folder}/a`, `${folder}/b`]);
    for (const code of ["deadline_exceeded", "resource_exhausted"] as const) {
      await assertLosesNothing(dataset, code, code);
    }
    const outcomes = await outcomesOf(open(dataset, 1, "permission_denied"));
    assertEquals(outcomes, Array(2).fill({ error: "permission_denied: the storage is away" }));
  });
});

Deno.test("ignoreErrors passes on a failure of the storage", async () => {
  await withFiles({ a: RECORDS, b: RECORDS }, async (folder) => {
    for (const numParallelReads of READS) {
      const dataset = Dataset.tfRecords([`${folder}/a`, `${folder}/b`], { numParallelReads });
      await using iterator = open(dataset.ignoreErrors(), 7);
      const outcomes = await outcomesOf(iterator);
      assertEquals(outcomes.at(-1), { error: "unavailable: the storage is away" });
    }
  });
});

Deno.test("a web server that is away longer than all attempts costs no record", async () => {
  const record = (row: number) => encodeTfRecord(new Uint8Array(100_000).fill(row));
  const contents = concat(...Array.from({ length: 25 }, (_, row) => record(row)));
  assert(contents.length > 2 * FIRST_RANGE_BYTES);
  await using server = new RangeServer(contents);
  const paths = [1, 2, 3, 4, 5].map((number) => `${server.origin}/${number}`);
  const host = () => new DenoHost({ files: new StorageFiles({ requests: { attemptsMax: 1 } }) });
  const rowOf = (outcome: Outcome) => "element" in outcome && (outcome.element as Uint8Array)[0];
  for (const numParallelReads of READS) {
    const records = Dataset.tfRecords(paths, { numParallelReads });
    for (const { node } of [records, records.prefetch(2)]) {
      const wanted = await outcomesOf(openIterator(node, { host: host() }));
      await using iterator = openIterator(node, { host: host() });
      const healthy = server.ranges.length + numParallelReads;
      server.fault = (_, number) =>
        number > healthy ? new Response("busy", { status: 503 }) : undefined;
      const before = await outcomesUntilFailure(iterator);
      assert(iterator.hasReadingFailed);
      assert(before.length < wanted.length);
      const state = await iterator.save();
      server.fault = () => undefined;
      await iterator.restore(state);
      const after = await outcomesOf(iterator);
      assertEquals([...before, ...after].map(rowOf), wanted.map(rowOf));
    }
  }
});

/** Real files, of which no listing can be made. */
function unlistable(): DenoHost {
  const { files } = new DenoHost();
  const list = () => Promise.reject(new LeatError("unavailable", "the storage is away"));
  return new DenoHost({ files: { open: (path) => files.open(path), list } });
}

Deno.test("listFiles: a checkpoint loses no file if the storage cannot list them", async () => {
  await withFiles({ a: "1", b: "2", c: "3" }, async (folder) => {
    for (const shuffle of [true, false]) {
      const names = Dataset.listFiles(`${folder}/*`, { shuffle });
      for (const { node } of [names, names.ignoreErrors()]) {
        const wanted = await outcomesOf(openIterator(node, { seed: 1n }));
        assertEquals(wanted.length, 3);
        await using iterator = openIterator(node, { host: unlistable(), seed: 1n });
        assertEquals(await outcomesOf(iterator), [{ error: "unavailable: the storage is away" }]);
        assert(iterator.hasReadingFailed);
        await using restored = openIterator(node);
        await restored.restore(await iterator.save());
        assertEquals(await outcomesOf(restored), wanted);
      }
    }
  });
});

Deno.test("a task whose storage cannot list the files fails, and takes no split", async () => {
  await withFiles({ a: "1", b: "2" }, async (folder) => {
    const names = Dataset.listFiles(`${folder}/*`);
    for (const { node } of [names, Dataset.textLines(names).ignoreErrors()]) {
      const splits: SplitSource = { next: unreachable, total: unreachable };
      await using iterator = openIterator(node, { host: unlistable(), splits });
      assertEquals(await outcomesOf(iterator), [{ error: "unavailable: the storage is away" }]);
      assert(iterator.hasReadingFailed);
    }
  });
});

function unreachable(): never {
  throw new Error("called, although nothing is known about the files");
}
