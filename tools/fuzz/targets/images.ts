/** Images, which native decoders read. */
import { LeatError } from "../../../core/error.ts";
import { Tensor } from "../../../core/tensor.ts";
import {
  GREY,
  PALETTE,
  pngChunk,
  RGBA,
  writePng,
} from "../../../tests/platform/media/png_writer.ts";
import { PROGRESSIVE } from "../../../tests/platform/media/small_jpegs.ts";
import { Images } from "../../../platform/media/images.ts";
import { crc32 } from "node:zlib";
import { mutateBytes } from "../mutate_bytes.ts";
import type { OpenTarget, Target } from "../target.ts";

/** Images of 24 × 16, written by libwebp: lossy, lossless, both with alpha, and with two frames. */
const WEBPS = [
  "UklGRogAAABXRUJQVlA4IHwAAACwBACdASoYABAAPjEWiUKiISEYBAAgAwS2AE6ZQjubwD8JeEAAqSguXnB7ZAWAAP7/P30/ZNubc6yYdnNsg7JiYs3/65M87HWZFnTpE2d+Wb8UpoKvhASUFXlt2kcr8RuGSw8BTtWck9KEmyzesQ+N84sDxu64xZH5l+QA",
  "UklGRi4AAABXRUJQVlA4TCIAAAAvF8ADALkyRPQ/dhHR/wCRtk0d3L/jwcNRGMCYAKoeqP8E",
  "UklGRjIAAABXRUJQVlA4TCUAAAAvF8ADELmM6H/sIqL/ASEB4YH/j0VxFAZQQdoGLOruBKDptXwzAA==",
  "UklGRrQAAABXRUJQVlA4WAoAAAAQAAAAFwAADwAAQUxQSBQAAAABuYzof0BN2wZMN3/oPSMmIHneB1ZQOCB6AAAAkAQAnQEqGAAQAD4xDItEohCQjAAgAwS2AE6ZQjubwD8JeEAAqyguXnBtbJe4AP7/P30/ZNubc6yYdnNsg7JiYs3/6uVzi5bJIh1u7hH6px1GY27SEBJQVec9V5rHxNGOq1APfAvXBJxnDISW+pjdcUSS7K3vr+x/gAA=",
  "UklGRpgAAABXRUJQVlA4WAoAAAACAAAAFwAADwAAQU5JTQYAAAD/////AABBTk1GOgAAAAAAAAAAABcAAA8AAGQAAAJWUDhMIgAAAC8XwAMAuTJE9D92EdH/AJG2TR3cv+PBw1EYwJgAqh6o/wRBTk1GKgAAAAAAAAAAABcAAA8AAGQAAABWUDhMEQAAAC8XwAMAB9CEJjSh/4GI6H8AAA==",
];
const PNG_HEAD_BYTES = 8;

function image(
  help: string,
  seeds: (images: Images) => readonly Uint8Array[] | Promise<readonly Uint8Array[]>,
  mutate?: OpenTarget["mutate"],
): Target {
  return {
    help,
    open: async () => {
      const images = new Images();
      const [first, ...others] = await seeds(images);
      return {
        seeds: [first!, ...others],
        ...(mutate === undefined ? {} : { mutate }),
        async run(input) {
          const { width, height } = images.size(input);
          const crop = { x: width >> 1, y: height >> 1, width: (width + 2) >> 2, height: 1 };
          const part = await Promise.try(() => images.decode(input, { crop })).catch(
            LeatError.from,
          );
          const whole = await images.decode(input);
          if (whole.shape.join() !== [height, width, 3].join()) {
            throw new Error(`${width} × ${height} was decoded to ${whole.shape}`);
          }
          if (part instanceof LeatError) throw part;
          const at = (crop.y * width + crop.x) * 3;
          if (part.data.some((byte, i) => byte !== whole.data[at + i])) {
            throw new Error(`a crop of ${width} × ${height} has other pixels than the whole`);
          }
          await images.decode(input, {
            channels: 4,
            resize: { width: 8, height: 8 },
            crop: { x: 0, y: 0, width: Math.ceil(width / 2), height },
          });
        },
      };
    },
  };
}

async function jpegs(images: Images): Promise<Uint8Array[]> {
  const pixels = (height: number, width: number) =>
    new Tensor(
      "uint8",
      [height, width, 3],
      Uint8Array.from({ length: height * width * 3 }, (_, i) => i * 37 % 256),
    );
  return [
    await images.encode(pixels(16, 24)),
    await images.encode(pixels(9, 7), { quality: 30 }),
    // Large enough to be decoded on another thread.
    await images.encode(pixels(130, 140), { quality: 5 }),
    PROGRESSIVE,
  ];
}

function pngs(): Uint8Array[] {
  const at = (x: number, y: number, channel: number) => (x * 31 + y * 7 + channel) % 4;
  const size = { width: 13, height: 7 };
  const palette = pngChunk("PLTE", Uint8Array.from({ length: 12 }, (_, i) => i * 20));
  return [
    writePng({ ...size, depth: 8, colour: RGBA, at }),
    writePng({ ...size, depth: 2, colour: PALETTE, at, chunks: [palette] }),
    writePng({ ...size, depth: 16, colour: GREY, at, interlaced: true }),
  ];
}

/** Repairs the checksums of a PNG's chunks, up to the first invalid chunk. */
function resealed(input: Uint8Array): Uint8Array {
  const bytes = input.slice();
  const view = new DataView(bytes.buffer);
  for (let at = PNG_HEAD_BYTES; at + 12 <= bytes.length;) {
    const end = at + 8 + view.getUint32(at);
    if (end + 4 > bytes.length) break;
    view.setUint32(end, crc32(bytes.subarray(at + 4, end)));
    at = end + 4;
  }
  return bytes;
}

/** Targets that decode images. */
export const IMAGE_TARGETS: Readonly<Record<string, Target>> = {
  jpeg: image("JPEGs, under libjpeg-turbo", jpegs),
  png: image("PNGs, checksums of chunks made right", pngs, (input, random, seeds) => {
    const bytes = mutateBytes(input, random, seeds);
    return random.chance(0.8) ? resealed(bytes) : bytes;
  }),
  webp: image("WebPs", () => WEBPS.map((webp) => Uint8Array.fromBase64(webp))),
};
