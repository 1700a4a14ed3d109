/** Random sequences of simple operations, like torchvision's `RandAugment`. */

import type { RandomStream } from "../../core/philox.ts";
import { Tensor } from "../../core/tensor.ts";
import { adjustBrightness, adjustContrast, adjustSaturation } from "./colour.ts";
import { optionsOf } from "../check.ts";
import {
  invalidImage,
  requireRandom,
  requireValue,
  rgbShapeOf,
  roundHalfToEven,
} from "./image_tensor.ts";
import { adjustSharpness, autoContrast, equalize, posterize, solarize } from "./tones.ts";

/** Options of {@linkcode randAugment}. */
export interface RandAugmentOptions {
  /** How many operations are applied one after the other; default 2. */
  readonly numOps?: number;
  /** Their strength, from 0 to `numMagnitudeBins - 1`; default 9. */
  readonly magnitude?: number;
  /** How many strengths there are; default 31. */
  readonly numMagnitudeBins?: number;
  /** Every channel of pixels from outside the image; default 0. */
  readonly fill?: number;
}

/** The new pixel at (x, y) is the old one at `(a·x + b·y + c, d·x + e·y + f)`. */
export type AffineMatrix = readonly [
  a: number,
  b: number,
  c: number,
  d: number,
  e: number,
  f: number,
];

type Bytes = Tensor<"uint8">;

interface Operation {
  /** Whether its strength, from 0 to 1, may also be negative. */
  readonly isSigned?: boolean;
  apply(image: Bytes, strength: number, fill: number): Bytes;
}

/** The share of an image's side by which the strongest translation moves it. */
const TRANSLATE_MAX = 150 / 331;
const SHEAR_MAX = 0.3;
const ROTATE_MAX = Math.PI / 6;
const FACTOR_MAX = 0.9;
const POSTERIZE_BITS_MAX = 4;

function enhance(by: (image: Bytes, factor: number) => Bytes): Operation {
  return { isSigned: true, apply: (image, strength) => by(image, 1 + FACTOR_MAX * strength) };
}

function move(
  matrixOf: (strength: number, width: number, height: number) => AffineMatrix,
): Operation {
  return {
    isSigned: true,
    apply: (image, strength, fill) =>
      affine(image, matrixOf(strength, image.shape[1]!, image.shape[0]!), fill),
  };
}

/** In the order of torchvision. */
const OPERATIONS: readonly Operation[] = [
  { apply: (image) => image },
  move((strength) => [1, SHEAR_MAX * strength, 0, 0, 1, 0]),
  move((strength) => [1, 0, 0, SHEAR_MAX * strength, 1, 0]),
  move((strength, width) => [1, 0, -Math.trunc(TRANSLATE_MAX * width * strength), 0, 1, 0]),
  move((strength, _, height) => [1, 0, 0, 0, 1, -Math.trunc(TRANSLATE_MAX * height * strength)]),
  move((strength, width, height) => rotation(ROTATE_MAX * strength, width, height)),
  enhance(adjustBrightness),
  enhance(adjustSaturation),
  enhance(adjustContrast),
  enhance(adjustSharpness),
  {
    apply: (image, strength) =>
      posterize(image, roundHalfToEven(8 - POSTERIZE_BITS_MAX * strength)),
  },
  { apply: (image, strength) => solarize(image, 255 * (1 - strength)) },
  { apply: autoContrast },
  { apply: equalize },
];

const checkOptions = optionsOf<RandAugmentOptions>("randAugment", {
  ...{ numOps: true, magnitude: true, numMagnitudeBins: true, fill: true },
});

/**
 * Applies random operations, all with the same strength: shears, translations, rotations, changes of
 * colour and tone. Cubuk et al., "RandAugment" (2020).
 *
 * @param image uint8 of shape [height, width, 3].
 * @throws {LeatError} `invalid_argument` for another image, or invalid options.
 */
export function randAugment(
  image: Tensor<"uint8">,
  random: RandomStream,
  options: RandAugmentOptions = {},
): Tensor<"uint8"> {
  const { numOps = 2, magnitude = 9, numMagnitudeBins = 31, fill = 0 } = checkOptions(options);
  requireRandom("randAugment", random);
  rgbShapeOf("randAugment", image);
  if (image.dtype !== "uint8") {
    throw invalidImage("randAugment", `the image is uint8, not ${image.dtype}`);
  }
  requireValue("randAugment", "uint8", fill);
  const areCounts = [numOps, magnitude, numMagnitudeBins].every(Number.isSafeInteger);
  if (!areCounts || numOps < 0 || magnitude < 0 || magnitude >= numMagnitudeBins) {
    throw invalidImage(
      "randAugment",
      `numOps is from 0 up and magnitude from 0 to numMagnitudeBins - 1, not ${numOps} and ` +
        `${magnitude} of ${numMagnitudeBins}`,
    );
  }
  const strength = magnitude / Math.max(1, numMagnitudeBins - 1);
  let made = image;
  for (let i = 0; i < numOps; i++) {
    const operation = OPERATIONS[random.int(OPERATIONS.length)]!;
    const sign = operation.isSigned === true && random.int(2) === 1 ? -1 : 1;
    made = operation.apply(made, sign * strength, fill);
  }
  return made;
}

/** Moves pixels, like Pillow's `AFFINE`: takes the nearest old pixel, or `fill` outside of the image. */
export function affine(
  image: Bytes,
  [a, b, c, d, e, f]: AffineMatrix,
  fill: number,
): Bytes {
  const { height, width, channels } = rgbShapeOf("affine", image);
  const out = Tensor.zeros("uint8", image.shape);
  let to = 0;
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++, to += channels) {
      const fromX = Math.floor(a * (x + 0.5) + b * (y + 0.5) + c);
      const fromY = Math.floor(d * (x + 0.5) + e * (y + 0.5) + f);
      const isInside = fromX >= 0 && fromX < width && fromY >= 0 && fromY < height;
      const at = (fromY * width + fromX) * channels;
      for (let k = 0; k < channels; k++) out.data[to + k] = isInside ? image.data[at + k]! : fill;
    }
  }
  return out;
}

/** The matrix that turns an image around its middle, counter-clockwise, by an angle in radians. */
export function rotation(angle: number, width: number, height: number): AffineMatrix {
  // Rounded, so that the sine of 30 degrees is exactly 0.5.
  const cos = rounded(Math.cos(angle)), sin = rounded(Math.sin(angle));
  const x = width / 2, y = height / 2;
  return [cos, -sin, x - cos * x + sin * y, sin, cos, y - sin * x - cos * y];
}

function rounded(value: number): number {
  return Math.round(value * 1e15) / 1e15;
}
