/**
 * Plans a message: replaces every value without a msgpack type by raw bytes, and lists the payloads
 * that those bytes refer to. This walk also refuses values that cannot be sent, and names their
 * paths.
 */

import { DETACHED, isDetached } from "../../core/bytes.ts";
import { type DType, dtypeOf, type TypedArray } from "../../core/dtype.ts";
import { LeatError } from "../../core/error.ts";
import { shownClass } from "../../core/shown_text.ts";
import { RaggedTensor, Tensor, utf8Length } from "../../core/tensor.ts";
import { pathText } from "../../core/tree.ts";
import { Payload } from "../payload.ts";
import {
  areBools,
  DTYPE_CODES,
  ENVELOPE_DEPTH_MAX,
  EXT,
  INLINE_BYTES_MAX,
  ODD_BOOL,
  TENSOR_RANK_MAX,
  TOKEN,
} from "./format.ts";

/** Msgpack bytes that go into the envelope unchanged, followed by the bytes of `array`. */
export class RawMsgpack {
  readonly bytes: ArrayLike<number>;
  readonly array: Uint8Array | undefined;

  constructor(bytes: ArrayLike<number>, array?: Uint8Array) {
    this.bytes = bytes;
    this.array = array;
  }
}

/** One payload of a message: bytes, or strings or blocks that are written one after another. */
export interface PayloadPart {
  readonly byteLength: number;
  readonly source: Uint8Array | string[] | Uint8Array[];
  /** Set if the bytes are those of a `Payload`: there may be space for an envelope before them. */
  readonly payload?: Payload;
}

/** -0 as a float64: msgpackr would write the integer 0. */
const NEGATIVE_ZERO = new RawMsgpack([TOKEN.FLOAT64, 0x80, 0, 0, 0, 0, 0, 0, 0]);

const INT64_MIN = -(2n ** 63n);
const UINT64_MAX = 2n ** 64n - 1n;
const UINT32_MAX = 0xffff_ffff;

export class MessagePlan {
  /** In the order in which the envelope names them. */
  readonly parts: PayloadPart[] = [];
  readonly #path: (string | number)[] = [];

  /**
   * The value for msgpackr: `value` itself if plain msgpack can express it, else a shallow copy.
   * @throws {LeatError} `invalid_argument` naming the path of a value that cannot be sent.
   */
  envelope(value: unknown): unknown {
    return this.#visit(value, 0);
  }

  #visit(value: unknown, depth: number): unknown {
    switch (typeof value) {
      case "string":
        if (!value.isWellFormed()) throw this.#refusal(depth, LONE_SURROGATE);
        return value;
      case "number":
        return value === 0 && Object.is(value, -0) ? NEGATIVE_ZERO : value;
      case "boolean":
        return value;
      case "object":
        return value === null ? null : this.#visitObject(value, depth);
      case "bigint":
        if (value < INT64_MIN || value > UINT64_MAX) {
          throw this.#refusal(
            depth,
            "a bigint beyond 64 bits cannot be sent; send its text",
          );
        }
        return value;
      default:
        throw this.#refusal(depth, `${typeof value} ${CANNOT_BE_SENT}`);
    }
  }

  #visitObject(value: object, depth: number): unknown {
    if (Array.isArray(value)) return this.#visitArray(value, depth);
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype === Object.prototype || prototype === null) {
      return this.#visitMap(value as Record<string, unknown>, depth, prototype === null);
    }
    if (value instanceof Tensor) return this.#tensor(value, depth);
    if (value instanceof RaggedTensor) return this.#ragged(value, depth);
    if (value instanceof Payload) return this.#payload(value, depth);
    const dtype = dtypeOf(value);
    if (dtype !== undefined) return this.#typedArray(value as TypedArray, dtype, depth);
    // Generators have it; a Map or a Set has not.
    const remedy = "next" in value ? SEVERAL_ELEMENTS : "";
    throw this.#refusal(depth, `${shownClass(value)} ${CANNOT_BE_SENT}${remedy}`);
  }

  #visitArray(value: readonly unknown[], depth: number): unknown {
    this.#enter(depth);
    // A subclass of Array could have its own toJSON; only its elements are sent.
    let copy: unknown[] | undefined = value.constructor === Array ? undefined : Array.from(value);
    for (let i = 0; i < value.length; i++) {
      const item = value[i];
      this.#path[depth] = i;
      const sent = this.#visit(item, depth + 1);
      if (sent !== item) (copy ??= value.slice())[i] = sent;
    }
    return copy ?? value;
  }

  #visitMap(value: Record<string, unknown>, depth: number, bare: boolean): unknown {
    this.#enter(depth);
    // msgpackr reads `constructor` before it treats an object as plain; Maps avoid that.
    const odd = bare || value.constructor !== Object;
    let changed: Map<string, unknown> | undefined = odd ? new Map() : undefined;
    // V8 specializes a read inside a `for in` to one shape. For objects of other shapes it drops the
    // code and compiles the same again, without end.
    for (const key of Object.keys(value)) {
      const item = value[key];
      this.#path[depth] = key;
      if (item === undefined) {
        changed ??= new Map(Object.entries(value));
        changed.delete(key);
        continue;
      }
      this.#checkKey(key, depth);
      const sent = this.#visit(item, depth + 1);
      if (sent !== item) changed ??= new Map(Object.entries(value));
      changed?.set(key, sent);
    }
    return changed ?? value;
  }

  #checkKey(key: string, depth: number): void {
    if (key === "__proto__") throw this.#refusal(depth + 1, "the key __proto__ cannot be sent");
    if (!key.isWellFormed()) throw this.#refusal(depth + 1, LONE_SURROGATE);
  }

  #tensor(tensor: Tensor, depth: number): RawMsgpack {
    const bytes = ext(EXT.TENSOR);
    this.#putTensor(bytes, tensor, depth);
    return sealed(bytes);
  }

  #ragged(ragged: RaggedTensor, depth: number): RawMsgpack {
    const bytes = ext(EXT.RAGGED);
    putUint32(bytes, this.#addArray(ragged.rowSplits, depth));
    this.#putTensor(bytes, ragged.values, depth);
    return sealed(bytes);
  }

  #putTensor(bytes: number[], tensor: Tensor, depth: number): void {
    const { dtype, shape, data } = tensor;
    if (shape.length > TENSOR_RANK_MAX || shape.some((length) => length > UINT32_MAX)) {
      throw this.#refusal(
        depth,
        `a tensor of shape [${shape}] has more than ${TENSOR_RANK_MAX} axes or one longer than ${UINT32_MAX}`,
      );
    }
    if (dtype === "bool" && !areBools(data as Uint8Array)) throw this.#refusal(depth, ODD_BOOL);
    const index = Array.isArray(data)
      ? this.#addBlock(data as string[] | Uint8Array[], dtype, depth)
      : this.#addArray(data as TypedArray, depth);
    putUint32(bytes, index);
    bytes.push(DTYPE_CODES[dtype], shape.length);
    for (const length of shape) putUint32(bytes, length);
  }

  #typedArray(array: TypedArray, dtype: DType, depth: number): RawMsgpack {
    if (dtype === "uint8" && array.byteLength <= INLINE_BYTES_MAX) {
      this.#checkAttached(array, depth);
      return new RawMsgpack([TOKEN.BIN8, array.byteLength], array as Uint8Array);
    }
    const bytes = ext(EXT.TYPED_ARRAY);
    putUint32(bytes, this.#addArray(array, depth));
    bytes.push(DTYPE_CODES[dtype]);
    return sealed(bytes);
  }

  #payload(payload: Payload, depth: number): RawMsgpack {
    const bytes = ext(EXT.PAYLOAD);
    const { bytes: source, byteLength } = payload;
    putUint32(bytes, this.#push({ byteLength, source, payload }, depth));
    return sealed(bytes);
  }

  #addArray(array: TypedArray, depth: number): number {
    this.#checkAttached(array, depth);
    const { buffer, byteOffset, byteLength } = array;
    return this.#push(
      { byteLength, source: new Uint8Array(buffer, byteOffset, byteLength) },
      depth,
    );
  }

  #checkAttached(array: TypedArray, depth: number): void {
    if (isDetached(array)) {
      throw this.#refusal(depth, `${array.constructor.name} cannot be sent, ${DETACHED}`);
    }
  }

  #push(part: PayloadPart, depth: number): number {
    if (part.byteLength > UINT32_MAX) {
      throw new LeatError(
        "resource_exhausted",
        `${part.byteLength} bytes at ${this.#at(depth)}; one payload holds at most ${UINT32_MAX}`,
      );
    }
    return this.parts.push(part) - 1;
  }

  /** Items as two payloads: offsets (uint32, one more than items), and all items concatenated. */
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
      if (typeof item !== "string") this.#checkAttached(item!, depth);
      byteLength += typeof item === "string" ? utf8Length(item) : item!.byteLength;
      offsets[i + 1] = byteLength;
    }
    const index = this.#addArray(offsets, depth);
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
}

const CANNOT_BE_SENT =
  "cannot be sent; messages are plain objects and arrays of numbers, bigints, booleans, strings, null, typed arrays and tensors";
const SEVERAL_ELEMENTS = "; to give several elements, return a Dataset from flatMap";
const LONE_SURROGATE =
  "a string with half a surrogate pair has no UTF-8; repair it with toWellFormed() or send bytes";

/** An extension whose length {@linkcode sealed} fills in. */
function ext(type: number): number[] {
  return [TOKEN.EXT8, 0, type];
}

function sealed(bytes: number[]): RawMsgpack {
  bytes[1] = bytes.length - 3;
  return new RawMsgpack(bytes);
}

function putUint32(bytes: number[], value: number): void {
  bytes.push(value >>> 24, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff);
}
