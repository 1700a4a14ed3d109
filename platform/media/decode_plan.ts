/** The options of decoding an image, checked and complete. */

import { LeatError } from "../../core/error.ts";
import { optionsOf, showFields } from "../../data/check.ts";
import type { DctMethod, ImageDecodeOptions, ImageLayout, Normalization } from "../../data/host.ts";
import { normalizationOf } from "../../data/media/normalization.ts";
import type { Channels, PixelSize, Region } from "./image_format.ts";
import type { Conversion } from "./resampling/resampler.ts";

const BYTE_MAX = 255;

/** How one image is transformed. */
export interface DecodePlan {
  readonly channels: Channels;
  readonly crop: Region;
  readonly size: PixelSize;
  readonly flip: boolean;
  readonly dtype: "uint8" | "float16" | "float32";
  readonly layout: ImageLayout;
  readonly shape: readonly number[];
  /** `undefined`: the most accurate one that the library has. */
  readonly dctMethod: DctMethod | undefined;
  /** How bytes become floats, unless the dtype is uint8. */
  readonly conversion: Conversion;
  /** Whether the result is the decoder's output as it is. */
  readonly isPlain: boolean;
  /** The size of the result; 0 if it is plain. */
  readonly resultBytes: number;
}

const checkOptions = optionsOf<ImageDecodeOptions>("image.decode", {
  ...{ crop: true, resize: true, flip: true, channels: true },
  ...{ dtype: true, normalize: true, layout: true, dctMethod: true },
});

const normalization = normalizationOf("image.decode");

/**
 * Makes the plan for an image of the size `whole`. Options from JSON may have null where a crop, a size or
 * a flip is absent.
 * @throws {LeatError} `invalid_argument` for invalid options.
 */
export function decodePlan(given: ImageDecodeOptions, whole: PixelSize): DecodePlan {
  const options = checkOptions(given);
  const { channels = 3, normalize, layout = "HWC", dctMethod } = options;
  const { dtype = normalize === undefined ? "uint8" : "float32" } = options;
  const { width, height } = whole;
  const flip = options.flip ?? false;
  const crop = options.crop ?? { x: 0, y: 0, width, height };
  if (![1, 3, 4].includes(channels)) {
    throw invalid(`An image has 1, 3 or 4 channels, not ${showFields(channels)}.`);
  }
  if (!["uint8", "float16", "float32"].includes(dtype)) {
    throw invalid(`An image is decoded to uint8, float16 or float32, not to ${showFields(dtype)}.`);
  }
  if (dtype === "uint8" && normalize !== undefined) {
    throw invalid("A normalized image is float16 or float32: leave out dtype, or choose one.");
  }
  if (layout !== "HWC" && layout !== "CHW") {
    throw invalid(`The layout of an image is "HWC" or "CHW", not ${showFields(layout)}.`);
  }
  if (![undefined, "INTEGER_ACCURATE", "INTEGER_FAST"].includes(dctMethod)) {
    throw invalid(
      `The dctMethod of an image is "INTEGER_ACCURATE" or "INTEGER_FAST", not ${
        showFields(dctMethod)
      }.`,
    );
  }
  if (typeof flip !== "boolean") {
    throw invalid(
      `The flip of an image is true or false, not ${
        showFields(flip)
      }: it mirrors left and right. ` +
        `image.flip(image, "vertical") mirrors top and bottom.`,
    );
  }
  requireCrop(crop, whole);
  const size = options.resize ?? { width: crop.width, height: crop.height };
  requireSize(size);
  const isPlain = crop.width === width && crop.height === height && size.width === width &&
    size.height === height && !flip && dtype === "uint8" && layout === "HWC";
  const shape = layout === "HWC"
    ? [size.height, size.width, channels]
    : [channels, size.height, size.width];
  const itemBytes = { uint8: 1, float16: 2, float32: 4 }[dtype];
  const resultBytes = isPlain ? 0 : size.width * size.height * channels * itemBytes;
  const conversion = scaling(normalize, channels);
  return {
    channels,
    crop,
    size,
    flip,
    dtype,
    layout,
    shape,
    dctMethod,
    conversion,
    isPlain,
    resultBytes,
  };
}

/** `byte · scale + offset` is `(byte / 255 - mean) / std`. */
function scaling(normalize: Normalization | undefined, channels: number): Conversion {
  const { means, stds } = normalization(normalize, channels);
  return {
    scale: stds.map((std) => 1 / (BYTE_MAX * std)),
    offset: stds.map((std, c) => -means[c]! / std),
  };
}

function requireCrop(crop: Region, image: PixelSize): void {
  const { x, y, width, height } = Object(crop) as Region;
  const isInside = [x, y, width, height].every(Number.isInteger) && x >= 0 && y >= 0 &&
    width > 0 && height > 0 && x + width <= image.width && y + height <= image.height;
  if (isInside) return;
  throw invalid(
    `The crop ${
      showFields(crop)
    } is no { x, y, width, height } of whole pixels inside an image of ` +
      `${image.width} × ${image.height}.`,
  );
}

function requireSize(size: PixelSize): void {
  const { width, height } = Object(size) as PixelSize;
  const isSize = Number.isInteger(width) && Number.isInteger(height) && width > 0 && height > 0;
  if (isSize) return;
  throw invalid(
    `An image is resized to { width, height } in whole pixels from 1 up, not to ${
      showFields(size)
    }.`,
  );
}

function invalid(message: string): LeatError {
  return new LeatError("invalid_argument", message);
}
