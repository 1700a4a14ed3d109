/**
 * WebSocket's own framing (RFC 6455, section 5) from a client's point of view.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";

/** What a frame of the WebSocket protocol is. */
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
/** Room for the longest header, so that payloads begin on a word. */
const HEADER_ROOM = 16;

/** The head of a frame that a server sent. */
export interface FrameHead {
  readonly opcode: number;
  readonly isLast: boolean;
  readonly headBytes: number;
  readonly payloadBytes: number;
}

/** A whole frame, masked with `key` as every client's are. The payload is copied. */
export function clientFrame(opcode: number, payload: Uint8Array, key: number): Uint8Array {
  const { length } = payload;
  const words = new Uint32Array((HEADER_ROOM + length + 3) >>> 2);
  const bytes = new Uint8Array(words.buffer);
  bytes.set(payload, HEADER_ROOM);
  for (let i = HEADER_ROOM / 4; i < words.length; i++) words[i]! ^= key;
  const lengthBytes = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  const start = HEADER_ROOM - 6 - lengthBytes;
  const view = new DataView(words.buffer);
  view.setUint8(start, FIN | opcode);
  view.setUint8(start + 1, MASKED | (lengthBytes === 0 ? length : lengthBytes === 2 ? 126 : 127));
  if (lengthBytes === 2) view.setUint16(start + 2, length);
  if (lengthBytes === 8) view.setBigUint64(start + 2, BigInt(length));
  // The mask is applied in words of this host's byte order, so it is written in the same.
  new Uint8Array(words.buffer, HEADER_ROOM - 4, 4).set(new Uint8Array(Uint32Array.of(key).buffer));
  return bytes.subarray(start, HEADER_ROOM + length);
}

/**
 * The head of the frame that begins at `start`; `undefined` while it is incomplete.
 *
 * @throws LeatError `invalid_argument` for what no server sends.
 */
export function readFrameHead(
  bytes: Uint8Array,
  start: number,
  end: number,
): FrameHead | undefined {
  if (end - start < 2) return undefined;
  const first = bytes[start]!;
  const second = bytes[start + 1]!;
  const opcode = first & 0x0f;
  const isLast = (first & FIN) !== 0;
  const short = second & 0x7f;
  if ((first & RESERVED) !== 0 || (second & MASKED) !== 0) {
    throw broken(`a frame that begins with ${first}, ${second}`);
  }
  if (opcode >= CONTROL && (!isLast || short > CONTROL_BYTES_MAX)) {
    throw broken("a control frame in parts");
  }
  const headBytes = 2 + (short < 126 ? 0 : short === 126 ? 2 : 8);
  if (end - start < headBytes) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset + start, headBytes);
  const payloadBytes = short < 126
    ? short
    : short === 126
    ? view.getUint16(2)
    : Number(view.getBigUint64(2));
  return { opcode, isLast, headBytes, payloadBytes };
}

/** The other side does not keep to the WebSocket protocol. */
export function broken(what: string): LeatError {
  return new LeatError("invalid_argument", `Not the WebSocket protocol: ${what}`);
}
