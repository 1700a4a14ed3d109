/** Decoding to floats, to other layouts, and from a confined process. */

import { assert, assertEquals, assertRejects } from "../../assert.ts";
import { LeatError } from "../../../core/error.ts";
import { Tensor } from "../../../core/tensor.ts";
import type { ImageDecodeOptions } from "../../../data/host.ts";
import { Images } from "../../../platform/media/images.ts";
import { imageTest } from "../../lib/image_test.ts";

const images = new Images();
const WIDTH = 45, HEIGHT = 32;
const pixels = Uint8Array.from(
  { length: WIDTH * HEIGHT * 3 },
  (_, i) => Math.floor(120 + 100 * Math.sin(i / 31)),
);
const jpeg = await images.encode(new Tensor("uint8", [HEIGHT, WIDTH, 3], pixels), { quality: 95 });

const CROP = { x: 3, y: 5, width: 30, height: 21 };
const MEAN = [0.485, 0.456, 0.406], STD = [0.229, 0.224, 0.225];

imageTest("decode crops, resizes, flips and normalizes in one pass as step by step", async () => {
  for (const resize of [{ width: 30, height: 21 }, { width: 17, height: 40 }]) {
    for (const flip of [false, true]) {
      const options = { crop: CROP, resize, flip };
      const bytes = await images.decode(jpeg, options);
      const floats = await images.decode(jpeg, { ...options, normalize: { mean: MEAN, std: STD } });
      assertEquals([floats.dtype, floats.shape], ["float32", bytes.shape]);
      let largest = 0;
      for (const [i, byte] of bytes.data.entries()) {
        const value = floats.data[i]! * STD[i % 3]! + MEAN[i % 3]!;
        largest = Math.max(largest, Math.abs(value * 255 - byte));
      }
      // Bytes are rounded, floats are not.
      const isCopied = resize.width === CROP.width;
      assert(isCopied ? largest < 1e-3 : largest > 0.1 && largest <= 0.502, `off by ${largest}`);
    }
  }
});

imageTest("decode gives floats from 0 to 1, also of 16 bits, and channels first", async () => {
  const bytes = await images.decode(jpeg);
  for (const dtype of ["float32", "float16"] as const) {
    const floats = await images.decode(jpeg, { dtype });
    assertEquals(floats.dtype, dtype);
    const error = bytes.data.reduce(
      (most, byte, i) => Math.max(most, Math.abs(byte / 255 - floats.data[i]!)),
      0,
    );
    assert(error < (dtype === "float32" ? 1e-6 : 1e-3), `${dtype} is off by ${error}`);
  }
  for (const dtype of ["uint8", "float32"] as const) {
    const last = await images.decode(jpeg, { dtype, crop: CROP });
    const first = await images.decode(jpeg, { dtype, crop: CROP, layout: "CHW" });
    assertEquals(first.shape, [3, 21, 30]);
    for (let i = 0; i < 21 * 30; i++) {
      for (let c = 0; c < 3; c++) assertEquals(first.data[c * 21 * 30 + i], last.data[3 * i + c]);
    }
  }
});

imageTest(
  "decode takes null for no crop, no resizing and no flip, as JSON may have it",
  async () => {
    const options: ImageDecodeOptions = JSON.parse(
      '{ "crop": null, "resize": null, "flip": null }',
    );
    assertEquals(await images.decode(jpeg, options), await images.decode(jpeg));
  },
);

imageTest("decode refuses invalid and unknown options, and names them", async () => {
  const cases: [unknown, string][] = [
    [{ dtype: "int32" }, "int32"],
    [{ dtype: "uint8", normalize: { mean: 0, std: 1 } }, "leave out dtype"],
    [{ layout: "NCHW" }, "NCHW"],
    [{ normalize: { mean: [1, 2], std: 1 } }, "normalize.mean"],
    [{ normalize: { mean: 0, std: [1, 0, 1] } }, "normalize.std"],
    [{ normalize: { mean: 0, std: NaN } }, "normalize.std"],
    [{ normalize: { mean: null, std: 1 } }, "normalize.mean"],
    [{ normalize: { means: 0 } }, 'no option "means"'],
    [{ normalize: true }, "image.decode: normalize: options must be an object"],
    [{ resiz: { width: 3, height: 3 } }, 'no option "resiz"'],
    [{ resize: [10, 10] }, "{ width, height } in whole pixels from 1 up, not to [10, 10]"],
    [{ resize: { width: 10 } }, "not to { width: 10 }"],
    [{ crop: 3 }, "The crop 3 is no { x, y, width, height }"],
    [{ flip: "vertical" }, 'not "vertical": it mirrors left and right'],
    [{ channels: "3" }, 'not "3"'],
    [null, "image.decode: options must be an object"],
  ];
  for (const [options, message] of cases) {
    const error = await assertRejects(
      async () => await images.decode(jpeg, options as ImageDecodeOptions),
      LeatError,
    ) as LeatError;
    assertEquals(error.code, "invalid_argument");
    assert(error.message.includes(message), error.message);
  }
});
