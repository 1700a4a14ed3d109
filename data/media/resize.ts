/** Resizing of image tensors: separable filters, like those of `tf.image.resize`. */

import type { Tensor } from "../../core/tensor.ts";
import { optionsOf } from "../check.ts";
import {
  type ImageDType,
  imageOf,
  imageShape,
  type ImageSize,
  invalidImage,
  requireSize,
  shown,
} from "./image_tensor.ts";

/** How new pixels are computed from old ones. */
export type ResizeMethod = "bilinear" | "bicubic" | "area" | "nearest";

/** Options of resizing. */
export interface ResizeOptions {
  /** Default `"bilinear"`. */
  readonly method?: ResizeMethod;
  /**
   * Whether a smaller image uses all pixels of the larger one, not only the nearest. Default false.
   * Has no effect on `area`, which always uses all, and on `nearest`.
   */
  readonly antialias?: boolean;
}

/** For each new pixel along one axis: the old pixels that it is computed from, and their weights. */
interface Taps {
  /** The maximum number of old pixels for a new one. */
  readonly count: number;
  /** The first old pixel for each new one. */
  readonly first: Int32Array;
  /** `count` weights for each new pixel; unused ones are 0. */
  readonly weights: Float32Array;
}

/** The parameter of the cubic kernel of Keys. */
const KEYS = -0.5;

const KERNELS = {
  bilinear: { radius: 1, at: (x: number) => Math.max(0, 1 - Math.abs(x)) },
  bicubic: {
    radius: 2,
    at(x: number) {
      const d = Math.abs(x);
      if (d <= 1) return ((KEYS + 2) * d - (KEYS + 3)) * d * d + 1;
      return d < 2 ? ((KEYS * d - 5 * KEYS) * d + 8 * KEYS) * d - 4 * KEYS : 0;
    },
  },
};

const checkOptions = optionsOf<ResizeOptions>("resize", { method: true, antialias: true });

/**
 * The image in another size, of the same dtype; uint8 values are rounded.
 *
 * It gives the values of `tf.image.resize`: the centre of pixel 0 is at 0.5.
 *
 * @param image Of shape [height, width, channels].
 * @throws {LeatError} `invalid_argument` if `image` is no image, or for an invalid size or method.
 *
 * @example
 * ```ts
 * import { resizeImage, tensor } from "../../mod.ts";
 *
 * const photo = tensor(new Uint8Array(40 * 60 * 3), { shape: [40, 60, 3] });
 * resizeImage(photo, [20, 20], { method: "bicubic", antialias: true }).shape; // [20, 20, 3]
 * ```
 */
export function resizeImage<D extends ImageDType>(
  image: Tensor<D>,
  size: ImageSize,
  options: ResizeOptions = {},
): Tensor<D> {
  const { method = "bilinear", antialias = false } = checkOptions(options);
  const { height, width, channels } = imageShape("resize", image);
  requireSize("resize", size);
  if (!["bilinear", "bicubic", "area", "nearest"].includes(method)) {
    throw invalidImage(
      "resize",
      `a method is bilinear, bicubic, area or nearest, not ${shown(method)}`,
    );
  }
  const [newHeight, newWidth] = size;
  const columns = tapsOf(width, newWidth, method, antialias);
  const rows = tapsOf(height, newHeight, method, antialias);
  // First within rows, into [height, newWidth, channels]; then within columns.
  const wide = new Float32Array(height * newWidth * channels);
  const isUsed = usedBy(rows, height);
  const axis = { outer: height, from: width, to: newWidth, step: channels };
  resample(image.data, wide, columns, axis, (row) => isUsed[row] === 1);
  const values = new Float32Array(newHeight * newWidth * channels);
  const step = newWidth * channels;
  resample(wide, values, rows, { outer: 1, from: height, to: newHeight, step });
  return imageOf(image.dtype, { height: newHeight, width: newWidth, channels }, values);
}

/** For each of `count` old pixels along an axis: 1 if a new one is computed from it. */
function usedBy({ count: taps, first, weights }: Taps, count: number): Uint8Array {
  const used = new Uint8Array(count);
  for (const [i, weight] of weights.entries()) {
    if (weight !== 0) used[first[Math.floor(i / taps)]! + i % taps] = 1;
  }
  return used;
}

/** Resamples the middle axis of [outer, from, step], where `outer` is wanted. */
function resample(
  from: ArrayLike<number>,
  into: Float32Array,
  { count, first, weights }: Taps,
  axis: { outer: number; from: number; to: number; step: number },
  isWanted = (_outer: number) => true,
): void {
  const { step } = axis;
  for (let outer = 0; outer < axis.outer; outer++) {
    if (!isWanted(outer)) continue;
    for (let i = 0; i < axis.to; i++) {
      const to = (outer * axis.to + i) * step;
      for (let tap = 0; tap < count; tap++) {
        const weight = weights[i * count + tap]!;
        if (weight === 0) continue;
        const at = (outer * axis.from + first[i]! + tap) * step;
        for (let k = 0; k < step; k++) into[to + k]! += weight * from[at + k]!;
      }
    }
  }
}

function tapsOf(from: number, to: number, method: ResizeMethod, antialias: boolean): Taps {
  const scale = from / to;
  if (method === "nearest") {
    // In float32, as in TensorFlow: a position between two pixels is rounded to one of them.
    const at = (i: number) => Math.floor(Math.fround((i + 0.5) * Math.fround(scale)));
    return taps(from, to, 1, (i) => Math.min(at(i), from - 1), () => 1);
  }
  if (method === "area") {
    const overlap = (i: number, at: number) =>
      Math.max(0, Math.min(at + 1, (i + 1) * scale) - Math.max(at, i * scale));
    return taps(from, to, Math.ceil(scale) + 1, (i) => Math.floor(i * scale), overlap);
  }
  const { radius, at: kernel } = KERNELS[method];
  const stretch = antialias ? Math.max(scale, 1) : 1;
  const reach = radius * stretch;
  const centre = (i: number) => (i + 0.5) * scale - 0.5;
  return taps(
    from,
    to,
    Math.ceil(2 * reach) + 1,
    (i) => Math.ceil(centre(i) - reach),
    (i, at) => kernel((at - centre(i)) / stretch),
    method === "bilinear" && !antialias,
  );
}

/** Weights add up to 1. Pixels beyond the edge count as the outermost one if `isClamped`, else not. */
function taps(
  from: number,
  to: number,
  count: number,
  firstOf: (i: number) => number,
  weightOf: (i: number, at: number) => number,
  isClamped = false,
): Taps {
  const width = Math.min(count, from);
  const first = new Int32Array(to), weights = new Float32Array(to * width);
  for (let i = 0; i < to; i++) {
    const begin = firstOf(i);
    first[i] = Math.min(Math.max(begin, 0), from - width);
    let sum = 0;
    for (let at = begin; at < begin + count; at++) {
      const weight = weightOf(i, at);
      const inside = Math.min(Math.max(at, 0), from - 1);
      if (inside !== at && !isClamped) continue;
      const tap = inside - first[i]!;
      if (tap < 0 || tap >= width || !(Math.abs(weight) > 1e-9)) continue;
      weights[i * width + tap]! += weight;
      sum += weight;
    }
    for (let tap = 0; tap < width; tap++) weights[i * width + tap]! /= sum;
  }
  return { count: width, first, weights };
}
