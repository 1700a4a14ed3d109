/** Mixtures of the images of a batch, like torchvision's `MixUp` and `CutMix`. */

import { LeatError } from "../../core/error.ts";
import type { RandomStream } from "../../core/philox.ts";
import { Tensor } from "../../core/tensor.ts";
import { optionsOf } from "../check.ts";
import { requireRandom, shown } from "./image_tensor.ts";

/** Images with their labels: a batch to mix, or a mixed one. */
export interface MixedBatch {
  /** float32 or float16 of shape [n, height, width, channels]. */
  readonly images: Tensor<"float16" | "float32">;
  /** float32 of shape [n, classes]: one-hot, or already mixed. */
  readonly labels: Tensor<"float32">;
}

/** Options of {@linkcode mixup} and {@linkcode cutmix}. */
export interface MixOptions {
  /**
   * `λ` is drawn from Beta(alpha, alpha). Default 1: all values of `λ` from 0 to 1 are equally likely.
   */
  readonly alpha?: number;
}

const MIX_OPTIONS = { alpha: true } as const;
const checkMixup = optionsOf<MixOptions>("mixup", MIX_OPTIONS);
const checkCutmix = optionsOf<MixOptions>("cutmix", MIX_OPTIONS);

/**
 * Mixes each image with the one before it in the batch, and the first with the last. The result is
 * `λ` times the image plus `1 - λ` times the other one; labels are mixed in the same way. `λ` is drawn
 * once for the batch. Zhang et al., "mixup: Beyond Empirical Risk Minimization" (2018).
 *
 * @throws {LeatError} `invalid_argument` for other shapes or dtypes, an empty batch or an invalid
 *   `alpha`.
 */
export function mixup(
  batch: MixedBatch,
  random: RandomStream,
  options: MixOptions = {},
): MixedBatch {
  const { alpha = 1 } = checkMixup(options);
  requireBatch("mixup", batch, alpha);
  requireRandom("mixup", random);
  const lambda = beta(alpha, random);
  return { images: mixed(batch.images, lambda), labels: mixed(batch.labels, lambda) };
}

/**
 * Replaces a rectangle of each image by the same rectangle of the image before it, and in the first
 * image by that of the last one. Labels are mixed in proportion to the areas. Yun et al., "CutMix"
 * (2019).
 *
 * @throws {LeatError} `invalid_argument` for other shapes or dtypes, an empty batch or an invalid
 *   `alpha`.
 */
export function cutmix(
  batch: MixedBatch,
  random: RandomStream,
  options: MixOptions = {},
): MixedBatch {
  const { alpha = 1 } = checkCutmix(options);
  requireBatch("cutmix", batch, alpha);
  requireRandom("cutmix", random);
  const [count, height, width, channels] = batch.images.shape as [number, number, number, number];
  const lambda = beta(alpha, random);
  const x = random.int(width), y = random.int(height);
  const halfWidth = Math.floor(width * Math.sqrt(1 - lambda) / 2);
  const halfHeight = Math.floor(height * Math.sqrt(1 - lambda) / 2);
  const left = Math.max(0, x - halfWidth), right = Math.min(width, x + halfWidth);
  const top = Math.max(0, y - halfHeight), bottom = Math.min(height, y + halfHeight);
  const images = Tensor.zeros(batch.images.dtype, batch.images.shape);
  images.data.set(batch.images.data);
  for (let n = 0; n < count; n++) {
    const other = (n + count - 1) % count;
    for (let row = top; row < bottom; row++) {
      const at = (row * width + left) * channels, size = height * width * channels;
      const pixels = batch.images.data.subarray(
        other * size + at,
        other * size + at + (right - left) * channels,
      );
      images.data.set(pixels, n * size + at);
    }
  }
  const kept = 1 - (right - left) * (bottom - top) / (width * height);
  return { images, labels: mixed(batch.labels, kept) };
}

/** Each row times `lambda`, plus the row before it times `1 - lambda`. */
function mixed<D extends "float16" | "float32">(tensor: Tensor<D>, lambda: number): Tensor<D> {
  const { data } = tensor;
  const out = Tensor.zeros(tensor.dtype, tensor.shape);
  const size = data.length / tensor.shape[0]!;
  for (let i = 0; i < data.length; i++) {
    out.data[i] = lambda * data[i]! + (1 - lambda) * data[(i + data.length - size) % data.length]!;
  }
  return out;
}

function requireBatch(operation: string, batch: MixedBatch, alpha: number): void {
  const { images, labels } = Object(batch) as MixedBatch;
  const isBatch = images instanceof Tensor && ["float16", "float32"].includes(images.dtype) &&
    images.shape.length === 4 && images.size > 0;
  const areLabels = isBatch && labels instanceof Tensor && labels.dtype === "float32" &&
    labels.shape.length === 2 && labels.shape[0] === images.shape[0];
  if (areLabels && alpha > 0 && alpha < Infinity) return;
  throw new LeatError(
    "invalid_argument",
    `${operation} needs float16 or float32 images of shape [n, height, width, channels], float32 ` +
      `labels of shape [n, classes] and an alpha above 0. It got images ${shown(images)}, labels ` +
      `${shown(labels)} and alpha ${shown(alpha)}`,
  );
}

/** A number of Beta(alpha, alpha). */
function beta(alpha: number, random: RandomStream): number {
  // For an alpha below 1, Gamma(alpha) is Gamma(alpha + 1) times a power of a uniform number.
  const isSmall = alpha < 1;
  const draw = () =>
    [gamma(isSmall ? alpha + 1 : alpha, random), isSmall ? 1 - random.next() : 1] as const;
  const [[g, u], [h, w]] = [draw(), draw()];
  const a = g * u ** (1 / alpha), b = h * w ** (1 / alpha);
  if (a + b > 0) return a / (a + b);
  // Both powers are too small for a number, but not their quotient.
  return 1 / (1 + Math.exp(Math.log(h / g) + (Math.log(w) - Math.log(u)) / alpha));
}

/** For a shape of at least 1. Marsaglia and Tsang, "A Simple Method for Generating Gamma Variables" (2000). */
function gamma(shape: number, random: RandomStream): number {
  const d = shape - 1 / 3, c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const x = random.normal(), v = (1 + c * x) ** 3;
    if (v > 0 && Math.log(1 - random.next()) < 0.5 * x * x + d - d * v + d * Math.log(v)) {
      return d * v;
    }
  }
}
