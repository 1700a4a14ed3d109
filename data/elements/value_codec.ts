/**
 * Plain data and elements as bytes: saved states of iterators, and elements of stored datasets.
 *
 * Layout: the length of the JSON as uint32 (little-endian), the JSON, and the bytes of tensors and
 * typed arrays, to which the JSON refers by offset and length.
 */
import { isCount } from "../../core/count.ts";
import { LeatError } from "../../core/error.ts";
import { parseJson } from "../../core/json.ts";
import { show } from "../check.ts";
import { facade, nodeOf } from "../node.ts";
import { decodeNode, type DecodingOptions, encodeNode, ValueReader, ValueWriter } from "../wire.ts";

/**
 * Maximum number of the plain values of an element: numbers, texts, lists and objects, which are JSON.
 * Parsed, each takes many times its bytes there. Typed arrays and tensors of numbers do not count.
 */
export const ELEMENT_VALUES_MAX = 1 << 23;

const LENGTH_BYTES = 4;

// The characters of JSON that begin or separate values. Those within texts count, too.
const COMMA = 0x2c;
const BRACKET = 0x5b;
const BRACE = 0x7b;

/**
 * The bytes of a value, after `reserved` bytes for the caller.
 *
 * Errors: `failed_precondition` for a value that is not plain data, tensor, typed array or dataset,
 * or that nests too deeply.
 */
export function encodeValue(value: unknown, reserved = 0): Uint8Array<ArrayBuffer> {
  const writer = new BinaryWriter();
  const json = new TextEncoder().encode(jsonOf(writer, value));
  const start = reserved + LENGTH_BYTES;
  const bytes = new Uint8Array(start + json.length + writer.bytesLength);
  new DataView(bytes.buffer).setUint32(reserved, json.length, true);
  bytes.set(json, start);
  writer.copyBytes(bytes.subarray(start + json.length));
  return bytes;
}

function jsonOf(writer: ValueWriter, value: unknown): string {
  try {
    return JSON.stringify(writer.write(value));
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    throw new LeatError(
      "failed_precondition",
      "An element nests too deeply, or has too much text and too many plain values, to be saved.",
      { cause },
    );
  }
}

/** An encoded value, which can be inspected before it is read. */
export class EncodedValue {
  /** The parsed JSON, not read as a value yet. */
  readonly wire: unknown;
  readonly #bytes: Uint8Array;

  /** `encoded`: what `encodeValue` wrote, without the reserved bytes. Throws for anything else. */
  constructor(encoded: Uint8Array) {
    const json = EncodedValue.jsonOf(encoded);
    // Callers bound what others wrote with `hasManyValues`.
    this.wire = parseJson(new TextDecoder().decode(json), Infinity);
    this.#bytes = encoded.subarray(LENGTH_BYTES + json.length);
  }

  /** The JSON of `encoded`. Throws if it has less than its first four bytes. */
  static jsonOf(encoded: Uint8Array): Uint8Array {
    const { buffer, byteOffset, byteLength } = encoded;
    const length = new DataView(buffer, byteOffset, byteLength).getUint32(0, true);
    return encoded.subarray(LENGTH_BYTES, LENGTH_BYTES + length);
  }

  /**
   * The value. Its arrays are copies.
   *
   * @param options `isOwn`: this program built the datasets in it. Default: they are foreign.
   */
  read(options: DecodingOptions = {}): unknown {
    return new BinaryReader(this.#bytes, options).read(this.wire);
  }
}

/** Whether an encoded value has more than {@linkcode ELEMENT_VALUES_MAX} plain values. */
export function hasManyValues(encoded: Uint8Array): boolean {
  const json = EncodedValue.jsonOf(encoded);
  if (json.length <= ELEMENT_VALUES_MAX) return false;
  let values = 1;
  for (let i = 0; i < json.length; i++) {
    const byte = json[i];
    if (byte === COMMA || byte === BRACKET || byte === BRACE) values++;
  }
  return values > ELEMENT_VALUES_MAX;
}

/** Puts binary data after the JSON. */
class BinaryWriter extends ValueWriter {
  readonly #chunks: Uint8Array[] = [];
  bytesLength = 0;

  copyBytes(into: Uint8Array): void {
    let offset = 0;
    for (const chunk of this.#chunks) {
      into.set(chunk, offset);
      offset += chunk.length;
    }
  }

  protected override bytes(bytes: Uint8Array): unknown {
    const offset = this.bytesLength;
    this.#chunks.push(bytes);
    this.bytesLength += bytes.length;
    return [offset, bytes.length];
  }

  /** Elements may be datasets, as those of `window` are. */
  protected override opaque(value: unknown): unknown {
    const node = nodeOf(value);
    if (node !== undefined) return { $dataset: encodeNode(node, this) };
    throw new LeatError(
      "failed_precondition",
      `An element with ${show(value)} in it cannot be saved; elements that are saved, with an ` +
        "iterator or in files, are plain data, typed arrays, tensors and datasets.",
    );
  }
}

class BinaryReader extends ValueReader {
  readonly #bytes: Uint8Array;
  /** How many bytes may still be copied: a damaged JSON may name the same ones again and again. */
  #remaining: number;

  constructor(bytes: Uint8Array, options: DecodingOptions) {
    super(options);
    this.#bytes = bytes;
    this.#remaining = bytes.length;
  }

  protected override bytes(wire: unknown): Uint8Array<ArrayBuffer> {
    const [offset, length] = wire as [number, number];
    if (!isCount(offset) || !isCount(length) || length > this.#remaining) {
      throw new LeatError(
        "data_loss",
        `The encoded value names the range ${show([offset, length])} of its ` +
          `${this.#bytes.length} bytes, of which it may use ${this.#remaining} more.`,
      );
    }
    this.#remaining -= length;
    return this.#bytes.slice(offset, offset + length) as Uint8Array<ArrayBuffer>;
  }

  protected override tagged(tag: string, wire: unknown): unknown {
    return tag === "dataset" ? facade().wrap(decodeNode(wire, this)) : super.tagged(tag, wire);
  }
}
