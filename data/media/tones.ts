/** Operations on the values of each channel, and sharpening, like Pillow's. */

import type { Tensor } from "../../core/tensor.ts";
import { imageOf, imageShape } from "./image_tensor.ts";

const LEVELS = 256;
/** The weights of Pillow's `SMOOTH` filter: the pixel itself, and each of its eight neighbours. */
const [CENTRE, NEIGHBOUR] = [5 / 13, 1 / 13];

/** Keeps the upper `bits` bits of each value. */
export function posterize(image: Tensor<"uint8">, bits: number): Tensor<"uint8"> {
  const mask = 0xff << (8 - bits) & 0xff;
  return mapped(image, (value) => value & mask);
}

/** Inverts all values of at least `threshold`. */
export function solarize(image: Tensor<"uint8">, threshold: number): Tensor<"uint8"> {
  return mapped(image, (value) => value >= threshold ? 255 - value : value);
}

/** Stretches the values of each channel to the range from 0 to 255. */
export function autoContrast(image: Tensor<"uint8">): Tensor<"uint8"> {
  return byChannel(image, (counts) => {
    const low = counts.findIndex((count) => count > 0);
    const high = counts.findLastIndex((count) => count > 0);
    if (high <= low) return (value) => value;
    const scale = 255 / (high - low);
    return (value) => Math.min(Math.max(Math.trunc(value * scale - low * scale), 0), 255);
  });
}

/** Makes all values of each channel about equally frequent (histogram equalisation). */
export function equalize(image: Tensor<"uint8">): Tensor<"uint8"> {
  return byChannel(image, (counts) => {
    const present = counts.filter((count) => count > 0);
    const total = present.reduce((sum, count) => sum + count, 0);
    const step = Math.floor((total - present.at(-1)!) / 255);
    if (present.length <= 1 || step === 0) return (value) => value;
    const table: number[] = [];
    let sum = step >> 1;
    for (const count of counts) {
      table.push(Math.min(Math.floor(sum / step), 255));
      sum += count;
    }
    return (value) => table[value]!;
  });
}

/** Multiplies the distance of each value from the mean around it by `factor`, except at the edges. */
export function adjustSharpness(image: Tensor<"uint8">, factor: number): Tensor<"uint8"> {
  const shape = imageShape("adjustSharpness", image);
  const { height, width, channels } = shape;
  const { data } = image;
  const values = Float32Array.from(data), row = width * channels;
  for (let y = 1; y < height - 1; y++) {
    for (let i = y * row + channels; i < (y + 1) * row - channels; i++) {
      let sum = 0;
      for (const at of [i - row, i, i + row]) {
        sum += data[at - channels]! + data[at]! + data[at + channels]!;
      }
      const smooth = Math.floor((sum - data[i]!) * NEIGHBOUR + data[i]! * CENTRE + 0.5);
      const value = factor * data[i]! + (1 - factor) * smooth;
      values[i] = Math.floor(Math.min(Math.max(value, 0), 255));
    }
  }
  return imageOf("uint8", shape, values);
}

function mapped(image: Tensor<"uint8">, change: (value: number) => number): Tensor<"uint8"> {
  return imageOf("uint8", imageShape("image", image), Float32Array.from(image.data, change));
}

function byChannel(
  image: Tensor<"uint8">,
  changeOf: (counts: readonly number[]) => (value: number) => number,
): Tensor<"uint8"> {
  const shape = imageShape("image", image);
  const { channels } = shape;
  const values = new Float32Array(image.data.length);
  for (let c = 0; c < channels; c++) {
    const counts = Array<number>(LEVELS).fill(0);
    for (let i = c; i < values.length; i += channels) counts[image.data[i]!]!++;
    const change = changeOf(counts);
    for (let i = c; i < values.length; i += channels) values[i] = change(image.data[i]!);
  }
  return imageOf("uint8", shape, values);
}
