/** Crop, resize, mirror and convert against slow and obvious versions. */

import { assert, assertEquals } from "../../assert.ts";
import { RandomStream } from "../../../core/philox.ts";
import { kernelModule } from "../../../tools/kernels.ts";
import { noise, reference, type Request, resample, resampleFloats } from "./resample.ts";

const random = new RandomStream(1n, ["resample"]);

function anyRequest(): Request {
  const width = 1 + random.int(20), height = 1 + random.int(20);
  const x = random.int(width), y = random.int(height);
  const crop = { x, y, width: 1 + random.int(width - x), height: 1 + random.int(height - y) };
  const size = { width: 1 + random.int(30), height: 1 + random.int(30) };
  const channels = ([1, 3, 4] as const)[random.int(3)]!;
  const flip = random.int(2) === 1, layout = random.int(2) === 1 ? "HWC" : "CHW";
  return { pixels: noise(width, height, channels), channels, width, crop, size, flip, layout };
}

Deno.test("Resampler is within one level of the definition for any crop, size, mirroring and layout", () => {
  for (let trial = 0; trial < 300; trial++) {
    const request = anyRequest();
    const expected = reference(request);
    const bytes = resample(request);
    assertEquals(bytes.length, expected.length);
    bytes.forEach((byte, at) => {
      assert(Math.abs(byte - expected[at]!) < 1, `trial ${trial}, byte ${at}: ${byte}`);
    });
  }
});

Deno.test("Resampler converts to floats without rounding to whole levels, each channel by its own scale", () => {
  const scale = [0.5, 2, -1, 0.25], offset = [1, -3, 0, 7];
  for (let trial = 0; trial < 100; trial++) {
    const request = anyRequest();
    const { channels, size, layout } = request;
    const plane = size.width * size.height;
    const conversion = {
      scale: scale.slice(0, channels),
      offset: offset.slice(0, channels),
    };
    const floats = resampleFloats(request, conversion);
    reference(request).forEach((level, at) => {
      const channel = layout === "CHW" ? Math.floor(at / plane) : at % channels;
      const expected = level * scale[channel]! + offset[channel]!;
      // Weights are multiples of 1 / 2048.
      assert(Math.abs(floats[at]! - expected) < 1, `trial ${trial}, float ${at}: ${floats[at]}`);
    });
  }
});

Deno.test("Resampler without a change of size copies exactly, mirrored or not", () => {
  const pixels = noise(5, 4, 3);
  const crop = { x: 1, y: 1, width: 3, height: 2 };
  const size = { width: 3, height: 2 };
  const pixel = (x: number, y: number) => {
    const at = (y * 5 + x) * 3;
    return [...pixels.subarray(at, at + 3)];
  };
  const rows = [1, 2].map((y) => [1, 2, 3].map((x) => pixel(x, y)));
  const request = { pixels, channels: 3, width: 5, crop, size, flip: false } as const;
  assertEquals([...resample(request)], rows.flat(2));
  assertEquals([...resample({ ...request, flip: true })], rows.map((row) => row.reverse()).flat(2));
});

Deno.test("Resampler keeps black black and white white", () => {
  for (const level of [0, 255]) {
    const pixels = new Uint8Array(7 * 7 * 3).fill(level);
    const crop = { x: 0, y: 0, width: 7, height: 7 };
    const size = { width: 50, height: 3 };
    const out = resample({ pixels, channels: 3, width: 7, crop, size, flip: true });
    assert(out.every((value) => value === level));
  }
});

Deno.test("Resampler gives the same for a small image after one that its memory grew for", () => {
  const request = { ...anyRequest(), pixels: noise(20, 20, 4) };
  const before = resample(request);
  const side = 5_000, crop = { x: 4_990, y: 4_990, width: 10, height: 10 };
  const pixels = new Uint8Array(side * side * 4).fill(9);
  const large = resample({ pixels, channels: 4, width: side, crop, size: crop, flip: true });
  assert(large.every((value) => value === 9));
  assertEquals(resample(request), before);
});

Deno.test("the WebAssembly of the resampler is what row.wat gives", async () => {
  const built = new URL("../../../platform/media/resampling/row_wasm.ts", import.meta.url);
  assertEquals(await Deno.readTextFile(built), await kernelModule(), "run deno task kernels");
});
