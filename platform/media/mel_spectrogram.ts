/**
 * Mel spectrograms with the conventions of `tf.signal`: frames without padding, its periodic Hann
 * window, magnitudes of the real FFT, and HTK mel weights.
 */

import FFT from "fft.js";
import { LeatError } from "../../core/error.ts";
import { Tensor } from "../../core/tensor.ts";
import type { MelSpectrogramOptions } from "../../data/host.ts";

const FFT_LENGTH_MAX = 65_536;

const MEL_BINS_MAX = 4_096;

/** The part of `fft.js` that is used. */
interface RealFft {
  /** `out` holds real and imaginary parts alternately; the bins up to half the size are filled. */
  realTransform(out: Float64Array, samples: Float64Array): void;
}

/** The nonzero part of one row of mel weights. */
interface Band {
  readonly firstBin: number;
  readonly weights: Float64Array;
}

/** Returns float32 of shape [frames, mel bins]; no frames if there are fewer samples than in a frame. */
export type MelSpectrogram = (samples: ArrayLike<number>) => Tensor<"float32">;

/**
 * Returns a function that computes mel spectrograms of one kind. Its tables are made once, for many
 * sounds.
 * @throws {LeatError} `invalid_argument` naming the option with an invalid value.
 */
export function melSpectrogram(options: MelSpectrogramOptions): MelSpectrogram {
  const { frameLength, frameStep } = options;
  requireCount("frameLength", frameLength, FFT_LENGTH_MAX);
  requireCount("frameStep", frameStep, Number.MAX_SAFE_INTEGER);
  const fftLength = checkFftLength(options);
  const window = hannWindow(frameLength);
  const bands = melBands(options, fftLength);
  const fft = new FFT(fftLength) as unknown as RealFft;
  const frame = new Float64Array(fftLength);
  const spectrum = new Float64Array(2 * fftLength);
  const magnitudes = new Float64Array(fftLength / 2 + 1);
  const transform = (samples: ArrayLike<number>, start: number) => {
    // The rest of the frame stays zero: frames are padded at the end.
    for (let i = 0; i < frameLength; i++) frame[i] = samples[start + i]! * window[i]!;
    fft.realTransform(spectrum, frame);
    for (let bin = 0; bin < magnitudes.length; bin++) {
      magnitudes[bin] = Math.hypot(spectrum[2 * bin]!, spectrum[2 * bin + 1]!);
    }
  };
  return (samples) => {
    const frames = samples.length < frameLength
      ? 0
      : 1 + Math.floor((samples.length - frameLength) / frameStep);
    const out = new Float32Array(frames * bands.length);
    for (let index = 0; index < frames; index++) {
      transform(samples, index * frameStep);
      bands.forEach((band, bin) => out[index * bands.length + bin] = weigh(magnitudes, band));
    }
    return new Tensor("float32", [frames, bands.length], out);
  };
}

function weigh(magnitudes: Float64Array, { firstBin, weights }: Band): number {
  let sum = 0;
  for (let i = 0; i < weights.length; i++) sum += magnitudes[firstBin + i]! * weights[i]!;
  return sum;
}

function hannWindow(length: number): Float64Array {
  if (length === 1) return Float64Array.of(1);
  // `tf.signal.hann_window` makes windows of odd lengths symmetric.
  const period = length - length % 2;
  return Float64Array.from({ length }, (_, i) => 0.5 - 0.5 * Math.cos(2 * Math.PI * i / period));
}

/** Triangles between points evenly spaced on the mel scale; bin 0 has no weight. */
function melBands(options: MelSpectrogramOptions, fftLength: number): Band[] {
  const { sampleRate, numMelBins = 20, lowerEdgeHertz = 125, upperEdgeHertz = 3800 } = options;
  requireCount("numMelBins", numMelBins, MEL_BINS_MAX);
  if (!(Number.isFinite(sampleRate) && sampleRate > 0)) {
    throw refuse("sampleRate", "a number of samples per second", sampleRate);
  }
  if (!(lowerEdgeHertz >= 0)) throw refuse("lowerEdgeHertz", "at least 0", lowerEdgeHertz);
  if (!(upperEdgeHertz > lowerEdgeHertz && upperEdgeHertz <= sampleRate / 2)) {
    const wanted = `above lowerEdgeHertz (${lowerEdgeHertz}) and at most half of sampleRate (${
      sampleRate / 2
    })`;
    throw refuse("upperEdgeHertz", wanted, upperEdgeHertz);
  }
  const lowest = melOf(lowerEdgeHertz);
  const step = (melOf(upperEdgeHertz) - lowest) / (numMelBins + 1);
  const binMels = Array.from(
    { length: fftLength / 2 + 1 },
    (_, bin) => melOf(bin * sampleRate / fftLength),
  );
  return Array.from({ length: numMelBins }, (_, band) => {
    const [low, centre, high] = [0, 1, 2].map((i) => lowest + (band + i) * step) as [
      number,
      number,
      number,
    ];
    const weightOf = (mel: number) =>
      Math.min((mel - low) / (centre - low), (high - mel) / (high - centre));
    const weights = binMels.map((mel, bin) => bin === 0 ? 0 : Math.max(0, weightOf(mel)));
    const firstBin = Math.max(weights.findIndex((weight) => weight > 0), 0);
    const lastBin = weights.findLastIndex((weight) => weight > 0);
    return { firstBin, weights: Float64Array.from(weights.slice(firstBin, lastBin + 1)) };
  });
}

function melOf(hertz: number): number {
  return 1127 * Math.log(1 + hertz / 700);
}

function checkFftLength({ frameLength, fftLength }: MelSpectrogramOptions): number {
  // The smallest size of fft.js is 4.
  const smallest = Math.max(4, 2 ** Math.ceil(Math.log2(frameLength)));
  if (fftLength === undefined) return smallest;
  const isPower = Number.isInteger(Math.log2(fftLength));
  if (isPower && fftLength >= smallest && fftLength <= FFT_LENGTH_MAX) return fftLength;
  throw refuse("fftLength", `a power of two from ${smallest} to ${FFT_LENGTH_MAX}`, fftLength);
}

function requireCount(name: string, value: number, max: number): void {
  if (Number.isSafeInteger(value) && value >= 1 && value <= max) return;
  const wanted = max === Number.MAX_SAFE_INTEGER ? "of at least 1" : `from 1 to ${max}`;
  throw refuse(name, `an integer ${wanted}`, value);
}

function refuse(name: string, wanted: string, value: unknown): LeatError {
  return new LeatError(
    "invalid_argument",
    `melSpectrogram: ${name} must be ${wanted}, got ${String(value)}`,
  );
}
