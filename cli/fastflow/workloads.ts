/** Seven small pipelines that resemble those in section 7.1 of the FastFlow paper. */
import { Dataset, type Tensor } from "../../mod.ts";
import { type ExampleData, type ExampleFiles, SAMPLE_RATE } from "./data.ts";

/** Elements in a batch. */
export const BATCH = 8;
/** How many times an epoch reads each file. */
const ROUNDS = 8;

/** The paper's letters for the workloads. */
export const LETTERS = ["T", "G", "C", "S", "R", "M", "L"] as const;
export type Letter = typeof LETTERS[number];

/** A pipeline, and how fast its accelerator takes data. */
export interface Workload {
  readonly letter: Letter;
  readonly name: string;
  /** The pipeline in words, after the paper. */
  readonly pipeline: string;
  /**
   * How many cores are needed to prepare data as fast as the accelerator takes it. This number sets
   * the step time. One core stands for the 7 vCPUs of the paper's local node.
   */
  readonly coresWanted: number;
  readonly files: (data: ExampleData) => ExampleFiles;
  readonly dataset: (files: ExampleFiles) => Dataset<unknown>;
}

const sounds = ({ sounds }: ExampleData) => sounds;
const photographs = ({ photographs }: ExampleData) => photographs;

function soundsOf({ paths }: ExampleFiles) {
  return recordsOf(paths).parseExamples({ wav: "bytes", text: "string" });
}

function photographsOf({ paths }: ExampleFiles) {
  return recordsOf(paths).parseExamples({ jpeg: "bytes", label: "int64" });
}

function recordsOf(paths: readonly string[]) {
  return Dataset.tfRecords(Array.from({ length: ROUNDS }, () => paths).flat());
}

/** Normalised mel spectrograms, and the characters of the transcript as numbers. */
function spectrograms(files: ExampleFiles, frameStep: number): Dataset<unknown> {
  return soundsOf(files).map(({ wav, text }, { audio, sampleRate, frameStep }) => {
    const { samples } = audio.decodeWav(wav);
    const mel = audio.melSpectrogram(samples, {
      ...{ sampleRate, frameStep, frameLength: 400, fftLength: 512, numMelBins: 80 },
    });
    const data = mel.data;
    let sum = 0, squares = 0;
    for (const x of data) {
      sum += x;
      squares += x * x;
    }
    const mean = sum / data.length;
    const deviation = Math.sqrt(squares / data.length - mean * mean) + 1e-6;
    for (let i = 0; i < data.length; i++) data[i] = (data[i]! - mean) / deviation;
    const characters = new Int32Array(64);
    for (let i = 0; i < Math.min(64, text.length); i++) characters[i] = text.charCodeAt(i);
    return { mel, characters };
  }, { captures: { sampleRate: SAMPLE_RATE, frameStep } }).batch(BATCH).prefetch(2);
}

/** Adds noise, then computes the magnitudes of an FFT of 8,192 samples. */
function spectra(files: ExampleFiles): Dataset<unknown> {
  return soundsOf(files).map(({ wav }, { audio, random }) => {
    const { samples } = audio.decodeWav(wav);
    const size = 8_192;
    const real = new Float64Array(size), imaginary = new Float64Array(size);
    const loudness = 0.05 * random.next();
    for (let i = 0, j = 0; i < size; i++) {
      real[j] = samples.data[i]! + loudness * random.normal();
      let bit = size >> 1;
      for (; j & bit; bit >>= 1) j ^= bit;
      j |= bit;
    }
    for (let half = 1; half < size; half *= 2) {
      for (let k = 0; k < half; k++) {
        const cos = Math.cos(Math.PI * k / half), sin = -Math.sin(Math.PI * k / half);
        for (let a = k; a < size; a += 2 * half) {
          const b = a + half;
          const x = real[b]! * cos - imaginary[b]! * sin, y = real[b]! * sin + imaginary[b]! * cos;
          real[b] = real[a]! - x;
          imaginary[b] = imaginary[a]! - y;
          real[a]! += x;
          imaginary[a]! += y;
        }
      }
    }
    return Float32Array.from(
      { length: size / 2 },
      (_, i) => Math.hypot(real[i]!, imaginary[i]!),
    );
  }).batch(BATCH).prefetch(2);
}

/** A centre crop, resized, with values clipped to [-1, 1]. */
function crops(files: ExampleFiles): Dataset<unknown> {
  return photographsOf(files).map(async ({ jpeg }, { image }) => {
    const picture = await image.decode(jpeg) as Tensor<"uint8">;
    const [height = 0, width = 0] = picture.shape;
    const side = Math.min(height, width);
    const square = image.resize(image.centerCrop(picture, [side, side]), [64, 64], {
      antialias: true,
    });
    return Float32Array.from(
      square.data as Uint8Array,
      (x) => Math.min(1, Math.max(-1, x / 127.5 - 1)),
    );
  }).batch(BATCH).prefetch(2);
}

/** A random crop, and two operations of RandAugment. */
function augmented(files: ExampleFiles): Dataset<unknown> {
  return photographsOf(files).map(async ({ jpeg, label }, { image, random }) => {
    const picture = await image.decode(jpeg) as Tensor<"uint8">;
    const crop = image.randomResizedCrop(picture, [128, 128], random);
    return { image: image.randAugment(crop, random), label };
  }).batch(BATCH).prefetch(2);
}

/** The samples of a sound. */
function waves(files: ExampleFiles): Dataset<unknown> {
  return soundsOf(files).map(({ wav }, { audio }) => audio.decodeWav(wav).samples)
    .batch(BATCH).prefetch(2);
}

/** Resized images with one-hot labels. */
function resized(files: ExampleFiles): Dataset<unknown> {
  return photographsOf(files).map(async ({ jpeg, label }, { image }) => {
    const picture = await image.decode(jpeg) as Tensor<"uint8">;
    const classes = new Float32Array(2);
    classes[Number(label)] = 1;
    return { image: image.resize(picture, [224, 224]), classes };
  }).batch(BATCH).prefetch(2);
}

/**
 * All workloads. `coresWanted` follows the paper where its text has a figure (sections 7.2 and 7.3: up
 * to 20 vCPUs for T, 10 for G, 30 for S, no more than 7 for M and L); C and R are between.
 */
export const WORKLOADS: readonly Workload[] = [
  {
    ...{ letter: "T", name: "Transformer ASR", coresWanted: 20 / 7, files: sounds },
    pipeline: "STFT, mel bands, normalise, transcript",
    dataset: (files) => spectrograms(files, 80),
  },
  {
    ...{ letter: "G", name: "GAN ADA", coresWanted: 10 / 7, files: photographs },
    pipeline: "decode, crop, resize, clip",
    dataset: crops,
  },
  {
    ...{ letter: "C", name: "CTC ASR", coresWanted: 14 / 7, files: sounds },
    pipeline: "STFT, mel bands, normalise, transcript",
    dataset: (files) => spectrograms(files, 160),
  },
  {
    ...{ letter: "S", name: "Speaker Recognition", coresWanted: 30 / 7, files: sounds },
    pipeline: "decode, random noise, FFT",
    dataset: spectra,
  },
  {
    ...{ letter: "R", name: "ResNet50, RandAugment", coresWanted: 12 / 7, files: photographs },
    pipeline: "decode, random crop, RandAugment",
    dataset: augmented,
  },
  {
    ...{ letter: "M", name: "MelGAN", coresWanted: 5 / 7, files: sounds },
    pipeline: "decode waves",
    dataset: waves,
  },
  {
    ...{ letter: "L", name: "Learnable Resizer", coresWanted: 7 / 7, files: photographs },
    pipeline: "decode, resize, one-hot labels",
    dataset: resized,
  },
];
