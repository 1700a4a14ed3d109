/**
 * Message bodies between threads. Structured clone copies plain data. It would corrupt payloads and
 * tensors, so the sender extracts them and the receiver puts them back. It would copy the whole
 * buffer of a view, so the sender copies the view.
 */
import { copyOfArray, isDetached } from "../core/bytes.ts";
import { LeatError } from "../core/error.ts";
import { shownClass } from "../core/shown_text.ts";
import { RaggedTensor, Tensor } from "../core/tensor.ts";
import type { DType, DTypeArrays, TypedArray } from "../core/dtype.ts";
import { Payload } from "./payload.ts";

type Path = readonly (string | number)[];

/** An extracted part of a body, and its position. */
export type ThreadPart =
  | readonly [path: Path, kind: "payload", bytes: Uint8Array, shared: boolean]
  | readonly [path: Path, kind: "tensor", dtype: DType, shape: readonly number[], data: unknown]
  | readonly [
    path: Path,
    kind: "ragged",
    dtype: DType,
    shape: readonly number[],
    data: unknown,
    rowSplits: BigInt64Array,
  ];

/** Deeper structure is refused. */
const DEPTH_MAX = 128;
/** Approximate bytes of a value besides its content. */
const VALUE_BYTES = 16;

/** A body prepared for another thread. */
export class ThreadBody {
  /** The body without the parts. */
  readonly value: unknown;
  readonly parts: ThreadPart[] = [];
  readonly transfer: ArrayBuffer[] = [];
  /** Approximate bytes of the whole body. */
  bytes = 0;
  readonly #kept: boolean;
  readonly #path: (string | number)[] = [];

  /**
   * Copies buffers if `kept`: the sender keeps the body. Else it transfers them.
   * @throws LeatError `invalid_argument` naming the path of a value that is not plain data.
   */
  constructor(body: unknown, kept: boolean) {
    this.#kept = kept;
    this.value = this.#visit(body);
  }

  #visit(value: unknown): unknown {
    this.bytes += VALUE_BYTES;
    switch (typeof value) {
      case "string":
        this.bytes += value.length;
        return value;
      case "function":
      case "symbol":
        throw this.#refusal(`a ${typeof value}`);
      case "object":
        return value === null ? null : this.#visitObject(value);
      default:
        return value;
    }
  }

  #visitObject(value: object): unknown {
    if (this.#path.length >= DEPTH_MAX) throw this.#refusal(`deeper than ${DEPTH_MAX} levels`);
    if (Array.isArray(value)) return this.#visitArray(value);
    if (ArrayBuffer.isView(value)) return this.#visitView(value);
    if (value instanceof Payload) return this.#takePayload(value);
    if (value instanceof Tensor) {
      const { dtype, shape } = value;
      this.parts.push([[...this.#path], "tensor", dtype, shape, this.#visitData(value)]);
      return null;
    }
    if (value instanceof RaggedTensor) {
      const { values, values: { dtype, shape }, rowSplits } = value;
      const data = this.#visitData(values);
      const splits = this.#visitView(rowSplits) as BigInt64Array;
      this.parts.push([[...this.#path], "ragged", dtype, shape, data, splits]);
      return null;
    }
    const prototype = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null) {
      throw this.#refusal(`an instance of ${shownClass(value)}`);
    }
    return this.#visitRecord(value as Record<string, unknown>);
  }

  #visitArray(array: unknown[]): unknown[] {
    let result = array;
    for (let i = 0; i < array.length; i++) {
      const item = array[i];
      this.#path.push(i);
      const visited = this.#visit(item);
      this.#path.pop();
      if (visited === item) continue;
      if (result === array) result = array.slice();
      result[i] = visited;
    }
    return result;
  }

  #visitRecord(record: Record<string, unknown>): Record<string, unknown> {
    let result = record;
    for (const key of Object.keys(record)) {
      if (key === "__proto__") throw this.#refusal("an object with the key __proto__");
      const item = record[key];
      this.#path.push(key);
      const visited = this.#visit(item);
      this.#path.pop();
      if (visited === item) continue;
      if (result === record) result = { ...record };
      result[key] = visited;
    }
    return result;
  }

  #visitData({ data }: Tensor): unknown {
    if (Array.isArray(data)) return this.#visitArray(data);
    const view = data as TypedArray;
    // Threads may share a tensor, which nobody changes.
    if (!(view.buffer instanceof SharedArrayBuffer)) return this.#visitView(view);
    this.bytes += view.byteLength;
    return view;
  }

  /** Structured clone would copy the whole of a larger buffer, and share a `SharedArrayBuffer`. */
  #visitView(view: ArrayBufferView): ArrayBufferView {
    if (isDetached(view)) {
      throw this.#refusal(`a ${view.constructor.name} whose buffer was transferred: send a copy`);
    }
    this.bytes += view.byteLength;
    const { buffer } = view;
    if (buffer instanceof ArrayBuffer && buffer.byteLength === view.byteLength) return view;
    if (view instanceof DataView) {
      return new DataView(buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
    }
    return copyOfArray(view as Uint8Array);
  }

  #takePayload(payload: Payload): null {
    let { bytes } = payload;
    this.bytes += bytes.byteLength;
    const shared = bytes.buffer instanceof SharedArrayBuffer;
    if (!shared) {
      if ((bytes.buffer as ArrayBuffer).detached) {
        throw this.#refusal("a payload that was handed over before");
      }
      // Only a buffer without other content may be transferred, because the sender loses all of it.
      if (!payload.isAlone || payload.shared || this.#kept) bytes = copyOfArray(bytes);
      const buffer = bytes.buffer as ArrayBuffer;
      if (!this.transfer.includes(buffer)) this.transfer.push(buffer);
    }
    this.parts.push([[...this.#path], "payload", bytes, shared]);
    return null;
  }

  #refusal(what: string): LeatError {
    const place = ["body", ...this.#path].join(".");
    return new LeatError(
      "invalid_argument",
      `A message is plain data, but ${place} is ${what}`,
    );
  }
}

/** Puts the parts back into a body that has arrived. */
export function joinThreadBody(value: unknown, parts: readonly ThreadPart[]): unknown {
  const holder: Record<string | number, unknown> = { body: value };
  for (const part of parts) {
    let place = holder;
    let key: string | number = "body";
    for (const next of part[0]) {
      place = place[key] as Record<string | number, unknown>;
      key = next;
    }
    place[key] = partValue(part);
  }
  return holder.body;
}

function partValue(part: ThreadPart): unknown {
  switch (part[1]) {
    case "payload":
      return new Payload(part[2], { shared: part[3], isAlone: !part[3] });
    case "tensor":
      return new Tensor(part[2], part[3], part[4] as DTypeArrays[DType]);
    case "ragged":
      return new RaggedTensor(
        new Tensor(part[2], part[3], part[4] as DTypeArrays[DType]),
        part[5],
      );
  }
}
