/**
 * PNGs of every kind, written here from the specification, and five small WebPs: decoded exactly,
 * and refused when damaged.
 */

import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";
import { deflateSync } from "node:zlib";
import { LeatError } from "../../../core/error.ts";
import type { ImageDecodeOptions } from "../../../data/host.ts";
import { Images } from "../../../platform/media/images.ts";
import { concat } from "../../data/formats/reading.ts";
import { startChild } from "../../lib/child.ts";
import { TempFolder } from "../../lib/temp_folder.ts";
import {
  GREY,
  GREY_ALPHA,
  PALETTE,
  PNG_SIGNATURE,
  pngChunk,
  pngHeader,
  type PngPicture,
  RGB,
  RGBA,
  writePng,
} from "./png_writer.ts";

/** 24 × 16: red grows to the right by 10, green downwards by 15, blue is 128. Written by libwebp. */
const LOSSY = Uint8Array.fromBase64(
  "UklGRogAAABXRUJQVlA4IHwAAACwBACdASoYABAAPjEWiUKiISEYBAAgAwS2AE6ZQjubwD8JeEAAqSguXnB7ZAWAAP7/P30/ZNubc6yYdnNsg7JiYs3/65M87HWZFnTpE2d+Wb8UpoKvhASUFXlt2kcr8RuGSw8BTtWck9KEmyzesQ+N84sDxu64xZH5l+QA",
);
const LOSSLESS = Uint8Array.fromBase64(
  "UklGRi4AAABXRUJQVlA4TCIAAAAvF8ADALkyRPQ/dhHR/wCRtk0d3L/jwcNRGMCYAKoeqP8E",
);
/** The same with an alpha of 6 (x + y) + 1. */
const ALPHA_LOSSLESS = Uint8Array.fromBase64(
  "UklGRjIAAABXRUJQVlA4TCUAAAAvF8ADELmM6H/sIqL/ASEB4YH/j0VxFAZQQdoGLOruBKDptXwzAA==",
);
const ALPHA_LOSSY = Uint8Array.fromBase64(
  "UklGRrQAAABXRUJQVlA4WAoAAAAQAAAAFwAADwAAQUxQSBQAAAABuYzof0BN2wZMN3/oPSMmIHneB1ZQOCB6AAAAkAQAnQEqGAAQAD4xDItEohCQjAAgAwS2AE6ZQjubwD8JeEAAqyguXnBtbJe4AP7/P30/ZNubc6yYdnNsg7JiYs3/6uVzi5bJIh1u7hH6px1GY27SEBJQVec9V5rHxNGOq1APfAvXBJxnDISW+pjdcUSS7K3vr+x/gAA=",
);
/** Two frames. */
const ANIMATED = Uint8Array.fromBase64(
  "UklGRpgAAABXRUJQVlA4WAoAAAACAAAAFwAADwAAQU5JTQYAAAD/////AABBTk1GOgAAAAAAAAAAABcAAA8AAGQAAAJWUDhMIgAAAC8XwAMAuTJE9D92EdH/AJG2TR3cv+PBw1EYwJgAqh6o/wRBTk1GKgAAAAAAAAAAABcAAA8AAGQAAABWUDhMEQAAAC8XwAMAB9CEJjSh/4GI6H8AAA==",
);

const images = new Images();

async function failure(bytes: Uint8Array, options?: ImageDecodeOptions): Promise<LeatError> {
  return await assertRejects(
    async () => await images.decode(bytes, options),
    LeatError,
  ) as LeatError;
}

/** The bytes of a picture by a formula. */
function pixels(
  width: number,
  height: number,
  pixel: (x: number, y: number) => readonly number[],
): Uint8Array {
  const rows = Array.from(
    { length: height },
    (_, y) => Array.from({ length: width }, (_, x) => pixel(x, y)),
  );
  return new Uint8Array(rows.flat(2));
}

const gradient = (x: number, y: number) => [10 * x, 15 * y, 128];

Deno.test("decode reads PNGs of every colour type and depth, whole and interlaced", async () => {
  const depths = [
    [GREY, [1, 2, 4, 8, 16]],
    [RGB, [8, 16]],
    [PALETTE, [1, 2, 4, 8]],
    [GREY_ALPHA, [8, 16]],
    [RGBA, [8, 16]],
  ] as const;
  for (const [colour, sizes] of depths) {
    for (const depth of sizes) {
      for (const interlaced of [false, true]) {
        for (const [width, height] of [[1, 1], [3, 9], [13, 7]] as const) {
          const levels = 2 ** depth;
          const at = (x: number, y: number, channel: number) =>
            (x * 7919 + y * 104_729 + channel * 31) % levels;
          const entry = (index: number) => [index * 3 % 256, 255 - index, index * index % 256];
          const palette = new Uint8Array(
            Array.from({ length: Math.min(levels, 256) }, (_, i) => entry(i)).flat(),
          );
          const chunks = colour === PALETTE ? [pngChunk("PLTE", palette)] : [];
          const picture: PngPicture = { width, height, depth, colour, at, interlaced, chunks };
          const png = writePng(picture);
          const level = (x: number, y: number, c: number) =>
            depth === 16 ? at(x, y, c) >> 8 : at(x, y, c) * 255 / (levels - 1);
          const rgb = (x: number, y: number) => {
            if (colour === PALETTE) return entry(at(x, y, 0));
            const channels = colour.samples < 3 ? [0, 0, 0] : [0, 1, 2];
            return channels.map((c) => level(x, y, c));
          };
          const what = `type ${colour.type}, ${depth} bits, ${width} × ${height}, ${interlaced}`;
          assertEquals(images.size(png), { width, height }, what);
          const found = await images.decode(png);
          assertEquals(found.shape, [height, width, 3], what);
          assertEquals(found.data, pixels(width, height, rgb), what);
          const hasAlpha = colour.samples % 2 === 0;
          const rgba = pixels(width, height, (x, y) => [
            ...rgb(x, y),
            hasAlpha ? level(x, y, colour.samples - 1) : 255,
          ]);
          assertEquals((await images.decode(png, { channels: 4 })).data, rgba, what);
        }
      }
    }
  }
});

Deno.test("decode turns transparent colours and palette entries of a PNG into alpha, and drops it unless requested", async () => {
  const at = (x: number) => x;
  const transparent = [pngChunk("tRNS", new Uint8Array([0, 2]))];
  const grey = writePng({ width: 4, height: 1, depth: 8, colour: GREY, at, chunks: transparent });
  const alphaOf = async (png: Uint8Array) =>
    (await images.decode(png, { channels: 4 })).data.filter((_, i) => i % 4 === 3);
  assertEquals(await alphaOf(grey), new Uint8Array([255, 255, 0, 255]));
  assertEquals((await images.decode(grey, { channels: 1 })).data, new Uint8Array([0, 1, 2, 3]));
  const chunks = [
    pngChunk("PLTE", new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])),
    pngChunk("tRNS", new Uint8Array([0, 100])),
  ];
  const palette = writePng({ width: 4, height: 1, depth: 2, colour: PALETTE, at, chunks });
  assertEquals(await alphaOf(palette), new Uint8Array([0, 100, 255, 255]));
});

Deno.test("decode gives the luma of a coloured PNG as grey, and crops, resizes and mirrors", async () => {
  const at = (x: number, y: number, channel: number) => gradient(x, y)[channel]!;
  const png = writePng({ width: 24, height: 16, depth: 8, colour: RGB, at });
  const crop = { x: 4, y: 2, width: 8, height: 6 };
  const grey = await images.decode(png, { channels: 1, crop, flip: true });
  assertEquals(grey.shape, [6, 8, 1]);
  const luma = (x: number, y: number) => {
    const [r, g, b] = gradient(crop.x + 7 - x, crop.y + y) as [number, number, number];
    return [Math.round(0.299 * r + 0.587 * g + 0.114 * b)];
  };
  grey.data.forEach((value, i) =>
    assertAlmostEquals(value, pixels(8, 6, luma)[i]!, 1, `pixel ${i}`)
  );
  const resized = await images.decode(png, { resize: { width: 12, height: 8 }, channels: 4 });
  assertEquals(resized.shape, [8, 12, 4]);
  assertEquals([...resized.data.subarray(0, 4)], [5, 8, 128, 255]);
});

Deno.test("decode reads lossless WebPs exactly and lossy ones nearly, with alpha and without", async () => {
  const rgb = pixels(24, 16, gradient);
  const rgba = pixels(24, 16, (x, y) => [...gradient(x, y), 6 * (x + y) + 1]);
  assertEquals((await images.decode(LOSSLESS)).data, rgb);
  assertEquals((await images.decode(ALPHA_LOSSLESS, { channels: 4 })).data, rgba);
  assertEquals((await images.decode(ALPHA_LOSSLESS)).data, rgb);
  const lossy = await images.decode(LOSSY);
  assertEquals(lossy.shape, [16, 24, 3]);
  lossy.data.forEach((value, i) => assertAlmostEquals(value, rgb[i]!, 16, `byte ${i}`));
  const alpha = (await images.decode(ALPHA_LOSSY, { channels: 4 })).data;
  for (let i = 3; i < alpha.length; i += 4) assertAlmostEquals(alpha[i]!, rgba[i]!, 2);
  for (const webp of [LOSSY, LOSSLESS, ALPHA_LOSSY, ALPHA_LOSSLESS, ANIMATED]) {
    assertEquals(images.size(webp), { width: 24, height: 16 });
  }
  const error = await failure(ANIMATED);
  assertEquals(error.code, "unimplemented");
  assertStringIncludes(error.message, "animated");
});

Deno.test("decode reads views of a larger buffer, and owns its result", async () => {
  for (const image of [LOSSLESS, writePng({ ...RULED, interlaced: true })]) {
    await images.decode(image); // the library is loaded from here on
    const buffer = new Uint8Array(image.length + 20).fill(0xff);
    buffer.set(image, 9);
    const found = images.decode(buffer.subarray(9, 9 + image.length));
    assert(!(found instanceof Promise));
    const before = found.data.slice();
    assertEquals(found.data.byteLength, found.data.buffer.byteLength);
    images.decode(writePng({ ...RULED, at: () => 0 }));
    assertEquals(found.data, before);
  }
});

/** A PNG of 24 × 16. */
const RULED: PngPicture = {
  width: 24,
  height: 16,
  depth: 8,
  colour: RGB,
  at: (x, y, channel) => gradient(x, y)[channel]!,
};

Deno.test("decode reads a lossless WebP that ends where the header of others would", async () => {
  // 256 × 256 transparent pixels in 28 bytes.
  const blank = Uint8Array.fromBase64("UklGRhQAAABXRUJQVlA4TAgAAAAv/8A/EIiICA==");
  const { shape, data } = await images.decode(blank, { channels: 4 });
  assertEquals(shape, [256, 256, 4]);
  assert(data.every((value) => value === 0));
  assertThrows(() => images.size(blank.subarray(0, 24)), LeatError, "truncated within its header");
});

Deno.test("decode refuses PNGs and WebPs truncated anywhere, and PNGs with any bit flipped", async () => {
  const pngs = [writePng(RULED), writePng({ ...RULED, interlaced: true, colour: GREY, depth: 16 })];
  for (const image of [...pngs, LOSSY, LOSSLESS, ALPHA_LOSSY]) {
    for (let length = 0; length < image.length; length++) {
      const error = await failure(image.slice(0, length));
      assertEquals(error.code, "data_loss", `${length} of ${image.length} bytes`);
      if (length < 12) assertThrows(() => images.size(image.slice(0, length)), LeatError);
    }
  }
  for (const image of [...pngs, LOSSY]) {
    assertStringIncludes((await failure(image.slice(0, image.length - 20))).message, "truncated");
  }
  for (const png of pngs) {
    for (let at = PNG_SIGNATURE.length; at < png.length; at++) {
      const flipped = png.slice();
      flipped[at]! ^= 1 << at % 8;
      const { code } = await failure(flipped);
      // A flip in the header may claim a size beyond the limit.
      assert(code === "data_loss" || (code === "resource_exhausted" && at < 24), `byte ${at}`);
    }
  }
});

Deno.test("decode survives WebPs with any byte changed", async () => {
  for (const webp of [LOSSY, LOSSLESS, ALPHA_LOSSY]) {
    for (let at = 12; at < webp.length; at++) {
      const changed = webp.slice();
      changed[at]! ^= 0xff;
      try {
        assertEquals((await images.decode(changed)).shape.length, 3);
      } catch (error) {
        const { code } = LeatError.from(error);
        assert(
          ["data_loss", "resource_exhausted", "unimplemented"].includes(code),
          `${at}: ${error}`,
        );
      }
    }
  }
  assertEquals((await images.decode(LOSSLESS)).data, pixels(24, 16, gradient));
});

Deno.test("decode refuses a header that claims more memory than its limit, before allocating memory", async () => {
  const png = concat(
    PNG_SIGNATURE,
    pngHeader({ width: 100_000, height: 100_000, depth: 8, colour: RGB }),
    pngChunk("IDAT", deflateSync(new Uint8Array(99))),
    pngChunk("IEND", new Uint8Array(0)),
  );
  const webp = ALPHA_LOSSY.slice();
  webp.set([0x9f, 0x86, 0x01, 0x9f, 0x86, 0x01], 24); // 100,000 less one, twice
  for (const [bytes, name] of [[png, "PNG"], [webp, "WebP"]] as const) {
    assertEquals(images.size(bytes), { width: 100_000, height: 100_000 });
    const error = await failure(bytes, { resize: { width: 8, height: 8 } });
    assertEquals(error.code, "resource_exhausted");
    assertStringIncludes(error.message, `a ${name} of 100000 × 100000 pixels`);
    assertStringIncludes(error.message, "imageBytesMax");
  }
  const empty = concat(PNG_SIGNATURE, pngHeader({ width: 0, height: 5, depth: 8, colour: RGB }));
  assertEquals((await failure(empty)).code, "data_loss");
});

Deno.test("decode refuses a PNG whose data inflates beyond its size", async () => {
  // The last one has few bytes and few pixels, and inflates to 100 MB.
  const files = await Promise.all([[600, false], [600, true], [100, false]] as const).then((all) =>
    Promise.all(all.map(async ([megabytes, interlaced]) =>
      concat(
        PNG_SIGNATURE,
        pngHeader({ width: 10, height: 10, depth: 8, colour: RGB, interlaced }),
        pngChunk("IDAT", await deflatedZeros(megabytes)),
        pngChunk("IEND", new Uint8Array(0)),
      )
    ))
  );
  for (const { outcome, grown } of await decodeInChild(files)) {
    assertEquals(outcome, "data_loss");
    assert(grown < 80_000_000, `${grown} bytes`);
  }
});

Deno.test("decode does not inflate texts in a PNG", async () => {
  const text = concat(
    new TextEncoder().encode("Comment\0\0"),
    await deflatedZeros(600),
  );
  const png = writePng({ width: 2, height: 2, depth: 8, colour: RGB, at: () => 7 });
  const header = png.subarray(0, 33), rest = png.subarray(33);
  const file = concat(header, pngChunk("zTXt", text), rest);
  const [decoded] = await decodeInChild([file]);
  assertEquals(decoded!.outcome, "2,2,3");
  assert(decoded!.grown < 80_000_000, `${decoded!.grown} bytes`);
  const damaged = file.slice();
  damaged[60]! ^= 1;
  assertEquals((await failure(damaged)).code, "data_loss");
});

Deno.test("decode takes no memory for the number of chunks of a PNG", async () => {
  const png = writePng({ width: 2, height: 2, depth: 8, colour: RGB, at: () => 7 });
  const empty = pngChunk("teSt", new Uint8Array(0));
  const chunks = new Uint8Array(1_000_000 * empty.length);
  for (let at = 0; at < chunks.length; at += empty.length) chunks.set(empty, at);
  const [decoded] = await decodeInChild([concat(png.subarray(0, 33), chunks, png.subarray(33))]);
  assertEquals(decoded!.outcome, "2,2,3");
  assert(decoded!.grown < 150_000_000, `${decoded!.grown} bytes`);
});

Deno.test("decode refuses a small PNG with very many pixels, and releases the memory of a large one", async () => {
  const blank = async (side: number) =>
    concat(
      PNG_SIGNATURE,
      pngHeader({ width: side, height: side, depth: 8, colour: GREY }),
      pngChunk("IDAT", await deflatedZeros(side * (side + 1) / 1e6)),
      pngChunk("IEND", new Uint8Array(0)),
    );
  const [refused, large] = await decodeInChild([await blank(13_000), await blank(5_000)]);
  assertEquals(refused!.outcome, "resource_exhausted");
  assert(refused!.grown < 50_000_000, `${refused!.grown} bytes`);
  assertEquals(large!.outcome, "5000,5000,3");
  // 25 million pixels: the result of 75 MB is released, and a decoder would keep 150 MB forever.
  assert(large!.kept < 60_000_000, `${large!.kept} bytes`);
});

Deno.test("decode says resource_exhausted where a library for PNGs or WebPs gets no memory", async () => {
  const png = writePng(RULED);
  const pngCode = (error: number) => codeWith(png, () => ({ lodepng_decode32: () => error }));
  assertEquals([await pngCode(83), await pngCode(27)], ["resource_exhausted", "data_loss"]);
  const webpCode = (bytesMax: number) =>
    codeWith(LOSSLESS, ({ malloc }) => ({
      WebPDecodeRGBA: () => 0,
      malloc: (byteLength) => byteLength > bytesMax ? 0 : malloc!(byteLength),
    }));
  assertEquals([await webpCode(1_000), await webpCode(1e6)], ["resource_exhausted", "data_loss"]);
});

Deno.test("imageBytesMax allows larger images, and fewer", async () => {
  const png = writePng({ width: 64, height: 64, depth: 8, colour: RGB, at: () => 7 });
  for (const [bytes, name] of [[png, "PNG"], [LOSSLESS, "WebP"]] as const) {
    const { width, height } = images.size(bytes);
    const needed = width * height * 7;
    const error = await assertRejects(
      async () => await new Images({ imageBytesMax: needed }).decode(bytes),
      LeatError,
    ) as LeatError;
    assertEquals(error.code, "resource_exhausted");
    assertStringIncludes(error.message, name);
    assertStringIncludes(error.message, "--image-mib");
    await new Images({ imageBytesMax: 4 * needed }).decode(bytes);
  }
});

type Functions = Record<string, (...args: number[]) => number>;

/** The error code of decoding by a library some of whose functions are replaced. */
async function codeWith(bytes: Uint8Array, others: (own: Functions) => Functions): Promise<string> {
  const { Instance } = WebAssembly;
  class Replaced {
    readonly exports: WebAssembly.Exports;
    constructor(module: WebAssembly.Module, imports?: WebAssembly.Imports) {
      const { exports } = new Instance(module, imports);
      this.exports = { ...exports, ...others(exports as Functions) };
    }
  }
  WebAssembly.Instance = Replaced as typeof Instance;
  try {
    return await Promise.try(() => new Images().decode(bytes)).then(
      () => "none",
      (error) => LeatError.from(error).code,
    );
  } finally {
    WebAssembly.Instance = Instance;
  }
}

/** A zlib stream. */
async function deflatedZeros(megabytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const parts = Array.from(
    { length: Math.ceil(megabytes) },
    (_, i) => new Uint8Array(Math.round(1_000_000 * Math.min(1, megabytes - i))),
  );
  const deflated = ReadableStream.from(parts).pipeThrough(new CompressionStream("deflate"));
  return new Uint8Array(await new Response(deflated).arrayBuffer());
}

/**
 * The result of each image in a process of its own, and by how many bytes the process grew at once
 * and later.
 */
async function decodeInChild(
  files: readonly Uint8Array[],
): Promise<{ outcome: string; grown: number; kept: number }[]> {
  const named = files.map((bytes, i) => [`${i}`, bytes] as const);
  await using folder = await TempFolder.make(Object.fromEntries(named));
  await using child = startChild("tests/platform/media/fixture_png_memory.ts", {
    args: named.map(([name]) => `${folder.path}/${name}`),
    flags: ["-P", "--no-check", "--v8-flags=--expose-gc"],
  });
  const decoded = [];
  for (const _ of files) {
    const [, outcome, grown, kept] = await child.line(/^(\S+) (-?\d+) (-?\d+)$/);
    decoded.push({ outcome: outcome!, grown: Number(grown), kept: Number(kept) });
  }
  return decoded;
}
