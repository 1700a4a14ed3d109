/** Byte arrays, and numbers of a fixed number of bytes. */
import type { TypedArray } from "./dtype.ts";
import { LeatError } from "./error.ts";

/** The parts one after the other, in new memory. */
export function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Up to this many unused bytes of a buffer may be kept alive by a view of it. */
export const BESIDE_BYTES_MAX = 4_096;

/**
 * Returns an array to keep for long. A view keeps its whole buffer alive, for example a large message,
 * so `view` is copied if the rest of its buffer is larger than both `view` and `besideBytesMax`.
 */
export function ownBytes<A extends TypedArray>(view: A, besideBytesMax = BESIDE_BYTES_MAX): A {
  const { byteLength, buffer } = view;
  const besideBytes = buffer.byteLength - byteLength;
  return besideBytes > byteLength && besideBytes > besideBytesMax ? copyOfArray(view) : view;
}

/**
 * The array in memory of its own. Its own `slice` may give a view: that of a `Buffer` of Node.js does.
 *
 * @throws {LeatError} `failed_precondition` if its buffer was transferred.
 */
export function copyOfArray<A extends TypedArray>(array: A): A {
  if (isDetached(array)) {
    const { name } = array.constructor;
    throw new LeatError("failed_precondition", `A ${name} cannot be copied, ${DETACHED}`);
  }
  return Uint8Array.prototype.slice.call(array) as TypedArray as A;
}

/** The end of errors about an array that {@linkcode isDetached}. */
export const DETACHED =
  "because its buffer was transferred and its content is lost; transfer a copy, which slice() makes";

/** Whether the array's buffer was transferred, which empties the array: its content is lost. */
export function isDetached(array: ArrayBufferView): boolean {
  // The length comes first, because V8 allocates a buffer for a small array that is asked for it.
  // A DataView would throw when it is asked for its length.
  const mayBe = array instanceof DataView || array.byteLength === 0;
  return mayBe && array.buffer instanceof ArrayBuffer && array.buffer.detached;
}

const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });
const STRICT_DECODER = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true });

/** The text of UTF-8; `undefined` for other bytes. A byte order mark stays. */
export function utf8Text(bytes: Uint8Array): string | undefined {
  const text = DECODER.decode(bytes);
  // The strict decoder is slower. A text may have this character, too.
  if (!text.includes("\ufffd")) return text;
  try {
    return STRICT_DECODER.decode(bytes);
  } catch {
    return undefined;
  }
}

/** The unsigned big-endian integer in the four bytes at `at`. */
export function uint32At(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 24 | bytes[at + 1]! << 16 | bytes[at + 2]! << 8 | bytes[at + 3]!) >>> 0;
}

/** The lowest 64 bits as 16 hexadecimal digits. */
export function hexOf64(bits: bigint): string {
  return BigInt.asUintN(64, bits).toString(16).padStart(16, "0");
}
