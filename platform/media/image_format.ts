/** The interface between image formats and the codec, and what decoders share. */

import { LeatError } from "../../core/error.ts";
import type { TypedArray } from "../../core/dtype.ts";
import type { DecodePlan } from "./decode_plan.ts";

export interface PixelSize {
  readonly width: number;
  readonly height: number;
}

/** A rectangle of whole pixels inside an image. */
export interface Region extends PixelSize {
  readonly x: number;
  readonly y: number;
}

/** Provides the memory for a result; `undefined` if the result needs memory of its own. */
export type Placing = () => TypedArray | undefined;

/** A decoded image in a decoder's memory, which disposing it frees. */
export interface Decoded extends Disposable {
  /** The part of the image that was decoded. */
  readonly region: Region;
  /**
   * Whether the image is already the plan's result, not the decoder's pixels of `region`. Default:
   * `plan.isPlain`.
   */
  readonly isTransformed?: boolean;
  /** The result, if it is in the memory of {@linkcode Placing} already. Then `read` is not called. */
  readonly placed?: TypedArray | undefined;
  /** Writes the pixels, row by row. */
  read(into: Uint8Array): void;
}

/** Bytes per pixel: grey, RGB or RGBA. */
export type Channels = 1 | 3 | 4;

export interface ImageFormat {
  readonly name: string;
  /** Whether the bytes, as far as there are any, begin like a file of this format. */
  matches(bytes: Uint8Array): boolean;
  /** Reads the size from the header. Throws `data_loss` if the header is damaged or truncated. */
  readSize(bytes: Uint8Array): PixelSize;
  /** Loads the decoder; `undefined` if it is loaded. Fails as {@linkcode importLibrary} does. */
  load(): Promise<void> | undefined;
  /**
   * Computes from the header how many bytes of memory decoding needs, besides `bytes` and the pixels.
   * Throws as `readSize` does.
   */
  bytesToDecode(bytes: Uint8Array): number;
  /**
   * Decodes at least the plan's crop, to its channels. `bytes` must not change until `read()` has
   * returned. This or `read()` throws `data_loss` for damage, and `unimplemented` for a variant that
   * the library does not decode.
   * @param place provides the memory for the result. Call it at least one microtask later.
   */
  decode(bytes: Uint8Array, plan: DecodePlan, place?: Placing): Decoded | Promise<Decoded>;
  /** Records how long the calling thread took to transform an image of this format, in ms. */
  transformed?(ms: number): void;
}

/** Whether `bytes`, as far as there are any, has `prefix` at `offset`. */
export function beginsWith(bytes: Uint8Array, prefix: readonly number[], offset = 0): boolean {
  return prefix.every((byte, i) => offset + i >= bytes.length || bytes[offset + i] === byte);
}

/**
 * Loads a library. If that fails, the error explains what to do.
 * @param remedy how to grant a missing permission.
 * @param otherwise what to know about any other failure.
 * @throws {LeatError} `permission_denied` with `remedy`, or `failed_precondition` with `otherwise`.
 */
export async function importLibrary<T>(
  name: string,
  load: () => Promise<T>,
  remedy: string,
  otherwise: string,
): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    const { code, message } = LeatError.from(cause, "failed_precondition");
    throw new LeatError(
      code,
      `Cannot load ${name}, which decodes images: ${message}; ${
        code === "permission_denied" ? remedy : otherwise
      }.`,
      { cause },
    );
  }
}

/** Bytes per pixel in the libraries' output. */
export const RGBA_BYTES = 4;

/** The weights of red, green and blue in grey (ITU-R BT.601, as in JPEG), out of 2¹⁶. */
const [RED, GREEN, BLUE] = [19_595, 38_470, 7_471];

/** Converts RGBA bytes to `channels`. Alpha is dropped; transparent pixels keep their colour. */
export function packRgba(rgba: Uint8Array, into: Uint8Array, channels: Channels): void {
  if (channels === 4) {
    into.set(rgba);
    return;
  }
  for (let from = 0, to = 0; from < rgba.length; from += 4, to += channels) {
    const red = rgba[from]!, green = rgba[from + 1]!, blue = rgba[from + 2]!;
    if (channels === 1) {
      into[to] = (red * RED + green * GREEN + blue * BLUE + 32_768) >> 16;
      continue;
    }
    into[to] = red;
    into[to + 1] = green;
    into[to + 2] = blue;
  }
}
