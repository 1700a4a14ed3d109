/** Random crops of random sizes, like torchvision's `RandomResizedCrop`. */

import type { RandomStream } from "../../core/philox.ts";
import type { Tensor } from "../../core/tensor.ts";
import { optionsOf } from "../check.ts";
import { cropImage, type ImageRegion } from "./geometry.ts";
import {
  type ImageDType,
  imageShape,
  type ImageSize,
  invalidImage,
  requireRandom,
  shown,
} from "./image_tensor.ts";
import { resizeImage, type ResizeOptions } from "./resize.ts";

/** Options of {@linkcode randomResizedCropRegion}. */
export interface RandomCropOptions {
  /** The smallest and the largest share of the image's area; default 0.08 and 1. */
  readonly scale?: readonly [number, number];
  /** The smallest and the largest ratio of width to height; default 3/4 and 4/3. */
  readonly ratio?: readonly [number, number];
}

const checkRegion = optionsOf<RandomCropOptions>("randomResizedCropRegion", {
  ...{ scale: true, ratio: true },
});

const checkCrop = optionsOf<RandomCropOptions & ResizeOptions>("randomResizedCrop", {
  ...{ scale: true, ratio: true, method: true, antialias: true },
});

/** After so many random rectangles that do not fit, the middle of the image is taken. */
const ATTEMPTS = 10;

/**
 * A random rectangle of an image. Pass it to `image.decode(bytes, { crop, resize })`, which decodes only
 * that part.
 *
 * @param size The size of the image, in pixels.
 * @throws {LeatError} `invalid_argument` for an invalid size or invalid ranges.
 *
 * @example
 * ```ts
 * import { Dataset } from "../../mod.ts";
 *
 * const photos = Dataset.imageFolder("./photos", { decode: false })
 *   .map(({ image: jpeg, label }, { image, random }) => {
 *     const crop = image.randomResizedCropRegion(image.size(jpeg), random);
 *     const flip = random.next() < 0.5;
 *     return Promise.resolve(image.decode(jpeg, { crop, resize: { width: 224, height: 224 }, flip }))
 *       .then((image) => ({ image, label }));
 *   });
 * ```
 */
export function randomResizedCropRegion(
  size: { readonly width: number; readonly height: number },
  random: RandomStream,
  options: RandomCropOptions = {},
): ImageRegion {
  const { scale, ratio } = checkRegion(options);
  return randomRegion(size, random, scale, ratio);
}

function randomRegion(
  size: { readonly width: number; readonly height: number },
  random: RandomStream,
  scale: readonly [number, number] = [0.08, 1],
  ratio: readonly [number, number] = [3 / 4, 4 / 3],
): ImageRegion {
  const { width, height } = Object(size) as ImageRegion;
  if (![width, height].every((side) => Number.isSafeInteger(side) && side > 0)) {
    throw invalidImage(
      "randomResizedCrop",
      `the size of the image is { width, height } from 1 up, not ${shown(size)}`,
    );
  }
  requireRandom("randomResizedCrop", random);
  for (const [name, range] of Object.entries({ scale, ratio })) {
    const [low, high] = Array.isArray(range) ? range : [NaN, NaN];
    if (low > 0 && high >= low && high < Infinity) continue;
    throw invalidImage("randomResizedCrop", `${name} is [low, high] above 0, not ${shown(range)}`);
  }
  const between = (low: number, high: number) => low + random.next() * (high - low);
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const area = width * height * between(...scale);
    const aspect = Math.exp(between(Math.log(ratio[0]), Math.log(ratio[1])));
    const region = {
      width: Math.round(Math.sqrt(area * aspect)),
      height: Math.round(Math.sqrt(area / aspect)),
    };
    if (region.width < 1 || region.width > width) continue;
    if (region.height < 1 || region.height > height) continue;
    const y = random.int(height - region.height + 1), x = random.int(width - region.width + 1);
    return { x, y, ...region };
  }
  const aspect = Math.min(Math.max(width / height, ratio[0]), ratio[1]);
  const region = {
    width: Math.max(1, Math.min(width, Math.round(height * aspect))),
    height: Math.max(1, Math.min(height, Math.round(width / aspect))),
  };
  const x = (width - region.width) >> 1, y = (height - region.height) >> 1;
  return { x, y, ...region };
}

/**
 * A random rectangle of an image, resized. For compressed images it is faster to decode only the
 * rectangle: see {@linkcode randomResizedCropRegion}.
 *
 * @throws {LeatError} `invalid_argument` if `image` is no image, or for invalid options.
 */
export function randomResizedCrop<D extends ImageDType>(
  image: Tensor<D>,
  size: ImageSize,
  random: RandomStream,
  options: RandomCropOptions & ResizeOptions = {},
): Tensor<D> {
  const { scale, ratio, ...resizing } = checkCrop(options);
  const region = randomRegion(imageShape("randomResizedCrop", image), random, scale, ratio);
  return resizeImage(cropImage(image, region), size, resizing);
}
