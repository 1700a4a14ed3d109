/** Decodes elements. A hostile worker, or a hostile user function, may have made them. */
import { LeatError } from "../core/error.ts";
import { decodeMessage } from "./codec.ts";

/**
 * Limit of an element's structure: 8 million values in lists and maps, or 256 MiB of texts. Bytes
 * of tensors and typed arrays do not count. In memory it takes at most about 900 MiB, for which V8
 * has space by default.
 */
export const ELEMENT_STRUCTURE_BYTES_MAX = 256 * 2 ** 20;

/**
 * Decodes an element.
 * @param copy Copies the data, so that the element outlives the frame. Default: views of the frame.
 * @throws {LeatError} `resource_exhausted` for more structure than
 * {@linkcode ELEMENT_STRUCTURE_BYTES_MAX}; else as `decodeMessage` does.
 */
export function decodeElement(frame: Uint8Array, copy = false): unknown {
  try {
    return decodeMessage(frame, { copy, structureBytesMax: ELEMENT_STRUCTURE_BYTES_MAX });
  } catch (cause) {
    const { code, details } = LeatError.from(cause);
    if (code !== "resource_exhausted" || details?.structureBytesMax === undefined) throw cause;
    throw new LeatError(
      code,
      `An element has more texts, lists, maps and items of these than a reader accepts: ` +
        `${ELEMENT_STRUCTURE_BYTES_MAX} bytes of structure, with 32 for each item ` +
        "(ELEMENT_STRUCTURE_BYTES_MAX). Put its numbers into tensors or typed arrays, or make " +
        "smaller elements, for example with a smaller batch()",
      { cause },
    );
  }
}
