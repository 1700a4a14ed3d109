/** A small pipeline for every registered kind of operator. A kind that is left out fails all tests that use it. */
import { Uint8ArrayReader, Uint8ArrayWriter, ZipWriter } from "@zip.js/zip.js";
import { tableFromArrays, tableToIPC } from "apache-arrow";
import { parquetWriteBuffer } from "hyparquet-writer";
import wavefile from "wavefile";
import { type DatasetNode, type Division, nodeKinds } from "../../../data/node.ts";
import { FileShardNode } from "../../../data/sharding/file_shard.ts";
import { Dataset } from "../../../data/mod.ts";
import { GivenNode } from "../../../data/operators/sources/given.ts";
import { FileGroupsNode } from "../../../data/sources/file_groups.ts";
import { StandInNode } from "../../../data/operators/stand_in.ts";
import { GREY, writePng } from "../../platform/media/png_writer.ts";
import { npyBytes } from "../formats/npy_bytes.ts";
import { tar } from "../formats/tar_writer.ts";
import "./collect.ts"; // installs a host

/** A pipeline around an operator. */
export interface KindCase {
  /** The operator that it is about: the last one, or below it for an endless source. */
  readonly node: DatasetNode;
  /** How its work can be divided. */
  readonly division: Division;
  readonly dataset: Dataset<unknown>;
  /** How many elements each operator gives, in pre-order. Empty if only a service can run it. */
  readonly elements: readonly number[];
}

type Row = [dataset: Dataset<unknown>, ...elements: number[]];

const SERVICE = "ws://127.0.0.1:1";
const nine = Dataset.range(9);
const ints = Dataset.range(1, 5).map((n) => new Int32Array(n).fill(n)); // 1, 2, 3 and 4 of them

/** Every kind, by its division; a second case of a kind has a name of its own. */
function rowsIn(at: (name: string) => string, saved: Saved): Record<Division, Row[]> {
  const two = (name: string) => [at(name), at(name)];
  return {
    element: [
      [Dataset.range(300).map((x) => ({ x, text: "t".repeat(x) })), 300, 300],
      [nine.prefetch(2), 9, 9],
      [Dataset.from([{ a: 1, b: 2 }, { a: 3, b: 4 }]).select(["b"]), 2, 2],
      [nine.withOptions({ seed: 1 }), 9, 9],
      [nine.cutPoint("here"), 9, 9],
      [new Dataset(new StandInNode(nine.node, 4)), 9, 9],
    ],
    position: [
      [nine.assertCardinality(9), 9, 9],
      [Dataset.range(3).enumerate(), 3, 3],
    ],
    split: [
      [
        ints.bucketBySequenceLength({
          length: (x) => x.length,
          boundaries: [3],
          batchSizes: [2, 2],
        }),
        ...[2, 4, 4],
      ],
      [nine.cache(), 9, 9],
      [nine.cache(at("cached")), 9, 9],
      [Dataset.range(300).filter((x) => x % 3 === 0), 100, 300],
      [Dataset.range(4).flatMap((n, { Dataset }) => Dataset.range(n)), 6, 4],
      [
        nine.groupByWindow({
          key: (x) => x % 2,
          reduce: (_key, window) => window.batch(9),
          windowSize: 3,
        }),
        ...[4, 9],
      ],
      [Dataset.range(4).interleave((n, { Dataset }) => Dataset.range(n)), 6, 4],
      [ints.unbatch(), 10, 4, 4],
      [Dataset.from(["a", "bcd", [1, 2], null]), 4],
      [Dataset.fromTensors({ x: new Float32Array(5) }), 1],
      [Dataset.fromTensorSlices({ x: new Float32Array([1, 2, 3, 4, 5]) }), 5],
      [new Dataset(new GivenNode(0)), 0],
      [nine.globalShuffle({ seed: 1 }), 9, 0],
      [nine, 9],
      [Dataset.arrow(two("table.arrow")), 64, 2],
      [Dataset.csv(two("table.csv")), 4, 2],
      [new Dataset(Dataset.textLines(two("lines.txt")).node.inputs[0]!), 2],
      [Dataset.fixedLengthRecords(two("lines.txt"), { recordBytes: 7 }), 4, 2],
      [Dataset.imageFolder(at("images"), { shuffle: false }), 2, 2],
      [Dataset.jsonLines(two("lines.json")), 4, 2],
      [Dataset.listFiles(at("lines.*"), { shuffle: false }), 2],
      [new Dataset(new FileGroupsNode(saved.names.node, 1)), 2, 2],
      [Dataset.npy(two("numbers.npy")), 64, 2],
      [Dataset.npz(two("numbers.npz")), 64, 2],
      [Dataset.parquet(two("table.parquet")), 64, 2],
      [saved.finished, 9, 1],
      [Dataset.textLines([at("lines.txt"), at("lines.json")], { numParallelReads: 2 }), 5, 2],
      [Dataset.tfRecords([saved.chunk, saved.chunk]), 18, 2],
      [Dataset.wav(two("sound.wav")), 2, 2],
      [Dataset.webDataset(two("samples.tar")), 4, 2],
    ],
    shuffle: [
      [nine.shuffle(4, { seed: 1 }), 9, 9],
      [Dataset.listFiles(at("lines.*"), { seed: 1 }), 2],
      [
        new Dataset(new FileGroupsNode(Dataset.listFiles(at("lines.*"), { seed: 1 }).node, 1)),
        ...[2, 2],
      ],
    ],
    rows: [
      [nine.filter((x) => x !== 1).batch(4), 2, 8, 9],
      [ints.filter(() => true).paddedBatch(3, { paddedShapes: [4] }), 2, 4, 4, 4],
      [ints.filter(() => true).raggedBatch(3), 2, 4, 4, 4],
    ],
    whole: [
      [
        Dataset.chooseFromDatasets([Dataset.range(2), Dataset.range(2)], Dataset.from([1, 0, 1])),
        ...[3, 1, 2, 3],
      ],
      [Dataset.range(3).concatenate(Dataset.range(4)), 7, 3, 4],
      [Dataset.counter().take(9), 9, 9],
      [Dataset.fromGenerator(() => [1, 2, 3]), 3],
      [
        nine.groupByReducer({ key: (x) => x % 2, init: () => 0, reduce: (sum, x) => sum + x }),
        ...[2, 9],
      ],
      [saved.growing, 9],
      [
        nine.map((x) => JSON.parse([2, 5].includes(x) ? "" : `${x}`)).ignoreErrors({
          maxErrors: 1,
        }),
        4,
        4,
        6,
      ],
      [ints.pack({ length: 5 }), 3, 4, 4],
      [Dataset.range(6).map((x) => ({ x })).padToCardinality(8, "isReal"), 8, 6, 6],
      [Dataset.random({ seed: 1 }).take(9), 9, 9],
      [ints.rebatch(3, { dropRemainder: true }), 3, 4, 4],
      [nine.rejectionResample({ classOf: (x) => x % 2, targetDist: [1, 3] }), 5, 9],
      [nine.repeat(3), 27, 27],
      [Dataset.sampleFromDatasets([Dataset.range(3), Dataset.range(4)], { seed: 1 }), 7, 3, 4],
      [nine.scan(0, (sum, x) => [sum + x, sum + x]), 9, 9],
      [nine.shard(2, 0), 5, 9],
      [new Dataset(new FileShardNode(saved.names.node, 2, 0)), 1, 2],
      [Dataset.range(300).skip(2), 298, 300],
      [Dataset.range(300).take(200), 200, 200],
      [nine.takeWhile((x) => x % 5 !== 4), 4, 5],
      [Dataset.from([1, 2, 1, 3]).unique(), 3, 4],
      [nine.window(4, { shift: 2 }), 5, 9],
      [Dataset.zip({ a: Dataset.range(3), b: Dataset.range(3) }), 3, 3, 3],
    ],
    stored: [[nine.snapshot(at("snapshot")), 9, 9]],
    served: [
      [nine.distribute({ service: SERVICE })],
      [nine.offload({ service: SERVICE })],
      [Dataset.fromId(SERVICE, "id")],
    ],
  };
}

/** Datasets over the folder of a saved one. */
interface Saved {
  readonly finished: Dataset<unknown>;
  readonly growing: Dataset<unknown>;
  readonly chunk: string;
  readonly names: Dataset<string>;
}

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

async function filesOf(): Promise<Record<string, string | Uint8Array>> {
  const numbers = new Float64Array(32).fill(7);
  const npy = npyBytes("<f8", [32], numbers);
  const png = writePng({ width: 4, height: 4, depth: 8, colour: GREY, at: () => 9 });
  return {
    "lines.txt": "one\ntwo\nthree\n",
    "lines.json": '{"x":1}\n{"x":22}\n',
    "table.csv": "a,b\n1,2\n3,4\n",
    "numbers.npy": npy,
    "numbers.npz": await zip("x.npy", npy),
    "table.parquet": new Uint8Array(
      parquetWriteBuffer({ columnData: [{ name: "x", data: [...numbers], type: "DOUBLE" }] }),
    ),
    "table.arrow": tableToIPC(tableFromArrays({ x: numbers }), "file"),
    "sound.wav": wav([1, 2, 3]),
    "samples.tar": tar({ name: "a.txt", contents: "A" }, { name: "b.txt", contents: "B" }),
    "images/cat/1.png": png,
    "images/dog/1.png": png,
  };
}

/**
 * A case for every kind, over files that it writes to an empty folder.
 *
 * @throws {Error} naming the registered kinds without a case.
 */
export async function everyKind(folder: string): Promise<KindCase[]> {
  const at = (name: string) => `${folder}/${name}`;
  for (const name of ["cat", "dog"]) await Deno.mkdir(at(`images/${name}`), { recursive: true });
  for (const [name, contents] of Object.entries(await filesOf())) {
    const bytes = typeof contents === "string" ? new TextEncoder().encode(contents) : contents;
    await Deno.writeFile(at(name), bytes);
  }
  await nine.save(at("saved"));
  const [chunk] = await Array.fromAsync(Dataset.listFiles(at("saved/*.tfrecord")));
  const rows = rowsIn(at, {
    finished: await Dataset.load(at("saved")),
    growing: await Dataset.load(at("saved"), { wait: true }),
    chunk: chunk!,
    names: Dataset.listFiles(at("lines.*"), { shuffle: false }),
  });
  const cases = Object.entries(rows).flatMap(([division, rows]) =>
    rows.map(([dataset, ...elements]): KindCase => {
      const [input] = dataset.node.inputs;
      const node = input?.cardinality === Infinity ? input : dataset.node;
      return { node, division: division as Division, dataset, elements };
    })
  );
  const covered = new Set(cases.map(({ node }) => node.kind));
  const missing = nodeKinds().filter((kind) => !covered.has(kind));
  if (missing.length > 0) throw new Error(`no case in every_kind.ts: ${missing.join(", ")}`);
  return cases;
}
