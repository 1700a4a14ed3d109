/**
 * Generates the files that all sides read, once, below `.cache/peers/`: images of ImageNet's size in
 * TFRecords, small records, texts, and sequences of tokens.
 */
import { RandomStream } from "../../core/philox.ts";
import { type CorpusFolder, openCorpus } from "../../cli/simulate/corpus_folder.ts";
import { drawTokens } from "../../cli/simulate/text_corpus.ts";
import { generateImages } from "../../cli/simulate/image_corpus.ts";
import { encodeTfRecord } from "../../mod.ts";

const IMAGES = 512;
const RECORD_FILES = 4;
const RECORDS_PER_FILE = 20_000;
const RECORD_BYTES = 1_024;
const TEXTS = 60_000;
const WORDS_MEAN = 55;
const VOCABULARY = 20_000;
const SEQUENCES = 20_000;

/** Paths of the files, by content. */
export interface PeerFiles {
  readonly images: readonly string[];
  readonly records: readonly string[];
  readonly texts: readonly string[];
  readonly sequences: readonly string[];
}

/** Generates the files that do not exist yet. */
export async function openFiles(
  directory: string,
  onProgress: (what: string, done: number, total: number) => void,
): Promise<PeerFiles> {
  const images = await generateImages({
    directory,
    count: IMAGES,
    onProgress: (done, total) => onProgress("images", done, total),
  });
  const records = await openCorpus(directory, { kind: "records", release: 1 }, writeRecords);
  const texts = await openCorpus(directory, { kind: "texts", release: 1 }, writeTexts);
  const sequences = await openCorpus(directory, { kind: "sequences", release: 1 }, writeSequences);
  return {
    ...{ images: images.files, records: records.files },
    ...{ texts: texts.files, sequences: sequences.files },
  };
}

async function writeRecords(folder: CorpusFolder): Promise<null> {
  const random = new RandomStream(1, ["records"]);
  for (let number = 0; number < RECORD_FILES; number++) {
    const file = folder.create(`records-${number}.tfrecord`);
    for (let index = 0; index < RECORDS_PER_FILE; index++) {
      const bytes = new Uint8Array(RECORD_BYTES).fill(random.int(256));
      await file.write(encodeTfRecord(bytes));
    }
  }
  return null;
}

/** Writes lines of words. Lengths are uniform, from a few words to about twice the mean. */
async function writeTexts(folder: CorpusFolder): Promise<null> {
  const random = new RandomStream(1, ["texts"]);
  const encoder = new TextEncoder();
  const file = folder.create("texts.txt");
  for (let index = 0; index < TEXTS; index++) {
    const words = Array.from(
      { length: 5 + random.int(2 * WORDS_MEAN - 10) },
      () => `w${random.int(VOCABULARY)}`,
    );
    await file.write(encoder.encode(`${words.join(" ")}\n`));
  }
  return null;
}

/** Writes lines of tokens. Lengths are log-normal, at most 512, as for the paper's models. */
async function writeSequences(folder: CorpusFolder): Promise<null> {
  const random = new RandomStream(1, ["sequences"]);
  const encoder = new TextEncoder();
  const file = folder.create("sequences.txt");
  for (let index = 0; index < SEQUENCES; index++) {
    await file.write(encoder.encode(`${drawTokens(random.fork(index)).join(" ")}\n`));
  }
  return null;
}
