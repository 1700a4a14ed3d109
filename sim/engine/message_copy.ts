/**
 * Copies a message, with the result of encoding and decoding it, and computes its encoded size. The
 * codec would otherwise take most of a run's time.
 */
import {
  ENVELOPE_DEPTH_MAX,
  MESSAGE_HEADER_BYTES,
  PAYLOAD_EXTENSION_BYTES,
  payloadStart,
} from "../../transport/codec/format.ts";
import type { MessageSlab } from "../../transport/codec.ts";
import { Payload } from "../../transport/payload.ts";

/** A message as its receiver decodes it. */
export interface MessageCopy {
  readonly value: unknown;
  /** Encoded size, if all text is ASCII. */
  readonly byteLength: number;
  /** The encoded size without the texts of errors, so that a reworded error keeps the trace. */
  readonly tracedLength: number;
  /** A digest of its numbers, which distinguishes most messages of one size. */
  readonly mark: number;
}

/** Above these lengths, the codec needs more bytes for the length of a text or map. */
const SHORT_TEXT_MAX = 31;
const SHORT_MAP_MAX = 15;

/** A reference as its receiver decodes it, and its encoded size. */
interface RefCopy {
  readonly copy: object;
  readonly bytes: number;
}

/** Copies of references, because an actor's reference is in all its messages. */
const refs = new WeakMap<object, RefCopy>();

/** State of the current copy. It can be global, because a message is copied synchronously. */
let envelopeBytes = 0;
let errorTextBytes = 0;
let mark = 0;
let payloadBytes: number[] = [];
let payloadSlab: MessageSlab;

/**
 * Copies a message of plain data and payloads, as `decodeMessage(encodeMessage(value))` does.
 * @returns `undefined` for any other message, and for a message that cannot be sent. The codec handles
 * these.
 */
export function copyMessage(value: object, slab: MessageSlab): MessageCopy | undefined {
  envelopeBytes = MESSAGE_HEADER_BYTES;
  errorTextBytes = 0;
  mark = 0;
  payloadSlab = slab;
  if (payloadBytes.length > 0) payloadBytes = [];
  const copy = copyObject(value, 0);
  if (copy === undefined) return undefined;
  let byteLength = envelopeBytes;
  for (const bytes of payloadBytes) byteLength = payloadStart(byteLength) + bytes;
  return { value: copy, byteLength, tracedLength: byteLength - errorTextBytes, mark };
}

function copyObject(value: object, depth: number): object | undefined {
  if (depth >= ENVELOPE_DEPTH_MAX) return undefined;
  if (Array.isArray(value)) return copyArray(value, depth);
  if (Object.getPrototypeOf(value) !== Object.prototype) {
    return value instanceof Payload ? copyPayload(value) : undefined;
  }
  const copy: Record<string, unknown> = {};
  let fields = 0;
  for (const key in value) {
    const item = (value as Record<string, unknown>)[key];
    if (item === undefined) continue;
    if (key === "__proto__" || !key.isWellFormed()) return undefined;
    const isRef = depth === 0 && (key === "source" || key === "target");
    const before = envelopeBytes;
    const sent = isRef ? copyRef(item) : copyItem(item, depth);
    if (sent === undefined) return undefined;
    if (key === "message" && "code" in value) errorTextBytes += envelopeBytes - before;
    copy[key] = sent;
    fields++;
    addText(key);
  }
  envelopeBytes += fields <= SHORT_MAP_MAX ? 1 : 3;
  return copy;
}

/** Copies a reference, which consists of text. Receivers do not modify the copy. */
function copyRef(ref: unknown): unknown {
  if (typeof ref !== "object" || ref === null) return copyItem(ref, 0);
  let cached = refs.get(ref);
  if (cached === undefined) {
    const before = envelopeBytes;
    const copy = copyObject(ref, 1);
    if (copy === undefined) return undefined;
    cached = { copy, bytes: envelopeBytes - before };
    refs.set(ref, cached);
    envelopeBytes = before;
  }
  envelopeBytes += cached.bytes;
  return cached.copy;
}

function copyArray(array: readonly unknown[], depth: number): unknown[] | undefined {
  if ((array as object).constructor !== Array) return undefined;
  const copy: unknown[] = [];
  for (let i = 0; i < array.length; i++) {
    const sent = copyItem(array[i], depth);
    if (sent === undefined) return undefined;
    copy.push(sent);
  }
  envelopeBytes += array.length <= SHORT_MAP_MAX ? 1 : 3;
  return copy;
}

/** Copies an item if it is plain data; otherwise returns `undefined`. */
function copyItem(item: unknown, depth: number): unknown {
  switch (typeof item) {
    case "string":
      if (!item.isWellFormed()) return undefined;
      addText(item);
      return item;
    case "number":
      addNumber(item);
      return item;
    case "boolean":
      envelopeBytes++;
      mark = Math.imul(mark, 31) + (item ? 1 : 2) | 0;
      return item;
    case "object":
      if (item !== null) return copyObject(item, depth + 1);
      envelopeBytes++;
      return null;
    default:
      return undefined;
  }
}

/** Copies a payload. Its bytes are part of a larger buffer, as in a decoded message. */
function copyPayload({ bytes }: Payload): Payload {
  envelopeBytes += PAYLOAD_EXTENSION_BYTES;
  payloadBytes.push(bytes.length);
  const copy = payloadSlab.take(bytes.length) ?? new Uint8Array(bytes.length);
  copy.set(bytes);
  return new Payload(copy, { isAlone: false });
}

function addText({ length }: string): void {
  envelopeBytes += length;
  if (length <= SHORT_TEXT_MAX) envelopeBytes++;
  else envelopeBytes += length < 2 ** 8 ? 2 : length < 2 ** 16 ? 3 : 5;
}

function addNumber(value: number): void {
  envelopeBytes += numberBytes(value);
  // Times often differ only in their fractions.
  mark = Math.imul(mark, 31) + value * 1_024 | 0;
}

/** Returns the size of a number as msgpackr encodes it. */
function numberBytes(value: number): number {
  if (value !== Math.trunc(value) || Object.is(value, -0)) return 9;
  if (value >= 0) {
    if (value < 2 ** 7) return 1;
    if (value < 2 ** 8) return 2;
    if (value < 2 ** 16) return 3;
    return value < 2 ** 32 ? 5 : 9;
  }
  if (value >= -(2 ** 5)) return 1;
  if (value >= -(2 ** 7)) return 2;
  if (value >= -(2 ** 15)) return 3;
  return value >= -(2 ** 31) ? 5 : 9;
}
