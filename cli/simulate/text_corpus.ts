/**
 * Writes text as JSON lines, `{ "tokens": [17, 4, …] }`: generated text, whose lengths vary like those
 * of real text, or the user's own.
 */

import { LeatError } from "../../core/error.ts";
import { RandomStream } from "../../core/philox.ts";
import { type CorpusFolder, openCorpus, Shards } from "./corpus_folder.ts";
import type { OnProgress } from "./image_corpus.ts";
import { mean, quantile } from "../lib/statistics.ts";

/** Limit of the tokens in a text: longer texts are cut, as for models of 512 positions. */
export const TOKENS_MAX = 512;

/** The number of different tokens. Words are hashed to tokens. */
export const VOCABULARY_SIZE = 30_000;

/** Limit of the lines of the user's text that are packed. */
export const USER_TEXTS_MAX = 100_000;

/** Limit of the JSON lines files of a corpus. */
const TEXT_SHARDS = 8;

/** Log-normal: half the texts have at most 60 tokens, two thirds 22 to 163. */
const LENGTH = { median: 60, sigma: 1 };

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/** Text as JSON lines. */
export interface TextCorpus {
  /** Paths of the JSON lines files, in order. */
  files: string[];
  statistics: TextStatistics;
  /** Whether the files came from the cache. */
  reused: boolean;
}

/** Lengths are in tokens. */
interface TextStatistics {
  count: number;
  lengthMean: number;
  lengthMedian: number;
  lengthMin: number;
  lengthMax: number;
}

interface GenerateTextOptions {
  /** The cache folder. */
  directory: string;
  /** The number of texts, at least 1. */
  count: number;
  /** The seed of every text; default 0. */
  seed?: number;
  onProgress?: OnProgress;
}

/** Options of packing the user's text. */
interface PackTextOptions {
  /** The cache folder. */
  directory: string;
  /** A file with a sample on each line. */
  source: string;
  onProgress?: OnProgress;
}

/**
 * Generates texts of 1 to {@linkcode TOKENS_MAX} tokens. Lengths are log-normal with median 60. Token n
 * is about n times as rare as token 1. The same seed and count give the same texts.
 * @throws {LeatError} `invalid_argument` for an invalid count.
 */
export async function generateText(options: GenerateTextOptions): Promise<TextCorpus> {
  const { directory, count, seed = 0, onProgress } = options;
  if (!(Number.isSafeInteger(count) && count >= 1)) {
    throw new LeatError("invalid_argument", `generateText: count is ${count}; at least 1`);
  }
  const parameters = { kind: "generated-text", release: 1, count, seed };
  return await open(directory, parameters, (folder) => {
    const random = new RandomStream(seed, ["text"]);
    const shards = new TextShards(folder, count);
    for (let index = 0; index < count; index++) {
      shards.add(drawTokens(random.fork(index)));
      onProgress?.(index + 1, count);
    }
    return shards.statistics;
  });
}

/**
 * Packs the user's own text. Each line that is not blank is a sample, whose tokens are its hashed words.
 * Limits: the first {@linkcode USER_TEXTS_MAX} lines, and the first {@linkcode TOKENS_MAX} words of
 * each.
 * @throws {LeatError} `not_found` if the file is missing or blank.
 */
export async function packText(options: PackTextOptions): Promise<TextCorpus> {
  const { directory, source, onProgress } = options;
  const lines = await readLines(source);
  const { size, mtime } = await Deno.stat(source);
  const path = await Deno.realPath(source);
  const modified = mtime?.toISOString() ?? null;
  const parameters = { kind: "user-text", release: 1, path, size, modified };
  return await open(directory, parameters, (folder) => {
    const shards = new TextShards(folder, lines.length);
    for (const [index, line] of lines.entries()) {
      shards.add(tokenize(line));
      onProgress?.(index + 1, lines.length);
    }
    return shards.statistics;
  });
}

/**
 * Returns the first {@linkcode USER_TEXTS_MAX} lines of a text that are not blank.
 * @throws {LeatError} `not_found` if the file is missing or blank.
 */
export async function readLines(source: string): Promise<string[]> {
  const text = await readText(source);
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "").slice(0, USER_TEXTS_MAX);
  if (lines.length > 0) return lines;
  throw new LeatError("not_found", `No text in '${source}': every line of it is blank`);
}

/**
 * Returns the first {@linkcode TOKENS_MAX} words of a line as numbers below
 * {@linkcode VOCABULARY_SIZE}. Words are separated by white space. Equal words have equal numbers, and
 * different words rarely have the same.
 */
export function tokenize(line: string): number[] {
  const words = line.split(/\s+/).filter((word) => word !== "");
  return words.slice(0, TOKENS_MAX).map((word) => {
    let hash = FNV_OFFSET;
    for (const byte of new TextEncoder().encode(word)) {
      hash = Math.imul(hash ^ byte, FNV_PRIME);
    }
    return (hash >>> 0) % VOCABULARY_SIZE;
  });
}

async function open(
  directory: string,
  parameters: Parameters<typeof openCorpus>[1],
  write: (folder: CorpusFolder) => TextStatistics,
): Promise<TextCorpus> {
  const { files, found, reused } = await openCorpus(directory, parameters, write);
  return { files, statistics: found, reused };
}

/** Returns the tokens of one generated text. None of them is 0. */
export function drawTokens(random: RandomStream): number[] {
  const drawn = Math.round(LENGTH.median * Math.exp(LENGTH.sigma * random.normal()));
  const length = Math.min(Math.max(drawn, 1), TOKENS_MAX);
  return Array.from(
    { length },
    () => Math.floor(VOCABULARY_SIZE ** random.next()) % VOCABULARY_SIZE,
  );
}

async function readText(source: string): Promise<string> {
  try {
    return await Deno.readTextFile(source);
  } catch (cause) {
    const { code, message } = LeatError.from(cause);
    throw new LeatError(code, `Cannot read the text '${source}': ${message}`, { cause });
  }
}

/** Distributes texts over JSON lines files, and records their lengths. */
class TextShards {
  readonly #shards: Shards;
  readonly #lengths: number[] = [];
  readonly #encoder = new TextEncoder();

  constructor(folder: CorpusFolder, texts: number) {
    this.#shards = new Shards(folder, Math.min(TEXT_SHARDS, texts), "text", "jsonl");
  }

  add(tokens: number[]): void {
    this.#shards.add(this.#encoder.encode(`${JSON.stringify({ tokens })}\n`));
    this.#lengths.push(tokens.length);
  }

  get statistics(): TextStatistics {
    const lengths = this.#lengths;
    return {
      count: lengths.length,
      lengthMean: mean(lengths),
      lengthMedian: quantile(lengths, 0.5),
      lengthMin: quantile(lengths, 0),
      lengthMax: quantile(lengths, 1),
    };
  }
}
