/** Random operations on images: their distributions, their limits, and that they repeat. */

import { roundHalfToEven } from "../../../data/media/image_tensor.ts";
import { assert, assertAlmostEquals, assertEquals, assertThrows } from "../../assert.ts";
import {
  centerCrop,
  colorJitter,
  convertImage,
  cropImage,
  cutmix,
  cutout,
  Dataset,
  flipImage,
  grayscale,
  LeatError,
  LocalCluster,
  mixup,
  oneHot,
  padImage,
  randAugment,
  randomResizedCrop,
  randomResizedCropRegion,
  RandomStream,
  resizeImage,
  Tensor,
  tensor,
} from "../../../mod.ts";

const photo = new Tensor(
  "uint8",
  [20, 30, 3],
  Uint8Array.from({ length: 1_800 }, (_, i) => i * 7 % 256),
);

Deno.test("randomResizedCropRegion stays inside, within its ranges, and repeats", () => {
  const random = new RandomStream(1, []);
  const shares: number[] = [];
  for (let i = 0; i < 2_000; i++) {
    const { x, y, width, height } = randomResizedCropRegion({ width: 500, height: 375 }, random);
    assert(x >= 0 && y >= 0 && x + width <= 500 && y + height <= 375);
    assert(width / height > 0.74 && width / height < 1.35, `${width} × ${height}`);
    shares.push(width * height / (500 * 375));
  }
  assert(Math.min(...shares) >= 0.079 && Math.min(...shares) < 0.1);
  assert(Math.max(...shares) > 0.95);
  // Large shares fit less often, so the mean is below 0.54. This is that of torchvision.
  assertAlmostEquals(shares.reduce((a, b) => a + b) / shares.length, 0.432, 0.02);
  const region = () => randomResizedCropRegion({ width: 50, height: 37 }, new RandomStream(5, []));
  assertEquals(region(), region());
});

Deno.test("randomResizedCropRegion takes the middle of an image that is too narrow", () => {
  const random = new RandomStream(2, []);
  const region = randomResizedCropRegion({ width: 1_000, height: 10 }, random, { scale: [1, 1] });
  assertEquals(region, { x: 493, y: 0, width: 13, height: 10 });
});

Deno.test("randomResizedCrop resizes its random rectangle", () => {
  const made = randomResizedCrop(photo, [8, 6], new RandomStream(3, []), { antialias: true });
  const region = randomResizedCropRegion({ width: 30, height: 20 }, new RandomStream(3, []));
  assertEquals(made, resizeImage(cropImage(photo, region), [8, 6], { antialias: true }));
});

Deno.test("resizeImage reads only rows that new pixels are computed from", () => {
  const tall = new Tensor("float32", [100, 1, 1], Float32Array.from({ length: 100 }, (_, i) => i));
  const rows = (method: "bilinear" | "area" | "nearest") => {
    const read = new Set<number>();
    const data = new Proxy(tall.data, {
      get: (pixels, at) => (read.add(Number(at)), pixels[Number(at)]),
    });
    const resized = resizeImage(Object.create(tall, { data: { value: data } }), [2, 3], { method });
    assertEquals(resized, resizeImage(tall, [2, 3], { method }));
    return [...read];
  };
  assertEquals(rows("nearest"), [25, 75]);
  assertEquals(rows("bilinear"), [24, 25, 74, 75]);
  assertEquals(rows("area"), [...tall.data]);
});

Deno.test("resizeImage takes the nearest pixel that TensorFlow takes, also halfway between two", () => {
  // Of two pixels, in the middle of the new ones: recorded from tf.image.resize of TensorFlow 2.21.
  const pair = new Tensor("uint8", [1, 2, 1], Uint8Array.of(0, 1));
  for (const [width, middle] of [[41, 0], [43, 1], [47, 0], [49, 1]] as const) {
    const { data } = resizeImage(pair, [1, width], { method: "nearest" });
    const half = width >> 1;
    assertEquals([...data.subarray(half - 1, half + 2)], [0, middle, 1], `${width} pixels`);
  }
});

Deno.test("centerCrop takes the middle, and pads what is too small", () => {
  assertEquals(
    centerCrop(photo, [10, 10]),
    cropImage(photo, { x: 10, y: 5, width: 10, height: 10 }),
  );
  const padded = centerCrop(photo, [24, 31]);
  assertEquals(padded.shape, [24, 31, 3]);
  assertEquals(cropImage(padded, { x: 0, y: 2, width: 30, height: 20 }), photo);
  assert(padded.data.subarray(0, 2 * 31 * 3).every((value) => value === 0));
});

Deno.test("cutout makes one hole, which may reach beyond the edges", () => {
  const white = new Tensor("uint8", [20, 30, 3], new Uint8Array(1_800).fill(255));
  const sizes = new Set<number>();
  for (let seed = 0; seed < 200; seed++) {
    const cut = cutout(white, { size: [6, 8], value: 9 }, new RandomStream(seed, []));
    const hole = cut.data.filter((value) => value === 9).length / 3;
    assert(hole >= 3 * 4 && hole <= 6 * 8, `${hole} pixels`);
    sizes.add(hole);
  }
  assert(sizes.has(48) && sizes.size > 5);
  const huge = cutout(white, { size: [2 ** 32, 2 ** 32], value: 9 }, new RandomStream(1, []));
  assert(huge.data.every((value) => value === 9));
  assert(white.data.every((value) => value === 255));
});

Deno.test("colorJitter stays within its ranges, repeats, and changes nothing without ranges", () => {
  const grey = new Tensor("float32", [1, 1, 3], new Float32Array([0.5, 0.5, 0.5]));
  const values = Array.from(
    { length: 300 },
    (_, seed) => colorJitter(grey, { brightness: 0.4 }, new RandomStream(seed, [])).data[0]!,
  );
  assert(Math.min(...values) >= 0.3 - 1e-6 && Math.max(...values) <= 0.7 + 1e-6);
  assert(Math.max(...values) - Math.min(...values) > 0.35);
  const ranges = { brightness: 0.3, contrast: 0.3, saturation: 0.3, hue: 0.1 };
  const jittered = () => colorJitter(photo, ranges, new RandomStream(8, []));
  assertEquals(jittered(), jittered());
  assertEquals(colorJitter(photo, {}, new RandomStream(8, [])), photo);
});

Deno.test("randAugment applies its number of operations, of its strength, and repeats", () => {
  const augmented = (seed: number, options = {}) =>
    randAugment(photo, new RandomStream(seed, []), options);
  const kinds = new Set<string>();
  for (let seed = 0; seed < 300; seed++) {
    const made = augmented(seed, { numOps: 1, magnitude: 20 });
    assertEquals(made.shape, photo.shape);
    kinds.add(made.data.join());
  }
  // Fourteen operations, nine of them with two signs; one gives the image itself.
  assert(kinds.size > 14 && kinds.size <= 23, `${kinds.size} results`);
  assert(kinds.has(photo.data.join()));
  assertEquals(augmented(5), augmented(5));
  assertEquals(augmented(5, { numOps: 0 }), photo);
  for (let seed = 0; seed < 20; seed++) {
    const weakest = augmented(seed, { magnitude: 0 });
    assertEquals(augmented(seed, { magnitude: 0, numMagnitudeBins: 1 }), weakest);
  }
  const one = { magnitude: 1, numMagnitudeBins: 1 };
  for (const options of [{ magnitude: 31 }, { numOps: -1 }, { magnitude: 0.5 }, one]) {
    assertThrows(() => augmented(1, options), LeatError);
  }
});

Deno.test("mixup and cutmix mix each image and label with the one before", () => {
  const images = tensor(Float32Array.from({ length: 3 * 64 }, (_, i) => Math.floor(i / 64)), {
    shape: [3, 8, 8, 1],
  });
  const labels = oneHot(tensor(new Int32Array([0, 1, 2])), 3);
  const shares: number[] = [];
  for (let seed = 0; seed < 300; seed++) {
    const mixed = mixup({ images, labels }, new RandomStream(seed, []));
    const share = mixed.labels.data[0]!;
    shares.push(share);
    assertAlmostEquals(mixed.images.data[0]!, 2 * (1 - share), 1e-5);
    assertAlmostEquals(mixed.images.data[64]!, share, 1e-5);
    const cut = cutmix({ images, labels }, new RandomStream(seed, []));
    const kept = cut.images.data.subarray(64, 128).filter((value) => value === 1).length / 64;
    assertAlmostEquals(cut.labels.data[4]!, kept, 1e-5);
    assertAlmostEquals(cut.labels.data[3]!, 1 - kept, 1e-5);
  }
  // Beta(1, 1) is uniform.
  assertAlmostEquals(shares.reduce((a, b) => a + b) / shares.length, 0.5, 0.07);
  assert(Math.min(...shares) < 0.05 && Math.max(...shares) > 0.95);
  const error = assertThrows(
    () => mixup({ images, labels: oneHot(0, 3) }, new RandomStream(0, [])),
    LeatError,
  );
  assertEquals((error as LeatError).code, "invalid_argument");
});

Deno.test("mixup with a small alpha keeps nearly all of one image, of either as often", () => {
  const images = new Tensor("float32", [2, 1, 1, 1], new Float32Array([1, 0]));
  const labels = oneHot(tensor(new Int32Array([0, 1])), 2);
  for (const alpha of [0.002, 1e-4, Number.MIN_VALUE]) {
    const shares = Array.from({ length: 300 }, (_, seed) => {
      return mixup({ images, labels }, new RandomStream(seed, []), { alpha }).labels.data[0]!;
    });
    const mixed = shares.filter((share) => share > 0.01 && share < 0.99);
    assert(mixed.length < 10, `${mixed.length} of 300 are mixed`);
    assertAlmostEquals(shares.reduce((a, b) => a + b) / shares.length, 0.5, 0.1);
  }
});

Deno.test("convertImage scales, normalizes and reorders", () => {
  const normalize = { mean: [0.5, 0.4, 0.3], std: [0.2, 0.3, 0.4] };
  const made = convertImage(photo, { normalize, layout: "CHW" });
  assertEquals([made.dtype, made.shape], ["float32", [3, 20, 30]]);
  assertAlmostEquals(made.data[600 + 7]!, (photo.data[3 * 7 + 1]! / 255 - 0.4) / 0.3, 1e-5);
  assertEquals(convertImage(convertImage(photo), { dtype: "uint8" }), photo);
});

Deno.test("convertImage makes bytes of floats as torchvision does", () => {
  const levels = [-1, 0, 0.25 / 255, 0.5, 0.999, 1, 2, NaN];
  const floats = new Tensor("float32", [1, levels.length, 1], Float32Array.from(levels));
  const bytes = convertImage(floats, { dtype: "uint8" });
  assertEquals([...bytes.data], [0, 0, 0, 127, 255, 255, 255, 0]);
});

Deno.test("randAugment rounds bits to even as torch does", () => {
  assertEquals([7.5, 6.5, 5.5, 5.4, 5.6, 4].map(roundHalfToEven), [8, 6, 6, 5, 6, 4]);
});

Deno.test("operations refuse values, directions, channels and sizes that they cannot have", () => {
  const random = new RandomStream(0, []);
  const refused: readonly (readonly [() => unknown, string])[] = [
    [() => padImage(photo, { top: 1, value: 300 }), "from 0 to 255, not 300"],
    [() => cutout(photo, { size: [2, 2], value: -1 }, random), "from 0 to 255, not -1"],
    [() => randAugment(photo, random, { fill: 0.5 }), "from 0 to 255, not 0.5"],
    [() => flipImage(photo, "diagonal" as "vertical"), 'not "diagonal"'],
    [() => grayscale(photo, { channels: 2 as 1 }), "1 or 3 channels, not 2"],
    [() => randomResizedCropRegion({ width: NaN, height: 3 }, random), "{ width: NaN, height: 3 }"],
    [() => randomResizedCropRegion({ width: 0, height: 3 }, random), "{ width: 0, height: 3 }"],
    [() => oneHot(tensor(new Float32Array([1.5])), 3), "an integer, not 1.5"],
    [() => resizeImage(new Tensor("uint8", [0, 3, 3], new Uint8Array()), [2, 2]), "an image is"],
  ];
  for (const [operation, message] of refused) {
    const error = assertThrows(operation, LeatError, message);
    assertEquals((error as LeatError).code, "invalid_argument");
  }
});

Deno.test("operations name arguments of other types, and options that they do not have", () => {
  // As in a function of JavaScript, or one whose arguments are `any`.
  const given = <T>(value: unknown) => value as T;
  type Image = Tensor<"uint8">;
  const none: RandomStream = given(undefined);
  const random = new RandomStream(0, []);
  const batch = {
    images: new Tensor("float32", [2, 1, 1, 3], new Float32Array(6)),
    labels: new Tensor("float32", [2, 1], new Float32Array(2)),
  };
  const refused: readonly (readonly [() => unknown, string])[] = [
    [() => flipImage(given<Image>(new Uint8Array(3))), "flip: an image is a tensor, uint8"],
    [() => flipImage(given<Image>(null)), "not null"],
    [() => flipImage(given<Image>(tensor(new Int32Array(3)))), "not int32 [3]"],
    [() => resizeImage(photo, given({ width: 3, height: 2 })), "not { width: 3, height: 2 }"],
    [() => resizeImage(photo, given(3)), "resize: a size is [height, width] from 1 up, not 3"],
    [() => resizeImage(photo, given([2, 2, 3])), "not [2, 2, 3]"],
    [() => resizeImage(photo, [2, 2], given({ metod: "area" })), 'did you mean "method"?'],
    [() => centerCrop(photo, given(undefined)), "centerCrop: a size is [height, width]"],
    [() => cropImage(photo, given(undefined)), "crop: the rectangle undefined is not { x, y"],
    [() => padImage(photo, given({ topp: 1 })), 'did you mean "top"?'],
    [() => cutout(photo, given(undefined), random), "cutout: a size is [height, width]"],
    [() => cutout(photo, { size: [1, 1] }, none), "cutout: random is a RandomStream"],
    [() => colorJitter(photo, {}, none), "colorJitter: random is a RandomStream"],
    [() => colorJitter(photo, given({ color: 1 }), random), 'no option "color"'],
    [() => colorJitter(photo, given({ hue: [0, 1] }), random), "not { hue: [0, 1] }"],
    [() => grayscale(photo, given(1)), "grayscale: options must be an object"],
    [() => randAugment(photo, given({ numOps: 1 })), "randAugment: random is a RandomStream"],
    [() => randAugment(photo, random, given({ ops: 1 })), 'no option "ops"'],
    [() => randomResizedCrop(photo, [2, 2], none), "random is a RandomStream"],
    [() => randomResizedCrop(photo, [2, 2], random, given({ scales: 1 })), 'mean "scale"?'],
    [() => randomResizedCropRegion(given(photo), random), "{ width, height } from 1 up, not uint8"],
    [
      () => randomResizedCropRegion({ width: 2, height: 2 }, random, { scale: given(1) }),
      "scale is [low, high] above 0, not 1",
    ],
    [() => convertImage(photo, { normalize: given(true) }), "convert: normalize: options must be"],
    [
      () => convertImage(photo, { normalize: given({ mean: null, std: 1 }) }),
      "normalize.mean is a",
    ],
    [() => convertImage(photo, { dtype: given<"uint8">("int32") }), 'not "int32"'],
    [() => mixup(given(undefined), random), "It got images undefined"],
    [() => mixup(batch, none), "mixup: random is a RandomStream"],
    [() => cutmix(batch, random, given({ beta: 1 })), 'cutmix: there is no option "beta"'],
  ];
  for (const [operation, message] of refused) {
    const error = assertThrows(operation, LeatError, message);
    assertEquals((error as LeatError).code, "invalid_argument");
  }
});

Deno.test("functions have the operations in extra.image and extra.tensors, on workers too", async () => {
  const dataset = Dataset.range(4).map((i, { image, tensors, tensor, random }) => {
    const photo = tensor(new Uint8Array(300).fill(40 * i), { shape: [10, 10, 3] });
    const flipped = image.flip(image.colorJitter(photo, { brightness: 0.5 }, random));
    return { image: image.convert(image.resize(flipped, [4, 4])), label: tensors.oneHot(i, 4) };
  }).withOptions({ seed: 7 }).batch(2);
  const local = await Array.fromAsync(dataset);
  assertEquals(local.map(({ image, label }) => [image.shape, label.shape]), [
    [[2, 4, 4, 3], [2, 4]],
    [[2, 4, 4, 3], [2, 4]],
  ]);
  await using cluster = await LocalCluster.start({ workers: 1 });
  const served = dataset.distribute({ service: cluster, processingMode: "DETERMINISTIC" });
  assertEquals((await Array.fromAsync(served)).length, 2);
});
