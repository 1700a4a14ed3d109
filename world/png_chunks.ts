/**
 * The chunks that a PNG is made of.
 */

/** What a PNG begins with. */
export const PNG_SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];

const FRAME_BYTES = 12;

/** A chunk. */
export interface PngChunk {
  readonly type: string;
  readonly data: Uint8Array;
  /** With length, type and checksum. */
  readonly whole: Uint8Array;
}

/** All chunks up to the one that ends the picture, as far as they are whole. */
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
