/** WebSocket's own framing (RFC 6455, section 5). A client masks its frames, a server does not. */
import { LeatError } from "../../core/error.ts";

/** The kinds of WebSocket frames. */
export const OPCODE = {
  CONTINUATION: 0x0,
  TEXT: 0x1,
  BINARY: 0x2,
  CLOSE: 0x8,
  PING: 0x9,
  PONG: 0xa,
} as const;

const FIN = 0x80;
const RESERVED = 0x70;
const MASKED = 0x80;
const CONTROL = 0x8;
const CONTROL_BYTES_MAX = 125;
const KEY_BYTES = 4;
/** Space for a head: at most 14 bytes, rounded up so that payloads begin on a word boundary. */
const HEAD_ROOM = 16;
/** Copying a larger payload behind its head costs more than a second system call. */
const COPIED_BYTES_MAX = 32 * 2 ** 10;
const NOTHING = new Uint8Array(0);

/** The side of a connection that sent a frame. */
export type Sender = "client" | "server";

export interface FrameHead {
  readonly opcode: number;
  readonly isLast: boolean;
  readonly headBytes: number;
  readonly payloadBytes: number;
  /** The key of a client's frame, as a word in this host's byte order; 0 for a server's. */
  readonly key: number;
}

/**
 * A server frame that carries `head`, then `payload`. A large payload is a second part, uncopied.
 */
export function serverFrame(
  opcode: number,
  payload: Uint8Array,
  head: Uint8Array = NOTHING,
): readonly Uint8Array[] {
  const isCopied = payload.length <= COPIED_BYTES_MAX;
  const bytes = new Uint8Array(HEAD_ROOM + head.length + (isCopied ? payload.length : 0));
  bytes.set(head, HEAD_ROOM);
  if (isCopied) bytes.set(payload, HEAD_ROOM + head.length);
  const start = writeHead(bytes, opcode, head.length + payload.length, HEAD_ROOM, 0);
  const first = bytes.subarray(start);
  return isCopied ? [first] : [first, payload];
}

/** A client frame that carries `head`, then `payload`: both are copied, and masked with `key`. */
export function clientFrame(
  opcode: number,
  payload: Uint8Array,
  key: number,
  head: Uint8Array = NOTHING,
): Uint8Array {
  const length = head.length + payload.length;
  const words = new Uint32Array((HEAD_ROOM + length + 3) >>> 2);
  const bytes = new Uint8Array(words.buffer, 0, HEAD_ROOM + length);
  bytes.set(head, HEAD_ROOM);
  bytes.set(payload, HEAD_ROOM + head.length);
  for (let i = HEAD_ROOM / 4; i < words.length; i++) words[i]! ^= key;
  const start = writeHead(bytes, opcode, length, HEAD_ROOM - KEY_BYTES, MASKED);
  // The mask is applied in words of this host's byte order, so it is written in the same order.
  words[HEAD_ROOM / 4 - 1] = key;
  return bytes.subarray(start);
}

/** Writes a head that ends at `end`, and returns where it begins. */
function writeHead(
  bytes: Uint8Array,
  opcode: number,
  length: number,
  end: number,
  mask: number,
): number {
  const view = new DataView(bytes.buffer);
  const lengthBytes = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  const start = end - 2 - lengthBytes;
  view.setUint8(start, FIN | opcode);
  view.setUint8(start + 1, mask | (lengthBytes === 0 ? length : lengthBytes === 2 ? 126 : 127));
  if (lengthBytes === 2) view.setUint16(start + 2, length);
  if (lengthBytes === 8) view.setBigUint64(start + 2, BigInt(length));
  return start;
}

/**
 * The head of the frame that begins at `start`; `undefined` while it is incomplete.
 * @throws LeatError `invalid_argument` for a head that this sender must not send.
 */
export function readFrameHead(
  bytes: Uint8Array,
  start: number,
  end: number,
  sender: Sender,
): FrameHead | undefined {
  if (end - start < 2) return undefined;
  const first = bytes[start]!;
  const second = bytes[start + 1]!;
  const opcode = first & 0x0f;
  const isLast = (first & FIN) !== 0;
  const isMasked = (second & MASKED) !== 0;
  const short = second & 0x7f;
  if ((first & RESERVED) !== 0 || isMasked !== (sender === "client")) {
    throw broken(
      `a reserved bit, or a ${sender}'s wrong mask bit, in the bytes ${first}, ${second}`,
    );
  }
  if (isControl(opcode) && (!isLast || short > CONTROL_BYTES_MAX)) {
    throw broken(`a control frame in fragments, or of more than ${CONTROL_BYTES_MAX} bytes`);
  }
  const lengthBytes = short < 126 ? 0 : short === 126 ? 2 : 8;
  const headBytes = 2 + lengthBytes + (isMasked ? KEY_BYTES : 0);
  if (end - start < headBytes) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset + start, headBytes);
  const payloadBytes = short < 126
    ? short
    : short === 126
    ? view.getUint16(2)
    : Number(view.getBigUint64(2));
  return {
    opcode,
    isLast,
    headBytes,
    payloadBytes,
    key: isMasked ? keyOf(bytes, start + headBytes) : 0,
  };
}

/** Whether a frame is no part of a message, such as a ping. */
export function isControl(opcode: number): boolean {
  return opcode >= CONTROL;
}

function keyOf(bytes: Uint8Array, end: number): number {
  return new Uint32Array(bytes.slice(end - KEY_BYTES, end).buffer)[0]!;
}

/** Removes the mask from a payload in place. The payload must start where its buffer starts. */
export function unmask(payload: Uint8Array, key: number): void {
  if (key === 0) return;
  const words = new Uint32Array(payload.buffer, 0, payload.length >>> 2);
  for (let i = 0; i < words.length; i++) words[i]! ^= key;
  const tail = new Uint8Array(Uint32Array.of(key).buffer);
  for (let i = words.length * 4; i < payload.length; i++) payload[i]! ^= tail[i % 4]!;
}

/** The error of a peer that violates the WebSocket protocol. */
export function broken(what: string): LeatError {
  return new LeatError("invalid_argument", `Not the WebSocket protocol: ${what}`);
}
