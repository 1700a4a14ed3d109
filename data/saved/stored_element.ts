/** The elements of stored datasets as bytes. */
import { LeatError } from "../../core/error.ts";
import { EncodedValue, encodeValue } from "../elements/value_codec.ts";

/**
 * Maximum number of the plain values of an element: numbers, texts, lists and objects, which are JSON
 * in the file. Parsed, each takes many times its bytes there. Typed arrays and tensors of numbers do
 * not count.
 */
export const ELEMENT_VALUES_MAX = 1 << 23;

// The characters of JSON that begin or separate values. Those within texts count, too.
const COMMA = 0x2c;
const BRACKET = 0x5b;
const BRACE = 0x7b;

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

function hasManyValues(record: Uint8Array): boolean {
  const json = EncodedValue.jsonOf(record);
  if (json.length <= ELEMENT_VALUES_MAX) return false;
  let values = 1;
  for (let i = 0; i < json.length; i++) {
    const byte = json[i];
    if (byte === COMMA || byte === BRACKET || byte === BRACE) values++;
  }
  return values > ELEMENT_VALUES_MAX;
}
