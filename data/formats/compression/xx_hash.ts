/** The hash xxHash32, by which frames of LZ4 are checked. */

const PRIMES = [0x9e3779b1, 0x85ebca77, 0xc2b2ae3d, 0x27d4eb2f, 0x165667b1] as const;
const [P1, P2, P3, P4, P5] = PRIMES;
const LANES = 4;
const STRIPE_BYTES = 4 * LANES;

const rotated = (value: number, bits: number) => value << bits | value >>> (32 - bits);

/** Returns the hash of the bytes with the seed 0. */
export function xxHash32(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  let hash: number = P5;
  if (bytes.length >= STRIPE_BYTES) {
    const lanes = Int32Array.of(P1 + P2, P2, 0, -P1);
    for (; at + STRIPE_BYTES <= bytes.length; at += STRIPE_BYTES) {
      for (let i = 0; i < LANES; i++) {
        const input = Math.imul(view.getUint32(at + 4 * i, true), P2);
        lanes[i] = Math.imul(rotated(lanes[i]! + input | 0, 13), P1);
      }
    }
    const [a, b, c, d] = lanes as unknown as [number, number, number, number];
    hash = rotated(a, 1) + rotated(b, 7) + rotated(c, 12) + rotated(d, 18);
  }
  hash = hash + bytes.length | 0;
  for (; at + 4 <= bytes.length; at += 4) {
    hash = Math.imul(rotated(hash + Math.imul(view.getUint32(at, true), P3) | 0, 17), P4);
  }
  for (; at < bytes.length; at++) {
    hash = Math.imul(rotated(hash + Math.imul(bytes[at]!, P5) | 0, 11), P1);
  }
  hash = Math.imul(hash ^ hash >>> 15, P2);
  hash = Math.imul(hash ^ hash >>> 13, P3);
  return (hash ^ hash >>> 16) >>> 0;
}
