/** Copies of message bodies for deliveries within a thread. */
import { copyOfArray, isDetached } from "../../core/bytes.ts";
import { LeatError } from "../../core/error.ts";
import { shownClass } from "../../core/shown_text.ts";
import { RaggedTensor, Tensor } from "../../core/tensor.ts";

/** A class instance that decides itself what the receiver of a message gets. */
interface HandedOver {
  /** The receiver's instance, which it may change. `kept`: the sender will send this one again. */
  handOver(kept: boolean): unknown;
}

/**
 * Copies plain data for the receiver. Tensors are not copied, and {@linkcode HandedOver} values
 * decide themselves: the sender must not write to either. `kept`: the sender will send the body
 * again.
 * @throws LeatError `invalid_argument` naming the path of a value that is not plain data.
 */
export function copyBody(value: unknown, kept = false): unknown {
  switch (typeof value) {
    case "object":
      return value === null ? null : copyObject(value, kept, []);
    case "function":
    case "symbol":
      throw refusal(value, []);
    default:
      return value;
  }
}

/** In a loop over an object's keys this is free, unlike `Object.hasOwn`. */
const hasOwn = Object.prototype.hasOwnProperty;

type Path = (string | number)[];

function copyObject(value: object, kept: boolean, path: Path): unknown {
  if (Array.isArray(value)) return copyArray(value, kept, path);
  if (ArrayBuffer.isView(value)) {
    if (isDetached(value)) throw refusal(value, path);
    return value instanceof DataView ? structuredClone(value) : copyOfArray(value as Uint8Array);
  }
  if (!isPlain(value)) {
    if (isHandedOver(value)) return value.handOver(kept);
    if (value instanceof Tensor || value instanceof RaggedTensor) return value;
    throw refusal(value, path);
  }
  const copy: Record<string, unknown> = {};
  // Faster than a list of the keys. Inherited properties are not part of the message.
  for (const key in value) {
    if (!hasOwn.call(value, key)) continue;
    if (key === "__proto__") throw refusal(value, path);
    copy[key] = copyItem((value as Record<string, unknown>)[key], key, kept, path);
  }
  return copy;
}

/** Whether the object is plain: not an instance of a class. */
function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function copyArray(array: readonly unknown[], kept: boolean, path: Path): unknown[] {
  const copy = new Array<unknown>(array.length);
  for (let i = 0; i < array.length; i++) copy[i] = copyItem(array[i], i, kept, path);
  return copy;
}

function copyItem(item: unknown, key: string | number, kept: boolean, path: Path): unknown {
  if (typeof item !== "object" && typeof item !== "function" && typeof item !== "symbol") {
    return item;
  }
  if (item === null) return null;
  path.push(key);
  if (typeof item !== "object") throw refusal(item, path);
  const copy = copyObject(item, kept, path);
  path.pop();
  return copy;
}

/** Bytes counted for a number, boolean or null, and for each field of an object or item of a list. */
const VALUE_BYTES = 16;

/** Estimates the memory of a body. A Payload or tensor counts with its `byteLength`. */
export function bytesOfBody(value: unknown): number {
  if (typeof value === "string") return VALUE_BYTES + 2 * value.length;
  if (typeof value !== "object" || value === null) return VALUE_BYTES;
  if (!isPlain(value)) {
    const { byteLength } = value as { readonly byteLength?: unknown };
    if (typeof byteLength === "number") return VALUE_BYTES + byteLength;
  }
  let bytes = VALUE_BYTES;
  const items = Array.isArray(value) ? value : Object.values(value);
  for (const item of items) bytes += VALUE_BYTES + bytesOfBody(item);
  return bytes;
}

function refusal(value: unknown, path: Path): LeatError {
  const place = ["body", ...path].join(".");
  const what = ArrayBuffer.isView(value)
    ? `a ${value.constructor.name} whose buffer was transferred: send a copy`
    : typeof value === "object" && value !== null
    ? `an instance of ${shownClass(value)}`
    : `a ${typeof value}`;
  return new LeatError("invalid_argument", `A message is plain data, but ${place} is ${what}`);
}

function isHandedOver(value: object): value is HandedOver {
  return typeof (value as Partial<HandedOver>).handOver === "function";
}
