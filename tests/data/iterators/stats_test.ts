/**
 * Statistics per operator, for every kind of node: elements, bytes, samples, time by a test clock,
 * held memory, errors.
 */

import { Uint8ArrayReader, Uint8ArrayWriter, ZipWriter } from "@zip.js/zip.js";
import { tableFromArrays, tableToIPC } from "apache-arrow";
import { parquetWriteBuffer } from "hyparquet-writer";
import wavefile from "wavefile";
import { assert, assertEquals } from "../../assert.ts";
import { byteSize } from "../../../core/tree.ts";
import { tensor } from "../../../core/tensor.ts";
import { openIterator } from "../../../data/dataset_iterator.ts";
import { nodeKinds } from "../../../data/node.ts";
import { ImageFolderNode } from "../../../data/sources/image_folder.ts";
import { OperatorMeter } from "../../../data/iterators/stats.ts";
import { Dataset, type IteratorStats } from "../../../mod.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { GREY, writePng } from "../../platform/media/png_writer.ts";
import { npyBytes } from "../formats/npy_bytes.ts";
import { tar } from "../formats/tar_writer.ts";
import { failingOn, turn } from "../lib/collect.ts";
import { TempFolder } from "../../lib/temp_folder.ts";

/**
 * A pipeline that ends with an operator of the kind, and the number of elements of each operator.
 */
type Row = [dataset: Dataset<unknown>, ...elements: number[]];

const ints = Dataset.range(1, 5).map((n) => new Int32Array(n).fill(n)); // 1, 2, 3 and 4 of them
const records = Dataset.range(6).map((x) => ({ x }));

const IN_MEMORY: Record<string, Row> = {
  assertCardinality: [Dataset.range(9).assertCardinality(9), 9, 9],
  batch: [Dataset.range(9).batch(4), 3, 9],
  bucketBySequenceLength: [
    ints.bucketBySequenceLength({ length: (x) => x.length, boundaries: [3], batchSizes: [2, 2] }),
    ...[2, 4, 4],
  ],
  cache: [Dataset.range(9).cache(), 9, 9],
  chooseFromDatasets: [
    Dataset.chooseFromDatasets([Dataset.range(2), Dataset.range(2)], Dataset.from([1, 0, 1])),
    ...[3, 1, 2, 3],
  ],
  concatenate: [Dataset.range(3).concatenate(Dataset.range(4)), 7, 3, 4],
  enumerate: [Dataset.range(3).enumerate(), 3, 3],
  filter: [Dataset.range(300).filter((x) => x % 3 === 0), 100, 300],
  flatMap: [Dataset.range(4).flatMap((n, { Dataset }) => Dataset.range(n)), 6, 4],
  from: [Dataset.from(["a", "bcd", [1, 2], null]), 4],
  fromGenerator: [Dataset.fromGenerator(() => [1, 2, 3]), 3],
  fromTensorSlices: [Dataset.fromTensorSlices({ x: new Float32Array(5) }), 5],
  fromTensors: [Dataset.fromTensors({ x: new Float32Array(5) }), 1],
  globalShuffle: [Dataset.range(9).globalShuffle({ seed: 1 }), 9, 0],
  groupByReducer: [
    Dataset.range(9).groupByReducer({
      key: (x) => x % 2,
      init: () => 0,
      reduce: (sum, x) => sum + x,
    }),
    ...[2, 9],
  ],
  groupByWindow: [
    Dataset.range(9).groupByWindow({
      key: (x) => x % 2,
      reduce: (_key, window) => window.batch(9),
      windowSize: 3,
    }),
    ...[4, 9],
  ],
  ignoreErrors: [Dataset.range(9).map(failingOn(2, 5)).ignoreErrors(), 7, 7, 9],
  interleave: [Dataset.range(4).interleave((n, { Dataset }) => Dataset.range(n)), 6, 4],
  map: [Dataset.range(300).map((x) => ({ x, text: "t".repeat(x) })), 300, 300],
  pack: [ints.pack({ length: 5 }), 3, 4, 4],
  padToCardinality: [records.padToCardinality(8, "isReal"), 8, 6, 6],
  paddedBatch: [ints.paddedBatch(3), 2, 4, 4],
  prefetch: [Dataset.range(9).prefetch(2), 9, 9],
  raggedBatch: [ints.raggedBatch(3), 2, 4, 4],
  range: [Dataset.range(9), 9],
  rebatch: [Dataset.range(9).batch(4).rebatch(2), 5, 3, 9],
  rejectionResample: [
    Dataset.range(9).rejectionResample({
      classOf: (x) => x % 2,
      targetDist: [1, 0],
      initialDist: [0.5, 0.5],
    }),
    ...[5, 9],
  ],
  repeat: [Dataset.range(9).repeat(3), 27, 27],
  sampleFromDatasets: [
    Dataset.sampleFromDatasets([Dataset.range(3), Dataset.range(4)], { seed: 1 }),
    ...[7, 3, 4],
  ],
  scan: [Dataset.range(9).scan(0, (sum, x) => [sum + x, sum + x]), 9, 9],
  shard: [Dataset.range(9).shard(2, 0), 5, 9],
  shuffle: [Dataset.range(9).shuffle(4, { seed: 1 }), 9, 9],
  skip: [Dataset.range(300).skip(2), 298, 300],
  take: [Dataset.range(300).take(200), 200, 200],
  takeWhile: [Dataset.range(9).takeWhile((x) => x < 4), 4, 5],
  unbatch: [Dataset.range(9).batch(4).unbatch(), 9, 3, 9],
  unique: [Dataset.from([1, 2, 1, 3]).unique(), 3, 4],
  window: [Dataset.range(9).window(4), 3, 9],
  withOptions: [Dataset.range(9).withOptions({ seed: 1 }), 9, 9],
  zip: [Dataset.zip({ a: Dataset.range(3), b: Dataset.range(3) }), 3, 3, 3],
};
/** Endless datasets below the last operator. */
const BELOW: Record<string, Row> = {
  counter: [Dataset.counter().take(9), 9, 9],
  random: [Dataset.random({ seed: 1 }).take(9), 9, 9],
};

/** Operators without an iterator of the engine, and one that needs shared files. */
const ELSEWHERE = ["distribute", "fromId", "shardFiles"];

function wav(samples: number[]): Uint8Array {
  const file = new wavefile.WaveFile();
  file.fromScratch(1, 8_000, "16", samples);
  return file.toBuffer();
}

async function zip(name: string, contents: Uint8Array): Promise<Uint8Array> {
  // Its workers would leave a timer of five seconds, which could end during another test.
  const writer = new ZipWriter(new Uint8ArrayWriter(), { useWebWorkers: false });
  await writer.add(name, new Uint8ArrayReader(contents));
  return await writer.close();
}

const numbers = new Float64Array(32).fill(7);
const FILES: Record<string, string | Uint8Array> = {
  "lines.txt": "one\ntwo\nthree\n",
  "lines.json": '{"x":1}\n{"x":22}\n',
  "table.csv": "a,b\n1,2\n3,4\n",
  "numbers.npy": npyBytes("<f8", [32], numbers),
  "numbers.npz": await zip("x.npy", npyBytes("<f8", [32], numbers)),
  "table.parquet": new Uint8Array(
    parquetWriteBuffer({ columnData: [{ name: "x", data: [...numbers], type: "DOUBLE" }] }),
  ),
  "table.arrow": tableToIPC(tableFromArrays({ x: numbers }), "file"),
  "sound.wav": wav([1, 2, 3]),
  "samples.tar": tar({ name: "a.txt", contents: "A" }, { name: "b.txt", contents: "B" }),
  "images/cat/1.png": writePng({ width: 4, height: 4, depth: 8, colour: GREY, at: () => 9 }),
};

/** Datasets of files: each, by its kind. */
async function fileRows(folder: string): Promise<Record<string, Row>> {
  const at = (name: string) => `${folder}/${name}`;
  await Dataset.range(9).save(at("saved"));
  const stored = await Dataset.load(at("saved"));
  const [chunk] = await Array.fromAsync(Dataset.listFiles(at("saved/*.tfrecord")));
  return {
    arrow: [Dataset.arrow(at("table.arrow")), 32, 1],
    csv: [Dataset.csv(at("table.csv")), 2, 1],
    "cache in files": [Dataset.range(9).cache(at("cached")), 9, 9],
    files: [Dataset.textLines([at("lines.txt"), at("lines.txt")]), 6, 2],
    fixedLengthRecords: [
      Dataset.fixedLengthRecords(at("lines.txt"), { recordBytes: 7 }),
      ...[2, 1],
    ],
    growing: [await Dataset.load(at("saved"), { wait: true }), 9],
    imageFolder: [Dataset.imageFolder(at("images")), 1, 1],
    jsonLines: [Dataset.jsonLines(at("lines.json")), 2, 1],
    listFiles: [Dataset.listFiles(at("lines.*")), 2],
    npy: [Dataset.npy(at("numbers.npy")), 32, 1],
    npz: [Dataset.npz(at("numbers.npz")), 32, 1],
    parquet: [Dataset.parquet(at("table.parquet")), 32, 1],
    snapshot: [Dataset.range(9).snapshot(at("snapshot")), 9, 9],
    stored: [stored, 9, 1],
    textLines: [
      Dataset.textLines([at("lines.txt"), at("lines.json")], { numParallelReads: 2 }),
      5,
      2,
    ],
    tfRecords: [Dataset.tfRecords(chunk!), 9, 1],
    wav: [Dataset.wav(at("sound.wav")), 1, 1],
    webDataset: [Dataset.webDataset(at("samples.tar")), 2, 1],
  };
}

/** Runs to the end, closes, and returns the elements and statistics. */
async function drain(dataset: Pick<Dataset<unknown>, "node">, host: DenoHost = new DenoHost()) {
  await using iterator = openIterator(dataset.node, { host, seed: 1n });
  const given: unknown[] = [];
  for (;;) {
    try {
      const { done, value } = await iterator.next();
      if (done) break;
      given.push(value);
    } catch {
      // It is among the statistics.
    }
  }
  await iterator.return();
  return { given, stats: iterator.stats(), explanation: iterator.explain() };
}

function sizeOf(element: unknown): number {
  try {
    return byteSize(element);
  } catch {
    return 0; // a dataset
  }
}

function assertNear(found: number, expected: number, part: number, what: string): void {
  assert(Math.abs(found - expected) <= part * expected, `${what}: ${found}, not ${expected}`);
}

/** Holds for every pipeline that was run to its end and closed. */
async function assertFigures(name: string, [dataset, ...elements]: Row): Promise<void> {
  const { given, stats, explanation } = await drain(dataset);
  assertEquals(stats.map((at) => at.elements), elements, name);
  assertEquals(given.length, elements[0]);
  const bytes = given.reduce((sum: number, element) => sum + sizeOf(element), 0);
  assertNear(stats[0]!.bytesOut, bytes, 0.1, `bytesOut of ${name}`);
  const { operators } = explanation;
  for (const [i, own] of stats.entries()) {
    if (own.operator !== "cache") assertEquals(own.bufferedBytes, 0, `${name}: ${own.operator}`);
    const readsFiles = "numParallelReads" in dataset.node.attributes || name === "growing";
    if (readsFiles && i === 0) {
      assert(own.bytesIn > 0, `bytesIn of ${name}`);
      continue;
    }
    const below = operators.slice(i + 1);
    const end = below.findIndex(({ depth }) => depth <= operators[i]!.depth);
    const inputs = below.slice(0, end < 0 ? undefined : end)
      .filter(({ depth }) => depth === operators[i]!.depth + 1);
    const sum = inputs.reduce((sum, { stats }) => sum + stats!.bytesOut, 0);
    assertEquals(own.bytesIn, sum, `bytesIn of ${own.operator} in ${name}`);
  }
}

Deno.test("stats of every kind of node count elements and bytes, and hold nothing at the end", async () => {
  await using temporary = await TempFolder.make();
  const folder = temporary.path;
  await Deno.mkdir(`${folder}/images/cat`, { recursive: true });
  for (const [name, contents] of Object.entries(FILES)) {
    const bytes = typeof contents === "string" ? new TextEncoder().encode(contents) : contents;
    await Deno.writeFile(`${folder}/${name}`, bytes);
  }
  const rows = { ...IN_MEMORY, ...BELOW, ...await fileRows(folder) };
  const missing = nodeKinds().filter((kind) => !(kind in rows) && !ELSEWHERE.includes(kind));
  assertEquals(missing, [], "kinds without a row in these tables");
  for (const [name, row] of Object.entries(rows)) await assertFigures(name, row);
});

Deno.test("bytesOut is exact for elements of one size, and approximate for others, one by one or in blocks", () => {
  const sizes = Array.from({ length: 20_000 }, (_, i) => (i * 7919) % 1000);
  const texts = sizes.map((size) => "x".repeat(size));
  const exact = sizes.reduce((sum, size) => sum + size, 0);
  for (const blockLength of [1, 7, 128, 20_000]) {
    const meter = new OperatorMeter("any", 0);
    const same = new OperatorMeter("any", 0);
    for (let i = 0; i < texts.length; i += blockLength) {
      const block = texts.slice(i, i + blockLength);
      meter.gaveBlock(block, block.length);
      same.gaveBlock(block.map(() => 1), block.length);
    }
    assertEquals([meter.read(0).elements, same.read(0).bytesOut], [20_000, 160_000]);
    assertNear(meter.read(0).bytesOut, exact, 0.1, `blocks of ${blockLength}`);
  }
  const meter = new OperatorMeter("any", 0);
  assertEquals(texts.map((text) => meter.gave(text)), texts);
  assertNear(meter.read(0).bytesOut, exact, 0.1, "one by one");
});

Deno.test("bytesIn of file sources counts the bytes read from files, before decompression", async () => {
  await using temporary = await TempFolder.make();
  const folder = temporary.path;
  const text = "a line\n".repeat(5000);
  await Deno.writeTextFile(`${folder}/lines.txt`, text);
  const packed = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"));
  await Deno.writeFile(`${folder}/lines.txt.gz`, packed);
  const { size } = await Deno.stat(`${folder}/lines.txt.gz`);
  for (const [name, bytesIn] of [["lines.txt", text.length], ["lines.txt.gz", size]] as const) {
    const lines = Dataset.textLines(`${folder}/${name}`, { compression: "auto" });
    assertEquals((await drain(lines)).stats[0]!.bytesIn, bytesIn);
    // Opening the dataset has read it.
    const opened = Dataset.from([`${folder}/${name}`])
      .flatMap((path, { Dataset }) => Dataset.textLines(path, { compression: "auto" }));
    const [flatMap, from] = (await drain(opened)).stats;
    assertEquals(flatMap!.bytesIn, bytesIn + from!.bytesOut);
  }
});

/** A host whose clock moves only when a test moves it. */
class StillHost extends DenoHost {
  ms = 0;
  override nowMs(): number {
    return this.ms;
  }
}

/** The `selfMs` and `waitMs` of each operator. */
function times(stats: IteratorStats): [number, number][] {
  return stats.map(({ selfMs, waitMs }) => [selfMs, waitMs]);
}

Deno.test("selfMs is the time of functions, in every operator", async () => {
  const host = new StillHost();
  const slow = <T>(value: T): T => {
    host.ms += 5;
    return value;
  };
  const ten = Dataset.range(10);
  const pipelines: Record<string, [Dataset<unknown>, number]> = {
    map: [ten.map((x) => slow(x)), 50],
    filter: [ten.filter((x) => slow(x) > 3), 50],
    "parallel map": [ten.map((x) => slow(x), { numParallelCalls: 4 }), 50],
    scan: [ten.scan(0, (sum, x) => [sum, slow(x)]), 50],
    takeWhile: [ten.takeWhile((x) => slow(x) < 4), 25],
    groupByWindow: [
      ten.groupByWindow({
        key: (x) => slow(x) % 2,
        reduce: (_key, window) => window,
        windowSize: 2,
      }),
      50,
    ],
    fromGenerator: [
      Dataset.fromGenerator(function* () {
        for (let i = 0; i < 10; i++) yield slow(i);
      }),
      50,
    ],
    "a map within interleave": [
      Dataset.range(2).interleave((_x, { Dataset }) => Dataset.range(5).map((x) => slow(x))),
      50,
    ],
    "a map below globalShuffle": [ten.map((x) => slow(x)).globalShuffle().batch(5), 50],
  };
  for (const [name, [dataset, ms]] of Object.entries(pipelines)) {
    const { stats } = await drain(dataset, host);
    assertEquals(stats.reduce((sum, { selfMs }) => sum + selfMs, 0), ms, name);
    if (!name.includes("below")) assertEquals(stats[0]!.selfMs, ms, name);
  }
});

Deno.test("waitMs is the operator's own time waiting for inputs", async () => {
  const host = new StillHost();
  const later = async (x: number) => {
    await turn();
    host.ms += 3;
    return x;
  };
  const input = Dataset.range(4).map(later);
  const over: Record<string, Dataset<unknown>> = {
    batch: input.batch(2),
    cache: input.cache(),
    concatenate: input.concatenate(Dataset.range(1)),
    enumerate: input.enumerate(),
    flatMap: Dataset.range(1).flatMap((_x, { Dataset }) => Dataset.range(4).map(later)),
    globalShuffle: input.globalShuffle(),
    interleave: Dataset.range(1).interleave((_x, { Dataset }) => Dataset.range(4).map(later)),
    prefetch: input.prefetch(1),
    repeat: input.repeat(1),
    sampleFromDatasets: Dataset.sampleFromDatasets([input]),
    shuffle: input.shuffle(2),
    takeWhile: input.takeWhile(() => true),
    zip: Dataset.zip([input, Dataset.range(4)]),
  };
  for (const [name, dataset] of Object.entries(over)) {
    const { stats } = await drain(dataset, host);
    assertEquals(times(stats)[0], [0, 12], name);
    assertEquals(stats.slice(1).every(({ waitMs }) => waitMs === 0), true, name);
  }
});

Deno.test("for file sources waitMs is the time of reads, and selfMs that of decoding", async () => {
  class FarHost extends StillHost {
    override files = {
      list: () => Promise.resolve([]),
      open: (path: string) => {
        this.ms += 100;
        const bytes = writePng({ width: 4, height: 4, depth: 8, colour: GREY, at: () => 9 });
        return Promise.resolve({
          path,
          sizeBytes: bytes.length,
          read: async (into: Uint8Array, offset: number) => {
            await turn();
            this.ms += 10;
            const part = bytes.subarray(offset, offset + into.length);
            into.set(part);
            return part.length;
          },
          close() {},
        });
      },
    };
    override images = {
      size: () => ({ width: 4, height: 4 }),
      decode: async () => {
        await turn();
        this.ms += 7;
        return tensor([[[9]]], { dtype: "uint8" });
      },
    };
  }
  const paths = Dataset.from(["/images/a/1.png", "/images/a/2.png"]);
  for (const numParallelReads of [1, 2]) {
    const node = new ImageFolderNode(
      "/images",
      { classNames: ["a"], numParallelReads },
      paths.node,
    );
    const { stats } = await drain({ node }, new FarHost());
    assertEquals([stats[0]!.elements, stats[0]!.errors], [2, 0]);
    if (numParallelReads > 1) continue; // which of them a moment belongs to is an estimate
    assertEquals(times(stats)[0], [14, 20]);
  }
});

Deno.test("errors are counted where they arise, once", async () => {
  const failing = Dataset.range(9).map(failingOn(2, 5));
  const counts = async (dataset: Dataset<unknown>) =>
    (await drain(dataset)).stats.map(({ errors }) => errors);
  assertEquals(await counts(failing.shuffle(3).batch(2)), [0, 0, 2, 0]);
  assertEquals(await counts(failing.ignoreErrors().map((x) => x)), [0, 2, 2, 0]);
  assertEquals(await counts(Dataset.from([1, [2], 3, 4]).batch(2)), [1, 0]);
  assertEquals(await counts(Dataset.from([new Int8Array(1), 2]).unbatch()), [1, 0]);
  assertEquals(await counts(Dataset.from([{}, 1]).unique()), [1, 0]);
  assertEquals(await counts(Dataset.textLines(["/nowhere/1", "/nowhere/2"]).batch(2)), [0, 2, 0]);
  const within = Dataset.range(1).flatMap((_x, { Dataset }) =>
    Dataset.range(3).map((x) => {
      if (x === 1) throw new Error("no");
      return x;
    })
  );
  assertEquals(await counts(within), [1, 0]);
});
