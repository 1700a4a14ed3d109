/**
 * Decodes whole JPEGs one after another on one thread, with the addon of libjpeg-turbo.
 *
 *     deno run -P=bench bench/bare/jpeg_addon.ts
 */
import { Buffer } from "node:buffer";
import turbo from "@julusian/jpeg-turbo";
import { type Load, printMeasured, synchronousLoad } from "./load.ts";

/** The usual size of an ImageNet photograph, in pixels. */
const WIDTH = 500;
const HEIGHT = 375;
/** The number of different photographs. */
export const COUNT = 32;

let cached: readonly Uint8Array[] | undefined;

/** Returns JPEGs of about 110 KB, which show gradients, edges and noise. */
export function photographs(): readonly Uint8Array[] {
  return cached ??= Array.from({ length: COUNT }, (_, seed) => {
    const pixels = Buffer.alloc(WIDTH * HEIGHT * 3);
    let noise = seed + 1;
    for (let y = 0, offset = 0; y < HEIGHT; y++) {
      for (let x = 0; x < WIDTH; x++) {
        noise = (Math.imul(noise, 1_103_515_245) + 12_345) >>> 0;
        const edge = ((x + 5 * seed) >> 4 ^ y >> 4) & 1 ? 70 : 0;
        pixels[offset++] = 150 * x / WIDTH + edge + (noise >>> 27);
        pixels[offset++] = 150 * y / HEIGHT + edge + (noise >>> 27);
        pixels[offset++] = 100 + edge + (noise >>> 27);
      }
    }
    const jpeg = turbo.compressSync(pixels, {
      format: turbo.FORMAT_RGB,
      width: WIDTH,
      height: HEIGHT,
      quality: 88,
      subsampling: turbo.SAMP_420,
    });
    return new Uint8Array(jpeg);
  });
}

/** Opens the load, whose unit is an image. */
export function open(): Load {
  const jpegs = photographs();
  let next = 0;
  return synchronousLoad(() => {
    const pixels = Buffer.alloc(WIDTH * HEIGHT * 3);
    turbo.decompressSync(jpegs[next++ % COUNT] as Buffer, pixels, { format: turbo.FORMAT_RGB });
    return 1;
  });
}

if (import.meta.main) await printMeasured("JPEGs by the addon", "images/s", open);
