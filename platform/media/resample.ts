/** Crops, resizes (bilinear), mirrors and converts in one pass over the resulting pixels. */

import type { ImageLayout } from "../../data/host.ts";

/** The transformation of an image. */
export interface ResampleRequest {
  /** Bytes, pixel by pixel, row by row. */
  readonly pixels: Uint8Array;
  readonly channels: number;
  /** Pixels per row of the image. */
  readonly width: number;
  /** The rectangle to use, inside the image. */
  readonly crop: {
    readonly x: number;
    readonly y: number;
    readonly width: number;
    readonly height: number;
  };
  /** The resulting size. */
  readonly size: { readonly width: number; readonly height: number };
  /** Whether to swap left and right. */
  readonly flip: boolean;
}

/** Bits of the integer weights: 255 · 2¹¹ · 2¹¹ still fits a fast 32-bit integer. */
const WEIGHT_BITS = 11;
const WEIGHT_ONE = 1 << WEIGHT_BITS;

/** The bytes of `size`, pixel by pixel, row by row. */
export function resample(request: ResampleRequest): Uint8Array<ArrayBuffer> {
  const { crop, size } = request;
  return crop.width === size.width && crop.height === size.height
    ? copy(request)
    : interpolate(request);
}

/** How bytes become floats: `byte · scale + offset`, with one of each for every channel. */
export interface Conversion {
  readonly scale: readonly number[];
  readonly offset: readonly number[];
  readonly layout: ImageLayout;
}

/** Like {@linkcode resample}, but into floats, which are not rounded. */
export function resampleInto(
  out: Float32Array | Float16Array,
  request: ResampleRequest,
  { scale, offset, layout }: Conversion,
): void {
  const { pixels, channels, width, crop, size } = request;
  const { left, right, rightWeight } = columnTaps(request);
  const rows = tapsOf(crop.height, size.height);
  const isPlanar = layout === "CHW";
  const channelStep = isPlanar ? size.width * size.height : 1;
  const pixelStep = isPlanar ? 1 : channels;
  const unit = 1 / (WEIGHT_ONE * WEIGHT_ONE);
  for (let c = 0; c < channels; c++) {
    const factor = scale[c]! * unit, shift = offset[c]!;
    let to = c * channelStep;
    for (let y = 0; y < size.height; y++) {
      const top = (crop.y + rows.low[y]!) * width * channels + c;
      const bottom = (crop.y + rows.high[y]!) * width * channels + c;
      const weightB = rows.highWeight[y]!, weightT = WEIGHT_ONE - weightB;
      for (let x = 0; x < size.width; x++, to += pixelStep) {
        const l = left[x]!, r = right[x]!, weightR = rightWeight[x]!;
        const weightL = WEIGHT_ONE - weightR;
        const upper = pixels[top + l]! * weightL + pixels[top + r]! * weightR;
        const lower = pixels[bottom + l]! * weightL + pixels[bottom + r]! * weightR;
        out[to] = (upper * weightT + lower * weightB) * factor + shift;
      }
    }
  }
}

/** The same pixels channel by channel. */
export function planar(pixels: Uint8Array, channels: number): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(pixels.length);
  let to = 0;
  for (let c = 0; c < channels; c++) {
    for (let from = c; from < pixels.length; from += channels) out[to++] = pixels[from]!;
  }
  return out;
}

function copy(
  { pixels, channels, width, crop, flip }: ResampleRequest,
): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(crop.width * crop.height * channels);
  let to = 0;
  for (let y = crop.y; y < crop.y + crop.height; y++) {
    const row = (y * width + crop.x) * channels;
    if (!flip) {
      out.set(pixels.subarray(row, row + crop.width * channels), to);
      to += crop.width * channels;
      continue;
    }
    for (let from = row + (crop.width - 1) * channels; from >= row; from -= channels) {
      for (let c = 0; c < channels; c++) out[to++] = pixels[from + c]!;
    }
  }
  return out;
}

function interpolate(
  request: ResampleRequest,
): Uint8Array<ArrayBuffer> {
  const { pixels, channels, width, crop, size } = request;
  const { left, right, rightWeight } = columnTaps(request);
  const rows = tapsOf(crop.height, size.height);
  const out = new Uint8Array(size.width * size.height * channels);
  const half = 1 << (2 * WEIGHT_BITS - 1);
  let to = 0;
  for (let y = 0; y < size.height; y++) {
    const top = (crop.y + rows.low[y]!) * width * channels;
    const bottom = (crop.y + rows.high[y]!) * width * channels;
    const weightB = rows.highWeight[y]!;
    const weightT = WEIGHT_ONE - weightB;
    for (let x = 0; x < size.width; x++) {
      const l = left[x]!, r = right[x]!, weightR = rightWeight[x]!, weightL = WEIGHT_ONE - weightR;
      for (let c = 0; c < channels; c++) {
        const upper = pixels[top + l + c]! * weightL + pixels[top + r + c]! * weightR;
        const lower = pixels[bottom + l + c]! * weightL + pixels[bottom + r + c]! * weightR;
        out[to++] = (upper * weightT + lower * weightB + half) >> (2 * WEIGHT_BITS);
      }
    }
  }
  return out;
}

/** The byte offsets within a row of each column's two neighbours, and the weight of the right one. */
function columnTaps({ channels, crop, size, flip }: ResampleRequest): {
  readonly left: Int32Array;
  readonly right: Int32Array;
  readonly rightWeight: Int32Array;
} {
  const columns = tapsOf(crop.width, size.width);
  const left = new Int32Array(size.width);
  const right = new Int32Array(size.width);
  const rightWeight = new Int32Array(size.width);
  for (let x = 0; x < size.width; x++) {
    const tap = flip ? size.width - 1 - x : x;
    left[x] = (crop.x + columns.low[tap]!) * channels;
    right[x] = (crop.x + columns.high[tap]!) * channels;
    rightWeight[x] = columns.highWeight[tap]!;
  }
  return { left, right, rightWeight };
}

interface Taps {
  readonly low: Int32Array;
  readonly high: Int32Array;
  /** The weight of `high`, out of `WEIGHT_ONE`; the rest is that of `low`. */
  readonly highWeight: Int32Array;
}

/** The two neighbours of each of `to` samples among `from`; at the edges, the outermost twice. */
function tapsOf(from: number, to: number): Taps {
  const low = new Int32Array(to), high = new Int32Array(to), highWeight = new Int32Array(to);
  const scale = from / to;
  for (let i = 0; i < to; i++) {
    const at = Math.min(Math.max((i + 0.5) * scale - 0.5, 0), from - 1);
    const floor = Math.floor(at);
    low[i] = floor;
    high[i] = Math.min(floor + 1, from - 1);
    highWeight[i] = Math.round((at - floor) * WEIGHT_ONE);
  }
  return { low, high, highWeight };
}
