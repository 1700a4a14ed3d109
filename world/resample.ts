/**
 * Crop, bilinear resize and mirror of RGB bytes in one pass over the pixels that are wanted.
 */

/** What to make of an image. */
export interface ResampleRequest {
  /** RGB bytes, row by row. */
  readonly pixels: Uint8Array;
  /** Pixels per row of the image. */
  readonly width: number;
  /** The rectangle to use, inside the image. */
  readonly crop: {
    readonly x: number;
    readonly y: number;
    readonly width: number;
    readonly height: number;
  };
  /** The size to make of it. */
  readonly size: { readonly width: number; readonly height: number };
  /** Whether left and right change places. */
  readonly flip: boolean;
}

/** Weights are integers of so many bits: 255 · 2¹¹ · 2¹¹ still fits a 32-bit integer, which is what makes this fast. */
const WEIGHT_BITS = 11;
const WEIGHT_ONE = 1 << WEIGHT_BITS;

/** The RGB bytes of `size`, row by row. */
export function resample(request: ResampleRequest): Uint8Array<ArrayBuffer> {
  const { crop, size } = request;
  return crop.width === size.width && crop.height === size.height
    ? copy(request)
    : interpolate(request);
}

function copy({ pixels, width, crop, flip }: ResampleRequest): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(crop.width * crop.height * 3);
  let to = 0;
  for (let y = crop.y; y < crop.y + crop.height; y++) {
    const row = (y * width + crop.x) * 3;
    if (!flip) {
      out.set(pixels.subarray(row, row + crop.width * 3), to);
      to += crop.width * 3;
      continue;
    }
    for (let from = row + (crop.width - 1) * 3; from >= row; from -= 3) {
      out[to++] = pixels[from]!;
      out[to++] = pixels[from + 1]!;
      out[to++] = pixels[from + 2]!;
    }
  }
  return out;
}

function interpolate(
  { pixels, width, crop, size, flip }: ResampleRequest,
): Uint8Array<ArrayBuffer> {
  const columns = tapsOf(crop.width, size.width);
  const rows = tapsOf(crop.height, size.height);
  const left = new Int32Array(size.width);
  const right = new Int32Array(size.width);
  const rightWeight = new Int32Array(size.width);
  for (let x = 0; x < size.width; x++) {
    const tap = flip ? size.width - 1 - x : x;
    left[x] = (crop.x + columns.low[tap]!) * 3;
    right[x] = (crop.x + columns.high[tap]!) * 3;
    rightWeight[x] = columns.highWeight[tap]!;
  }
  const out = new Uint8Array(size.width * size.height * 3);
  const half = 1 << (2 * WEIGHT_BITS - 1);
  let to = 0;
  for (let y = 0; y < size.height; y++) {
    const top = (crop.y + rows.low[y]!) * width * 3;
    const bottom = (crop.y + rows.high[y]!) * width * 3;
    const weightB = rows.highWeight[y]!;
    const weightT = WEIGHT_ONE - weightB;
    for (let x = 0; x < size.width; x++) {
      const l = left[x]!, r = right[x]!, weightR = rightWeight[x]!, weightL = WEIGHT_ONE - weightR;
      for (let c = 0; c < 3; c++) {
        const upper = pixels[top + l + c]! * weightL + pixels[top + r + c]! * weightR;
        const lower = pixels[bottom + l + c]! * weightL + pixels[bottom + r + c]! * weightR;
        out[to++] = (upper * weightT + lower * weightB + half) >> (2 * WEIGHT_BITS);
      }
    }
  }
  return out;
}

interface Taps {
  readonly low: Int32Array;
  readonly high: Int32Array;
  /** The weight of `high`, out of `WEIGHT_ONE`; the rest is that of `low`. */
  readonly highWeight: Int32Array;
}

/** For each of `to` samples along an axis, its two neighbours among `from` samples; at the edges both are the outermost. */
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
