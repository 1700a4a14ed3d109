/** The interface between JPEG images and the library that decodes them. */

import type { Decoded, PixelSize } from "../image_format.ts";
import type { DecodeRequest } from "./turbo_decoder.ts";

/** Decodes and encodes JPEGs; errors are the library's own. */
export interface JpegLibrary {
  /** Decodes at least the wanted part; refuses damaged images, warnings included. */
  decode(bytes: Uint8Array, request: DecodeRequest): Decoded | Promise<Decoded>;
  /** Notes for how long the asking thread has transformed an image, in ms. */
  transformed?(ms: number): void;
  /** Encodes RGB bytes with 4:2:0 chroma subsampling. */
  encode(pixels: Uint8Array, size: PixelSize, quality: number): Uint8Array<ArrayBuffer>;
}
