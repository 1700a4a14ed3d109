/** The chunks of a PNG. */

import { nodeZlib } from "../../core/builtins.ts";

export const PNG_SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];

/** Length and type before the data, and the checksum after it. */
const FRAME_BYTES = 12;
const CRC_BYTES = 4;

export interface PngChunk {
  readonly type: string;
  readonly data: Uint8Array;
  /** With length, type and checksum. */
  readonly whole: Uint8Array;
}

/** All chunks up to the end of the picture, as far as they are complete. */
export function pngChunks(bytes: Uint8Array): PngChunk[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const chunks: PngChunk[] = [];
  for (let at = PNG_SIGNATURE.length; at + FRAME_BYTES <= bytes.length;) {
    const end = at + view.getUint32(at) + FRAME_BYTES;
    if (end > bytes.length) break;
    const whole = bytes.subarray(at, end);
    const type = String.fromCharCode(...whole.subarray(4, 8));
    chunks.push({ type, data: whole.subarray(8, -4), whole });
    if (type === "IEND") break;
    at = end;
  }
  return chunks;
}

/** Whether a chunk's checksum is right. */
export function isSound({ whole }: PngChunk): boolean {
  return viewOf(whole).getUint32(whole.length - CRC_BYTES) === crcOf(whole);
}

export function pngChunk(type: string, data: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(FRAME_BYTES + data.length);
  const view = viewOf(whole);
  view.setUint32(0, data.length);
  for (let i = 0; i < type.length; i++) whole[4 + i] = type.charCodeAt(i);
  whole.set(data, 8);
  view.setUint32(whole.length - CRC_BYTES, crcOf(whole));
  return whole;
}

/** The checksum of type and data. */
function crcOf(whole: Uint8Array): number {
  return nodeZlib().crc32(whole.subarray(4, -CRC_BYTES));
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
