/**
 * The seam between image formats and the codec that serves them, and what their decoders share.
 */

import { LeatError } from "../core/error.ts";

/** The size of an image in pixels. */
export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

/** How many bytes a pixel has: grey, RGB or RGBA. */
export type Channels = 1 | 3 | 4;

/** One kind of compressed image. */
export interface ImageFormat {
  /** For messages: `JPEG`. */
  readonly name: string;
  /** Whether bytes begin as its files do. Of fewer bytes than it takes to tell: whether they may. */
  matches(bytes: Uint8Array): boolean;
  /** The size, from the header alone. Throws `data_loss` for a header that is damaged or cut off. */
  readSize(bytes: Uint8Array): ImageSize;
  /** Loads the library that decodes; `undefined` once it is there. Errors as {@linkcode importLibrary}. */
  load(): Promise<void> | undefined;
  /**
   * About how many bytes of memory decoding takes, beside `bytes` and the pixels that it gives; from the header alone. Errors as
   * `readSize`.
   */
  bytesToDecode(bytes: Uint8Array): number;
  /**
   * Fills `into`, which is as large as the header says, row by row. Throws `data_loss` for damage and `unimplemented` for a kind that
   * the library does not decode.
   */
  decode(bytes: Uint8Array, into: Uint8Array, channels: Channels): void;
}

/** Whether `bytes` are, or are the beginning of, something that has `begin` at `offset`. */
export function beginsWith(bytes: Uint8Array, begin: readonly number[], offset = 0): boolean {
  return begin.every((byte, i) => offset + i >= bytes.length || bytes[offset + i] === byte);
}

/**
 * Loads a library, and says what a program that may not has to do.
 *
 * @param remedy what to do where the permission for it was refused.
 * @throws {LeatError} `permission_denied`, or `failed_precondition` with `otherwise`.
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

/** Of a pixel as the libraries give it. */
export const RGBA_BYTES = 4;

/** The weights of red, green and blue in grey (ITU-R BT.601, as in JPEG), out of 2¹⁶. */
const [RED, GREEN, BLUE] = [19_595, 38_470, 7_471];

/** RGBA bytes as `channels`. Alpha is dropped: what is transparent has the colour that it was written with. */
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
