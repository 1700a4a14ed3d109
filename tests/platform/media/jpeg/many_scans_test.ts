/** JPEGs whose components are not interleaved: one scan for each. */

import { assert, assertEquals, assertRejects } from "../../../assert.ts";
import { LeatError } from "../../../../core/error.ts";
import { Images } from "../../../../platform/media/images.ts";
import { JpegFormat, SCANS_MAX } from "../../../../platform/media/jpeg/jpeg.ts";
import { imageTest } from "../../../lib/image_test.ts";
import { segment } from "./jpeg_writer.ts";

const WIDTH = 24, HEIGHT = 16;
const OUTPUT_BYTES = WIDTH * HEIGHT * 3;

/** A scan of some components. Each block is two bits: no change of the mean, end of block. */
function scan(...components: number[]): number[] {
  const bits = WIDTH / 8 * HEIGHT / 8 * components.length * 2;
  const data = new Array(bits >> 3).fill(0);
  if (bits % 8 !== 0) data.push(0xff >> bits % 8);
  const selectors = components.flatMap((component) => [component, 0]);
  return [...segment(0xda, components.length, ...selectors, 0, 63, 0), ...data];
}

/** A grey picture as a baseline JPEG of three components, with bytes between frame and scans. */
function baseline(scans: readonly number[][], between: number[] = []): Uint8Array<ArrayBuffer> {
  const oneCode = [1, ...new Array(15).fill(0), 0];
  return Uint8Array.from([
    ...[0xff, 0xd8],
    ...segment(0xdb, 0, ...new Array(64).fill(1)),
    ...segment(0xc0, 8, 0, HEIGHT, 0, WIDTH, 3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0),
    ...between,
    ...segment(0xc4, 0x00, ...oneCode),
    ...segment(0xc4, 0x10, ...oneCode),
    ...scans.flat(),
    ...[0xff, 0xd9],
  ]);
}

const ONE_EACH = [scan(1), scan(2), scan(3)];

imageTest("the memory limit counts coefficients of JPEGs that are not interleaved", async () => {
  const format = new JpegFormat();
  const jpeg = baseline(ONE_EACH), interleaved = baseline([scan(1, 2, 3)]);
  assertEquals(format.bytesToDecode(jpeg), 2 * OUTPUT_BYTES);
  assertEquals(format.bytesToDecode(baseline([scan(1, 2), scan(3)])), 2 * OUTPUT_BYTES);
  assertEquals(format.bytesToDecode(interleaved), 0);
  const grey = new Uint8Array(OUTPUT_BYTES).fill(128);
  assertEquals((await new Images({ imageBytesMax: 3 * OUTPUT_BYTES }).decode(jpeg)).data, grey);
  const small = new Images({ imageBytesMax: OUTPUT_BYTES + 1 });
  assertEquals((await small.decode(interleaved)).data, grey);
  const error = await assertRejects(async () => await small.decode(jpeg), LeatError);
  assertEquals((error as LeatError).code, "resource_exhausted");
});

imageTest("no bytes before the first scan of a JPEG hide that it is one of many", () => {
  const format = new JpegFormat();
  const decoy = scan(1, 2, 3);
  // A marker without a segment, whose next bytes would be a length that covers the real scan.
  for (const between of [[0xff, 0x01], [0xff, 0xd0], [0], [0xff, 0xff]]) {
    const bytes = baseline([...ONE_EACH, decoy], between);
    assertEquals(format.bytesToDecode(bytes), 2 * OUTPUT_BYTES, `${between}`);
  }
  assertEquals(format.bytesToDecode(baseline([decoy], segment(0xfe, 0xff, 0xda, 0, 8, 1))), 0);
});

imageTest("decode refuses a JPEG that is not interleaved and has very many scans", async () => {
  const bomb = baseline(new Array(SCANS_MAX + 1).fill(scan(1)));
  const error = await assertRejects(async () => await new Images().decode(bomb), LeatError);
  assertEquals((error as LeatError).code, "resource_exhausted");
  assert((error as LeatError).message.includes("SCANS_MAX"));
});
