/**
 * libjpeg-turbo as the addon of `@julusian/jpeg-turbo`, for machines without its shared library. It
 * decodes whole images on the calling thread.
 */

import { LeatError } from "../../../core/error.ts";
import { type Channels, type Decoded, importLibrary, type PixelSize } from "../image_format.ts";
import type { JpegLibrary } from "./jpeg_library.ts";
import type { DecodeRequest } from "./turbo_decoder.ts";

/**
 * The part of the package that is used; its own types require Node's `Buffer`, though any
 * `Uint8Array` works.
 */
interface Addon {
  readonly FORMAT_GRAY: number;
  readonly FORMAT_RGB: number;
  readonly FORMAT_RGBA: number;
  readonly SAMP_420: number;
  decompressSync(jpeg: Uint8Array, into: Uint8Array, options: { format: number }): unknown;
  compressSync(
    pixels: Uint8Array,
    options: {
      format: number;
      width: number;
      height: number;
      quality: number;
      subsampling: number;
    },
  ): Uint8Array;
}

/** Loads the addon. Fails as {@linkcode importLibrary} does. */
export async function loadJpegAddon(): Promise<JpegAddon> {
  const addon = await importLibrary(
    "@julusian/jpeg-turbo",
    async () => (await import("@julusian/jpeg-turbo")).default as unknown as Addon,
    "run with --allow-ffi and with --allow-read of Deno's npm cache (deno info shows where) and of /etc/alpine-release",
    "it has binaries for Linux, macOS and Windows on common processors",
  );
  return new JpegAddon(addon);
}

export class JpegAddon implements JpegLibrary {
  readonly #addon: Addon;
  readonly #formats: Readonly<Record<Channels, number>>;

  constructor(addon: Addon) {
    this.#addon = addon;
    this.#formats = { 1: addon.FORMAT_GRAY, 3: addon.FORMAT_RGB, 4: addon.FORMAT_RGBA };
  }

  decode(
    bytes: Uint8Array,
    { width, height, inks, plan: { channels, dctMethod } }: DecodeRequest,
  ): Decoded {
    if (inks !== undefined) {
      throw new LeatError(
        "unimplemented",
        "A JPEG of CMYK is decoded on Linux only; convert it to RGB.",
      );
    }
    if (dctMethod === "INTEGER_ACCURATE") {
      throw new LeatError(
        "unimplemented",
        'JPEGs are decoded with dctMethod "INTEGER_ACCURATE" on Linux only; leave it out here.',
      );
    }
    const pixels = new Uint8Array(width * height * channels);
    this.#addon.decompressSync(bytes, pixels, { format: this.#formats[channels] });
    return {
      region: { x: 0, y: 0, width, height },
      read: (into) => into.set(pixels),
      [Symbol.dispose]: () => {},
    };
  }

  encode(
    pixels: Uint8Array,
    { width, height }: PixelSize,
    quality: number,
  ): Uint8Array<ArrayBuffer> {
    const { FORMAT_RGB: format, SAMP_420: subsampling } = this.#addon;
    const options = { format, width, height, quality, subsampling };
    // The library returns a view of a buffer of the largest possible size.
    return new Uint8Array(this.#addon.compressSync(pixels, options));
  }
}
