/** Crop, resize and mirror against slow and obvious versions. */

import { assert, assertEquals } from "../../assert.ts";
import { RandomStream } from "../../../core/philox.ts";
import { resample, type ResampleRequest } from "../../../platform/media/resample.ts";

/** One channel of one output pixel, straight from the definition, in floating point. */
function reference(request: ResampleRequest, x: number, y: number, channel: number): number {
  const { pixels, channels, width, crop, size, flip } = request;
  const column = flip ? size.width - 1 - x : x;
  const clamp = (at: number, length: number) => Math.min(Math.max(at, 0), length - 1);
  const u = clamp((column + 0.5) * crop.width / size.width - 0.5, crop.width);
  const v = clamp((y + 0.5) * crop.height / size.height - 0.5, crop.height);
  const pixel = (i: number, j: number) =>
    pixels[
      ((crop.y + clamp(j, crop.height)) * width + crop.x + clamp(i, crop.width)) * channels +
      channel
    ]!;
  const [i, j] = [Math.floor(u), Math.floor(v)];
  const top = pixel(i, j) * (1 - (u - i)) + pixel(i + 1, j) * (u - i);
  const bottom = pixel(i, j + 1) * (1 - (u - i)) + pixel(i + 1, j + 1) * (u - i);
  return top * (1 - (v - j)) + bottom * (v - j);
}

function noise(width: number, height: number, channels: number): Uint8Array {
  const random = new RandomStream(7n, ["noise", width, height]);
  return Uint8Array.from({ length: width * height * channels }, () => random.int(256));
}

Deno.test("resample is within one level of the definition for any crop, size and mirroring", () => {
  const random = new RandomStream(1n, ["resample"]);
  for (let trial = 0; trial < 200; trial++) {
    const width = 1 + random.int(20), height = 1 + random.int(20);
    const crop = { x: random.int(width), y: random.int(height), width: 0, height: 0 };
    crop.width = 1 + random.int(width - crop.x);
    crop.height = 1 + random.int(height - crop.y);
    const size = { width: 1 + random.int(30), height: 1 + random.int(30) };
    const channels = [1, 3, 4][random.int(3)]!;
    const request = {
      pixels: noise(width, height, channels),
      channels,
      width,
      crop,
      size,
      flip: random.int(2) === 1,
    };
    const out = resample(request);
    assertEquals(out.length, size.width * size.height * channels);
    for (let at = 0; at < out.length; at++) {
      const pixel = Math.floor(at / channels);
      const expected = reference(
        request,
        pixel % size.width,
        Math.floor(pixel / size.width),
        at % channels,
      );
      assert(
        Math.abs(out[at]! - expected) < 1,
        `trial ${trial}, byte ${at}: ${out[at]}, ${expected}`,
      );
    }
  }
});

Deno.test("resample without a change of size copies exactly, mirrored or not", () => {
  const pixels = noise(5, 4, 3);
  const crop = { x: 1, y: 1, width: 3, height: 2 };
  const size = { width: 3, height: 2 };
  const pixel = (
    x: number,
    y: number,
  ) => [...pixels.subarray((y * 5 + x) * 3, (y * 5 + x) * 3 + 3)];
  const rows = [1, 2].map((y) => [1, 2, 3].map((x) => pixel(x, y)));
  const request = { pixels, channels: 3, width: 5, crop, size, flip: false };
  assertEquals([...resample(request)], rows.flat(2));
  assertEquals([...resample({ ...request, flip: true })], rows.map((row) => row.reverse()).flat(2));
});

Deno.test("resample keeps black black and white white", () => {
  for (const level of [0, 255]) {
    const pixels = new Uint8Array(7 * 7 * 3).fill(level);
    const crop = { x: 0, y: 0, width: 7, height: 7 };
    const size = { width: 50, height: 3 };
    const out = resample({ pixels, channels: 3, width: 7, crop, size, flip: true });
    assert(out.every((value) => value === level));
  }
});
