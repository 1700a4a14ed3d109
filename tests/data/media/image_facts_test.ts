/** Operations on images and tensors, against what TensorFlow and Pillow were recorded to make. */

import { assert, assertEquals, assertStringIncludes, assertThrows } from "../../assert.ts";
import type { FixedDType } from "../../../core/dtype.ts";
import { LeatError } from "../../../core/error.ts";
import { Tensor, tensor } from "../../../core/tensor.ts";
import { type OneHotOptions, tensors } from "../../../core/tensor_operations.ts";
import { adjustBrightness } from "../../../data/media/colour.ts";
import { imageTools } from "../../../data/media/image.ts";
import { affine, rotation } from "../../../data/media/rand_augment.ts";
import {
  adjustSharpness,
  autoContrast,
  equalize,
  posterize,
  solarize,
} from "../../../data/media/tones.ts";
import { Images } from "../../../platform/media/images.ts";
import { imageTest } from "../../lib/image_test.ts";

interface Fact {
  readonly operation: string;
  readonly args: unknown[];
  readonly shape: number[];
  readonly values: number[];
}

const [head, ...lines] = Deno.readTextFileSync(new URL("./image_facts.jsonl", import.meta.url))
  .trim().split("\n");
const recorded = JSON.parse(head!) as { readonly shape: number[]; readonly pixels: number[] };
const facts = lines.map((line) => JSON.parse(line) as Fact);

const image = imageTools(new Images());
const bytes = new Tensor("uint8", recorded.shape, Uint8Array.from(recorded.pixels));
const floats = new Tensor("float32", recorded.shape, Float32Array.from(recorded.pixels));

/** Largest difference by operation, in levels of 255; 0 where it is not listed. */
const TOLERANCES: Readonly<Record<string, number>> = {
  resize: 0.02,
  grayscale: 1,
  adjustHue: 1,
  adjustBrightness: 1,
  adjustContrast: 1,
  adjustSaturation: 1,
  adjustSharpness: 1,
};

type Operation = (image: Tensor, ...args: unknown[]) => Tensor;

/** What `randAugment` consists of. */
const INNER: Readonly<Record<string, unknown>> = {
  adjustSharpness,
  posterize,
  solarize,
  autoContrast,
  affine,
  equalize: (image: Tensor<"uint8">) => {
    const row = concatenated([image, image, image], 1);
    return equalize(concatenated([row, row, row], 0));
  },
  rotation: (image: Tensor<"uint8">, degrees: number) =>
    affine(image, rotation(degrees * Math.PI / 180, 7, 9), 0),
};

function concatenated(images: readonly Tensor<"uint8">[], axis: 0 | 1): Tensor<"uint8"> {
  const { data } = tensors.stack(images, { axis });
  const [height, width] = images[0]!.shape as [number, number];
  const shape = axis === 0 ? [3 * height, width, 3] : [height, 3 * width, 3];
  return new Tensor("uint8", shape, data);
}

const IMAGE_FACTS = facts.filter(({ operation }) => !operation.startsWith("tensors."));

for (const operation of new Set(IMAGE_FACTS.map(({ operation }) => operation))) {
  imageTest(`image.${operation} gives what TensorFlow or Pillow gives`, () => {
    const apply = (INNER[operation] ?? image[operation as keyof typeof image]) as Operation;
    for (const fact of IMAGE_FACTS.filter((fact) => fact.operation === operation)) {
      const about = `${operation} ${JSON.stringify(fact.args)}`;
      const result = apply(operation === "resize" ? floats : bytes, ...fact.args);
      assertEquals(result.shape, fact.shape, about);
      const data = result.data as Uint8Array;
      const off = fact.values.map((value, i) => Math.abs(value - data[i]!));
      const most = Math.max(...off);
      assert(most <= toleranceOf(operation, fact.args), `${about} is off by ${most}`);
    }
  });
}

function toleranceOf(operation: string, args: readonly unknown[]): number {
  // TensorFlow takes the weights of its bicubic filter from a table of 1,024 places.
  const isTabled = JSON.stringify(args).includes(`"bicubic","antialias":false`);
  return isTabled ? 0.2 : TOLERANCES[operation] ?? 0;
}

const values = Float32Array.from({ length: 24 }, (_, i) => i - 11.75);
const value = new Tensor("float32", [2, 3, 4], values);
const others = [values, values.map((x) => x * 2), values.map((x) => x - 1)]
  .map((data) => new Tensor("float32", [2, 3, 4], data));

const MADE: Readonly<Record<string, (args: unknown[]) => Tensor>> = {
  cast: ([dtype]) => {
    const of = dtype === "uint8" ? new Tensor("float32", [2, 3, 4], values.map(Math.abs)) : value;
    return tensors.cast(of, dtype as FixedDType);
  },
  oneHot: ([indices, depth, options]) =>
    tensors.oneHot(tensor(indices as number[]), depth as number, options as OneHotOptions),
  stack: ([options]) => tensors.stack(others, options as { axis: number }),
  gather: ([indices, options]) =>
    tensors.gather(value, indices as number[], options as { axis: number }),
  pad: ([paddings, constant]) =>
    tensors.pad(value, paddings as [number, number][], constant as number),
};

for (const operation of Object.keys(MADE)) {
  imageTest(`tensors.${operation} gives what TensorFlow gives`, () => {
    const own = facts.filter((fact) => fact.operation === `tensors.${operation}`);
    assert(own.length > 0);
    for (const fact of own) {
      const made = MADE[operation]!(fact.args);
      const about = `${operation} ${JSON.stringify(fact.args)}`;
      assertEquals(made.shape, fact.shape, about);
      assertEquals(
        Array.from(made.data as ArrayLike<unknown>, Number),
        fact.values.map(Number),
        about,
      );
    }
  });
}

Deno.test("adjustBrightness refuses an alpha channel, which is no colour", () => {
  for (const channels of [2, 4]) {
    const image = Tensor.zeros("uint8", [2, 2, channels]);
    const { code, message } = assertThrows(
      () => adjustBrightness(image, 0.5),
      LeatError,
    );
    assertEquals(code, "invalid_argument");
    assertStringIncludes(message, `1 or 3 channels, not ${channels}`);
  }
});
