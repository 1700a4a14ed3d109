/** Generates small files: sounds with transcripts, and photographs. */
import { join } from "node:path";
import wavefile from "wavefile";
import { PhotographMaker } from "../simulate/photographs.ts";
import { encodeExample, encodeTfRecord, Images, RandomStream, Tensor } from "../../mod.ts";

/** Samples per second. */
export const SAMPLE_RATE = 16_000;
const SHARDS = 8;
const RECORDS_PER_SHARD = 16;
/** How many different sounds and photographs there are. Records repeat them. */
const SOUNDS = 16;
const PHOTOGRAPHS = 8;
const WORDS = ["a", "data", "feed", "keeps", "local", "model", "no", "share", "the", "waits"];

/** TFRecord files of `tf.train.Example`s. */
export interface ExampleFiles {
  readonly paths: readonly string[];
  /** Mean size of a record. */
  readonly bytesMean: number;
}

/** The files of all workloads. */
export interface ExampleData {
  /** Fields: `wav` (one second, 16 bit), and `text` (its transcript). */
  readonly sounds: ExampleFiles;
  /** Fields: `jpeg` (mostly 500 × 375 pixels), and `label`. */
  readonly photographs: ExampleFiles;
}

/** Writes all files into a folder. */
export async function writeData(folder: string): Promise<ExampleData> {
  const random = new RandomStream(1);
  const sounds = Array.from({ length: SOUNDS }, (_, i) => {
    const text = Array.from({ length: 6 }, () => WORDS[random.int(WORDS.length)]).join(" ");
    return encodeExample({ wav: soundOf(i), text });
  });
  const maker = new PhotographMaker(random.fork("textures"));
  const images = new Images();
  const photographs: Uint8Array[] = [];
  for (let i = 0; i < PHOTOGRAPHS; i++) {
    const { width, height, pixels, quality } = maker.make(random.fork(i));
    const jpeg = await images.encode(new Tensor("uint8", [height, width, 3], pixels), { quality });
    photographs.push(encodeExample({ jpeg, label: BigInt(i % 2) }));
  }
  return {
    sounds: await writeShards(folder, "sounds", sounds),
    photographs: await writeShards(folder, "photographs", photographs),
  };
}

/** Returns a WAV file: one second of a rising tone with overtones. */
function soundOf(index: number): Uint8Array {
  const hertz = 110 * (1 + index / 4);
  const samples = Int16Array.from({ length: SAMPLE_RATE }, (_, i) => {
    const phase = 2 * Math.PI * hertz * (i / SAMPLE_RATE) * (1 + i / SAMPLE_RATE);
    return 8_000 * (Math.sin(phase) + Math.sin(2 * phase) / 2 + Math.sin(5 * phase) / 4);
  });
  const wav = new wavefile.WaveFile();
  wav.fromScratch(1, SAMPLE_RATE, "16", samples);
  return wav.toBuffer();
}

async function writeShards(
  folder: string,
  name: string,
  examples: readonly Uint8Array[],
): Promise<ExampleFiles> {
  const paths: string[] = [];
  let bytes = 0;
  for (let shard = 0; shard < SHARDS; shard++) {
    const records = Array.from(
      { length: RECORDS_PER_SHARD },
      (_, i) => encodeTfRecord(examples[(shard * RECORDS_PER_SHARD + i) % examples.length]!),
    );
    const file = await new Blob(records as Uint8Array<ArrayBuffer>[]).bytes();
    bytes += file.length;
    const path = join(folder, `${name}-${shard}.tfrecord`);
    await Deno.writeFile(path, file);
    paths.push(path);
  }
  return { paths, bytesMean: bytes / (SHARDS * RECORDS_PER_SHARD) };
}
