/**
 * Decodes JPEGs with libjpeg-turbo's shared library: on all cores, and only the part of an image that
 * is needed.
 */

import { type Decoded, type PixelSize, RGBA_BYTES } from "../image_format.ts";
import { packCmyk } from "./cmyk.ts";
import { decoderPool } from "./decoder_pool.ts";
import { decodingThreads } from "./decoding_threads.ts";
import type { JpegLibrary } from "./jpeg_library.ts";
import { type DecodedPart, type DecodeRequest, TurboDecoder } from "./turbo_decoder.ts";
import type { TurboLibrary } from "./turbo_library.ts";

const COMPRESS = 0;
/** Numbers of `enum TJPARAM`, `enum TJSAMP` and `enum TJPF`. */
const [QUALITY, SUBSAMPLING, FAST_DCT, SUBSAMPLING_420, RGB] = [3, 4, 10, 2, 0];

/** Decodes and encodes with the shared library. */
export class TurboJpeg implements JpegLibrary {
  readonly #library: TurboLibrary;

  constructor(library: TurboLibrary) {
    this.#library = library;
  }

  decode(bytes: Uint8Array, request: DecodeRequest): Decoded | Promise<Decoded> {
    const taken = decoderPool.take(() => new TurboDecoder(this.#library));
    return taken instanceof TurboDecoder
      ? decodeWith(taken, bytes, request)
      : taken.then((decoder) => decodeWith(decoder, bytes, request));
  }

  transformed(ms: number): void {
    decodingThreads.worked(ms);
  }

  encode(
    pixels: Uint8Array,
    { width, height }: PixelSize,
    quality: number,
  ): Uint8Array<ArrayBuffer> {
    const { symbols } = this.#library;
    const handle = symbols.tj3Init(COMPRESS);
    const address = new BigUint64Array(1), byteLength = new BigUint64Array(1);
    try {
      symbols.tj3Set(handle, QUALITY, quality);
      symbols.tj3Set(handle, SUBSAMPLING, SUBSAMPLING_420);
      const out = [address, byteLength] as const;
      symbols.tj3Set(handle, FAST_DCT, quality < 96 ? 1 : 0); // as the addon
      if (symbols.tj3Compress8(handle, pixels, width, 0, height, RGB, ...out) !== 0) {
        throw this.#library.errorOf(handle);
      }
      const jpeg = new Uint8Array(Number(byteLength[0]));
      symbols.copyOut(jpeg, address[0]!, byteLength[0]!);
      return jpeg;
    } finally {
      symbols.tj3Free(address[0]!);
      symbols.tj3Destroy(handle);
    }
  }
}

function decodeWith(
  decoder: TurboDecoder,
  bytes: Uint8Array,
  request: DecodeRequest,
): Decoded | Promise<Decoded> {
  const { library } = decoder;
  const { inks } = request;
  library.hold();
  const failed = (error: unknown): never => {
    try {
      decoder.requireMemory(request.libraryBytes);
      throw error;
    } finally {
      decoderPool.discard(decoder);
      library.release();
    }
  };
  const decoded = (part: DecodedPart): Decoded => ({
    ...part,
    read: (into) => {
      if (inks === undefined) return decoder.read(into);
      const pixels = new Uint8Array(part.region.width * part.region.height * RGBA_BYTES);
      decoder.read(pixels);
      packCmyk(pixels, inks, into, request.plan.channels);
    },
    [Symbol.dispose]: () => {
      decoderPool.give(decoder);
      library.release();
    },
  });
  let part: DecodedPart | Promise<DecodedPart>;
  try {
    part = decoder.decode(bytes, request);
  } catch (error) {
    return failed(error);
  }
  return part instanceof Promise ? part.then(decoded, failed) : decoded(part);
}
