/** Converts images to the dtype and layout that a model takes. */

import { Tensor } from "../../core/tensor.ts";
import type { ImageLayout, Normalization } from "../host.ts";
import { optionsOf } from "../check.ts";
import { type ImageDType, imageShape, invalidImage, shown, whiteOf } from "./image_tensor.ts";
import { normalizationOf } from "./normalization.ts";

/** Floats from 0 to 1 become bytes by this factor, rounded down, like in torchvision. */
const BYTES_OF_ONE = 255.999;

/** Options of {@linkcode convertImage}. */
export interface ConvertOptions<D extends ImageDType = ImageDType> {
  /** Default `"float32"`. */
  readonly dtype?: D;
  /** Makes each value, from 0 to 1, `(value - mean) / std`. Needs a float dtype. */
  readonly normalize?: Normalization;
  /** Default `"HWC"`. */
  readonly layout?: ImageLayout;
}

const checkOptions = optionsOf<ConvertOptions>("convert", {
  ...{ dtype: true, normalize: true, layout: true },
});

const normalization = normalizationOf("convert");

/**
 * An image in another dtype or layout, optionally normalized: torchvision's `ToDtype(scale=True)` and
 * `Normalize` in one pass. Floats have values from 0 to 1, `uint8` from 0 to 255.
 *
 * @throws {LeatError} `invalid_argument` if `image` is no image, and for invalid options.
 */
export function convertImage<D extends ImageDType = "float32">(
  image: Tensor<ImageDType>,
  options: ConvertOptions<D> = {},
): Tensor<D> {
  const { height, width, channels } = imageShape("convert", image);
  const { dtype = "float32" as D, normalize, layout = "HWC" } = checkOptions(options);
  if (!["uint8", "float16", "float32"].includes(dtype)) {
    throw invalidImage("convert", `a dtype is uint8, float16 or float32, not ${shown(dtype)}`);
  }
  if (layout !== "HWC" && layout !== "CHW") {
    throw invalidImage("convert", `a layout is "HWC" or "CHW", not ${shown(layout)}`);
  }
  if (dtype === "uint8" && normalize !== undefined) {
    throw invalidImage("convert", "a normalized image is float16 or float32, not uint8");
  }
  const { means, stds } = normalization(normalize, channels);
  const isPlanar = layout === "CHW";
  const out = Tensor.zeros(dtype, isPlanar ? [channels, height, width] : image.shape);
  const isToBytes = dtype === "uint8" && image.dtype !== "uint8";
  const into = isToBytes ? new Uint8ClampedArray(out.data.buffer as ArrayBuffer) : out.data;
  const white = isToBytes ? BYTES_OF_ONE : whiteOf(dtype) / whiteOf(image.dtype);
  const [channelStep, pixelStep] = isPlanar ? [height * width, 1] : [1, channels];
  for (let c = 0; c < channels; c++) {
    const scale = white / stds[c]!, shift = -means[c]! / stds[c]!;
    let to = c * channelStep;
    for (let from = c; from < image.data.length; from += channels, to += pixelStep) {
      const value = image.data[from]! * scale + shift;
      into[to] = isToBytes ? Math.floor(value) : value;
    }
  }
  return out;
}
