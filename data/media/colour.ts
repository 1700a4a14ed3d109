/** Operations on colours, like those of `tf.image` and torchvision v2. */

import type { RandomStream } from "../../core/philox.ts";
import type { Tensor } from "../../core/tensor.ts";
import { optionsOf } from "../check.ts";
import {
  type ImageDType,
  imageOf,
  type ImageShape,
  imageShape,
  invalidImage,
  requireRandom,
  rgbShapeOf,
  shown,
  whiteOf,
} from "./image_tensor.ts";

/** The weights of red, green and blue in grey (ITU-R BT.601). */
const GREY = [0.2989, 0.587, 0.114] as const;

const checkGrayscale = optionsOf<{ channels: 1 | 3 }>("grayscale", { channels: true });

/**
 * The image in grey, with one channel or three equal ones.
 *
 * @throws {LeatError} `invalid_argument` unless `image` is RGB and `channels` 1 or 3.
 */
export function grayscale<D extends ImageDType>(
  image: Tensor<D>,
  options: { readonly channels?: 1 | 3 } = {},
): Tensor<D> {
  const { channels = 1 } = checkGrayscale(options);
  const shape = rgbShapeOf("grayscale", image);
  if (channels !== 1 && channels !== 3) {
    throw invalidImage("grayscale", `the image gets 1 or 3 channels, not ${shown(channels)}`);
  }
  const greys = greysOf(image);
  if (channels === 1) return imageOf(image.dtype, { ...shape, channels }, greys);
  const values = new Float32Array(greys.length * channels);
  for (const [i, grey] of greys.entries()) values.fill(grey, 3 * i, 3 * i + 3);
  return imageOf(image.dtype, { ...shape, channels }, values);
}

/**
 * The image with every value multiplied by `factor`, like torchvision's `adjust_brightness`.
 *
 * @throws {LeatError} `invalid_argument` for an image with an alpha channel.
 */
export function adjustBrightness<D extends ImageDType>(
  image: Tensor<D>,
  factor: number,
): Tensor<D> {
  const shape = imageShape("adjustBrightness", image);
  if (shape.channels !== 1 && shape.channels !== 3) {
    throw invalidImage("adjustBrightness", `an image has 1 or 3 channels, not ${shape.channels}`);
  }
  return blend(image, shape, () => 0, requireFactor("adjustBrightness", factor));
}

/**
 * The image with the distance of every value from the image's mean grey multiplied by `factor`, like
 * torchvision's `adjust_contrast`.
 *
 * @throws {LeatError} `invalid_argument` unless the image is RGB, and for a negative factor.
 */
export function adjustContrast<D extends ImageDType>(image: Tensor<D>, factor: number): Tensor<D> {
  const shape = rgbShapeOf("adjustContrast", image);
  const greys = greysOf(image);
  const isBytes = image.dtype === "uint8";
  const sum = greys.reduce((sum, grey) => sum + (isBytes ? Math.floor(grey) : grey), 0);
  const mean = sum / greys.length;
  return blend(image, shape, () => mean, requireFactor("adjustContrast", factor));
}

/**
 * The image with the distance of every value from its pixel's grey multiplied by `factor`, like
 * torchvision's `adjust_saturation`.
 *
 * @throws {LeatError} `invalid_argument` unless the image is RGB, and for a negative factor.
 */
export function adjustSaturation<D extends ImageDType>(
  image: Tensor<D>,
  factor: number,
): Tensor<D> {
  const shape = rgbShapeOf("adjustSaturation", image);
  const greys = greysOf(image);
  const grey = image.dtype === "uint8"
    ? (i: number) => Math.floor(greys[i]!)
    : (i: number) => greys[i]!;
  return blend(image, shape, grey, requireFactor("adjustSaturation", factor));
}

/**
 * The image with its hues turned by `delta` of a full circle, from -0.5 to 0.5, like `adjust_hue` of
 * `tf.image` and torchvision.
 *
 * @throws {LeatError} `invalid_argument` unless the image is RGB, and for another `delta`.
 */
export function adjustHue<D extends ImageDType>(image: Tensor<D>, delta: number): Tensor<D> {
  const shape = rgbShapeOf("adjustHue", image);
  if (!(delta >= -0.5 && delta <= 0.5)) {
    throw invalidImage("adjustHue", `delta is from -0.5 to 0.5, not ${shown(delta)}`);
  }
  const values = new Float32Array(image.data.length);
  for (let i = 0; i < values.length; i += 3) {
    turnHue(image.data[i]!, image.data[i + 1]!, image.data[i + 2]!, delta, values, i);
  }
  return imageOf(image.dtype, shape, values);
}

/** Options of {@linkcode colorJitter}: `x` draws from `max(0, 1 - x)` to `1 + x`; `hue` from `-x` to `x`. */
export interface ColorJitterOptions {
  /** Default 0. */
  readonly brightness?: number;
  /** Default 0. */
  readonly contrast?: number;
  /** Default 0. */
  readonly saturation?: number;
  /** At most 0.5; default 0. */
  readonly hue?: number;
}

const checkJitter = optionsOf<ColorJitterOptions>("colorJitter", {
  ...{ brightness: true, contrast: true, saturation: true, hue: true },
});

/**
 * Changes brightness, contrast, saturation and hue by random factors in random order, like
 * torchvision's `ColorJitter`.
 *
 * @throws {LeatError} `invalid_argument` unless `image` is RGB, for a negative range, and for a `hue`
 * above 0.5.
 */
export function colorJitter<D extends ImageDType>(
  image: Tensor<D>,
  options: ColorJitterOptions,
  random: RandomStream,
): Tensor<D> {
  rgbShapeOf("colorJitter", image);
  const { brightness = 0, contrast = 0, saturation = 0, hue = 0 } = checkJitter(options);
  if (![brightness, contrast, saturation, hue].every((range) => range >= 0) || hue > 0.5) {
    throw invalidImage(
      "colorJitter",
      `ranges are from 0 up, and that of hue at most 0.5, not ${shown(options)}`,
    );
  }
  requireRandom("colorJitter", random);
  const factor = (range: number) => {
    const low = Math.max(0, 1 - range);
    return low + random.next() * (1 + range - low);
  };
  const factors = [factor(brightness), factor(contrast), factor(saturation)] as const;
  const turn = (2 * random.next() - 1) * hue;
  const steps = [
    (image: Tensor<D>) => brightness === 0 ? image : adjustBrightness(image, factors[0]),
    (image: Tensor<D>) => contrast === 0 ? image : adjustContrast(image, factors[1]),
    (image: Tensor<D>) => saturation === 0 ? image : adjustSaturation(image, factors[2]),
    (image: Tensor<D>) => hue === 0 ? image : adjustHue(image, turn),
  ];
  let out = image;
  while (steps.length > 0) out = steps.splice(random.int(steps.length), 1)[0]!(out);
  return out;
}

function greysOf(image: Tensor<ImageDType>): Float32Array {
  const { data } = image;
  const greys = new Float32Array(data.length / 3);
  for (let i = 0; i < greys.length; i++) {
    greys[i] = GREY[0] * data[3 * i]! + GREY[1] * data[3 * i + 1]! + GREY[2] * data[3 * i + 2]!;
  }
  return greys;
}

/** `factor · value + (1 - factor) · base`, clipped to black and white. Bytes are rounded down. */
function blend<D extends ImageDType>(
  image: Tensor<D>,
  shape: ImageShape,
  baseOf: (pixel: number) => number,
  factor: number,
): Tensor<D> {
  const white = whiteOf(image.dtype), isBytes = image.dtype === "uint8";
  const values = new Float32Array(image.data.length);
  for (let pixel = 0, i = 0; i < values.length; pixel++) {
    const base = (1 - factor) * baseOf(pixel);
    for (let c = 0; c < shape.channels; c++, i++) {
      const value = Math.min(Math.max(factor * image.data[i]! + base, 0), white);
      values[i] = isBytes ? Math.floor(value) : value;
    }
  }
  return imageOf(image.dtype, shape, values);
}

/** Turns a pixel's hue. The largest and the smallest of its three values stay the same. */
function turnHue(
  red: number,
  green: number,
  blue: number,
  delta: number,
  into: Float32Array,
  at: number,
): void {
  const most = Math.max(red, green, blue), least = Math.min(red, green, blue);
  const range = most - least;
  let sector = 0;
  if (range > 0) {
    if (most === red) sector = (green - blue) / range;
    else if (most === green) sector = (blue - red) / range + 2;
    else sector = (red - green) / range + 4;
  }
  const turned = ((sector + 6 * delta) % 6 + 6) % 6;
  for (let c = 0; c < 3; c++) {
    // The distance from this channel's pure hue (red 0, green 2, blue 4) decides its share of the range.
    const distance = Math.abs((turned - 2 * c + 9) % 6 - 3);
    into[at + c] = least + range * Math.min(Math.max(2 - distance, 0), 1);
  }
}

function requireFactor(operation: string, factor: number): number {
  if (factor >= 0 && factor < Infinity) return factor;
  throw invalidImage(operation, `a factor is from 0 up, not ${shown(factor)}`);
}
