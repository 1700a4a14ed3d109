/** JPEG images, by libjpeg-turbo. */

import { LeatError } from "../../core/error.ts";
import { type Channels, type ImageFormat, type ImageSize, importLibrary } from "./image_format.ts";
import { countScans, damagedJpeg, isJpeg, type JpegHeader, readJpegHeader } from "./jpeg_header.ts";

/** The used part of `@julusian/jpeg-turbo`; its types ask for a `Buffer`, needlessly. */
interface JpegTurbo {
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

/** Most scans of a progressive JPEG; encoders write about ten. */
export const SCANS_MAX = 200;

/** Bytes per coefficient of a progressive JPEG; there is one coefficient per sample. */
const COEFFICIENT_BYTES = 2;

/** Decodes and encodes JPEGs on the calling thread. */
export class JpegFormat implements ImageFormat {
  readonly name = "JPEG";
  #library: JpegTurbo | undefined;

  matches(bytes: Uint8Array): boolean {
    return isJpeg(bytes);
  }

  readSize(bytes: Uint8Array): ImageSize {
    const { width, height } = readJpegHeader(bytes);
    return { width, height };
  }

  bytesToDecode(bytes: Uint8Array): number {
    const { width, height, components, isProgressive } = readJpegHeader(bytes);
    return isProgressive ? width * height * components * COEFFICIENT_BYTES : 0;
  }

  load(): Promise<void> | undefined {
    return this.#library === undefined ? this.#load() : undefined;
  }

  decode(bytes: Uint8Array, into: Uint8Array, channels: Channels): void {
    const header = readJpegHeader(bytes);
    requireColours(header);
    if (header.isProgressive) requireScans(bytes, header);
    const { FORMAT_GRAY, FORMAT_RGB, FORMAT_RGBA } = this.#library!;
    const format = channels === 1 ? FORMAT_GRAY : channels === 3 ? FORMAT_RGB : FORMAT_RGBA;
    try {
      this.#library!.decompressSync(bytes, into, { format });
    } catch (cause) {
      throw damagedJpeg(bytes, header, cause);
    }
  }

  /** Encodes RGB bytes as JPEG with 4:2:0 chroma subsampling. The library must be loaded. */
  encode(
    pixels: Uint8Array,
    { width, height }: ImageSize,
    quality: number,
  ): Uint8Array<ArrayBuffer> {
    const { FORMAT_RGB: format, SAMP_420: subsampling } = this.#library!;
    const options = { format, width, height, quality, subsampling };
    // The library returns a view of a buffer of the largest possible size.
    return new Uint8Array(this.#library!.compressSync(pixels, options));
  }

  async #load(): Promise<void> {
    this.#library = await importLibrary(
      "@julusian/jpeg-turbo",
      async () => (await import("@julusian/jpeg-turbo")).default as unknown as JpegTurbo,
      "run with --allow-ffi and with --allow-read of Deno's npm cache (deno info shows where) and of /etc/alpine-release",
      "it has binaries for Linux, macOS and Windows on common processors",
    );
  }
}

/** Each scan processes the whole image, and a few bytes can demand a thousand scans. */
function requireScans(bytes: Uint8Array, { width, height }: JpegHeader): void {
  if (countScans(bytes, SCANS_MAX) <= SCANS_MAX) return;
  throw new LeatError(
    "resource_exhausted",
    `A JPEG of ${width} × ${height} pixels has more than ${SCANS_MAX} scans (SCANS_MAX); write it with fewer.`,
  );
}

function requireColours({ components }: JpegHeader): void {
  if (components === 1 || components === 3) return;
  throw new LeatError(
    "unimplemented",
    `A JPEG of ${components} colour components (${
      components === 4 ? "CMYK" : "neither grey, colour nor CMYK"
    }) is not decoded; convert it to RGB.`,
  );
}
