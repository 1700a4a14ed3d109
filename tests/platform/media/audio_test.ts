/** Mel spectrograms against the definition, computed slowly; sound in functions on workers. */

import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";
import { LeatError } from "../../../core/error.ts";
import { RandomStream } from "../../../core/philox.ts";
import { Tensor } from "../../../core/tensor.ts";
import type { MelSpectrogramOptions } from "../../../data/host.ts";
import { Audio } from "../../../platform/media/audio.ts";

const audio = new Audio();

/** A chord with some noise. */
function sound(length: number, sampleRate: number): Float32Array {
  const random = new RandomStream(11n, ["sound", length]);
  return Float32Array.from({ length }, (_, i) => {
    const t = 2 * Math.PI * i / sampleRate;
    return 0.3 * Math.sin(440 * t) + 0.2 * Math.cos(1234 * t) + 0.05 * random.normal();
  });
}

/** `tf.signal.stft`, `abs` and `linear_to_mel_weight_matrix`, each as its documentation defines it, for one frame and one bin. */
function reference(
  samples: Float32Array,
  options: Required<MelSpectrogramOptions>,
  frame: number,
  melBin: number,
): number {
  const { sampleRate, frameLength, frameStep, fftLength, numMelBins } = options;
  const mel = (hertz: number) => 1127 * Math.log(1 + hertz / 700);
  const [lowest, highest] = [mel(options.lowerEdgeHertz), mel(options.upperEdgeHertz)];
  const edge = (i: number) => lowest + (highest - lowest) * i / (numMelBins + 1);
  let sum = 0;
  for (let bin = 1; bin <= fftLength / 2; bin++) {
    const at = mel(bin / (fftLength / 2) * sampleRate / 2);
    const rising = (at - edge(melBin)) / (edge(melBin + 1) - edge(melBin));
    const falling = (edge(melBin + 2) - at) / (edge(melBin + 2) - edge(melBin + 1));
    const weight = Math.max(0, Math.min(rising, falling));
    if (weight === 0) continue;
    let real = 0, imaginary = 0;
    // As `_raised_cosine_window` in TensorFlow's window_ops.py, with periodic = 1.
    const even = 1 - frameLength % 2;
    const n = frameLength + even - 1;
    for (let i = 0; i < frameLength; i++) {
      const window = 0.5 - 0.5 * Math.cos(2 * Math.PI * i / n);
      const value = samples[frame * frameStep + i]! * window;
      real += value * Math.cos(2 * Math.PI * bin * i / fftLength);
      imaginary -= value * Math.sin(2 * Math.PI * bin * i / fftLength);
    }
    sum += weight * Math.sqrt(real ** 2 + imaginary ** 2);
  }
  return sum;
}

Deno.test("melSpectrogram follows the definition for all lengths, steps and edges", () => {
  const cases: Required<MelSpectrogramOptions>[] = [
    {
      sampleRate: 16_000,
      frameLength: 400,
      frameStep: 160,
      fftLength: 512,
      numMelBins: 20,
      lowerEdgeHertz: 125,
      upperEdgeHertz: 3800,
    },
    {
      sampleRate: 16_000,
      frameLength: 256,
      frameStep: 256,
      fftLength: 256,
      numMelBins: 40,
      lowerEdgeHertz: 0,
      upperEdgeHertz: 8000,
    },
    {
      sampleRate: 8_000,
      frameLength: 201,
      frameStep: 77,
      fftLength: 1024,
      numMelBins: 13,
      lowerEdgeHertz: 60,
      upperEdgeHertz: 4000,
    },
    {
      sampleRate: 22_050,
      frameLength: 3,
      frameStep: 1000,
      fftLength: 4,
      numMelBins: 2,
      lowerEdgeHertz: 20,
      upperEdgeHertz: 11_000,
    },
  ];
  for (const options of cases) {
    const samples = sound(2000, options.sampleRate);
    const found = audio.melSpectrogram(samples, options);
    const frames = 1 + Math.floor((2000 - options.frameLength) / options.frameStep);
    assertEquals([found.dtype, ...found.shape], ["float32", frames, options.numMelBins]);
    found.data.forEach((value, at) => {
      const frame = Math.floor(at / options.numMelBins), bin = at % options.numMelBins;
      const expected = reference(samples, options, frame, bin);
      assertAlmostEquals(
        value,
        expected,
        1e-5 * Math.max(1, expected),
        `frame ${frame}, bin ${bin}`,
      );
    });
    assert(found.data.some((value) => value > 0));
  }
});

Deno.test("melSpectrogram has the defaults of tf.signal", () => {
  const samples = sound(1000, 16_000);
  const lengths = { sampleRate: 16_000, frameLength: 400, frameStep: 160 };
  const defaults = { fftLength: 512, numMelBins: 20, lowerEdgeHertz: 125, upperEdgeHertz: 3800 };
  assertEquals(
    audio.melSpectrogram(samples, lengths),
    audio.melSpectrogram(samples, { ...defaults, ...lengths }),
  );
});

Deno.test("melSpectrogram makes no frame of too few samples, and one of exactly enough", () => {
  const options = { sampleRate: 16_000, frameLength: 400, frameStep: 160 };
  const framesOf = (length: number) =>
    audio.melSpectrogram(new Float32Array(length), options).shape[0];
  assertEquals([0, 399, 400, 559, 560].map(framesOf), [0, 0, 1, 1, 2]);
});

Deno.test("melSpectrogram averages channels, and accepts tensors of one", () => {
  const [left, right] = [sound(600, 8000), sound(601, 8000)];
  const interleaved = Float32Array.from(
    { length: 1200 },
    (_, i) => (i % 2 ? right : left)[i >> 1]!,
  );
  const mean = Float32Array.from(left, (x, i) => (x + right[i]!) / 2);
  const options = { sampleRate: 8000, frameLength: 256, frameStep: 128 };
  const expected = audio.melSpectrogram(mean, options);
  const found = audio.melSpectrogram(new Tensor("float32", [600, 2], interleaved), options);
  found.data.forEach((value, i) => assertAlmostEquals(value, expected.data[i]!, 1e-5));
  for (const shape of [[600], [600, 1]]) {
    assertEquals(audio.melSpectrogram(new Tensor("float32", shape, mean), options), expected);
  }
});

Deno.test("melSpectrogram keeps the tables of different kinds separate, however many there are", () => {
  const samples = sound(512, 8000);
  const of = (numMelBins: number) =>
    audio.melSpectrogram(samples, {
      sampleRate: 8000,
      frameLength: 256,
      frameStep: 256,
      numMelBins,
    });
  const before = of(5);
  for (let bins = 6; bins < 40; bins++) assertEquals(of(bins).shape, [2, bins]);
  assertEquals(of(5), before);
});

Deno.test("melSpectrogram names the invalid argument", () => {
  const options = { sampleRate: 16_000, frameLength: 400, frameStep: 160 };
  const cases: [unknown, Partial<MelSpectrogramOptions>, string][] = [
    [[1, 2], {}, "samples must be a Float32Array"],
    [new Tensor("int16", [4], new Int16Array(4)), {}, "got int16 of shape [4]"],
    [new Tensor("float32", [1, 1, 1], new Float32Array(1)), {}, "shape [1,1,1]"],
    [new Tensor("float32", [2, 0], new Float32Array(0)), {}, "shape [2,0]"],
    [new Float32Array(9), { frameLength: 0 }, "frameLength must be an integer from 1 to 65536"],
    [new Float32Array(9), { frameStep: 1.5 }, "frameStep must be an integer of at least 1"],
    [new Float32Array(9), { fftLength: 500 }, "fftLength must be a power of two from 512"],
    [new Float32Array(9), { fftLength: 256 }, "fftLength must be a power of two from 512"],
    [new Float32Array(9), { numMelBins: 0 }, "numMelBins"],
    [new Float32Array(9), { sampleRate: NaN }, "sampleRate"],
    [new Float32Array(9), { lowerEdgeHertz: -1 }, "lowerEdgeHertz"],
    [new Float32Array(9), { upperEdgeHertz: 9000 }, "at most half of sampleRate (8000), got 9000"],
    [new Float32Array(9), { upperEdgeHertz: 100 }, "above lowerEdgeHertz (125)"],
  ];
  for (const [samples, wrong, message] of cases) {
    const error = assertThrows(
      () => audio.melSpectrogram(samples as Float32Array, { ...options, ...wrong }),
      LeatError,
    ) as LeatError;
    assertEquals(error.code, "invalid_argument");
    assertStringIncludes(error.message, message);
  }
});
