/** One call of a resampler, and its slow and obvious version. */

import { RandomStream } from "../../../core/philox.ts";
import {
  type Conversion,
  Resampler,
  type ResampleRequest,
} from "../../../platform/media/resampling/resampler.ts";

/** An image and its transformation; the layout is HWC if it is not given. */
export interface Request extends Omit<ResampleRequest, "layout"> {
  readonly pixels: Uint8Array;
  readonly layout?: "HWC" | "CHW";
}

const resampler = new Resampler();

/** The transformed bytes. */
export function resample(request: Request): Uint8Array {
  resampler.pixels(request.pixels.length).set(request.pixels);
  const out = new Uint8Array(request.size.width * request.size.height * request.channels);
  resampler.bytes(out, { layout: "HWC", ...request });
  return out;
}

/** The transformed floats. */
export function resampleFloats(request: Request, conversion: Conversion): Float32Array {
  resampler.pixels(request.pixels.length).set(request.pixels);
  const out = new Float32Array(request.size.width * request.size.height * request.channels);
  resampler.floats(out, { layout: "HWC", ...request }, conversion);
  return out;
}

/** The levels straight from the definition, in floating point. */
export function reference(request: Request): number[] {
  const { size, channels, layout = "HWC" } = request;
  const levels: number[] = [];
  for (let y = 0; y < size.height; y++) {
    for (let x = 0; x < size.width; x++) {
      for (let channel = 0; channel < channels; channel++) {
        const at = layout === "HWC"
          ? (y * size.width + x) * channels + channel
          : (channel * size.height + y) * size.width + x;
        levels[at] = level(request, x, y, channel);
      }
    }
  }
  return levels;
}

function level(
  { pixels, channels, width, crop, size, flip }: Request,
  x: number,
  y: number,
  channel: number,
): number {
  const column = flip ? size.width - 1 - x : x;
  const clamp = (at: number, length: number) => Math.min(Math.max(at, 0), length - 1);
  const u = clamp((column + 0.5) * crop.width / size.width - 0.5, crop.width);
  const v = clamp((y + 0.5) * crop.height / size.height - 0.5, crop.height);
  const pixel = (i: number, j: number) => {
    const at = (crop.y + clamp(j, crop.height)) * width + crop.x + clamp(i, crop.width);
    return pixels[at * channels + channel]!;
  };
  const [i, j] = [Math.floor(u), Math.floor(v)];
  const top = pixel(i, j) * (1 - (u - i)) + pixel(i + 1, j) * (u - i);
  const bottom = pixel(i, j + 1) * (1 - (u - i)) + pixel(i + 1, j + 1) * (u - i);
  return top * (1 - (v - j)) + bottom * (v - j);
}

/** Random pixels. */
export function noise(width: number, height: number, channels: number): Uint8Array {
  const random = new RandomStream(7n, ["noise", width, height]);
  return Uint8Array.from({ length: width * height * channels }, () => random.int(256));
}
