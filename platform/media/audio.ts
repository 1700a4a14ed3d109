/** Sound for user functions: decodes WAV files and computes mel spectrograms. */

import { LeatError } from "../../core/error.ts";
import { Tensor } from "../../core/tensor.ts";
import type { AudioCodec, DecodedAudio, MelSpectrogramOptions } from "../../data/host.ts";
import { type MelSpectrogram, melSpectrogram } from "./mel_spectrogram.ts";
import { decodeWav } from "./wav.ts";

/** Limit of the kinds of spectrograms whose tables are kept. */
const KINDS_MAX = 16;

/** Decodes and transforms sound on the calling thread. */
export class Audio implements AudioCodec {
  readonly #kinds = new Map<string, MelSpectrogram>();

  /** See {@linkcode decodeWav}. */
  decodeWav(bytes: Uint8Array): DecodedAudio {
    return decodeWav(bytes);
  }

  /**
   * Computes the magnitudes of a sound's short-time Fourier transform, weighted into mel bins, as
   * `tf.signal.stft` and `tf.signal.linear_to_mel_weight_matrix` do.
   * @param samples one channel, or a float tensor of shape [frames] or [frames, channels], whose
   * channels are averaged.
   * @returns float32 of shape [frames, mel bins].
   * @throws {LeatError} `invalid_argument` for other samples, and for options that are out of
   * range.
   */
  melSpectrogram(
    samples: Float32Array | Tensor,
    options: MelSpectrogramOptions,
  ): Tensor<"float32"> {
    return this.#kind(options)(oneChannel(samples));
  }

  #kind(options: MelSpectrogramOptions): MelSpectrogram {
    const key = JSON.stringify(Object.entries(options).sort());
    let kind = this.#kinds.get(key);
    if (kind !== undefined) return kind;
    kind = melSpectrogram(options);
    for (const oldest of this.#kinds.keys()) {
      if (this.#kinds.size < KINDS_MAX) break;
      this.#kinds.delete(oldest);
    }
    this.#kinds.set(key, kind);
    return kind;
  }
}

function oneChannel(samples: Float32Array | Tensor): ArrayLike<number> {
  if (samples instanceof Float32Array) return samples;
  if (!(samples instanceof Tensor && samples.dtype.startsWith("float"))) throw refuse(samples);
  const [frames, channels = 1, ...more] = samples.shape;
  const data = samples.data as ArrayLike<number>;
  if (frames === undefined || channels === 0 || more.length > 0) throw refuse(samples);
  if (channels === 1) return data;
  // `Float64Array.from` would take several times as long.
  const means = new Float64Array(frames);
  for (let frame = 0; frame < frames; frame++) {
    let sum = 0;
    for (let channel = 0; channel < channels; channel++) sum += data[frame * channels + channel]!;
    means[frame] = sum / channels;
  }
  return means;
}

function refuse(samples: unknown): LeatError {
  const given = samples instanceof Tensor
    ? `${samples.dtype} of shape [${samples.shape}]`
    : typeof samples;
  return new LeatError(
    "invalid_argument",
    `melSpectrogram: samples must be a Float32Array or a float tensor of shape [frames] or ` +
      `[frames, channels], got ${given}`,
  );
}
