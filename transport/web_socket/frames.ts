/** The frames in WebSocket messages. `docs/wire.md` specifies them. */
import { uint32At } from "../../core/bytes.ts";
import { LeatError } from "../../core/error.ts";

/** The first byte of a frame, its kind. `MESSAGE` is the first byte of every single message. */
export const FRAME = {
  /** Several small messages. */
  BATCH: 0x01,
  /** A part of a large message. */
  FRAGMENT: 0x02,
  /** How many bytes of frames the receiver has consumed so far. */
  ACK: 0x03,
  PING: 0x04,
  PONG: 0x05,
  /** The dialler has created a file for slots. Stands where a message could be, also in a batch. */
  SLOT_FILE: 0x06,
  /** A message is in a slot. Stands where a message could be. */
  IN_SLOT: 0x07,
  /** The message of a slot was copied. Stands where a message could be. */
  SLOT_FREED: 0x08,
  MESSAGE: 0xce,
} as const;

/** The largest message that is sent as one frame; larger ones are sent in fragments. */
export const WHOLE_BYTES_MAX = 4 * 2 ** 20;
/** Bytes of a message in one fragment: they bound how long it delays other pairs' messages. */
export const FRAGMENT_BYTES = 512 * 2 ** 10;
/** Only messages up to this size are gathered into batches. */
export const BATCHED_MESSAGE_BYTES_MAX = 8 * 2 ** 10;
/** A batch of this size is full. A receiver that keeps one message keeps the memory of its batch. */
export const BATCH_BYTES_MAX = 64 * 2 ** 10;
/** A receiver refuses larger frames. */
export const FRAME_BYTES_MAX = WHOLE_BYTES_MAX;
/** Messages of a batch begin at multiples of this, so that their payloads are aligned. */
const BATCH_ALIGNMENT = 64;

export const FRAGMENT_HEADER_BYTES = 21;
const BATCH_HEADER_BYTES = 5;
const ACK_BYTES = 9;

/** Says which part of a message a fragment has. */
export interface FragmentHead {
  readonly id: number;
  readonly offset: number;
  readonly total: number;
}

/** A part of a message. */
export interface Fragment extends FragmentHead {
  readonly data: Uint8Array;
}

/** Copies messages one after another into a frame. */
export function writeBatch(messages: readonly Uint8Array[]): Uint8Array {
  const size = batchBytes(messages);
  const frame = new Uint8Array(size);
  const view = new DataView(frame.buffer);
  frame[0] = FRAME.BATCH;
  view.setUint32(1, messages.length);
  let start = BATCH_HEADER_BYTES + 4 * messages.length;
  for (let i = 0; i < messages.length; i++) {
    const message = messages[i]!;
    view.setUint32(BATCH_HEADER_BYTES + 4 * i, message.length);
    start = aligned(start);
    frame.set(message, start);
    start += message.length;
  }
  return frame;
}

/** Calls `take` with every message of a batch, as a view of the frame. */
export function readBatch(frame: Uint8Array, take: (message: Uint8Array) => void): void {
  const count = frame.length < BATCH_HEADER_BYTES ? 0 : uint32At(frame, 1);
  let start = BATCH_HEADER_BYTES + 4 * count;
  if (count === 0 || start > frame.length) throw malformed(`a batch of ${count} messages`);
  for (let i = 0; i < count; i++) {
    start = aligned(start);
    const end = start + uint32At(frame, BATCH_HEADER_BYTES + 4 * i);
    if (end > frame.length) throw malformed(`a batch whose message ${i} ends beyond it`);
    // Even an empty message takes a hundred bytes of memory.
    if (end === start) throw malformed(`a batch whose message ${i} is empty`);
    take(frame.subarray(start, end));
    start = end;
  }
  if (start !== frame.length) throw malformed("a batch with bytes after its last message");
}

/** The header of a fragment, which its part of the message follows. */
export function fragmentHead(id: number, offset: number, total: number): Uint8Array {
  const head = new Uint8Array(FRAGMENT_HEADER_BYTES);
  const view = new DataView(head.buffer);
  view.setUint8(0, FRAME.FRAGMENT);
  view.setUint32(1, id);
  view.setBigUint64(5, BigInt(offset));
  view.setBigUint64(13, BigInt(total));
  return head;
}

export function readFragment(frame: Uint8Array): Fragment {
  if (frame.length <= FRAGMENT_HEADER_BYTES) throw malformed("a fragment without bytes");
  return { ...readFragmentHead(frame), data: frame.subarray(FRAGMENT_HEADER_BYTES) };
}

/** The head of a fragment whose first {@linkcode FRAGMENT_HEADER_BYTES} bytes are there. */
export function readFragmentHead(frame: Uint8Array): FragmentHead {
  const view = new DataView(frame.buffer, frame.byteOffset, FRAGMENT_HEADER_BYTES);
  return {
    id: view.getUint32(1),
    offset: Number(view.getBigUint64(5)),
    total: Number(view.getBigUint64(13)),
  };
}

/** Acknowledges the bytes of frames consumed since the link began. */
export function writeAck(bytesTaken: number): Uint8Array {
  const frame = new Uint8Array(ACK_BYTES);
  frame[0] = FRAME.ACK;
  new DataView(frame.buffer).setBigUint64(1, BigInt(bytesTaken));
  return frame;
}

/** How many bytes the other side has consumed since the link began. */
export function readAck(frame: Uint8Array): number {
  if (frame.length !== ACK_BYTES) {
    throw malformed(`an acknowledgement of ${frame.length} bytes`);
  }
  return Number(new DataView(frame.buffer, frame.byteOffset).getBigUint64(1));
}

/** The error of a peer that violates the protocol. */
export function malformed(what: string): LeatError {
  return new LeatError("invalid_argument", `Malformed frame: ${what}`);
}

function batchBytes(messages: readonly Uint8Array[]): number {
  let size = BATCH_HEADER_BYTES + 4 * messages.length;
  for (const message of messages) size = aligned(size) + message.length;
  return size;
}

function aligned(position: number): number {
  return Math.ceil(position / BATCH_ALIGNMENT) * BATCH_ALIGNMENT;
}
