/** JPEG images, by libjpeg-turbo. */

import { LeatError } from "../../../core/error.ts";
import type { DecodePlan } from "../decode_plan.ts";
import type { Decoded, ImageFormat, PixelSize, Placing } from "../image_format.ts";
import { countScans, damagedJpeg, isJpeg, type JpegHeader, readJpegHeader } from "./header.ts";
import type { JpegLibrary } from "./jpeg_library.ts";

/** Limit of the scans of a JPEG. Encoders write about ten for a progressive one. */
export const SCANS_MAX = 200;

/** The marker of SOF0, the baseline process. */
const FIRST_PROCESS = 0xc0;
/** With Huffman codes: baseline, extended, progressive, lossless; with arithmetic ones: extended, progressive. */
const SUPPORTED_PROCESSES: ReadonlySet<number> = new Set([0xc0, 0xc1, 0xc2, 0xc3, 0xc9, 0xca]);
const SUPPORTED_BITS = 8;

/** The number of components of CMYK, and of YCCK, which libjpeg-turbo converts to it. */
const CMYK = 4;
/** Bytes of memory for a pixel of CMYK besides its colours: the decoder's and a copy to convert. */
const CMYK_BYTES = 8;

/** Bytes per coefficient of a JPEG of many scans; there is one coefficient per sample. */
const COEFFICIENT_BYTES = 2;

export class JpegFormat implements ImageFormat {
  readonly name = "JPEG";
  #library: JpegLibrary | undefined;

  matches(bytes: Uint8Array): boolean {
    return isJpeg(bytes);
  }

  readSize(bytes: Uint8Array): PixelSize {
    const { width, height } = readJpegHeader(bytes);
    return { width, height };
  }

  bytesToDecode(bytes: Uint8Array): number {
    const { width, height, components, hasManyScans } = readJpegHeader(bytes);
    const coefficients = hasManyScans ? components * COEFFICIENT_BYTES : 0;
    return width * height * (coefficients + (components === CMYK ? CMYK_BYTES : 0));
  }

  load(): Promise<void> | undefined {
    return this.#library === undefined ? this.#load() : undefined;
  }

  decode(bytes: Uint8Array, plan: DecodePlan, place?: Placing): Decoded | Promise<Decoded> {
    const header = readJpegHeader(bytes);
    requireSupported(header);
    requireColours(header);
    if (header.hasManyScans) requireScans(bytes, header);
    const failed = (cause: unknown): never => {
      throw cause instanceof LeatError ? cause : damagedJpeg(bytes, header, cause);
    };
    const { width, height, components, isAdobe, blockWidth } = header;
    const inks = components !== CMYK ? undefined : isAdobe ? "adobe" : "plain";
    const limits = { libraryBytes: this.bytesToDecode(bytes), scansMax: SCANS_MAX };
    const request = { width, height, blockWidth, plan, place, inks, ...limits } as const;
    try {
      const decoded = this.#library!.decode(bytes, request);
      return decoded instanceof Promise ? decoded.catch(failed) : decoded;
    } catch (error) {
      return failed(error);
    }
  }

  transformed(ms: number): void {
    this.#library!.transformed?.(ms);
  }

  /** Encodes RGB bytes as JPEG with 4:2:0 chroma subsampling. The library must be loaded. */
  encode(pixels: Uint8Array, size: PixelSize, quality: number): Uint8Array<ArrayBuffer> {
    return this.#library!.encode(pixels, size, quality);
  }

  async #load(): Promise<void> {
    // Loaded lazily: few pipelines read JPEGs.
    const { openTurboLibrary } = await import("./turbo_library.ts");
    const library = openTurboLibrary();
    this.#library = library === undefined
      ? await (await import("./jpeg_addon.ts")).loadJpegAddon()
      : new (await import("./turbo_jpeg.ts")).TurboJpeg(library);
  }
}

/** Limits the scans: each processes the whole image, and a few bytes can demand a thousand of them. */
function requireScans(bytes: Uint8Array, { width, height }: JpegHeader): void {
  if (countScans(bytes, SCANS_MAX) <= SCANS_MAX) return;
  throw new LeatError(
    "resource_exhausted",
    `A JPEG of ${width} × ${height} pixels has more than ${SCANS_MAX} scans (SCANS_MAX); write it with fewer.`,
  );
}

/** Other processes and precisions are valid, but the library does not decode them. */
function requireSupported({ process, precision }: JpegHeader): void {
  if (SUPPORTED_PROCESSES.has(process) && precision === SUPPORTED_BITS) return;
  const name = `SOF${process - FIRST_PROCESS}`;
  throw new LeatError(
    "unimplemented",
    `A JPEG of ${precision} bits per sample in the process ${name} is not decoded; ` +
      `convert it to ${SUPPORTED_BITS} bits, baseline or progressive.`,
  );
}

function requireColours({ components }: JpegHeader): void {
  if (components === 1 || components === 3 || components === CMYK) return;
  throw new LeatError(
    "unimplemented",
    `A JPEG of ${components} colour components (neither grey, colour nor CMYK) is not decoded; ` +
      "convert it to RGB.",
  );
}
