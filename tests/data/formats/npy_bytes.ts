/** Writes .npy files byte by byte, for tests of their readers. */

import { concat } from "./reading.ts";

/** How a header is written. */
export interface NpyOptions {
  readonly version?: 1 | 2 | 3;
  readonly fortranOrder?: boolean;
  /** Replaces the whole dictionary. */
  readonly header?: string;
}

/** A .npy file with the given stored elements. */
export function npyBytes(
  descr: string,
  shape: readonly number[],
  elements: ArrayBufferView,
  { version = 1, fortranOrder = false, header }: NpyOptions = {},
): Uint8Array<ArrayBuffer> {
  const axes = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  const dictionary = header ??
    `{'descr': '${descr}', 'fortran_order': ${
      fortranOrder ? "True" : "False"
    }, 'shape': (${axes}), }`;
  const prefixBytes = version === 1 ? 10 : 12;
  // NumPy pads with spaces, so that the elements begin at a multiple of 64, and ends with a newline.
  const text = new TextEncoder().encode(dictionary);
  const length = Math.ceil((prefixBytes + text.length + 1) / 64) * 64 - prefixBytes;
  const padded = new Uint8Array(length).fill(0x20);
  padded.set(text);
  padded[length - 1] = 0x0a;
  const prefix = new Uint8Array(prefixBytes);
  prefix.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, version, 0]);
  const view = new DataView(prefix.buffer);
  if (version === 1) view.setUint16(8, length, true);
  else view.setUint32(8, length, true);
  const { buffer, byteOffset, byteLength } = elements;
  return concat(prefix, padded, new Uint8Array(buffer, byteOffset, byteLength));
}
