/** The interface between JPEG images and the library that decodes them. */

import type { Decoded, PixelSize } from "../image_format.ts";
import type { DecodeRequest } from "./turbo_decoder.ts";

/** Decodes and encodes JPEGs; errors are the library's own. */
export interface JpegLibrary {
  /** Decodes at least the wanted part. Refuses damaged images, also those with mere warnings. */
  decode(bytes: Uint8Array, request: DecodeRequest): Decoded | Promise<Decoded>;
  /** Records how long the calling thread took to transform an image, in ms. */
  transformed?(ms: number): void;
  /** Encodes RGB bytes with 4:2:0 chroma subsampling. */
  encode(pixels: Uint8Array, size: PixelSize, quality: number): Uint8Array<ArrayBuffer>;
}
