/**
 * The writer: one walk over a value that writes its msgpack, gathers the payloads that go behind it,
 * and refuses what cannot travel, by its path.
 *
 * @module
 */

import { type DType, dtypeOf, type TypedArray } from "../../core/dtype.ts";
import { LeatError } from "../../core/error.ts";
import { RaggedTensor, Tensor, utf8Length } from "../../core/tensor.ts";
import { pathText } from "../../core/tree.ts";
import { Payload } from "../payload.ts";
import {
  DTYPE_CODES,
  ENVELOPE_DEPTH_MAX,
  EXT,
  INLINE_BYTES_MAX,
  MESSAGE_HEADER_BYTES,
  TENSOR_RANK_MAX,
  TOKEN,
} from "./format.ts";

/** One payload of a message: bytes, or strings or blocks that are written one after another. */
export interface PayloadPart {
  readonly byteLength: number;
  readonly source: Uint8Array | string[] | Uint8Array[];
  /** What the bytes were given as, if they may have room for the envelope before them. */
  readonly payload?: Payload;
}

const INT64_MAX = 2n ** 63n - 1n;
const INT64_MIN = -(2n ** 63n);
const UINT64_MAX = 2n ** 64n - 1n;
const UINT32_MAX = 0xffff_ffff;

/** Shorter text is written unit by unit: most of it is ASCII, and a call of the encoder costs more. */
const SHORT_TEXT_LENGTH = 64;
/** The most bytes before a string's, and the most that one of its units becomes. */
const TEXT_HEADER_BYTES_MAX = 5;
const UNIT_BYTES_MAX = 3;

/**
 * The writer keeps the bytes of the largest envelope it ever wrote; after one beyond this it begins
 * again with its usual size.
 */
const POOL_BYTES_MAX = 2 ** 20;
const POOL_BYTES = 8192;

/** Before the fields of an extension: its token, length and type. */
const EXT_HEADER_BYTES = 3;

const encoder = new TextEncoder();

/** Writes one envelope after the other, each over the one before. */
export class EnvelopeWriter {
  #bytes = new Uint8Array(POOL_BYTES);
  #view = new DataView(this.#bytes.buffer);
  #position = 0;
  #parts: PayloadPart[] = [];
  readonly #path: (string | number)[] = [];

  /** The payloads of what was last written, in the order in which it names them. */
  get parts(): readonly PayloadPart[] {
    return this.#parts;
  }

  /**
   * Writes a message's header and its envelope.
   *
   * @returns A view that is good until `release`.
   * @throws {LeatError} `invalid_argument` naming the path of what cannot travel.
   */
  write(value: unknown): Uint8Array {
    this.release();
    this.#position = MESSAGE_HEADER_BYTES;
    this.#write(value, 0);
    this.#bytes[0] = TOKEN.UINT32;
    this.#view.setUint32(1, this.#position - MESSAGE_HEADER_BYTES);
    return this.#bytes.subarray(0, this.#position);
  }

  /** Lets go of the payloads, and of more room than most envelopes take. */
  release(): void {
    if (this.#parts.length > 0) this.#parts = [];
    if (this.#bytes.length > POOL_BYTES_MAX) this.#resize(POOL_BYTES);
  }

  #write(value: unknown, depth: number): void {
    switch (typeof value) {
      case "string":
        return this.#writeText(value, depth);
      case "number":
        return this.#writeNumber(value);
      case "boolean":
        return this.#put8(value ? TOKEN.TRUE : TOKEN.FALSE);
      case "object":
        return value === null ? this.#put8(TOKEN.NIL) : this.#writeObject(value, depth);
      case "bigint":
        return this.#writeBigInt(value, depth);
      default:
        throw this.#refusal(depth, `${typeof value} ${CANNOT_TRAVEL}`);
    }
  }

  #writeNumber(value: number): void {
    if (value >>> 0 === value && !Object.is(value, -0)) {
      if (value < 0x80) this.#put8(value);
      else if (value < 0x100) this.#put8(TOKEN.UINT8, value);
      else if (value < 0x10000) this.#put16(TOKEN.UINT16, value);
      else this.#put32(TOKEN.UINT32, value);
    } else if (value < 0 && (value | 0) === value) {
      if (value >= -0x20) this.#put8(value);
      else if (value >= -0x80) this.#put8(TOKEN.INT8, value);
      else if (value >= -0x8000) this.#put16(TOKEN.INT16, value);
      else this.#put32(TOKEN.INT32, value);
    } else {
      this.#reserve(9);
      this.#bytes[this.#position] = TOKEN.FLOAT64;
      this.#view.setFloat64(this.#position + 1, value);
      this.#position += 9;
    }
  }

  #writeBigInt(value: bigint, depth: number): void {
    if (value < INT64_MIN || value > UINT64_MAX) {
      throw this.#refusal(
        depth,
        "a bigint beyond 64 bits has no place in a message; send its text",
      );
    }
    this.#reserve(9);
    this.#bytes[this.#position] = value > INT64_MAX ? TOKEN.UINT64 : TOKEN.INT64;
    this.#view.setBigUint64(this.#position + 1, BigInt.asUintN(64, value));
    this.#position += 9;
  }

  #writeText(text: string, depth: number): void {
    this.#reserve(TEXT_HEADER_BYTES_MAX + UNIT_BYTES_MAX * text.length);
    if (text.length < SHORT_TEXT_LENGTH && this.#writeAscii(text)) return;
    if (!text.isWellFormed()) throw this.#refusal(depth, LONE_SURROGATE);
    const bytes = this.#bytes;
    const start = this.#position;
    // Where the text begins if all of it is ASCII.
    const guess = start + textHeaderBytes(text.length);
    const { written } = encoder.encodeInto(text, bytes.subarray(guess));
    const header = textHeaderBytes(written);
    if (start + header !== guess) bytes.copyWithin(start + header, guess, guess + written);
    this.#putTextHeader(written);
    this.#position = start + header + written;
  }

  /** Writes text if it is ASCII; otherwise nothing. */
  #writeAscii(text: string): boolean {
    const bytes = this.#bytes;
    const { length } = text;
    const start = this.#position + textHeaderBytes(length);
    for (let i = 0; i < length; i++) {
      const unit = text.charCodeAt(i);
      if (unit >= 0x80) return false;
      bytes[start + i] = unit;
    }
    this.#putTextHeader(length);
    this.#position = start + length;
    return true;
  }

  #putTextHeader(byteLength: number): void {
    if (byteLength < 0x20) this.#put8(TOKEN.FIXSTR | byteLength);
    else if (byteLength < 0x100) this.#put8(TOKEN.STR8, byteLength);
    else if (byteLength < 0x10000) this.#put16(TOKEN.STR16, byteLength);
    else this.#put32(TOKEN.STR32, byteLength);
  }

  #writeObject(value: object, depth: number): void {
    if (Array.isArray(value)) return this.#writeArray(value, depth);
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype === Object.prototype || prototype === null) {
      return this.#writeMap(value as Record<string, unknown>, depth);
    }
    if (value instanceof Tensor) return this.#writeTensor(value, depth);
    if (value instanceof RaggedTensor) return this.#writeRagged(value, depth);
    if (value instanceof Payload) return this.#writePayload(value, depth);
    const dtype = dtypeOf(value);
    if (dtype !== undefined) return this.#writeTypedArray(value as TypedArray, dtype, depth);
    throw this.#refusal(depth, `${value.constructor?.name ?? "an object"} ${CANNOT_TRAVEL}`);
  }

  #writeArray(value: readonly unknown[], depth: number): void {
    this.#enter(depth);
    const { length } = value;
    if (length < 0x10) this.#put8(TOKEN.FIXARRAY | length);
    else if (length < 0x10000) this.#put16(TOKEN.ARRAY16, length);
    else this.#put32(TOKEN.ARRAY32, length);
    for (let i = 0; i < length; i++) {
      this.#path[depth] = i;
      this.#write(value[i], depth + 1);
    }
  }

  #writeMap(value: Record<string, unknown>, depth: number): void {
    this.#enter(depth);
    const keys = Object.keys(value);
    if (keys.length >= 0x10) return this.#writeLongMap(Object.entries(value), depth);
    const start = this.#position;
    this.#put8(TOKEN.FIXMAP);
    let length = 0;
    for (const key of keys) {
      const item = value[key];
      if (item === undefined) continue;
      this.#writeEntry(key, item, depth);
      length++;
    }
    this.#bytes[start] = TOKEN.FIXMAP | length;
  }

  #writeLongMap(all: readonly (readonly [string, unknown])[], depth: number): void {
    const entries = all.filter(([, item]) => item !== undefined);
    const { length } = entries;
    if (length < 0x10) this.#put8(TOKEN.FIXMAP | length);
    else if (length < 0x10000) this.#put16(TOKEN.MAP16, length);
    else this.#put32(TOKEN.MAP32, length);
    for (const [key, item] of entries) this.#writeEntry(key, item, depth);
  }

  #writeEntry(key: string, item: unknown, depth: number): void {
    this.#path[depth] = key;
    if (key === "__proto__") throw this.#refusal(depth + 1, "the key __proto__ cannot travel");
    this.#writeText(key, depth + 1);
    this.#write(item, depth + 1);
  }

  #writeTensor(tensor: Tensor, depth: number): void {
    const start = this.#beginExt(EXT.TENSOR);
    this.#putTensor(tensor, depth);
    this.#endExt(start);
  }

  #writeRagged(ragged: RaggedTensor, depth: number): void {
    const start = this.#beginExt(EXT.RAGGED);
    this.#putUint32(this.#add(bytesOf(ragged.rowSplits), depth));
    this.#putTensor(ragged.values, depth);
    this.#endExt(start);
  }

  #putTensor(tensor: Tensor, depth: number): void {
    const { dtype, shape, data } = tensor;
    if (shape.length > TENSOR_RANK_MAX || shape.some((length) => length > UINT32_MAX)) {
      throw this.#refusal(
        depth,
        `a tensor of shape [${shape}] has more than ${TENSOR_RANK_MAX} axes or one longer than ${UINT32_MAX}`,
      );
    }
    const index = Array.isArray(data)
      ? this.#addBlock(data as string[] | Uint8Array[], dtype, depth)
      : this.#add(bytesOf(data as TypedArray), depth);
    this.#putUint32(index);
    this.#put8(DTYPE_CODES[dtype], shape.length);
    for (const length of shape) this.#putUint32(length);
  }

  #writeTypedArray(array: TypedArray, dtype: DType, depth: number): void {
    if (dtype === "uint8" && array.byteLength <= INLINE_BYTES_MAX) {
      this.#put8(TOKEN.BIN8, array.byteLength);
      this.#reserve(array.byteLength);
      this.#bytes.set(array as Uint8Array, this.#position);
      this.#position += array.byteLength;
      return;
    }
    const start = this.#beginExt(EXT.TYPED_ARRAY);
    this.#putUint32(this.#add(bytesOf(array), depth));
    this.#put8(DTYPE_CODES[dtype]);
    this.#endExt(start);
  }

  #writePayload(payload: Payload, depth: number): void {
    const start = this.#beginExt(EXT.PAYLOAD);
    const { bytes: source, byteLength } = payload;
    this.#putUint32(this.#push({ byteLength, source, payload }, depth));
    this.#endExt(start);
  }

  /** Begins an extension whose length `#endExt` fills in. */
  #beginExt(type: number): number {
    const start = this.#position;
    this.#put8(TOKEN.EXT8, 0);
    this.#put8(type);
    return start;
  }

  #endExt(start: number): void {
    this.#bytes[start + 1] = this.#position - start - EXT_HEADER_BYTES;
  }

  #add(source: Uint8Array, depth: number): number {
    return this.#push({ byteLength: source.byteLength, source }, depth);
  }

  #push(part: PayloadPart, depth: number): number {
    if (part.byteLength > UINT32_MAX) {
      throw new LeatError(
        "resource_exhausted",
        `${part.byteLength} bytes at ${this.#at(depth)}; one payload holds at most ${UINT32_MAX}`,
      );
    }
    return this.#parts.push(part) - 1;
  }

  /**
   * Strings or blocks as two payloads: where each begins (uint32, one more than there are), and all
   * of them in a row.
   */
  #addBlock(items: string[] | Uint8Array[], dtype: DType, depth: number): number {
    const offsets = new Uint32Array(items.length + 1);
    let byteLength = 0;
    for (let i = 0; i < items.length; i++) {
      const item = items[i];
      if (dtype === "string" ? typeof item !== "string" : !(item instanceof Uint8Array)) {
        throw this.#refusal(depth, `element ${i} of a ${dtype} tensor is ${typeof item}`);
      }
      if (typeof item === "string" && !item.isWellFormed()) {
        throw this.#refusal(depth, `element ${i}: ${LONE_SURROGATE}`);
      }
      byteLength += typeof item === "string" ? utf8Length(item) : item!.byteLength;
      offsets[i + 1] = byteLength;
    }
    const index = this.#add(bytesOf(offsets), depth);
    this.#push({ byteLength, source: items }, depth);
    return index;
  }

  #enter(depth: number): void {
    if (depth < ENVELOPE_DEPTH_MAX) return;
    throw this.#refusal(
      depth,
      `structure deeper than ${ENVELOPE_DEPTH_MAX} levels (ENVELOPE_DEPTH_MAX) or circular`,
    );
  }

  #refusal(depth: number, what: string): LeatError {
    return new LeatError("invalid_argument", `cannot encode ${this.#at(depth)}: ${what}`);
  }

  #at(depth: number): string {
    return pathText(this.#path.slice(0, depth));
  }

  /** One byte, or two. */
  #put8(first: number, second?: number): void {
    this.#reserve(2);
    this.#bytes[this.#position++] = first;
    if (second !== undefined) this.#bytes[this.#position++] = second;
  }

  #put16(token: number, value: number): void {
    this.#reserve(3);
    this.#bytes[this.#position] = token;
    this.#view.setUint16(this.#position + 1, value);
    this.#position += 3;
  }

  #put32(token: number, value: number): void {
    this.#put8(token);
    this.#putUint32(value);
  }

  #putUint32(value: number): void {
    this.#reserve(4);
    this.#view.setUint32(this.#position, value);
    this.#position += 4;
  }

  #reserve(count: number): void {
    const needed = this.#position + count;
    if (needed > this.#bytes.length) this.#resize(Math.max(needed, 2 * this.#bytes.length));
  }

  #resize(byteLength: number): void {
    const bytes = new Uint8Array(byteLength);
    if (byteLength > this.#bytes.length) bytes.set(this.#bytes.subarray(0, this.#position));
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer);
  }
}

const CANNOT_TRAVEL =
  "has no place in a message; messages are plain objects and arrays of numbers, bigints, booleans, strings, null, typed arrays and tensors";
const LONE_SURROGATE =
  "a string with half a surrogate pair has no UTF-8; mend it with toWellFormed() or send bytes";

function bytesOf(array: TypedArray): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

function textHeaderBytes(byteLength: number): number {
  return byteLength < 0x20 ? 1 : byteLength < 0x100 ? 2 : byteLength < 0x10000 ? 3 : 5;
}
