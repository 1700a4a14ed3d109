/** The numbers of the message format, for writer and reader. `docs/wire.md` specifies them. */

import type { DType } from "../../core/dtype.ts";

/** Payloads begin at multiples of this from their message's start: it aligns every dtype. */
export const PAYLOAD_ALIGNMENT = 64;

/** Before the envelope: `uint32` and the envelope's length. */
export const MESSAGE_HEADER_BYTES = 5;

/** Before a payload: `bin32` and the payload's length. */
export const PAYLOAD_HEADER_BYTES = 5;

/** Of a `Payload` in the envelope: an extension with the payload's number. */
export const PAYLOAD_EXTENSION_BYTES = 7;

/** The default limit of an encoded or decoded message: 1 GiB. Beyond it: `resource_exhausted`. */
export const MESSAGE_BYTES_MAX = 2 ** 30;

/** How deep arrays and maps may nest in an envelope. Beyond it: `invalid_argument`. */
export const ENVELOPE_DEPTH_MAX = 128;

/** A longer `Uint8Array` becomes a payload. The reader accepts any length in the envelope. */
export const INLINE_BYTES_MAX = 255;

/** Limit of the axes of a tensor on the wire. */
export const TENSOR_RANK_MAX = 32;

/** The msgpack tokens that the format names. */
export const TOKEN = {
  NIL: 0xc0,
  BIN8: 0xc4,
  BIN32: 0xc6,
  EXT8: 0xc7,
  FLOAT64: 0xcb,
  UINT32: 0xce,
} as const;

/** The msgpack extension types of payloads. */
export const EXT = {
  /** A typed array: payload u32, dtype u8. */
  TYPED_ARRAY: 0x41,
  /** A `Payload`: payload u32. */
  PAYLOAD: 0x50,
  /** A ragged tensor: row splits' payload u32, then as a tensor. */
  RAGGED: 0x52,
  /** A tensor: payload u32, dtype u8, rank u8, rank × u32. */
  TENSOR: 0x54,
} as const;

/** The dtypes' numbers on the wire. They never change; a new dtype gets a new one. */
export const DTYPE_CODES: Readonly<Record<DType, number>> = {
  int8: 0,
  uint8: 1,
  int16: 2,
  uint16: 3,
  int32: 4,
  uint32: 5,
  int64: 6,
  uint64: 7,
  float16: 8,
  float32: 9,
  float64: 10,
  bool: 11,
  string: 12,
  bytes: 13,
};

/** The dtype of each number. */
export const DTYPE_OF_CODE: readonly DType[] = Object.entries(DTYPE_CODES)
  .sort(([, a], [, b]) => a - b)
  .map(([dtype]) => dtype as DType);

/** Whether bytes are the elements of a bool tensor. */
export function areBools(bytes: Uint8Array): boolean {
  let all = 0;
  for (let i = 0; i < bytes.length; i++) all |= bytes[i]!;
  return all <= 1;
}

export const ODD_BOOL = "a bool tensor has an element that is neither 0 nor 1";

/** The first offset from `position` on at which a payload can begin, with its header before it. */
export function payloadStart(position: number): number {
  return Math.ceil((position + PAYLOAD_HEADER_BYTES) / PAYLOAD_ALIGNMENT) * PAYLOAD_ALIGNMENT;
}
