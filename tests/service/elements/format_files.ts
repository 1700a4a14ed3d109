/**
 * A small file of every format in every compression that is documented for it, and the dataset that reads it.
 */
import { Uint8ArrayReader, Uint8ArrayWriter, ZipWriter } from "@zip.js/zip.js";
import {
  compressionRegistry,
  CompressionType,
  Table,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from "apache-arrow";
import { parquetWriteBuffer } from "hyparquet-writer";
import lz4 from "lz4js";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import wavefile from "wavefile";
import { encodeTfRecord } from "../../../data/formats/tfrecord/tfrecord.ts";
import { Dataset, tensor } from "../../../mod.ts";
import { Images } from "../../../platform/media/images.ts";
import { npyBytes } from "../../data/formats/npy_bytes.ts";
import { concat } from "../../data/formats/reading.ts";
import { TAR_END, tarMember } from "../../data/formats/tar_writer.ts";
import { RGB, writePng } from "../../platform/media/png_writer.ts";

/** One file, and how it is read. */
export interface FormatFile {
  /** For the names of tests: `"csv, gzip"`. */
  readonly what: string;
  /** Below a folder. */
  readonly path: string;
  readonly contents: Uint8Array;
  readonly read: (path: string) => Dataset<unknown>;
}

type Bytes = Uint8Array;
type Read = (
  path: string,
  compression: "gzip" | "zlib" | "zstd" | "auto" | undefined,
) => Dataset<unknown>;

const utf8 = new TextEncoder();
const owned = (bytes: Bytes) => new Uint8Array(bytes);

/** Compressions of whole files, with the suffixes by which `auto` recognizes them. */
const WHOLE = {
  none: ["", (bytes: Bytes) => bytes],
  gzip: [".gz", (bytes: Bytes) => owned(gzipSync(bytes))],
  zlib: [".zz", (bytes: Bytes) => owned(deflateSync(bytes))],
  zstd: [".zst", (bytes: Bytes) => owned(zstdCompressSync(bytes))],
  "gzip in two members": [
    ".gz",
    (bytes: Bytes) => concat(owned(gzipSync(bytes.slice(0, 9))), owned(gzipSync(bytes.slice(9)))),
  ],
} as const;

/** Formats that are read as streams: they support every compression of files. */
const STREAMS: Readonly<Record<string, readonly [contents: Bytes, read: Read]>> = {
  textLines: [
    utf8.encode("one\ntwo\nthree and more\n"),
    (path, compression) => Dataset.textLines(path, { compression }),
  ],
  jsonLines: [
    utf8.encode('{"a": 1}\n[2, "b"]\n'),
    (path, compression) => Dataset.jsonLines(path, { compression }),
  ],
  csv: [
    utf8.encode('a,b\n1,"x, y"\n2,z\n'),
    (path, compression) => Dataset.csv(path, { compression }),
  ],
  "csv without quotes": [
    utf8.encode("a,b\n1,x\n2,y\n"),
    (path, compression) => Dataset.csv(path, { compression, useQuoteDelim: false }),
  ],
  tfRecords: [
    concat(encodeTfRecord(utf8.encode("first")), encodeTfRecord(utf8.encode("second"))),
    (path, compression) => Dataset.tfRecords(path, { compression }),
  ],
  fixedLengthRecords: [
    utf8.encode("headAAAABBBBCCCCfoot"),
    (path, compression) =>
      Dataset.fixedLengthRecords(path, {
        recordBytes: 4,
        headerBytes: 4,
        footerBytes: 4,
        compression,
      }),
  ],
  webDataset: [
    concat(
      tarMember({ name: "1.txt", contents: "a text" }),
      tarMember({ name: "1.json", contents: '{"b": 2}' }),
      tarMember({ name: "2.txt", contents: "another" }),
      TAR_END,
    ),
    (path, compression) => Dataset.webDataset(path, { decode: ["txt", "json"], compression }),
  ],
  wav: [wavBytes(), (path, compression) => Dataset.wav(path, { compression })],
};

/** Every format in every compression. */
export async function formatFiles(): Promise<FormatFile[]> {
  const streams = Object.entries(STREAMS).flatMap(([format, [contents, read]]) =>
    Object.entries(WHOLE).flatMap(([compression, [end, compress]]) => {
      const path = `${format} ${compression}${end}`;
      const asked = compression === "none" ? undefined : end === ".gz" ? "gzip" : compression;
      const file = { path, contents: compress(contents) };
      const explicit = {
        ...file,
        what: `${format}, ${compression}`,
        read: (path: string) => read(path, asked as "gzip" | undefined),
      };
      const byName = {
        ...file,
        what: `${format}, ${compression} by its name`,
        read: (path: string) => read(path, "auto"),
      };
      return end === "" ? [explicit] : [explicit, byName];
    })
  );
  return [...streams, ...parquetFiles(), ...arrowFiles(), ...await arrayFiles(), ...await images()];
}

function parquetFiles(): FormatFile[] {
  const compressors = {
    BROTLI: (page: Bytes) => owned(brotliCompressSync(page)),
    GZIP: (page: Bytes) => owned(gzipSync(page)),
    ZSTD: (page: Bytes) => owned(zstdCompressSync(page)),
  };
  const data = Array.from({ length: 40 }, (_, i) => `text ${i % 7}`);
  const columnData = [{ name: "x", type: "STRING" as const, data }];
  return (["UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "ZSTD"] as const).map((codec) => ({
    what: `parquet, ${codec}`,
    path: `${codec}.parquet`,
    contents: new Uint8Array(parquetWriteBuffer({ columnData, codec, compressors })),
    read: (path) => Dataset.parquet(path),
  }));
}

function arrowFiles(): FormatFile[] {
  const table = new Table({ x: vectorFromArray(new Array(100).fill("the same"), new Utf8()) });
  const encoders = new Map<CompressionType | undefined, (data: Bytes) => Bytes>([
    [CompressionType.LZ4_FRAME, (data) => owned(lz4.compress(data))],
    [CompressionType.ZSTD, (data) => owned(zstdCompressSync(data))],
  ]);
  return (["file", "stream"] as const).flatMap((kind) =>
    [undefined, ...encoders.keys()].map((type) => {
      const codec = type === undefined ? undefined : compressionRegistry.get(type)!;
      if (type !== undefined) {
        compressionRegistry.set(type, { ...codec, encode: encoders.get(type)! });
      }
      const contents = owned(tableToIPC(table, kind, type));
      if (type !== undefined) compressionRegistry.set(type, codec!);
      const compression = type === undefined ? "none" : CompressionType[type];
      return {
        what: `arrow ${kind}, ${compression}`,
        path: `${kind}-${compression}.arrow`,
        contents,
        read: (path) => Dataset.arrow(path),
      };
    })
  );
}

async function arrayFiles(): Promise<FormatFile[]> {
  const x = npyBytes("<f4", [3, 2], new Float32Array([1, 2, 3, 4, 5, 6]));
  const y = npyBytes("<i8", [3], new BigInt64Array([7n, 8n, 9n]));
  const archives = [0, 6].map(async (level): Promise<FormatFile> => {
    const writer = new ZipWriter(new Uint8ArrayWriter(), { useWebWorkers: false, level });
    await writer.add("x.npy", new Uint8ArrayReader(x));
    await writer.add("y.npy", new Uint8ArrayReader(y));
    return {
      what: `npz, ${level === 0 ? "stored" : "deflated"}`,
      path: `${level}.npz`,
      contents: new Uint8Array(await writer.close()),
      read: (path) => Dataset.npz(path),
    };
  });
  const array = {
    what: "npy",
    path: "x.npy",
    contents: x,
    read: (path: string) => Dataset.npy(path),
  };
  return [array, ...await Promise.all(archives)];
}

/** One folder for each kind of image: they are decoded, and in one class. */
async function images(): Promise<FormatFile[]> {
  const pixels = tensor(new Uint8Array(8 * 8 * 3).map((_, i) => i));
  const jpeg = await new Images().encode(pixels.reshape([8, 8, 3]));
  const png = writePng({ width: 8, height: 8, depth: 8, colour: RGB, at: (x, y, c) => x + y + c });
  // 24 × 16, lossless, written by libwebp.
  const webp = Uint8Array.fromBase64(
    "UklGRi4AAABXRUJQVlA4TCIAAAAvF8ADALkyRPQ/dhHR/wCRtk0d3L/jwcNRGMCYAKoeqP8E",
  );
  return Object.entries({ jpg: jpeg, png, webp }).map(([kind, contents]) => ({
    what: `imageFolder, ${kind}`,
    path: `${kind} images/class/image.${kind}`,
    contents,
    read: (path) => Dataset.imageFolder(path.slice(0, path.indexOf("/class/"))),
  }));
}

function wavBytes(): Bytes {
  const file = new wavefile.WaveFile();
  file.fromScratch(1, 8000, "16", Int16Array.from({ length: 64 }, (_, i) => 100 * i));
  return owned(file.toBuffer());
}
