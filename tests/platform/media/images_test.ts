/** JPEGs: made by the encoder, and small ones of kinds that it does not write. */

import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertNotEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";
import { LeatError, type LeatErrorCode } from "../../../core/error.ts";
import { RandomStream } from "../../../core/philox.ts";
import { Tensor } from "../../../core/tensor.ts";
import type { ImageDecodeOptions } from "../../../data/host.ts";
import { cropImage } from "../../../data/media/geometry.ts";
import { Images } from "../../../platform/media/images.ts";
import { SCANS_MAX } from "../../../platform/media/jpeg/jpeg.ts";
import { turboLibraryPath } from "../../../platform/media/jpeg/turbo_library.ts";
import { CMYK, CMYK_PIXELS, GREY, NOISY, NOISY_PIXELS, PROGRESSIVE } from "./small_jpegs.ts";
import { resample } from "./resample.ts";
import { imageTest } from "../../lib/image_test.ts";

const images = new Images();

/** A picture with smooth parts, edges and noise. */
function picture(width: number, height: number): Tensor<"uint8"> {
  const random = new RandomStream(3n, [width, height]);
  const data = new Uint8Array(width * height * 3);
  for (let y = 0, at = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      data[at++] = 255 * x / width;
      data[at++] = 255 * y / height;
      data[at++] = (x >> 3 ^ y >> 3) & 1 ? 200 : 40 + random.int(20);
    }
  }
  return new Tensor("uint8", [height, width, 3], data);
}

async function failure(bytes: Uint8Array, options?: ImageDecodeOptions): Promise<LeatError> {
  return await assertRejects(
    async () => await images.decode(bytes, options),
    LeatError,
  ) as LeatError;
}

function meanDifference(a: Uint8Array, b: Uint8Array): number {
  return a.reduce((sum, value, i) => sum + Math.abs(value - b[i]!), 0) / a.length;
}

imageTest("encode and decode preserve a picture except for JPEG's loss", async () => {
  for (const [width, height] of [[64, 48], [1, 1], [17, 3], [500, 375]] as const) {
    const original = picture(width, height);
    const jpeg = await images.encode(original, { quality: 95 });
    assertEquals(jpeg.byteLength, jpeg.buffer.byteLength);
    assertEquals(images.size(jpeg), { width, height });
    const decoded = await images.decode(jpeg);
    assertEquals(decoded.dtype, "uint8");
    assertEquals(decoded.shape, [height, width, 3]);
    assert(meanDifference(decoded.data, original.data) < 20, `${width} × ${height}`);
  }
});

imageTest("encode writes smaller files at lower quality", async () => {
  const original = picture(200, 100);
  const sizes = [];
  for (const quality of [100, 75, 10]) {
    sizes.push((await images.encode(original, { quality })).byteLength);
  }
  assertEquals(sizes, sizes.toSorted((a, b) => b - a));
});

imageTest("encode refuses other images than RGB", async () => {
  const pixels = new Uint8Array(12);
  const cases: [Tensor, number][] = [
    [new Tensor("uint8", [2, 6], pixels), 90],
    [new Tensor("uint8", [2, 3, 2], pixels), 90],
    [new Tensor("int8", [2, 2, 3], new Int8Array(12)), 90],
    [new Tensor("uint8", [0, 2, 3], new Uint8Array(0)), 90],
    [new Tensor("uint8", [1, 65_501, 3], new Uint8Array(65_501 * 3)), 90],
    [new Tensor("uint8", [2, 2, 3], pixels), 0],
    [new Tensor("uint8", [2, 2, 3], pixels), 101],
    [new Tensor("uint8", [2, 2, 3], pixels), 50.5],
  ];
  for (const [image, quality] of cases) {
    const error = await assertRejects(() => images.encode(image, { quality }), LeatError);
    assertEquals((error as LeatError).code, "invalid_argument", `${image.shape} ${quality}`);
  }
});

imageTest("encode refuses an image whose buffer became shorter meanwhile", async () => {
  const byteLength = 4_000 * 600 * 3;
  const buffer = new ArrayBuffer(byteLength, { maxByteLength: byteLength });
  const encoding = images.encode(new Tensor("uint8", [4_000, 600, 3], new Uint8Array(buffer)));
  buffer.resize(10);
  const error = await assertRejects(() => encoding, LeatError);
  assertEquals((error as LeatError).code, "failed_precondition");
});

imageTest("decode crops, then resizes, then mirrors", async () => {
  const jpeg = await images.encode(picture(60, 40), { quality: 95 });
  const pixels = (await images.decode(jpeg)).data;
  const whole = { x: 0, y: 0, width: 60, height: 40 };
  const image = { pixels, channels: 3, width: 60, crop: whole, flip: false } as const;
  const crop = { x: 7, y: 3, width: 31, height: 22 };
  const cases: [ImageDecodeOptions, Parameters<typeof resample>[0]][] = [
    [{ crop }, { ...image, crop, size: { width: 31, height: 22 }, flip: false }],
    [{ flip: true }, { ...image, size: { width: 60, height: 40 }, flip: true }],
    [{ resize: { width: 90, height: 20 } }, { ...image, size: { width: 90, height: 20 } }],
    [
      { crop, resize: { width: 16, height: 50 }, flip: true },
      { ...image, crop, size: { width: 16, height: 50 }, flip: true },
    ],
  ];
  for (const [options, request] of cases) {
    const decoded = await images.decode(jpeg, options);
    assertEquals(decoded.shape, [request.size.height, request.size.width, 3]);
    assertEquals(decoded.data, resample(request), JSON.stringify(options));
  }
});

imageTest(
  "decode answers synchronously once the library is loaded, and owns its result",
  async () => {
    const first = await images.encode(picture(20, 10));
    const second = await images.encode(new Tensor("uint8", [10, 20, 3], new Uint8Array(600)));
    await images.decode(first);
    for (const options of [{}, { flip: true }]) {
      const a = images.decode(first, options);
      assert(!(a instanceof Promise));
      const before = a.data.slice();
      images.decode(second, options);
      assertEquals(a.data, before);
    }
  },
);

imageTest("decode reads progressive and grey images, and views of a larger buffer", async () => {
  const colour = await images.decode(PROGRESSIVE);
  assertEquals(colour.shape, [16, 24, 3]);
  assertAlmostEquals(colour.data[(8 * 24 + 12) * 3]!, 120, 12);
  assertAlmostEquals(colour.data[(8 * 24 + 12) * 3 + 1]!, 120, 12);
  const grey = await images.decode(GREY);
  assertEquals(grey.shape, [16, 24, 3]);
  for (let i = 0; i < grey.data.length; i += 3) {
    assert(grey.data[i] === grey.data[i + 1] && grey.data[i] === grey.data[i + 2]);
  }
  const buffer = new Uint8Array(PROGRESSIVE.length + 20).fill(0xff);
  buffer.set(PROGRESSIVE, 9);
  const view = buffer.subarray(9, 9 + PROGRESSIVE.length);
  assertEquals((await images.decode(view)).data, colour.data);
});

imageTest("decode converts a JPEG to grey or adds alpha on request", async () => {
  const rgb = await images.decode(PROGRESSIVE);
  const rgba = await images.decode(PROGRESSIVE, { channels: 4 });
  assertEquals(rgba.shape, [16, 24, 4]);
  const grey = await images.decode(PROGRESSIVE, { channels: 1, flip: true });
  assertEquals(grey.shape, [16, 24, 1]);
  for (let i = 0; i < 16 * 24; i++) {
    const [r, g, b] = rgb.data.subarray(3 * i);
    assertEquals([...rgba.data.subarray(4 * i, 4 * i + 4)], [r, g, b, 255]);
    const mirrored = Math.floor(i / 24) * 24 + 23 - i % 24;
    assertAlmostEquals(grey.data[mirrored]!, 0.299 * r! + 0.587 * g! + 0.114 * b!, 2);
  }
});

imageTest("decode refuses a JPEG truncated anywhere", async () => {
  const baseline = await images.encode(picture(40, 30), { quality: 80 });
  for (const jpeg of [baseline, PROGRESSIVE, GREY]) {
    for (let length = 0; length < jpeg.length; length++) {
      const error = await failure(jpeg.slice(0, length));
      assertEquals(error.code, "data_loss", `${length} of ${jpeg.length} bytes`);
    }
    const error = await failure(jpeg.slice(0, jpeg.length - 10));
    assertStringIncludes(error.message, "truncated");
  }
});

imageTest("decode distinguishes an empty file, another format and garbage", async () => {
  const cases: [Uint8Array, LeatErrorCode, string][] = [
    [new Uint8Array(0), "data_loss", "no bytes"],
    [
      new TextEncoder().encode("GIF89a"),
      "invalid_argument",
      "like a GIF. Convert images of other formats, for example to PNG.",
    ],
    [new TextEncoder().encode("RIFF1234WAVE"), "invalid_argument", "like another RIFF file"],
    [new TextEncoder().encode("<html>"), "invalid_argument", "begin with 3c68746d."],
    [new Uint8Array(1000), "invalid_argument", "Not a JPEG, PNG, WebP: 1000 bytes"],
    [new Uint8Array([0xff, 0xd8, 0xff, 0xd9, 0, 0]), "data_loss", "no frame header"],
    [new Uint8Array([0xff, 0xd8, 0x00, 0x01, 0, 0]), "data_loss", "no marker"],
    [new Uint8Array([0xff, 0xd8, 0xff, 0xe0, 0, 1, 0, 0]), "data_loss", "claims 1 bytes"],
  ];
  for (const [bytes, code, message] of cases) {
    const error = await failure(bytes);
    assertEquals(error.code, code);
    assertStringIncludes(error.message, message);
    assertThrows(() => images.size(bytes), LeatError);
  }
});

Deno.test("decode and size name a value that is no Uint8Array, and encode one that is no tensor", async () => {
  const values: [unknown, string][] = [
    [null, "null"],
    ["abc", '"abc"'],
    [new ArrayBuffer(8), "ArrayBuffer"],
    [new Int8Array(8), "Int8Array"],
    [picture(2, 2), "Tensor"],
  ];
  for (const [value, shown] of values) {
    for (const name of ["decode", "size"] as const) {
      const error = assertThrows(() => images[name](value as Uint8Array), LeatError) as LeatError;
      assertEquals(error.code, "invalid_argument");
      assertStringIncludes(error.message, `image.${name}: the encoded image must be a Uint8Array`);
      assertStringIncludes(error.message, `got ${shown}`);
    }
  }
  const bytes = new Uint8Array(3) as unknown as Tensor;
  await assertRejects(() => images.encode(bytes), LeatError, "not of Uint8Array");
});

imageTest("decode refuses damaged compressed data", async () => {
  const jpeg = await images.encode(picture(120, 90));
  const damaged = jpeg.slice();
  // A marker that is invalid within a scan.
  damaged.set([0xff, 0xc0], jpeg.length >> 1);
  const error = await failure(damaged);
  assertEquals(error.code, "data_loss");
  assertStringIncludes(error.message, "compressed data is damaged");
});

imageTest(
  "decode refuses a header that claims more memory than its limit, before allocating",
  async () => {
    const bomb = (await images.encode(picture(16, 16))).slice();
    const frame = bomb.findIndex((byte, i) => byte === 0xff && bomb[i + 1] === 0xc0);
    bomb.set([0xff, 0xdc, 0xff, 0xdc], frame + 5);
    const error = await failure(bomb);
    assertEquals(error.code, "resource_exhausted");
    assertStringIncludes(error.message, "imageBytesMax");
    bomb.set([0, 0], frame + 5);
    assertEquals((await failure(bomb)).code, "data_loss");
  },
);

imageTest(
  "decode gives the pixels of a JPEG that Pillow and torchvision give, unless dctMethod is fast",
  async () => {
    assertEquals((await images.decode(NOISY)).data, NOISY_PIXELS);
    const accurate = await images.decode(NOISY, { dctMethod: "INTEGER_ACCURATE" });
    assertEquals(accurate.data, NOISY_PIXELS);
    const fast = await images.decode(NOISY, { dctMethod: "INTEGER_FAST" });
    assertNotEquals(fast.data, NOISY_PIXELS);
    assertEquals((await images.decode(NOISY)).data, NOISY_PIXELS, "a decoder keeps no method");
    const error = await failure(NOISY, { dctMethod: "FAST" as "INTEGER_FAST" });
    assertEquals(error.code, "invalid_argument");
    assertStringIncludes(error.message, '"INTEGER_ACCURATE" or "INTEGER_FAST", not "FAST"');
  },
  { ignore: turboLibraryPath() === undefined },
);

/** The segment of Adobe is the first of CMYK, from byte 2 to 18; its last byte says CMYK or YCCK. */
const ADOBE_END = 18;

imageTest(
  "decode converts a CMYK JPEG to the colours that Pillow gives, also of a crop, grey and RGBA",
  async () => {
    assertEquals(images.size(CMYK), { width: 24, height: 16 });
    assertEquals((await images.decode(CMYK)).data, CMYK_PIXELS);
    const whole = new Tensor("uint8", [16, 24, 3], CMYK_PIXELS);
    const crop = { x: 9, y: 3, width: 8, height: 5 };
    assertEquals(await images.decode(CMYK, { crop }), cropImage(whole, crop));
    const chw = await images.decode(CMYK, { layout: "CHW" });
    assertEquals(chw.data.subarray(0, 384), CMYK_PIXELS.filter((_, i) => i % 3 === 0));
    const rgba = await images.decode(CMYK, { channels: 4 });
    assertEquals(rgba.data.slice(0, 4), Uint8Array.of(...CMYK_PIXELS.subarray(0, 3), 255));
    assertEquals((await images.decode(CMYK, { channels: 1 })).shape, [16, 24, 1]);
    assertEquals((await images.decode(NOISY)).data, NOISY_PIXELS, "the decoder reads RGB again");
  },
  { ignore: turboLibraryPath() === undefined },
);

imageTest(
  "decode reads YCCK, and takes 0 for no ink in a CMYK JPEG without Adobe's marker",
  async () => {
    const ends = ({ data }: Tensor) => [...data.slice(0, 3), ...data.slice(-3)] as number[];
    const ycck = CMYK.with(ADOBE_END - 1, 2);
    // As Pillow.
    assertEquals(ends(await images.decode(ycck)), [81, 253, 253, 32, 47, 0]);
    const plain = Uint8Array.of(...CMYK.subarray(0, 2), ...CMYK.subarray(ADOBE_END));
    assertEquals(ends(await images.decode(plain)), [2, 2, 0, 1, 0, 7]);
  },
  { ignore: turboLibraryPath() === undefined },
);

imageTest(
  "decode says unimplemented for a JPEG of more than 8 bits or of a rare process, whose size is known",
  async () => {
    const jpeg = await images.encode(picture(20, 10));
    const frame = jpeg.findIndex((byte, i) => byte === 0xff && jpeg[i + 1] === 0xc0);
    const cases = [[0xc1, 12, "12 bits"], [0xc5, 8, "SOF5"], [0xcb, 8, "SOF11"]] as const;
    for (const [process, precision, what] of cases) {
      const rare = jpeg.with(frame + 1, process).with(frame + 4, precision);
      assertEquals(images.size(rare), { width: 20, height: 10 });
      const error = await failure(rare);
      assertEquals(error.code, "unimplemented");
      assertStringIncludes(error.message, what);
    }
    const extended = await images.decode(jpeg.with(frame + 1, 0xc1));
    assertEquals(extended, await images.decode(jpeg));
  },
);

imageTest("decode refuses invalid crops and sizes", async () => {
  const jpeg = await images.encode(picture(20, 10));
  const options: ImageDecodeOptions[] = [
    { crop: { x: 0, y: 0, width: 21, height: 10 } },
    { crop: { x: 1, y: 0, width: 20, height: 10 } },
    { crop: { x: 0, y: -1, width: 5, height: 5 } },
    { crop: { x: 0, y: 0, width: 0, height: 5 } },
    { crop: { x: 0.5, y: 0, width: 5, height: 5 } },
    { crop: { x: 0, y: 0, width: NaN, height: 5 } },
    { resize: { width: 0, height: 5 } },
    { resize: { width: 5, height: 1.5 } },
    { channels: 2 as 1 },
  ];
  for (const option of options) {
    assertEquals((await failure(jpeg, option)).code, "invalid_argument", JSON.stringify(option));
  }
  const huge = await failure(jpeg, { resize: { width: 1e6, height: 1e6 } });
  assertEquals(huge.code, "resource_exhausted");
});

imageTest("decode refuses a progressive JPEG with very many scans", async () => {
  const end = PROGRESSIVE.length - 2;
  const scan = PROGRESSIVE.lastIndexOf(0xda) - 1;
  assertEquals([...PROGRESSIVE.subarray(scan, scan + 2)], [0xff, 0xda]);
  const last = PROGRESSIVE.subarray(scan, end);
  const bomb = new Uint8Array(scan + 300 * last.length + 2);
  bomb.set(PROGRESSIVE.subarray(0, scan));
  for (let number = 0; number < 300; number++) bomb.set(last, scan + number * last.length);
  bomb.set(PROGRESSIVE.subarray(end), bomb.length - 2);
  const error = await failure(bomb);
  assertEquals(error.code, "resource_exhausted");
  assertStringIncludes(error.message, `${SCANS_MAX} scans (SCANS_MAX)`);
});
