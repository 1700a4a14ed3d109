/** JPEGs whose sampling factors are larger than their subsampling needs. */

import { assertEquals, assertNotEquals } from "../../../assert.ts";
import { cropImage } from "../../../../data/media/geometry.ts";
import { Images } from "../../../../platform/media/images.ts";
import { imageTest } from "../../../lib/image_test.ts";
import { segment } from "./jpeg_writer.ts";

const WIDTH = 256, HEIGHT = 128;

/** A JPEG whose blocks become brighter in their order. @param factors Those of Y, Cb and Cr. */
function brightening(factors: readonly number[]): Uint8Array<ArrayBuffer> {
  const sides = factors.map((factor) => [factor >> 4, factor & 0xf] as const);
  const largest = (side: 0 | 1) => 8 * Math.max(...sides.map((one) => one[side]));
  const units = (WIDTH / largest(0)) * (HEIGHT / largest(1));
  // The mean grows by one, or stays; the rest of a block is zero.
  const blocks = sides.map(([x, y], i) => (i === 0 ? "1010" : "00").repeat(x * y));
  const bits = blocks.join("").repeat(units);
  const data = bits.match(/.{1,8}/g)!.map((byte) => parseInt(byte.padEnd(8, "1"), 2));
  const components = factors.flatMap((factor, i) => [i + 1, factor, 0]);
  return Uint8Array.from([
    ...[0xff, 0xd8],
    ...segment(0xdb, 0, ...new Array(64).fill(1)),
    ...segment(0xc0, 8, 0, HEIGHT, WIDTH >> 8, WIDTH & 0xff, 3, ...components),
    ...segment(0xc4, 0x00, 1, 1, ...new Array(14).fill(0), 0, 1),
    ...segment(0xc4, 0x10, 1, ...new Array(15).fill(0), 0),
    ...segment(0xda, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0),
    ...data,
    ...[0xff, 0xd9],
  ]);
}

imageTest("decode gives the crop of a JPEG whose sampling factors are doubled", async () => {
  const images = new Images();
  const kinds = {
    "4:4:4 as 2×1": [0x21, 0x21, 0x21],
    "4:4:4 as 1×2": [0x12, 0x12, 0x12],
    "4:4:0 as 2×2, 2×1": [0x22, 0x21, 0x21],
    "4:2:2 as 2×2, 1×2": [0x22, 0x12, 0x12],
    "no common kind": [0x21, 0x11, 0x21],
  };
  for (const [kind, factors] of Object.entries(kinds)) {
    const jpeg = brightening(factors);
    const whole = await images.decode(jpeg);
    assertNotEquals(whole.data[0], whole.data.at(-1), kind);
    // The blocks of the crop begin at 24, which is no multiple of 16.
    const crop = { x: 30, y: 20, width: 50, height: 90 };
    assertEquals(await images.decode(jpeg, { crop }), cropImage(whole, crop), kind);
  }
});
