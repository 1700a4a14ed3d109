/**
 * What a receiver reads of a message, computed by copying instead of encoding: the copy and the
 * size that the bytes would have. Encoding and decoding would otherwise take most of a run's time.
 */
import {
  ENVELOPE_DEPTH_MAX,
  MESSAGE_HEADER_BYTES,
  PAYLOAD_EXTENSION_BYTES,
  payloadStart,
} from "../../transport/codec/format.ts";
import type { MessageSlab } from "../../transport/codec.ts";
import { Payload } from "../../transport/payload.ts";

/** A message as its receiver gets it. */
export interface MessageCopy {
  readonly value: unknown;
  /** Size according to the codec, if all text is ASCII. */
  readonly byteLength: number;
  /** The same without the texts of errors, so that other words for one give the same trace. */
  readonly tracedLength: number;
  /** A digest of its numbers, which distinguishes most messages of one size. */
  readonly mark: number;
}

/** Above it the codec needs more bytes for the length of texts and maps. */
const SHORT_TEXT_MAX = 31;
const SHORT_MAP_MAX = 15;

/** A reference as receivers get it, and its encoded size. */
interface RefCopy {
  readonly copy: object;
  readonly bytes: number;
}

/** An actor's reference is in all its messages, so it is copied only once. */
const refs = new WeakMap<object, RefCopy>();

/** State of the current copy; global, because a message is copied synchronously. */
let envelopeBytes = 0;
let errorTextBytes = 0;
let mark = 0;
let payloadBytes: number[] = [];
let payloadSlab: MessageSlab;

/**
 * Equals `decodeMessage(encodeMessage(value))` for a message of plain data and payloads.
 * @returns `undefined` for any other message, and for one that cannot be sent: the codec handles
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

/** Copies a reference, which is all text. Receivers do not modify it. */
function copyRef(ref: unknown): unknown {
  if (typeof ref !== "object" || ref === null) return copyItem(ref, 0);
  let known = refs.get(ref);
  if (known === undefined) {
    const before = envelopeBytes;
    const copy = copyObject(ref, 1);
    if (copy === undefined) return undefined;
    known = { copy, bytes: envelopeBytes - before };
    refs.set(ref, known);
    envelopeBytes = before;
  }
  envelopeBytes += known.bytes;
  return known.copy;
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

/** The item if it is plain data; otherwise `undefined`. */
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

/** The copy gets its own bytes within a larger buffer, as in a decoded message. */
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

/** The encoded size according to msgpackr. */
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
