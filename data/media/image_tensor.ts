/** Checks of image tensors, and functions that several image operations use. */

import { LeatError } from "../../core/error.ts";
import { RandomStream } from "../../core/philox.ts";
import { Tensor } from "../../core/tensor.ts";
import { showFields } from "../check.ts";

/** The dtypes of images: bytes from 0 to 255, or floats of any range. */
export type ImageDType = "uint8" | "float16" | "float32";

/** Height and width in pixels, in the order of a shape. */
export type ImageSize = readonly [height: number, width: number];

export interface ImageShape {
  readonly height: number;
  readonly width: number;
  readonly channels: number;
}

const BYTE_MAX = 255;

/**
 * The shape of an image.
 *
 * @param operation Its name in errors.
 * @throws {LeatError} `invalid_argument` if `image` is no image.
 */
export function imageShape(operation: string, image: Tensor): ImageShape {
  const { shape, dtype } = image instanceof Tensor ? image : { shape: [], dtype: "" };
  const [height, width, channels] = shape;
  const isImage = shape.length === 3 && height! > 0 && width! > 0 && channels! > 0;
  if (isImage && ["uint8", "float16", "float32"].includes(dtype)) {
    return { height: height!, width: width!, channels: channels! };
  }
  throw invalidImage(
    operation,
    `an image is a tensor, uint8, float16 or float32 of shape [height, width, channels], not ` +
      shown(image),
  );
}

/** The shape of an RGB image. Throws like {@linkcode imageShape}, and for another number of channels. */
export function rgbShapeOf(operation: string, image: Tensor): ImageShape {
  const shape = imageShape(operation, image);
  if (shape.channels === 3) return shape;
  throw invalidImage(operation, `the image has ${shape.channels} channels, not 3`);
}

/** @throws {LeatError} `invalid_argument` unless both are integers from 1 up. */
export function requireSize(operation: string, size: ImageSize): void {
  const isPair = Array.isArray(size) && size.length === 2;
  if (isPair && size.every((side) => Number.isSafeInteger(side) && side > 0)) return;
  throw invalidImage(operation, `a size is [height, width] from 1 up, not ${shown(size)}`);
}

/** @throws {LeatError} `invalid_argument` unless `random` is a stream of random numbers. */
export function requireRandom(operation: string, random: RandomStream): void {
  if (random instanceof RandomStream) return;
  throw invalidImage(
    operation,
    `random is a RandomStream, such as that of a function's last argument, not ${shown(random)}`,
  );
}

/** Renders a value for messages: of a tensor dtype and shape, of a plain object its fields. */
export function shown(value: unknown): string {
  return value instanceof Tensor ? `${value.dtype} [${value.shape}]` : showFields(value);
}

/** @throws {LeatError} `invalid_argument` if `value` is no pixel value of `dtype`. */
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

/** The value of white: 255 in bytes, 1 in floats. */
export function whiteOf(dtype: ImageDType): number {
  return dtype === "uint8" ? BYTE_MAX : 1;
}

/** An image with these values. For `uint8` they are rounded and clipped. */
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
