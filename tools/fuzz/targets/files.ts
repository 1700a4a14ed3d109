/** Files of every format, in memory. They are read to their end, and errors of elements are skipped. */
import { Float64, Int32, Table, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import { parquetWriteBuffer } from "hyparquet-writer";
import { deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { Uint8ArrayReader, Uint8ArrayWriter, ZipWriter } from "@zip.js/zip.js";
import wavefile from "wavefile";
import { LeatError } from "../../../core/error.ts";
import { ROW_GROUP_BYTES_MAX } from "../../../data/formats/parquet/parquet.ts";
import { maskedCrc32c } from "../../../data/formats/tfrecord/crc32c.ts";
import type { Files } from "../../../data/host.ts";
import { openIterator } from "../../../data/dataset_iterator.ts";
import { Dataset, encodeExample, parseExample } from "../../../mod.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { npyBytes } from "../../../tests/data/formats/npy_bytes.ts";
import { BytesFile } from "../../../tests/data/formats/reading.ts";
import { paxHeader, tar } from "../../../tests/data/formats/tar_writer.ts";
import { mutateBytes } from "../mutate_bytes.ts";
import type { OpenTarget, Target } from "../target.ts";

/** A file has no more elements than bytes. This catches a reader that never ends. */
const ELEMENTS_MAX = 200_000;
/**
 * Formats in which a row may take no bytes, as nulls in Arrow and empty texts in NumPy do. They are read
 * up to `ELEMENTS_MAX`.
 */
const HAS_EMPTY_ROWS: ReadonlySet<string> = new Set(["arrow", "npy", "npz"]);
/** Maximum number of consecutive errors. A reader with more makes no progress. */
const ERRORS_MAX = 20_000;

const PATH = "/fuzzed";
const text = (value: string) => new TextEncoder().encode(value);

/** Returns files that have these bytes at every path. */
function filesOf(bytes: Uint8Array): Files {
  return {
    open: () => Promise.resolve(new BytesFile(bytes)),
    list: (pattern) => Promise.resolve([pattern]),
  };
}

/** Reads a dataset of one file to its end. */
async function readAll(dataset: Dataset<unknown>, input: Uint8Array): Promise<void> {
  const host = new DenoHost({ files: filesOf(input) });
  await using iterator = openIterator(dataset.node, { host, seed: 1n });
  let valid = 0;
  let refused: LeatError | undefined;
  let errors = 0;
  while (valid < ELEMENTS_MAX) {
    try {
      const { done } = await iterator.next();
      if (done) break;
      valid++;
      errors = 0;
    } catch (error) {
      const known = LeatError.from(error);
      if (!(error instanceof LeatError) || ["unknown", "internal"].includes(known.code)) {
        throw error;
      }
      refused = error;
      if (++errors > ERRORS_MAX) throw new Error("a reader that gives errors forever");
    }
  }
  if (valid === ELEMENTS_MAX && !HAS_EMPTY_ROWS.has(dataset.node.kind)) {
    throw new Error(`${input.length} bytes gave ${valid} elements`);
  }
  if (refused !== undefined && valid === 0) throw refused;
}

/** Makes a target that reads files of one format. */
function format(
  help: string,
  dataset: () => Dataset<unknown>,
  seeds: () => readonly Uint8Array[] | Promise<readonly Uint8Array[]>,
  mutate?: OpenTarget["mutate"],
): Target {
  return {
    help,
    open: async () => {
      const [first, ...others] = await seeds();
      return {
        seeds: [first!, ...others],
        ...(mutate === undefined ? {} : { mutate }),
        run: (input) => readAll(dataset(), input),
      };
    },
  };
}

const EXAMPLES = [
  encodeExample({ image: text("bytes"), size: [3n, 4n], score: [0.5, -1] }),
  encodeExample({ label: 7n, name: "leat" }),
];
const FEATURES = {
  image: { dtype: "bytes", default: new Uint8Array() },
  name: { dtype: "string", default: "" },
  size: { dtype: "int64", shape: [null], default: [] },
  score: { dtype: "float32", shape: [null], default: [] },
  label: { dtype: "int64", default: 0n },
} as const;

function tfRecords(records: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.of(...records.flatMap((record) => {
    const bytes = new Uint8Array(16 + record.length);
    new DataView(bytes.buffer).setBigUint64(0, BigInt(record.length), true);
    bytes.set(record, 12);
    return [...resealed(bytes)];
  }));
}

/** Repairs the first record's checksums. */
function resealed(input: Uint8Array): Uint8Array {
  const bytes = input.slice();
  if (bytes.length < 16) return bytes;
  const view = new DataView(bytes.buffer);
  view.setUint32(8, maskedCrc32c(bytes, 0, 8), true);
  const length = Number(view.getBigUint64(0, true));
  if (length <= bytes.length - 16) {
    view.setUint32(12 + length, maskedCrc32c(bytes, 12, 12 + length), true);
  }
  return bytes;
}

const CSV = [
  'name,size,ok\nleat,3,true\n"quoted, ""text""",4.5,false\n,,\n',
  "a;b\r\n1;2\r\n3;4\r\n",
  'x\n"two\nlines"\n',
].map(text);
const COLUMNS = { name: "string", size: "float32", ok: "string" } as const;

function parquetFiles(): Uint8Array[] {
  const columnData = [
    { name: "id", data: Int32Array.from({ length: 40 }, (_, i) => i % 7), type: "INT32" },
    { name: "name", data: Array.from({ length: 40 }, (_, i) => `row ${i % 5}`), type: "STRING" },
    { name: "score", data: Float64Array.from({ length: 40 }, (_, i) => i / 3), type: "DOUBLE" },
  ] as const;
  return (["UNCOMPRESSED", "SNAPPY"] as const).map((codec) => {
    const columns = columnData.map((column) => ({ ...column })) as never;
    return new Uint8Array(parquetWriteBuffer({ columnData: columns, codec, rowGroupSize: 16 }));
  });
}

function arrowFiles(): Uint8Array[] {
  const table = new Table({
    id: vectorFromArray([1, 2, null, 4], new Int32()),
    name: vectorFromArray(["a", "bc", "", null], new Utf8()),
    x: vectorFromArray([0.5, 1, 2, 3], new Float64()),
  });
  return (["file", "stream"] as const).map((kind) => new Uint8Array(tableToIPC(table, kind)));
}

async function npzFiles(): Promise<Uint8Array[]> {
  const arrays = {
    "x.npy": npyBytes("<f4", [3, 2], new Float32Array([1, 2, 3, 4, 5, 6])),
    "y.npy": npyBytes("<i8", [3], new BigInt64Array([7n, 8n, 9n])),
  };
  return await Promise.all([0, 6].map(async (level) => {
    const zip = new ZipWriter(new Uint8ArrayWriter(), { useWebWorkers: false, level });
    for (const [name, bytes] of Object.entries(arrays)) {
      await zip.add(name, new Uint8ArrayReader(bytes));
    }
    return new Uint8Array(await zip.close());
  }));
}

function wavFiles(): Uint8Array[] {
  return (["16", "32f", "8"] as const).map((depth) => {
    const file = new wavefile.WaveFile();
    file.fromScratch(2, 8_000, depth, [[1, 2, 3, 100], [4, 5, 6, -100]]);
    return file.toBuffer();
  });
}

const TARS = [
  tar(
    { name: "a.txt", contents: "hello" },
    { name: "a.cls", contents: "3" },
    { name: "b.txt", contents: "x".repeat(700) },
    { name: "b.json", contents: '{"a":[1,2]}' },
  ),
  tar(
    paxHeader({ path: "long/name.txt", size: "4" }),
    { name: "x", contents: "data" },
    { name: "dir/", type: "5" },
  ),
];

const LINES = text("one\ntwo\r\n\nthree".repeat(20));
const compressions = {
  gzip: (bytes: Uint8Array) => new Uint8Array(gzipSync(bytes)),
  zlib: (bytes: Uint8Array) => new Uint8Array(deflateSync(bytes)),
  zstd: (bytes: Uint8Array) => new Uint8Array(zstdCompressSync(bytes)),
};

function compressed(name: keyof typeof compressions): Target {
  return format(
    `lines of text compressed with ${name}`,
    () => Dataset.textLines(PATH, { compression: name }),
    () => [LINES, new Uint8Array(5_000)].map(compressions[name]),
  );
}

/** Targets that read files. */
export const FILE_TARGETS: Readonly<Record<string, Target>> = {
  tfrecord: format(
    "TFRecord files, the first record's checksums made right",
    () => Dataset.tfRecords(PATH),
    () => [tfRecords(EXAMPLES)],
    (input, random, seeds) => {
      const bytes = mutateBytes(input, random, seeds);
      return random.chance(0.7) ? resealed(bytes) : bytes;
    },
  ),
  example: {
    help: "serialised tf.train.Examples",
    open: () => ({
      seeds: [EXAMPLES[0]!, EXAMPLES[1]!],
      run: (input) => parseExample(input, FEATURES),
    }),
  },
  text: format("lines of text", () => Dataset.textLines(PATH), () => [LINES]),
  json: format(
    "lines of JSON",
    () => Dataset.jsonLines(PATH),
    () => [text('{"a":[1,2.5,"x"],"b":null}\n{"a":[],"b":{"c":true}}\n"text"\n')],
  ),
  csv: format("CSV, all texts", () => Dataset.csv(PATH), () => CSV),
  csv_typed: format(
    "CSV with types of columns",
    () => Dataset.csv(PATH, { columns: COLUMNS as never }),
    () => CSV.slice(0, 1),
  ),
  fixed: format(
    "records of one length",
    () => Dataset.fixedLengthRecords(PATH, { recordBytes: 5, headerBytes: 2, footerBytes: 1 }),
    () => [new Uint8Array(23)],
  ),
  npy: format(
    "NumPy arrays",
    () => Dataset.npy(PATH),
    () => [
      npyBytes("<f4", [4, 3], new Float32Array(12)),
      npyBytes("|u1", [6], new Uint8Array(6), { version: 2 }),
      npyBytes("<U3", [2], new Uint32Array(6)),
      npyBytes(">i2", [2, 2], new Int16Array(4), { fortranOrder: true }),
    ],
  ),
  npz: format("archives of NumPy arrays", () => Dataset.npz(PATH), npzFiles),
  webdataset: format("tar files of samples", () => Dataset.webDataset(PATH), () => TARS),
  // A few bytes may encode as many equal values as a row group may hold.
  parquet: {
    ...format("Parquet files", () => Dataset.parquet(PATH), parquetFiles),
    memoryBytesMax: 2 * ROW_GROUP_BYTES_MAX,
  },
  arrow: format("Arrow files and streams", () => Dataset.arrow(PATH), arrowFiles),
  wav: format("WAV files", () => Dataset.wav(PATH), wavFiles),
  gzip: compressed("gzip"),
  zlib: compressed("zlib"),
  zstd: compressed("zstd"),
};
