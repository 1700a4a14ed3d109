/** Operations that move or cut pixels: crop, pad, flip, cut out. */

import type { RandomStream } from "../../core/philox.ts";
import { Tensor } from "../../core/tensor.ts";
import { optionsOf } from "../check.ts";
import {
  type ImageDType,
  imageShape,
  type ImageSize,
  invalidImage,
  requireRandom,
  requireSize,
  requireValue,
  roundHalfToEven,
  shown,
} from "./image_tensor.ts";

/** A rectangle of pixels. */
export interface ImageRegion {
  /** Columns left of it. */
  readonly x: number;
  /** Rows above it. */
  readonly y: number;
  /** Columns. */
  readonly width: number;
  /** Rows. */
  readonly height: number;
}

/**
 * The part of an image inside a rectangle, like `tf.image.crop_to_bounding_box`.
 *
 * @throws {LeatError} `invalid_argument` unless the rectangle is inside the image.
 */
export function cropImage<D extends ImageDType>(image: Tensor<D>, region: ImageRegion): Tensor<D> {
  const { height, width, channels } = imageShape("crop", image);
  const { x, y, width: columns, height: rows } = Object(region) as ImageRegion;
  const isInside = [x, y, columns, rows].every(Number.isSafeInteger) && x >= 0 && y >= 0 &&
    columns > 0 && rows > 0 && x + columns <= width && y + rows <= height;
  if (!isInside) {
    throw invalidImage(
      "crop",
      `the rectangle ${
        shown(region)
      } is not { x, y, width, height } inside an image of ${width} × ${height}`,
    );
  }
  const out = Tensor.zeros(image.dtype, [rows, columns, channels]);
  for (let row = 0; row < rows; row++) {
    const at = ((y + row) * width + x) * channels;
    out.data.set(image.data.subarray(at, at + columns * channels), row * columns * channels);
  }
  return out;
}

/**
 * The middle of an image, like torchvision's `CenterCrop`: a smaller image is padded with 0 first.
 *
 * @throws {LeatError} `invalid_argument` if `image` is no image, or for an invalid size.
 */
export function centerCrop<D extends ImageDType>(image: Tensor<D>, size: ImageSize): Tensor<D> {
  requireSize("centerCrop", size);
  const { height, width } = imageShape("centerCrop", image);
  const [newHeight, newWidth] = size;
  const missing = (before: number, after: number) => Math.max(0, after - before);
  const [rows, columns] = [missing(height, newHeight), missing(width, newWidth)];
  const padded = rows + columns === 0 ? image : padImage(image, {
    top: rows >> 1,
    bottom: (rows + 1) >> 1,
    left: columns >> 1,
    right: (columns + 1) >> 1,
  });
  const y = roundHalfToEven((padded.shape[0]! - newHeight) / 2);
  const x = roundHalfToEven((padded.shape[1]! - newWidth) / 2);
  return cropImage(padded, { x, y, width: newWidth, height: newHeight });
}

/** How many pixels are added on each side; default 0. */
export interface ImagePadding {
  /** Rows above. */
  readonly top?: number;
  /** Rows below. */
  readonly bottom?: number;
  /** Columns left. */
  readonly left?: number;
  /** Columns right. */
  readonly right?: number;
  /** Every channel of the new pixels; default 0. */
  readonly value?: number;
}

const checkPadding = optionsOf<ImagePadding>("pad", {
  ...{ top: true, bottom: true, left: true, right: true, value: true },
});

/**
 * An image with pixels of one value around it.
 *
 * @throws {LeatError} `invalid_argument` if `image` is no image, or for an invalid padding.
 */
export function padImage<D extends ImageDType>(image: Tensor<D>, padding: ImagePadding): Tensor<D> {
  const { height, width, channels } = imageShape("pad", image);
  const { top = 0, bottom = 0, left = 0, right = 0, value = 0 } = checkPadding(padding);
  for (const side of [top, bottom, left, right]) {
    if (Number.isSafeInteger(side) && side >= 0) continue;
    throw invalidImage("pad", `a side is padded by an integer from 0 up, not by ${shown(side)}`);
  }
  requireValue("pad", image.dtype, value);
  const newWidth = left + width + right;
  const out = Tensor.zeros(image.dtype, [top + height + bottom, newWidth, channels]);
  if (value !== 0) out.data.fill(value);
  for (let row = 0; row < height; row++) {
    const pixels = image.data.subarray(row * width * channels, (row + 1) * width * channels);
    out.data.set(pixels, ((top + row) * newWidth + left) * channels);
  }
  return out;
}

/**
 * A mirrored image: `"horizontal"` swaps left and right, `"vertical"` top and bottom.
 *
 * @throws {LeatError} `invalid_argument` if `image` is no image, or for another direction.
 */
export function flipImage<D extends ImageDType>(
  image: Tensor<D>,
  direction: "horizontal" | "vertical" = "horizontal",
): Tensor<D> {
  const { height, width, channels } = imageShape("flip", image);
  if (direction !== "horizontal" && direction !== "vertical") {
    throw invalidImage(
      "flip",
      `a direction is "horizontal" or "vertical", not ${shown(direction)}`,
    );
  }
  const out = Tensor.zeros(image.dtype, image.shape);
  const isVertical = direction === "vertical";
  for (let y = 0; y < height; y++) {
    const from = (isVertical ? height - 1 - y : y) * width * channels, to = y * width * channels;
    if (isVertical) {
      out.data.set(image.data.subarray(from, from + width * channels), to);
      continue;
    }
    for (let x = 0; x < width; x++) {
      const source = from + (width - 1 - x) * channels;
      for (let c = 0; c < channels; c++) out.data[to + x * channels + c] = image.data[source + c]!;
    }
  }
  return out;
}

/** Options of {@linkcode cutout}. */
export interface CutoutOptions {
  /** Height and width of the hole in pixels. The hole may reach beyond the edges. */
  readonly size: ImageSize;
  /** Every channel of the hole; default 0. */
  readonly value?: number;
}

const checkCutout = optionsOf<CutoutOptions>("cutout", { size: true, value: true });

/**
 * An image with a hole, whose centre is a random pixel. DeVries and Taylor, "Improved Regularization
 * of Convolutional Neural Networks with Cutout" (2017).
 *
 * @throws {LeatError} `invalid_argument` if `image` is no image, or for an invalid size.
 */
export function cutout<D extends ImageDType>(
  image: Tensor<D>,
  options: CutoutOptions,
  random: RandomStream,
): Tensor<D> {
  const { size, value = 0 } = checkCutout(options);
  const { height, width, channels } = imageShape("cutout", image);
  requireSize("cutout", size);
  requireValue("cutout", image.dtype, value);
  requireRandom("cutout", random);
  const y = random.int(height) - Math.floor(size[0] / 2);
  const x = random.int(width) - Math.floor(size[1] / 2);
  const out = Tensor.zeros(image.dtype, image.shape);
  out.data.set(image.data);
  const left = Math.max(0, x), right = Math.min(width, x + size[1]);
  for (let row = Math.max(0, y); row < Math.min(height, y + size[0]); row++) {
    out.data.fill(value, (row * width + left) * channels, (row * width + right) * channels);
  }
  return out;
}
