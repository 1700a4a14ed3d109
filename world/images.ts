/**
 * JPEG images: decoding with crop, bilinear resize and mirroring, and encoding, by libjpeg-turbo.
 */

import type { Tensor as AnyTensor } from "../core/tensor.ts";
import { Tensor } from "../core/tensor.ts";
import { LeatError } from "../core/error.ts";
import type { ImageCodec, ImageDecodeOptions } from "../data/host.ts";
import { damagedJpeg, type JpegHeader, readJpegHeader } from "./jpeg_header.ts";
import { resample } from "./resample.ts";

/** Most pixels that are decoded: half a gigabyte of RGB. A header of a few bytes may claim 65,535 × 65,535. */
export const IMAGE_PIXELS_MAX = 178_956_970;

/** A buffer for whole images is kept between calls up to this size. */
const SCRATCH_BYTES_MAX = 64 * 1024 * 1024;

/** Longest side that JPEG's encoder takes, in pixels. */
const JPEG_SIDE_MAX = 65_500;

/** How a JPEG is written. */
export interface JpegEncodeOptions {
  /** 1 to 100; default 90. */
  readonly quality?: number;
}

/** The part of `@julusian/jpeg-turbo` that is used; its own types ask for Node's `Buffer`, any `Uint8Array` will do. */
interface JpegTurbo {
  readonly FORMAT_RGB: number;
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

/**
 * Decodes and encodes JPEGs on the calling thread.
 *
 * The native library is loaded by the first call that needs it, so a program without images needs no permission for it. It needs
 * `--allow-ffi`, and `--allow-read` of Deno's npm cache and of `/etc/alpine-release` (which tells it the C library).
 *
 * @example
 * ```ts
 * import { JpegImages } from "./images.ts";
 * import { Tensor } from "../core/tensor.ts";
 * const images = new JpegImages();
 * const jpeg = await images.encode(Tensor.zeros("uint8", [40, 60, 3]), { quality: 90 });
 * const pixels = await images.decode(jpeg, { resize: { width: 32, height: 32 } });
 * console.log(pixels.shape); // [32, 32, 3]
 * ```
 */
export class JpegImages implements ImageCodec {
  #library: JpegTurbo | undefined;
  #scratch: Uint8Array<ArrayBuffer> = new Uint8Array(0);

  /**
   * The pixels as uint8 of shape [height, width, 3], in RGB: cropped, then resized, then mirrored.
   *
   * Resizing is bilinear between the four nearest pixels with their centres at halves and no smoothing, as `tf.image.resize` does
   * unless told otherwise; it does not look beyond the crop. Orientation tags are not applied.
   *
   * @throws {LeatError} `data_loss` for bytes that are no JPEG, a truncated one, or one that libjpeg-turbo as much as warns about;
   * `resource_exhausted` beyond {@linkcode IMAGE_PIXELS_MAX}; `unimplemented` for CMYK; `invalid_argument` for a crop outside of the
   * image or a size that is none; `permission_denied` where the library may not be loaded.
   */
  decode(
    bytes: Uint8Array,
    options: ImageDecodeOptions = {},
  ): Tensor<"uint8"> | Promise<Tensor<"uint8">> {
    if (this.#library === undefined) return this.#decodeLater(bytes, options);
    return this.#decode(this.#library, bytes, options);
  }

  /** Width and height in pixels. Reads the header alone and needs no library. Errors as for `decode`. */
  size(bytes: Uint8Array): { width: number; height: number } {
    const { width, height } = readJpegHeader(bytes);
    return { width, height };
  }

  /**
   * A JPEG of an RGB image, its colours at half the resolution (4:2:0).
   *
   * @param image uint8 of shape [height, width, 3].
   * @throws {LeatError} `invalid_argument` for another dtype or shape, an empty or too large image, or a quality outside 1 to 100.
   */
  async encode(image: AnyTensor, options: JpegEncodeOptions = {}): Promise<Uint8Array> {
    const { quality = 90 } = options;
    const [height, width, channels] = image.shape;
    if (
      !isUint8(image) || image.shape.length !== 3 || channels !== 3 ||
      !isSide(height) || !isSide(width)
    ) {
      throw new LeatError(
        "invalid_argument",
        `A JPEG is made of a uint8 tensor of shape [height, width, 3] with sides from 1 to ${JPEG_SIDE_MAX}, not of ` +
          `${image.dtype} [${image.shape}].`,
      );
    }
    if (!Number.isInteger(quality) || quality < 1 || quality > 100) {
      throw new LeatError("invalid_argument", `A JPEG's quality is from 1 to 100, not ${quality}.`);
    }
    const library = await this.#load();
    const { FORMAT_RGB: format, SAMP_420: subsampling } = library;
    // The library returns a view of the largest buffer the image could have needed.
    return new Uint8Array(
      library.compressSync(image.data, { format, width, height, quality, subsampling }),
    );
  }

  async #decodeLater(bytes: Uint8Array, options: ImageDecodeOptions): Promise<Tensor<"uint8">> {
    return this.#decode(await this.#load(), bytes, options);
  }

  #decode(library: JpegTurbo, bytes: Uint8Array, options: ImageDecodeOptions): Tensor<"uint8"> {
    const header = readJpegHeader(bytes);
    requireDecodable(header);
    const { width, height } = header;
    const crop = options.crop ?? { x: 0, y: 0, width, height };
    requireCrop(crop, header);
    const size = options.resize ?? { width: crop.width, height: crop.height };
    requireSize(size);

    const shape = [size.height, size.width, 3];
    const isWhole = crop.width === width && crop.height === height &&
      size.width === width && size.height === height && !options.flip;
    const pixels = isWhole ? new Uint8Array(width * height * 3) : this.#borrow(width * height * 3);
    try {
      library.decompressSync(bytes, pixels, { format: library.FORMAT_RGB });
    } catch (cause) {
      throw damagedJpeg(bytes, header, cause);
    }
    if (isWhole) return new Tensor("uint8", shape, pixels);
    const flip = options.flip ?? false;
    return new Tensor("uint8", shape, resample({ pixels, width, crop, size, flip }));
  }

  #borrow(byteLength: number): Uint8Array<ArrayBuffer> {
    if (byteLength <= this.#scratch.length) return this.#scratch.subarray(0, byteLength);
    const buffer = new Uint8Array(byteLength);
    if (byteLength <= SCRATCH_BYTES_MAX) this.#scratch = buffer;
    return buffer;
  }

  async #load(): Promise<JpegTurbo> {
    if (this.#library !== undefined) return this.#library;
    try {
      const module = await import("@julusian/jpeg-turbo");
      this.#library = (module as unknown as { default: JpegTurbo }).default;
      return this.#library;
    } catch (cause) {
      const { code, message } = LeatError.from(cause, "failed_precondition");
      const remedy = code === "permission_denied"
        ? "run with --allow-ffi and with --allow-read of Deno's npm cache (deno info shows where) and of /etc/alpine-release"
        : "it has binaries for Linux, macOS and Windows on common processors";
      throw new LeatError(
        code,
        `Cannot load the JPEG library @julusian/jpeg-turbo: ${message}; ${remedy}.`,
        { cause },
      );
    }
  }
}

function requireDecodable({ width, height, components }: JpegHeader): void {
  if (components !== 1 && components !== 3) {
    throw new LeatError(
      "unimplemented",
      `A JPEG of ${components} colour components (${
        components === 4 ? "CMYK" : "neither grey, colour nor CMYK"
      }) is not decoded; convert it to RGB.`,
    );
  }
  if (width * height > IMAGE_PIXELS_MAX) {
    throw new LeatError(
      "resource_exhausted",
      `A JPEG of ${width} × ${height} pixels is larger than ${IMAGE_PIXELS_MAX} (IMAGE_PIXELS_MAX).`,
    );
  }
}

function requireCrop(
  { x, y, width, height }: NonNullable<ImageDecodeOptions["crop"]>,
  image: JpegHeader,
): void {
  const isInside = [x, y, width, height].every(Number.isInteger) && x >= 0 && y >= 0 &&
    width > 0 && height > 0 && x + width <= image.width && y + height <= image.height;
  if (isInside) return;
  throw new LeatError(
    "invalid_argument",
    `The crop { x: ${x}, y: ${y}, width: ${width}, height: ${height} } is no rectangle of whole pixels inside an image of ` +
      `${image.width} × ${image.height}.`,
  );
}

function requireSize({ width, height }: NonNullable<ImageDecodeOptions["resize"]>): void {
  const isSize = Number.isInteger(width) && Number.isInteger(height) && width > 0 && height > 0 &&
    width * height <= IMAGE_PIXELS_MAX;
  if (isSize) return;
  throw new LeatError(
    "invalid_argument",
    `An image is resized to whole numbers of pixels from 1 up, at most ${IMAGE_PIXELS_MAX} in all, not to ${width} × ${height}.`,
  );
}

function isUint8(image: AnyTensor): image is Tensor<"uint8"> {
  return image.dtype === "uint8";
}

function isSide(side: number | undefined): side is number {
  return side !== undefined && side >= 1 && side <= JPEG_SIDE_MAX;
}
