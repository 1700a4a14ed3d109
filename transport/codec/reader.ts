/**
 * The strict reader. It accepts only what `docs/wire.md` specifies. msgpackr's own reader also
 * follows records, references and other extensions that an attacker could use, allocates what a
 * length merely claims, and renames or drops invalid keys.
 */

import { uint32At } from "../../core/bytes.ts";
import { isFixedDType } from "../../core/dtype.ts";
import { RaggedTensor, Tensor } from "../../core/tensor.ts";
import type { DecodeOptions } from "../codec.ts";
import { Payload } from "../payload.ts";
import {
  areBools,
  DTYPE_OF_CODE,
  ENVELOPE_DEPTH_MAX,
  EXT,
  MESSAGE_HEADER_BYTES,
  ODD_BOOL,
  TENSOR_RANK_MAX,
  TOKEN,
} from "./format.ts";
import { isIndexLike, makeSparse } from "./index_keys.ts";
import { malformed, PayloadTable, truncated } from "./payload_table.ts";
import { OBJECT_BYTES, StructureBudget, VALUE_BYTES } from "./structure.ts";
import { shortText, textOf } from "./text.ts";

/** The value of one whole message. Errors as `decodeMessage` documents them. */
export function readMessage(
  frame: Uint8Array,
  options: DecodeOptions,
): unknown {
  // A slice of a `Buffer` is a `Buffer`; callers must get a plain `Uint8Array`.
  const bytes = frame.constructor === Uint8Array
    ? frame
    : new Uint8Array(frame.buffer, frame.byteOffset, frame.byteLength);
  if (bytes.length < MESSAGE_HEADER_BYTES) {
    throw truncated("the header", 0, MESSAGE_HEADER_BYTES, bytes.length);
  }
  if (bytes[0] !== TOKEN.UINT32) {
    throw malformed(0, `a message begins with the token 0xce, not 0x${bytes[0]!.toString(16)}`);
  }
  const envelopeEnd = MESSAGE_HEADER_BYTES + uint32At(bytes, 1);
  if (envelopeEnd > bytes.length) {
    throw truncated("the envelope", MESSAGE_HEADER_BYTES, envelopeEnd, bytes.length);
  }
  const structure = options.structureBytesMax === undefined
    ? UNLIMITED
    : new StructureBudget(options.structureBytesMax);
  structure.spend(envelopeEnd);
  const payloads = envelopeEnd === bytes.length
    ? NO_PAYLOADS
    : new PayloadTable(bytes, envelopeEnd, options.copy === true, structure);
  const reader = new EnvelopeReader(bytes, envelopeEnd, payloads, structure, options);
  const value = reader.read(0);
  if (reader.position !== envelopeEnd) {
    throw malformed(reader.position, `the envelope continues after its value up to ${envelopeEnd}`);
  }
  payloads.finish();
  return value;
}

const UNLIMITED = new StructureBudget(Infinity);
const NO_PAYLOADS = new PayloadTable(new Uint8Array(0), 0, false, UNLIMITED);

/** Reads msgpack from `MESSAGE_HEADER_BYTES` up to `end`. */
class EnvelopeReader {
  position = MESSAGE_HEADER_BYTES;
  readonly #bytes: Uint8Array;
  readonly #end: number;
  readonly #payloads: PayloadTable;
  readonly #structure: StructureBudget;
  readonly #options: DecodeOptions;

  constructor(
    bytes: Uint8Array,
    end: number,
    payloads: PayloadTable,
    structure: StructureBudget,
    options: DecodeOptions,
  ) {
    this.#structure = structure;
    this.#options = options;
    this.#bytes = bytes;
    this.#end = end;
    this.#payloads = payloads;
  }

  read(depth: number): unknown {
    const token = this.#uint(1);
    if (token < 0x80) return token;
    if (token < 0x90) return this.#map(token & 0x0f, depth);
    if (token < 0xa0) return this.#array(token & 0x0f, depth);
    if (token < 0xc0) return this.#string(token & 0x1f);
    if (token >= 0xe0) return token - 0x100;
    switch (token) {
      case 0xc0:
        return null;
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xca:
      case 0xcb:
      case 0xcf:
      case 0xd0:
      case 0xd1:
      case 0xd2:
      case 0xd3:
        return this.#number(token);
      case 0xcc:
        return this.#uint(1);
      case 0xcd:
        return this.#uint(2);
      case 0xce:
        return this.#uint(4);
      default:
        return this.#long(token, depth);
    }
  }

  /** The tokens that a length follows. */
  #long(token: number, depth: number): unknown {
    switch (token) {
      case 0xd9:
        return this.#string(this.#uint(1));
      case 0xda:
        return this.#string(this.#uint(2));
      case 0xdb:
        return this.#string(this.#uint(4));
      case 0xdc:
        return this.#array(this.#uint(2), depth);
      case 0xdd:
        return this.#array(this.#uint(4), depth);
      case 0xde:
        return this.#map(this.#uint(2), depth);
      case 0xdf:
        return this.#map(this.#uint(4), depth);
      case 0xc4:
        return this.#bin(this.#uint(1));
      case 0xc5:
        return this.#bin(this.#uint(2));
      case 0xc6:
        return this.#bin(this.#uint(4));
      case 0xc7:
        return this.#ext(this.#uint(1));
      case 0xc8:
        return this.#ext(this.#uint(2));
      case 0xc9:
        return this.#ext(this.#uint(4));
      case 0xd4:
      case 0xd5:
      case 0xd6:
      case 0xd7:
      case 0xd8:
        return this.#ext(1 << (token - 0xd4));
      default:
        throw malformed(this.position - 1, `0x${token.toString(16)} is not a msgpack token`);
    }
  }

  /** Claims the next `count` bytes; returns where they begin. */
  #take(count: number): number {
    const start = this.position;
    if (count > this.#end - start) throw truncated("a value", start, start + count, this.#end);
    this.position = start + count;
    return start;
  }

  #uint(count: 1 | 2 | 4): number {
    const bytes = this.#bytes;
    const at = this.#take(count);
    if (count === 1) return bytes[at]!;
    if (count === 2) return bytes[at]! << 8 | bytes[at + 1]!;
    return uint32At(bytes, at);
  }

  #number(token: number): number | bigint {
    const count = token === 0xd0
      ? 1
      : token === 0xd1
      ? 2
      : token === 0xca || token === 0xd2
      ? 4
      : 8;
    const at = this.#take(count);
    for (let i = 0; i < count; i++) scratch[count - 1 - i] = this.#bytes[at + i]!;
    switch (token) {
      case 0xca:
        return asFloat32[0]!;
      case 0xcb:
        return asFloat64[0]!;
      case 0xcf:
        return asUint64[0]!;
      case 0xd0:
        return asInt8[0]!;
      case 0xd1:
        return asInt16[0]!;
      case 0xd2:
        return asInt32[0]!;
      default:
        return asInt64[0]!;
    }
  }

  #string(length: number): string {
    const at = this.#take(length);
    return shortText(this.#bytes, at, length) ?? textOf(this.#bytes.subarray(at, at + length), at);
  }

  #bin(length: number): Uint8Array {
    this.#structure.spend(OBJECT_BYTES);
    const at = this.#take(length);
    return this.#bytes.slice(at, at + length);
  }

  #array(length: number, depth: number): unknown[] {
    this.#enter(length, depth);
    if (length <= EXACT_LENGTH_MAX) {
      // Pushing the first item onto an empty array would allocate space for seventeen.
      const array = new Array<unknown>(length);
      for (let i = 0; i < length; i++) array[i] = this.read(depth + 1);
      return array;
    }
    const array: unknown[] = [];
    for (let i = 0; i < length; i++) array.push(this.read(depth + 1));
    return array;
  }

  #map(length: number, depth: number): Record<string, unknown> {
    this.#enter(2 * length, depth);
    const start = this.position;
    const object: Record<string, unknown> = {};
    let isSparse = false;
    for (let i = 0; i < length; i++) {
      const at = this.position;
      const key = this.#key();
      if (key === "__proto__") throw malformed(at, "the key __proto__");
      if (!isSparse && isIndexLike(key)) {
        isSparse = true;
        makeSparse(object);
      }
      object[key] = this.read(depth + 1);
    }
    if (Object.keys(object).length !== length) throw malformed(start, "a map names a key twice");
    return object;
  }

  #key(): string {
    const at = this.position;
    const token = this.#uint(1);
    if (token >= 0xa0 && token < 0xc0) return this.#string(token & 0x1f);
    if (token >= 0xd9 && token <= 0xdb) return this.#long(token, 0) as string;
    throw malformed(at, "the keys of a map are strings");
  }

  /** Every item takes at least one byte: refuse a larger length before allocating for it. */
  #enter(items: number, depth: number): void {
    if (depth >= ENVELOPE_DEPTH_MAX) {
      throw malformed(
        this.position,
        `structure deeper than ${ENVELOPE_DEPTH_MAX} levels (ENVELOPE_DEPTH_MAX)`,
      );
    }
    if (items > this.#end - this.position) {
      throw truncated(`${items} values`, this.position, this.position + items, this.#end);
    }
    this.#structure.spend(items * VALUE_BYTES);
  }

  #ext(length: number): unknown {
    this.#structure.spend(OBJECT_BYTES);
    const at = this.position;
    const type = this.#uint(1);
    const end = this.#take(length) + length;
    // Read the fields again from the start, with the same checks.
    this.position = end - length;
    const value = this.#extValue(type, at);
    if (this.position !== end) {
      throw malformed(at, `an extension 0x${type.toString(16)} of ${length} bytes`);
    }
    return value;
  }

  #extValue(type: number, at: number): unknown {
    switch (type) {
      case EXT.TENSOR:
        return this.#tensor(at);
      case EXT.RAGGED: {
        const splits = this.#payloads.array(this.#uint(4), "int64", at) as BigInt64Array;
        return new RaggedTensor(this.#tensor(at), splits);
      }
      case EXT.TYPED_ARRAY: {
        const index = this.#uint(4);
        const dtype = DTYPE_OF_CODE[this.#uint(1)];
        if (dtype === undefined || dtype === "bool" || !isFixedDType(dtype)) {
          throw malformed(at, `a typed array of dtype ${dtype ?? "unknown"}`);
        }
        return this.#payloads.array(index, dtype, at);
      }
      case EXT.PAYLOAD:
        return new Payload(this.#payloads.bytes(this.#uint(4), at), {
          isAlone: this.#payloads.isAlone,
          recycle: this.#options.pool?.give,
          cameInSlot: this.#options.cameInSlot,
        });
      default:
        throw malformed(at, `the extension type 0x${type.toString(16)} is unknown`);
    }
  }

  #tensor(at: number): Tensor {
    const index = this.#uint(4);
    const code = this.#uint(1);
    const dtype = DTYPE_OF_CODE[code];
    if (dtype === undefined) throw malformed(at, `the dtype ${code} is unknown`);
    const rank = this.#uint(1);
    if (rank > TENSOR_RANK_MAX) {
      throw malformed(at, `a tensor of ${rank} axes; the limit is ${TENSOR_RANK_MAX}`);
    }
    const shape: number[] = [];
    for (let axis = 0; axis < rank; axis++) shape.push(this.#uint(4));
    if (isFixedDType(dtype)) {
      const data = this.#payloads.array(index, dtype, at);
      if (dtype === "bool" && !areBools(data as Uint8Array)) throw malformed(at, ODD_BOOL);
      return new Tensor(dtype, shape, data);
    }
    const items = this.#items(index, at, dtype === "string");
    return new Tensor(dtype, shape, items as string[] | Uint8Array[]);
  }

  /** Strings or blocks: offsets in payload `index`, the bytes in the next. */
  #items(index: number, at: number, text: boolean): (string | Uint8Array)[] {
    const offsets = this.#payloads.array(index, "uint32", at) as Uint32Array;
    const block = this.#payloads.bytes(index + 1, at);
    const count = offsets.length - 1;
    if (count < 0 || offsets[0] !== 0 || offsets[count] !== block.length) {
      throw malformed(
        at,
        `offsets that do not go from 0 to the ${block.length} bytes of their block`,
      );
    }
    this.#structure.spend(text ? count * VALUE_BYTES + block.length : count * OBJECT_BYTES);
    const items: (string | Uint8Array)[] = [];
    for (let i = 0; i < count; i++) {
      const start = offsets[i]!;
      const end = offsets[i + 1]!;
      if (end < start || end > block.length) throw malformed(at, `offset ${i + 1} is out of order`);
      const item = block.subarray(start, end);
      items.push(text ? textOf(item, at) : item);
    }
    return items;
  }
}

/** An array up to this length is allocated whole. A longer one grows, which wastes less. */
const EXACT_LENGTH_MAX = 16;

// Numbers are read through these, with bytes in the little-endian order of Deno's hosts.
const scratch = new Uint8Array(8);
const asInt8 = new Int8Array(scratch.buffer);
const asInt16 = new Int16Array(scratch.buffer);
const asInt32 = new Int32Array(scratch.buffer);
const asInt64 = new BigInt64Array(scratch.buffer);
const asUint64 = new BigUint64Array(scratch.buffer);
const asFloat32 = new Float32Array(scratch.buffer);
const asFloat64 = new Float64Array(scratch.buffer);
