/**
 * Writes images to TFRecords, one JPEG per record: generated ones with the size of photographs, or
 * the user's own.
 */

import { join, relative } from "node:path";
import { LeatError } from "../../core/error.ts";
import { RandomStream } from "../../core/philox.ts";
import { Tensor } from "../../core/tensor.ts";
import { encodeTfRecord } from "../../data/formats/tfrecord/tfrecord.ts";
import { Images } from "../../platform/media/images.ts";
import { type CorpusFolder, openCorpus, Shards } from "./corpus_folder.ts";
import { PhotographMaker } from "./photographs.ts";

/** Limit of the user's images: the first ones in the order of their paths are packed. */
export const USER_IMAGES_MAX = 2_000;

/** Limit of the TFRecord files of a corpus. */
const IMAGE_SHARDS = 16;

const DECODE_ROUNDS = 4;
const RECORD_HEADER_BYTES = 12;
const RECORD_FOOTER_BYTES = 4;

/** Images in TFRecords: each record is one JPEG. */
export interface ImageCorpus {
  /** Paths of the TFRecord files, in order. */
  files: string[];
  statistics: ImageStatistics;
  /** The user's files that could not be decoded. */
  skipped: SkippedFile[];
  /** Whether the files came from the cache. */
  reused: boolean;
}

interface ImageStatistics {
  count: number;
  /** Mean size of a JPEG. */
  bytesMean: number;
  widthMean: number;
  heightMean: number;
}

interface SkippedFile {
  path: string;
  reason: string;
}

/** Called with the number of finished samples and the total, but not for a cached corpus. */
export type OnProgress = (done: number, total: number) => void;

interface GenerateImagesOptions {
  /** The cache folder. */
  directory: string;
  /** The number of images, at least 1. */
  count: number;
  /** The seed of every image; default 0. */
  seed?: number;
  onProgress?: OnProgress;
}

/** Options of packing the user's images. */
interface PackImagesOptions {
  /** The cache folder. */
  directory: string;
  /** A folder of `.jpg` and `.jpeg` files, subfolders included. */
  source: string;
  onProgress?: OnProgress;
}

/**
 * Generates photograph-like JPEGs in TFRecords, of about 110 KB and mostly 500×375 pixels, like
 * ImageNet's. The same seed and count give the same images.
 * @throws {LeatError} `invalid_argument` for an invalid count.
 */
export async function generateImages(options: GenerateImagesOptions): Promise<ImageCorpus> {
  const { directory, count, seed = 0, onProgress } = options;
  if (!(Number.isSafeInteger(count) && count >= 1)) {
    throw new LeatError("invalid_argument", `generateImages: count is ${count}; at least 1`);
  }
  const parameters = { kind: "generated-images", release: 1, count, seed };
  return await open(directory, parameters, async (folder) => {
    const random = new RandomStream(seed);
    const maker = new PhotographMaker(random.fork("maker"));
    const images = new Images();
    const shards = new ImageShards(folder, count);
    for (let index = 0; index < count; index++) {
      const { pixels, width, height, quality } = maker.make(random.fork("image").fork(index));
      const image = new Tensor("uint8", [height, width, 3], pixels);
      shards.add(await images.encode(image, { quality }), width, height);
      onProgress?.(index + 1, count);
    }
    return { statistics: shards.statistics, skipped: [] };
  });
}

/**
 * Packs the user's own images into TFRecords: the first {@linkcode USER_IMAGES_MAX} below a folder, in
 * the order of their paths. Images that cannot be decoded are skipped and listed.
 * @throws {LeatError} `not_found` if the folder is missing or holds no image that can be decoded.
 */
export async function packImages(options: PackImagesOptions): Promise<ImageCorpus> {
  const { directory, source, onProgress } = options;
  const paths = (await requireImages(source)).slice(0, USER_IMAGES_MAX);
  const listing = await Promise.all(paths.map(describeFile));
  const parameters = { kind: "user-images", release: 1, listing };
  const corpus = await open(directory, parameters, async (folder) => {
    const images = new Images();
    const shards = new ImageShards(folder, paths.length);
    const skipped: SkippedFile[] = [];
    for (const [index, path] of paths.entries()) {
      try {
        const jpeg = await Deno.readFile(path);
        const [height = 0, width = 0] = (await images.decode(jpeg)).shape;
        shards.add(jpeg, width, height);
      } catch (error) {
        skipped.push({ path: relative(source, path), reason: LeatError.from(error).message });
      }
      onProgress?.(index + 1, paths.length);
    }
    return { statistics: shards.statistics, skipped };
  });
  if (corpus.statistics.count > 0) return corpus;
  const { path, reason } = corpus.skipped[0]!;
  throw new LeatError(
    "not_found",
    `No images in '${source}': none of its ${corpus.skipped.length} JPEG files can be decoded; ` +
      `${path}: ${reason}`,
  );
}

/**
 * Returns the paths of all `.jpg` and `.jpeg` files below a folder, sorted.
 * @throws {LeatError} `not_found` if the folder is missing or there are none.
 */
export async function requireImages(source: string): Promise<string[]> {
  const paths = await listImages(source);
  if (paths.length > 0) return paths;
  throw new LeatError("not_found", `No images in '${source}': it holds no .jpg or .jpeg file`);
}

/**
 * Returns the first images of a corpus.
 * @param count How many at most.
 */
export async function sampleImages(corpus: ImageCorpus, count: number): Promise<Uint8Array[]> {
  const jpegs: Uint8Array[] = [];
  for (const file of corpus.files) {
    if (jpegs.length === count) break;
    const bytes = await Deno.readFile(file);
    const view = new DataView(bytes.buffer);
    for (let offset = 0; offset < bytes.length && jpegs.length < count;) {
      const start = offset + RECORD_HEADER_BYTES;
      const end = start + Number(view.getBigUint64(offset, true));
      jpegs.push(bytes.subarray(start, end));
      offset = end + RECORD_FOOTER_BYTES;
    }
  }
  return jpegs;
}

/**
 * Measures the mean time to decode one of these JPEGs on this thread, in milliseconds. The fastest of
 * several rounds counts, because other programs can only slow a round down.
 */
export async function measureDecodeMs(jpegs: readonly Uint8Array[]): Promise<number> {
  const images = new Images();
  let fastestMs = Infinity;
  for (let round = 0; round < DECODE_ROUNDS; round++) {
    const startMs = performance.now();
    for (const jpeg of jpegs) await images.decode(jpeg);
    fastestMs = Math.min(fastestMs, (performance.now() - startMs) / jpegs.length);
  }
  return fastestMs;
}

interface Found {
  statistics: ImageStatistics;
  skipped: SkippedFile[];
}

async function open(
  directory: string,
  parameters: Parameters<typeof openCorpus>[1],
  write: (folder: CorpusFolder) => Promise<Found>,
): Promise<ImageCorpus> {
  const { files, found, reused } = await openCorpus(directory, parameters, write);
  return { files, reused, ...found };
}

/** Distributes images over TFRecord files, and adds up their sizes. */
class ImageShards {
  readonly #shards: Shards;
  #count = 0;
  #bytes = 0;
  #width = 0;
  #height = 0;

  constructor(folder: CorpusFolder, images: number) {
    this.#shards = new Shards(folder, Math.min(IMAGE_SHARDS, images), "images", "tfrecord");
  }

  add(jpeg: Uint8Array, width: number, height: number): void {
    this.#shards.add(encodeTfRecord(jpeg));
    this.#count++;
    this.#bytes += jpeg.length;
    this.#width += width;
    this.#height += height;
  }

  get statistics(): ImageStatistics {
    const per = Math.max(this.#count, 1);
    return {
      count: this.#count,
      bytesMean: this.#bytes / per,
      widthMean: this.#width / per,
      heightMean: this.#height / per,
    };
  }
}

async function listImages(source: string): Promise<string[]> {
  const paths: string[] = [];
  const folders = [source];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    try {
      for await (const { name, isDirectory } of Deno.readDir(folder)) {
        if (isDirectory) folders.push(join(folder, name));
        else if (/\.jpe?g$/i.test(name)) paths.push(join(folder, name));
      }
    } catch (cause) {
      const { code, message } = LeatError.from(cause);
      throw new LeatError(code, `Cannot read the folder of images '${folder}': ${message}`, {
        cause,
      });
    }
  }
  return paths.sort();
}

/** Returns values that identify a file's content, and change when the file changes. */
async function describeFile(path: string): Promise<Record<string, unknown>> {
  try {
    const { size, mtime } = await Deno.stat(path);
    return { path: await Deno.realPath(path), size, modified: mtime?.toISOString() ?? null };
  } catch {
    // Such as a link to nothing. It cannot be decoded, either, and is listed with the reason.
    return { path, size: null };
  }
}
