/**
 * Images: decodes JPEG, PNG and WebP, recognized by their first bytes; crops, resizes and mirrors;
 * encodes JPEG.
 */

import type { DTypeArrays } from "../../core/dtype.ts";
import { Tensor, type Tensor as AnyTensor } from "../../core/tensor.ts";
import { LeatError } from "../../core/error.ts";
import { invalidArgument, optionsOf } from "../../data/check.ts";
import { shown } from "../../data/media/image_tensor.ts";
import type { ImageCodec, ImageDecodeOptions, PlaceOf } from "../../data/host.ts";
import {
  beginsWith,
  type Decoded,
  type ImageFormat,
  type PixelSize,
  type Placing,
} from "./image_format.ts";
import { JpegFormat } from "./jpeg/jpeg.ts";
import { PngFormat } from "./png.ts";
import { type DecodePlan, decodePlan } from "./decode_plan.ts";
import { Resampler, transform } from "./resampling/resampler.ts";
import { WebpFormat } from "./webp.ts";

/** Default limit of bytes for decoding one image: a header of a few bytes may claim any size. */
const IMAGE_BYTES_MAX = 1024 * 1024 * 1024;

/** Longest side that the JPEG encoder accepts, in pixels. */
const JPEG_SIDE_MAX = 65_500;

/** The first bytes of other kinds of files, to name them in errors. */
const OTHER_FORMATS: readonly (readonly [name: string, begin: readonly number[]])[] = [
  ["a GIF", [0x47, 0x49, 0x46, 0x38]],
  ["a BMP", [0x42, 0x4d]],
  ["another RIFF file", [0x52, 0x49, 0x46, 0x46]],
  ["a TIFF", [0x49, 0x49, 0x2a, 0x00]],
  ["a TIFF", [0x4d, 0x4d, 0x00, 0x2a]],
  ["gzip", [0x1f, 0x8b]],
];

/** Limits of images. */
export interface ImageLimits {
  /**
   * Limit of the memory for decoding one image, in bytes: its pixels and the decoder's own memory,
   * computed from its header. Default 1 GiB: some 55 million pixels of a PNG of 8-bit RGB, 350 million
   * of a JPEG with one scan.
   */
  readonly imageBytesMax?: number | undefined;
}

/** Options of decoding to bytes. */
export type BytesDecodeOptions = Omit<ImageDecodeOptions, "dtype" | "normalize"> & {
  readonly dtype?: "uint8";
};

/** A decoded image of any dtype. */
export type DecodedTensor = Tensor<"uint8" | "float16" | "float32">;

/** Options of a JPEG. */
export interface JpegEncodeOptions {
  /** 1 to 100; default 90. */
  readonly quality?: number;
}

const checkEncode = optionsOf<JpegEncodeOptions>("image.encode", { quality: true });

/**
 * Decodes JPEG, PNG and WebP, and encodes JPEG.
 *
 * On Linux, other threads decode JPEGs: at most four images per core at once, and only the part that
 * a crop needs. On other systems, on one core, and for small JPEGs and other formats, decoding
 * runs on the calling thread. Linux decodes JPEGs with the accurate transform unless
 * `dctMethod` says otherwise; other systems have the fast one only.
 *
 * The first call that needs a library loads it, so a program without images needs no permission.
 * JPEG needs `--allow-ffi`. On Linux that is for one file, which the error names; elsewhere JPEG also
 * needs `--allow-read` of Deno's npm cache. PNG and WebP need only this `--allow-read`.
 *
 * @example
 * ```ts
 * import { Images } from "./images.ts";
 * import { Tensor } from "../../core/tensor.ts";
 * const images = new Images();
 * const jpeg = await images.encode(Tensor.zeros("uint8", [40, 60, 3]), { quality: 90 });
 * const pixels = await images.decode(jpeg, { resize: { width: 32, height: 32 } });
 * console.log(pixels.shape); // [32, 32, 3]
 * ```
 */
export class Images implements ImageCodec {
  readonly #jpeg = new JpegFormat();
  readonly #formats: readonly ImageFormat[] = [this.#jpeg, new PngFormat(), new WebpFormat()];
  readonly #bytesMax: number;
  readonly #resampler = new Resampler();

  /** Creates a codec. It loads libraries when they are first needed. */
  constructor({ imageBytesMax = IMAGE_BYTES_MAX }: ImageLimits = {}) {
    this.#bytesMax = imageBytesMax;
  }

  /**
   * Returns the pixels as uint8 of shape [height, width, channels]: cropped, then resized, then
   * mirrored, then converted to another dtype or layout if the options say so.
   * Do not change `bytes` before the pixels are there.
   *
   * Resizing is bilinear between the four nearest pixels, with half-pixel centres and no
   * antialiasing, the default of `tf.image.resize`; it does not read beyond the crop. Orientation
   * tags and gamma are not applied. 16-bit channels become 8-bit ones. Grey of a coloured image is
   * its luma (BT.601); alpha that is not requested is dropped, not blended.
   * @throws {LeatError} `data_loss` for an image that is empty, truncated or damaged,
   * libjpeg-turbo's warnings included; `resource_exhausted` beyond {@linkcode
   * ImageLimits.imageBytesMax}, before memory is allocated, and if there is no memory;
   * `unimplemented` for animations, for JPEGs of other than 8 bits per sample or of a rare process,
   * and where a system lacks CMYK or the `dctMethod`; `invalid_argument` for another format, a crop
   * outside of the image, and other invalid or unknown options; `permission_denied`
   * if the library may not be loaded.
   */
  decode(
    bytes: Uint8Array,
    options?: BytesDecodeOptions,
    placeOf?: PlaceOf,
  ): Tensor<"uint8"> | Promise<Tensor<"uint8">>;
  /** Decodes an image as above, to values of any dtype. */
  decode(
    bytes: Uint8Array,
    options?: ImageDecodeOptions,
    placeOf?: PlaceOf,
  ): DecodedTensor | Promise<DecodedTensor>;
  decode(
    bytes: Uint8Array,
    options: ImageDecodeOptions = {},
    placeOf?: PlaceOf,
  ): DecodedTensor | Promise<DecodedTensor> {
    const format = this.#formatOf("image.decode", bytes);
    const loading = format.load();
    return loading === undefined
      ? this.#decode(format, bytes, options, placeOf)
      : loading.then(() => this.#decode(format, bytes, options, placeOf));
  }

  /** Reads width and height in pixels from the header, without a library. Throws as `decode` does. */
  size(bytes: Uint8Array): { width: number; height: number } {
    return this.#formatOf("image.size", bytes).readSize(bytes);
  }

  /**
   * Encodes an RGB image as JPEG with 4:2:0 chroma subsampling.
   * @param image uint8 of shape [height, width, 3].
   * @throws {LeatError} `invalid_argument` for another dtype or shape, an empty or too large image,
   * or a quality outside 1 to 100; `failed_precondition` if its buffer is transferred or resized
   * before it is encoded.
   */
  async encode(image: AnyTensor, options: JpegEncodeOptions = {}): Promise<Uint8Array> {
    const { quality = 90 } = checkEncode(options);
    const [height, width, channels] = image instanceof Tensor ? image.shape : [];
    if (
      !isUint8(image) || image.shape.length !== 3 || channels !== 3 ||
      !isSide(height) || !isSide(width)
    ) {
      throw new LeatError(
        "invalid_argument",
        `A JPEG is made of a uint8 tensor of shape [height, width, 3] with sides from 1 to ${JPEG_SIDE_MAX}, not of ` +
          `${shown(image)}.`,
      );
    }
    if (!Number.isInteger(quality) || quality < 1 || quality > 100) {
      throw new LeatError(
        "invalid_argument",
        `A JPEG's quality is from 1 to 100, not ${shown(quality)}.`,
      );
    }
    await this.#jpeg.load();
    // Native code would read beyond a buffer that has become shorter.
    if (image.data.length !== height * width * channels) {
      throw new LeatError(
        "failed_precondition",
        `The buffer of an image of ${width} × ${height} pixels was transferred or resized before ` +
          `it was encoded: wait for encode() first.`,
      );
    }
    return this.#jpeg.encode(image.data, { width, height }, quality);
  }

  #formatOf(operation: string, bytes: Uint8Array): ImageFormat {
    requireBytes(operation, bytes);
    if (bytes.length === 0) throw new LeatError("data_loss", "Not an image: there are no bytes.");
    const format = this.#formats.find((format) => format.matches(bytes));
    if (format !== undefined) return format;
    const other = OTHER_FORMATS.find(([, begin]) => beginsWith(bytes, begin));
    throw new LeatError(
      "invalid_argument",
      `Not a ${
        this.#formats.map(({ name }) => name).join(", ")
      }: ${bytes.length} bytes that begin with ${bytes.subarray(0, 4).toHex()}${
        other ? `, like ${other[0]}` : ""
      }. Convert images of other formats, for example to PNG.`,
    );
  }

  #decode(
    format: ImageFormat,
    bytes: Uint8Array,
    options: ImageDecodeOptions,
    placeOf: PlaceOf | undefined,
  ): DecodedTensor | Promise<DecodedTensor> {
    const whole = format.readSize(bytes);
    const plan = decodePlan(options, whole);
    const byteLength = whole.width * whole.height * plan.channels;
    this.#requireMemory(format, whole, format.bytesToDecode(bytes) + byteLength + plan.resultBytes);
    const length = plan.shape.reduce((size, length) => size * length, 1);
    const place = placeOf && (() => placeOf(plan.dtype, length));
    const decoded = format.decode(bytes, plan, place);
    return decoded instanceof Promise
      ? decoded.then((decoded) => this.#finish(format, decoded, plan, place))
      : this.#finish(format, decoded, plan, place);
  }

  #finish(
    format: ImageFormat,
    unread: Decoded,
    plan: DecodePlan,
    place: Placing | undefined,
  ): DecodedTensor {
    using decoded = unread;
    const { region, isTransformed = plan.isPlain, placed } = decoded;
    const { dtype, shape } = plan;
    const data = placed ?? place?.();
    const result = data === undefined
      ? Tensor.zeros(dtype, shape)
      : new Tensor(dtype, shape, data as DTypeArrays[typeof dtype]);
    if (placed !== undefined) return result;
    if (isTransformed) {
      const { buffer, byteOffset, byteLength } = result.data;
      decoded.read(new Uint8Array(buffer, byteOffset, byteLength));
      return result;
    }
    const startedAtMs = performance.now();
    decoded.read(this.#resampler.pixels(region.width * region.height * plan.channels));
    transform(this.#resampler, plan, region, result.data);
    format.transformed?.(performance.now() - startedAtMs);
    return result;
  }

  #requireMemory({ name }: ImageFormat, { width, height }: PixelSize, byteLength: number): void {
    if (byteLength <= this.#bytesMax) return;
    const mib = (bytes: number) => Math.ceil(bytes / 2 ** 20);
    throw new LeatError(
      "resource_exhausted",
      `Decoding a ${name} of ${width} × ${height} pixels takes about ${
        mib(byteLength)
      } MiB, more than the ` +
        `${
          mib(this.#bytesMax)
        } MiB that one image may take (imageBytesMax; of a worker: --image-mib): make it smaller, or allow more.`,
    );
  }
}

/** @throws {LeatError} `invalid_argument` unless `bytes` are a `Uint8Array`. */
export function requireBytes(operation: string, bytes: unknown): void {
  if (bytes instanceof Uint8Array) return;
  const wanted = "a Uint8Array, such as new Uint8Array(buffer) or the data of a tensor";
  throw invalidArgument(operation, "the encoded image", wanted, bytes);
}

function isUint8(image: AnyTensor): image is Tensor<"uint8"> {
  return image instanceof Tensor && image.dtype === "uint8";
}

function isSide(side: number | undefined): side is number {
  return side !== undefined && side >= 1 && side <= JPEG_SIDE_MAX;
}
