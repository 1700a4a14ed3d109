/** The elements of stored datasets as bytes. */
import { LeatError } from "../../core/error.ts";
import { EncodedValue, encodeValue } from "../elements/value_codec.ts";

/**
 * Maximum bytes of an element's text and plain values, which are JSON in the file. Parsed, they take
 * many times this memory. Tensors and typed arrays do not count.
 */
export const ELEMENT_JSON_BYTES_MAX = 32 << 20;

/** Errors: `failed_precondition` for an element that cannot be saved, such as a function. */
export function encodeElement(element: unknown): Uint8Array<ArrayBuffer> {
  const bytes = encodeValue(element);
  const jsonBytes = EncodedValue.jsonBytesOf(bytes);
  if (jsonBytes <= ELEMENT_JSON_BYTES_MAX) return bytes;
  throw new LeatError(
    "failed_precondition",
    `An element has ${jsonBytes} bytes of text and plain values, more than ` +
      `${ELEMENT_JSON_BYTES_MAX} (ELEMENT_JSON_BYTES_MAX); divide it, or put it into tensors or ` +
      "typed arrays.",
  );
}

/** Errors: `data_loss` for a record of the file `path` that `encodeElement` did not write. */
export function decodeElement(record: Uint8Array, path: string): unknown {
  try {
    const jsonBytes = EncodedValue.jsonBytesOf(record);
    if (jsonBytes > ELEMENT_JSON_BYTES_MAX) throw new Error(`it has ${jsonBytes} bytes of JSON`);
    return new EncodedValue(record).read();
  } catch (cause) {
    throw new LeatError("data_loss", `${path} holds a record that is no element.`, { cause });
  }
}
