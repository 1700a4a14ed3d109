/** The elements of stored datasets as bytes. */
import { LeatError } from "../../core/error.ts";
import {
  ELEMENT_VALUES_MAX,
  EncodedValue,
  encodeValue,
  hasManyValues,
} from "../elements/value_codec.ts";

/** Errors: `failed_precondition` for an element that cannot be saved, such as a function. */
export function encodeElement(element: unknown): Uint8Array<ArrayBuffer> {
  const bytes = encodeValue(element);
  if (!hasManyValues(bytes)) return bytes;
  throw new LeatError(
    "failed_precondition",
    `An element has more than ${ELEMENT_VALUES_MAX} plain values (ELEMENT_VALUES_MAX); save smaller ` +
      "elements or batches, or put numbers into tensors or typed arrays.",
  );
}

/** Errors: `data_loss` for a record of the file `path` that `encodeElement` did not write. */
export function decodeElement(record: Uint8Array, path: string): unknown {
  try {
    if (hasManyValues(record)) throw new Error(`it has more than ${ELEMENT_VALUES_MAX} values`);
    return new EncodedValue(record).read();
  } catch (cause) {
    throw new LeatError("data_loss", `${path} holds a record that is no element.`, { cause });
  }
}
