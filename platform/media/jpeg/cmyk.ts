/** Converts the four inks of a CMYK JPEG to colours, as TensorFlow and Pillow do: without a profile. */

import { type Channels, packRgba, RGBA_BYTES } from "../image_format.ts";

/** Which value means no ink: `adobe` 255, `plain` 0. */
export type Inks = "adobe" | "plain";

const BYTE_MAX = 255;

/** Converts pixels of cyan, magenta, yellow and black, which it overwrites, to `channels`. */
export function packCmyk(
  pixels: Uint8Array,
  inks: Inks,
  into: Uint8Array,
  channels: Channels,
): void {
  const flipped = inks === "adobe" ? 0 : BYTE_MAX;
  for (let at = 0; at < pixels.length; at += RGBA_BYTES) {
    const light = pixels[at + 3]! ^ flipped;
    for (let i = at; i < at + 3; i++) {
      pixels[i] = Math.round((pixels[i]! ^ flipped) * light / BYTE_MAX);
    }
    pixels[at + 3] = BYTE_MAX;
  }
  packRgba(pixels, into, channels);
}
