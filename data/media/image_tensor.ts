/** Checks of image tensors, and what the operations on images share. */

import { LeatError } from "../../core/error.ts";
import { Tensor } from "../../core/tensor.ts";

/** The dtypes of images: bytes from 0 to 255, or floats of any range. */
export type ImageDType = "uint8" | "float16" | "float32";

/** Height and width in pixels, in the order of a shape. */
export type ImageSize = readonly [height: number, width: number];

/** The three lengths of an image. */
export interface ImageShape {
  readonly height: number;
  readonly width: number;
  readonly channels: number;
}

const BYTE_MAX = 255;

/**
 * The shape of an image.
 *
 * @param operation names it in errors.
 * @throws {LeatError} `invalid_argument` for what is no image.
 */
export function imageShape(operation: string, image: Tensor): ImageShape {
  const [height, width, channels] = image.shape;
  const isImage = image.shape.length === 3 && height! > 0 && width! > 0 && channels! > 0;
  if (isImage && ["uint8", "float16", "float32"].includes(image.dtype)) {
    return { height: height!, width: width!, channels: channels! };
  }
  throw invalidImage(
    operation,
    `an image is uint8, float16 or float32 of shape [height, width, channels], not ` +
      `${image.dtype} [${image.shape}]`,
  );
}

/** The shape of an RGB image. Errors as {@linkcode imageShape}. */
export function rgbShapeOf(operation: string, image: Tensor): ImageShape {
  const shape = imageShape(operation, image);
  if (shape.channels === 3) return shape;
  throw invalidImage(operation, `the image has ${shape.channels} channels, not 3`);
}

/** @throws {LeatError} `invalid_argument` unless both are integers from 1 up. */
export function requireSize(operation: string, [height, width]: ImageSize): void {
  if ([height, width].every((side) => Number.isSafeInteger(side) && side > 0)) return;
  throw invalidImage(operation, `a size is [height, width] from 1 up, not [${height}, ${width}]`);
}

/** @throws {LeatError} `invalid_argument` for new pixels that the dtype does not have. */
export function requireValue(operation: string, dtype: ImageDType, value: number): void {
  const isValid = dtype !== "uint8" ||
    Number.isInteger(value) && value >= 0 && value <= BYTE_MAX;
  if (isValid) return;
  throw invalidImage(operation, `a value of a uint8 image is from 0 to 255, not ${value}`);
}

/** Python's and torch's `round()`. */
export function roundHalfToEven(value: number): number {
  const rounded = Math.round(value);
  return rounded - value === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}

export function invalidImage(operation: string, message: string): LeatError {
  return new LeatError("invalid_argument", `${operation}: ${message}`);
}

/** The value of white: 255 of bytes, 1 of floats. */
export function whiteOf(dtype: ImageDType): number {
  return dtype === "uint8" ? BYTE_MAX : 1;
}

/** An image of the same dtype with other values, which `uint8` rounds and clips. */
export function imageOf<D extends ImageDType>(
  dtype: D,
  { height, width, channels }: ImageShape,
  values: Float32Array,
): Tensor<D> {
  const image = Tensor.zeros(dtype, [height, width, channels]);
  if (dtype === "uint8") new Uint8ClampedArray(image.data.buffer as ArrayBuffer).set(values);
  else image.data.set(values);
  return image;
}
