/** Prepares the files that the main job reads: generated and cached ones, or the user's own. */

import { join } from "node:path";
import { LeatError } from "../../core/error.ts";
import {
  generateImages,
  type ImageCorpus,
  measureDecodeMs,
  packImages,
  requireImages,
  sampleImages,
} from "./image_corpus.ts";
import type { Progress } from "./progress.ts";
import { countOf } from "../lib/counted.ts";
import { formatNumber } from "../lib/table.ts";
import { generateText, packText, readLines, type TextCorpus } from "./text_corpus.ts";

/** The default folder of corpora: in the project, ignored by git. */
export const CORPUS_DIRECTORY = join(import.meta.dirname ?? ".", "..", "..", ".cache/leat-corpus");

/** Time to decode an ImageNet photograph on one core, in milliseconds. The report compares with it. */
const IMAGENET_DECODE_MS = 1.0;

const IMAGES = { quick: 128, full: 480 };
const TEXTS = { quick: 4_000, full: 16_000 };
const DECODE_SAMPLES = 64;

interface PrepareCorpusOptions {
  /** The cache folder; default {@linkcode CORPUS_DIRECTORY}. */
  directory?: string;
  /** Generates fewer samples, which takes about a second; default false. */
  quick?: boolean;
  /** A folder of the user's JPEGs instead of generated ones. */
  images?: string;
  /** A file of the user's text, with a sample on each line, instead of generated text. */
  text?: string;
  progress: Progress;
}

/** The data of all experiments. */
export interface Corpus {
  images: ImageCorpus;
  text: TextCorpus;
  /** Mean time to decode an image on one thread of this host, in milliseconds. */
  decodeMs: number;
  /** Remarks about the data for the report; one or two sentences for each corpus. */
  description: string[];
}

/**
 * Checks the user's folder and file, if given, and the cache folder, before anything is generated.
 * @throws {LeatError} `not_found` and others if the folder or the file is missing, unreadable or empty,
 * or if the cache folder cannot be created.
 */
export async function checkFolders(
  { images, text, corpus }: Readonly<Record<"images" | "text" | "corpus", string | undefined>>,
): Promise<void> {
  try {
    if (corpus !== undefined) await Deno.mkdir(corpus, { recursive: true });
  } catch (cause) {
    const { code, message } = LeatError.from(cause);
    throw new LeatError(
      code,
      `Nothing can be kept in '${corpus}': ${message}. Name another folder`,
    );
  }
  if (images !== undefined) await requireImages(images);
  if (text !== undefined) await readLines(text);
}

/**
 * Returns the corpora of the main job. Missing ones are written to the cache, with progress.
 * @throws {LeatError} `not_found` if the user's folder or file is missing or has nothing usable.
 */
export async function prepareCorpus(options: PrepareCorpusOptions): Promise<Corpus> {
  const { directory = CORPUS_DIRECTORY, quick = false, progress } = options;
  const size = quick ? "quick" : "full";
  progress.beginExperiment("corpus", 2);
  const images = await track(
    progress,
    "images",
    (onProgress) =>
      options.images === undefined
        ? generateImages({ directory, count: IMAGES[size], onProgress })
        : packImages({ directory, source: options.images, onProgress }),
  );
  const text = await track(
    progress,
    "texts",
    (onProgress) =>
      options.text === undefined
        ? generateText({ directory, count: TEXTS[size], onProgress })
        : packText({ directory, source: options.text, onProgress }),
  );
  const decodeMs = await measureDecodeMs(await sampleImages(images, DECODE_SAMPLES));
  const description = [describeImages(images, decodeMs), describeText(text)];
  for (const sentence of description) progress.note(sentence);
  for (const { path, reason } of images.skipped) progress.note(`left out ${path}: ${reason}`);
  return { images, text, decodeMs, description };
}

/** Describes a corpus of images for the report. */
export function describeImages({ statistics, skipped }: ImageCorpus, decodeMs: number): string {
  const { count, bytesMean, widthMean, heightMean } = statistics;
  const [first] = skipped;
  const skippedText = first === undefined
    ? ""
    : ` ${formatNumber(skipped.length, 0)} more could not be decoded, the first '${first.path}'.`;
  return `${countOf(count, "image")} of ${formatNumber(bytesMean / 1000, 0)} KB and ` +
    `${formatNumber(widthMean, 0)}×${
      formatNumber(heightMean, 0)
    } pixels on average; decoding one takes ` +
    `${formatNumber(decodeMs, 2)} ms (ImageNet's: ${
      formatNumber(IMAGENET_DECODE_MS, 1)
    } ms).${skippedText}`;
}

/** Describes a corpus of text for the report. */
export function describeText({ statistics }: TextCorpus): string {
  const { count, lengthMean, lengthMedian, lengthMin, lengthMax } = statistics;
  return `${countOf(count, "text")} of ${lengthMin} to ${lengthMax} tokens, ` +
    `${formatNumber(lengthMedian, 0)} at the median and ${formatNumber(lengthMean, 0)} on average.`;
}

async function track<T extends { reused: boolean }>(
  progress: Progress,
  unit: string,
  make: (onProgress: (done: number, total: number) => void) => Promise<T>,
): Promise<T> {
  let begun = false;
  const corpus = await make((done, total) => {
    if (!begun) progress.beginRun(unit, total, unit);
    begun = true;
    progress.update({ done });
  });
  progress.endRun();
  if (corpus.reused) progress.note(`corpus: ${unit} from the cache`);
  return corpus;
}
