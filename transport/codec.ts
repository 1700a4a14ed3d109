/**
 * Messages as bytes: a msgpack envelope followed by the payloads of its tensors, each aligned so
 * that the receiver uses it in place. `docs/wire.md` specifies the format.
 */

import { Buffer } from "node:buffer";
// The subpath resolves to the plain JavaScript build; the package's root reads the environment and
// tries to load a native helper.
import { addExtension, Packr, RESERVE_START_SPACE, RESET_BUFFER_MODE } from "msgpackr/pack";
import { LeatError } from "../core/error.ts";
import {
  MESSAGE_BYTES_MAX,
  MESSAGE_HEADER_BYTES,
  PAYLOAD_HEADER_BYTES,
  payloadStart,
  TOKEN,
} from "./codec/format.ts";
import { MessagePlan, type PayloadPart, RawMsgpack } from "./codec/plan.ts";
import { readMessage } from "./codec/reader.ts";
import type { FramePool, MessageSlab } from "./codec/memory.ts";

export { FramePool, MessageSlab } from "./codec/memory.ts";
export { ENVELOPE_DEPTH_MAX, MESSAGE_BYTES_MAX, PAYLOAD_ALIGNMENT } from "./codec/format.ts";

export interface EncodeOptions {
  /** A larger message is refused before it is allocated. Default {@linkcode MESSAGE_BYTES_MAX}. */
  readonly bytesMax?: number;
  /** The kind of buffer to write into. Default `"arraybuffer"`. */
  readonly into?: "arraybuffer" | "shared";
  /** Places small messages one after another in larger buffers. Default: a buffer for each. */
  readonly slab?: MessageSlab;
  /**
   * Leaves space before a message of {@linkcode LARGE_FROM_BYTES} or more. If another message
   * carries it as a {@linkcode Payload}, the envelope of that message fits there. Default `false`.
   */
  readonly roomForEnvelope?: boolean;
  /** Provides the memory of a message with space for an envelope. Default: new memory. */
  readonly pool?: FramePool;
  /**
   * A message up to this size with a single payload is written into the space before the payload,
   * if there is enough. Then the payload is not copied. Default 0.
   */
  readonly inPlaceBytesMax?: number;
}

export interface DecodeOptions {
  /** A larger message is refused before it is read. Default {@linkcode MESSAGE_BYTES_MAX}. */
  readonly bytesMax?: number;
  /**
   * Limit of a message's structure (texts, lists, maps), counted as `codec/structure.ts` says. A
   * message with more is refused before it takes memory. Default: no limit.
   */
  readonly structureBytesMax?: number;
  /** Copies payloads, so that the result outlives the frame. Default `false`: views of it. */
  readonly copy?: boolean;
  /** Gets a frame's memory back when its only {@linkcode Payload} is released. Default: none. */
  readonly pool?: FramePool;
  /** Marks the {@linkcode Payload}s as received through a slot. Default `false`. */
  readonly cameInSlot?: boolean;
}

/**
 * Encodes a tree of plain objects, arrays, numbers, bigints (64 bits), booleans, strings, null,
 * typed arrays, tensors, ragged tensors and {@linkcode Payload}s. Each payload is copied once, or
 * not at all (`inPlaceBytesMax`). Keys whose value is `undefined` are left out.
 * @returns The message, at the end of a buffer of its own, which may be kept or transferred (but
 * see `slab`). If a payload was not copied, the message is in the buffer of that payload, around
 * it.
 * @throws {LeatError} `invalid_argument` naming the path of a value that cannot be sent:
 * `undefined` in an array, functions, symbols, Map, Set, Date and other class instances, arrays whose
 * buffer was transferred, bigints beyond 64 bits, text with half a surrogate pair, the key
 * `__proto__`, structure deeper than
 * {@linkcode ENVELOPE_DEPTH_MAX}; `resource_exhausted` for a message of more than `bytesMax` bytes.
 */
export function encodeMessage(
  value: unknown,
  options: EncodeOptions & { readonly into: "shared" },
): Uint8Array<SharedArrayBuffer>;
export function encodeMessage(
  value: unknown,
  options?: EncodeOptions & { readonly into?: "arraybuffer" },
): Uint8Array<ArrayBuffer>;
export function encodeMessage(value: unknown, options?: EncodeOptions): Uint8Array;
export function encodeMessage(value: unknown, options: EncodeOptions = NO_OPTIONS): Uint8Array {
  const written = writeEnvelope(value);
  return writeMessage(written, lengthOf(written, options.bytesMax), options);
}

/** A message that is encoded later: until then it takes only the memory of its envelope. */
export interface PreparedMessage {
  readonly byteLength: number;
  readonly envelopeBytes: number;
  /** Encodes the message; call it once. `undefined` if the sender has released a payload since. */
  encode(options: Pick<EncodeOptions, "inPlaceBytesMax">): Uint8Array | undefined;
}

/**
 * Writes the envelope of a message now, and its payloads later: they must not change meanwhile.
 * @throws {LeatError} as {@linkcode encodeMessage} does.
 */
export function prepareMessage(
  value: unknown,
  { bytesMax }: Pick<EncodeOptions, "bytesMax"> = NO_OPTIONS,
): PreparedMessage {
  const { bytes, parts } = writeEnvelope(value);
  const byteLength = lengthOf({ bytes, parts }, bytesMax);
  // Not `slice`: on a Node `Buffer` it returns a view, not a copy.
  const written = { bytes: new Uint8Array(bytes), parts };
  return {
    ...{ byteLength, envelopeBytes: bytes.length },
    encode(options) {
      const isThere = parts.every(({ source, byteLength }) =>
        Array.isArray(source) || source.byteLength === byteLength
      );
      return isThere ? writeMessage(written, byteLength, options) : undefined;
    },
  };
}

/**
 * Decodes one whole message. Tensors and typed arrays are views of `frame`, which therefore must
 * not change any more. Data is copied only if its position in the frame's buffer is not a multiple
 * of its item size. Bytes in the envelope become `Uint8Array`s of their own.
 * @throws {LeatError} `data_loss` for a message that is shorter than it announces;
 * `resource_exhausted` for one of more than `bytesMax` bytes, or with more structure than
 * `structureBytesMax`; `invalid_argument` for anything that no writer of this format writes:
 * trailing bytes, unknown tokens, extensions or dtypes, a payload named twice or never,
 * a shape of another size than its payload, a repeated key or `__proto__`, text that is not UTF-8,
 * structure deeper than {@linkcode ENVELOPE_DEPTH_MAX}. Memory is allocated only for data that is
 * there.
 */
export function decodeMessage(frame: Uint8Array, options: DecodeOptions = NO_OPTIONS): unknown {
  const bytesMax = options.bytesMax ?? MESSAGE_BYTES_MAX;
  if (frame.length > bytesMax) throw tooLarge(frame.length, bytesMax);
  return readMessage(frame, options);
}

/**
 * Encodes like {@linkcode encodeMessage}, into blocks to be written one after another. A payload of
 * at least {@linkcode LARGE_FROM_BYTES} is a block of its own, and not copied: it must not change
 * before it is written.
 */
export function encodeBlocks(
  value: unknown,
  { bytesMax = MESSAGE_BYTES_MAX }: Pick<EncodeOptions, "bytesMax"> = NO_OPTIONS,
): Uint8Array[] {
  const { bytes, parts } = writeEnvelope(value);
  lengthOf({ bytes, parts }, bytesMax);
  const blocks: Uint8Array[] = [];
  // `block` begins at byte `start` of the message. What comes before is in `blocks`.
  let start = 0;
  let position = bytes.length;
  let block = new Uint8Array(blockEnd(parts, 0, position));
  block.set(bytes);
  for (const [index, part] of parts.entries()) {
    const payload = payloadStart(position);
    writePayloadHeader(block, position - start, payload - start, part.byteLength);
    position = payload + part.byteLength;
    if (isOwnBlock(part)) {
      blocks.push(block, part.source);
      start = position;
      block = new Uint8Array(blockEnd(parts, index + 1, position) - start);
    } else writePart(block.subarray(payload - start, position - start), part);
  }
  if (block.length > 0) blocks.push(block);
  return blocks;
}

/** The end of the block that begins before part `index`: where the next large payload begins. */
function blockEnd(parts: readonly PayloadPart[], index: number, position: number): number {
  for (; index < parts.length; index++) {
    const part = parts[index]!;
    position = payloadStart(position);
    if (isOwnBlock(part)) break;
    position += part.byteLength;
  }
  return position;
}

/** Whether a payload is a block of its own, and not copied. */
function isOwnBlock(
  part: PayloadPart,
): part is PayloadPart & { readonly source: Uint8Array } {
  return part.byteLength >= LARGE_FROM_BYTES && part.source instanceof Uint8Array;
}

const NO_OPTIONS = {};

/**
 * From this size on, a message gets space for an envelope, and a payload may be sent uncopied. For
 * smaller ones a copy costs less.
 */
export const LARGE_FROM_BYTES = 64 * 2 ** 10;
/** More than the envelope of an element needs. A multiple of 64 keeps payloads aligned. */
const ENVELOPE_ROOM_BYTES = 1_024;

const encoder = new TextEncoder();

/** The memory around the only payload of a message, if the envelope fits before the payload. */
function aroundPayload(
  parts: readonly PayloadPart[],
  envelopeEnd: number,
  byteLength: number,
  { inPlaceBytesMax = 0 }: EncodeOptions,
): Uint8Array | undefined {
  if (parts.length !== 1 || byteLength > inPlaceBytesMax) return undefined;
  return parts[0]!.payload?.takeRoom(payloadStart(envelopeEnd));
}

function allocate(byteLength: number, options: EncodeOptions): Uint8Array {
  const hasRoom = options.roomForEnvelope === true && byteLength >= LARGE_FROM_BYTES;
  const headroomBytes = hasRoom ? ENVELOPE_ROOM_BYTES : 0;
  const size = headroomBytes + byteLength;
  if (options.into === "shared") {
    return new Uint8Array(new SharedArrayBuffer(size), headroomBytes, byteLength);
  }
  if (headroomBytes === 0) return options.slab?.take(byteLength) ?? new Uint8Array(byteLength);
  const buffer = hasRoom && options.pool !== undefined
    ? options.pool.take(size)
    : new ArrayBuffer(size);
  return new Uint8Array(buffer, headroomBytes, byteLength);
}

/** The bytes of a message. @throws LeatError `resource_exhausted` for more than `bytesMax`. */
function lengthOf({ bytes, parts }: WrittenEnvelope, bytesMax = MESSAGE_BYTES_MAX): number {
  const byteLength = endOf(parts, bytes.length);
  if (byteLength > bytesMax) throw tooLarge(byteLength, bytesMax);
  return byteLength;
}

function writeMessage(
  { bytes, parts }: WrittenEnvelope,
  byteLength: number,
  options: EncodeOptions,
): Uint8Array {
  const frame = aroundPayload(parts, bytes.length, byteLength, options) ??
    allocate(byteLength, options);
  frame.set(bytes);
  if (parts.length > 0) writePayloads(frame, parts, bytes.length);
  return frame;
}

/** The end of a message whose envelope ends at `position`. */
function endOf(parts: readonly PayloadPart[], position: number): number {
  for (const part of parts) position = payloadStart(position) + part.byteLength;
  return position;
}

function writePayloads(frame: Uint8Array, parts: readonly PayloadPart[], position: number): void {
  for (const part of parts) {
    const start = payloadStart(position);
    writePayloadHeader(frame, position, start, part.byteLength);
    position = start + part.byteLength;
    writePart(frame.subarray(start, position), part);
  }
}

function writePart(target: Uint8Array, part: PayloadPart): void {
  const { source } = part;
  if (!Array.isArray(source)) {
    // A payload that the message was written around is in place already. The address must match, too:
    // another payload may be in the same slab.
    const isThere = source.buffer === target.buffer && source.byteOffset === target.byteOffset;
    if (!isThere) target.set(source);
  } else if (typeof source[0] === "string") {
    encoder.encodeInto((source as string[]).join(""), target);
  } else {
    let position = 0;
    for (const block of source as Uint8Array[]) {
      target.set(block, position);
      position += block.byteLength;
    }
  }
}

/** Writes what is between `position` and a payload at `start`: the padding and its header. */
function writePayloadHeader(
  target: Uint8Array,
  position: number,
  start: number,
  byteLength: number,
): void {
  const header = start - PAYLOAD_HEADER_BYTES;
  target.fill(TOKEN.NIL, position, header);
  target[header] = TOKEN.BIN32;
  target[header + 1] = byteLength >>> 24;
  target[header + 2] = byteLength >>> 16;
  target[header + 3] = byteLength >>> 8;
  target[header + 4] = byteLength;
}

function tooLarge(byteLength: number, bytesMax: number): LeatError {
  return new LeatError(
    "resource_exhausted",
    `a message of ${byteLength} bytes is over the limit of ${bytesMax} bytes; send smaller batches or raise the limit`,
    { details: { byteLength, bytesMax } },
  );
}

/** A written envelope, and the payloads after it. */
interface WrittenEnvelope {
  /** The message's header and envelope: a view of memory that msgpackr's next call overwrites. */
  readonly bytes: Uint8Array;
  /** In the order in which the envelope names them. */
  readonly parts: readonly PayloadPart[];
}

/**
 * Writes a message's header and its envelope, which the caller must copy at once.
 * @throws {LeatError} `invalid_argument` naming the path of a value that cannot be sent.
 */
function writeEnvelope(value: unknown): WrittenEnvelope {
  const plan = new MessagePlan();
  const bytes = packr.pack(plan.envelope(value), PACK_MODE);
  bytes[0] = TOKEN.UINT32;
  bytes.writeUInt32BE(bytes.length - MESSAGE_HEADER_BYTES, 1);
  if (bytes.length > POOL_BYTES_MAX) packr.useBuffer(Buffer.allocUnsafeSlow(POOL_BYTES));
  return { bytes, parts: plan.parts };
}

const PACK_MODE = RESERVE_START_SPACE | RESET_BUFFER_MODE | MESSAGE_HEADER_BYTES;

/** `variableMapSize`: without it, an object of more than 65,535 keys gets a wrong length. */
const packr = new Packr({ useRecords: false, variableMapSize: true });

/** msgpackr keeps its buffer. If an envelope made it larger than this, it gets a small one. */
const POOL_BYTES_MAX = 2 ** 20;
const POOL_BYTES = 8192;

// Extensions of msgpackr are global to the process, and the user's code may use msgpackr, too. So
// Leat registers a private class. msgpackr requires a type number: no message can contain 256.
addExtension(
  {
    Class: RawMsgpack,
    type: 256,
    pack(raw: RawMsgpack, allocate: AllocateForWrite) {
      const { bytes, array } = raw;
      const { target, position } = allocate(bytes.length + (array?.length ?? 0));
      for (let i = 0; i < bytes.length; i++) target[position + i] = bytes[i]!;
      if (array !== undefined) target.set(array, position + bytes.length);
    },
  } as unknown as Parameters<typeof addExtension>[0],
);

/** The argument of an extension's `pack` that msgpackr's types leave out. */
type AllocateForWrite = (bytes: number) => { target: Uint8Array; position: number };
