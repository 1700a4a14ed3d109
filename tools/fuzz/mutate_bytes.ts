/** Mutates bytes, with changes that often find faults in readers of binary formats. */
import { joined } from "../../core/bytes.ts";
import type { SimRandom } from "../../sim/engine/random.ts";

/** Maximum size of a mutant. */
const BYTES_MAX = 64 * 1024;
/** Maximum number of changes in a mutant. */
const CHANGES_MAX = 4;

/** Numbers at which sizes, counts and signs often go wrong. */
const NUMBERS = [
  ...[0n, 1n, 2n, 0x7fn, 0x80n, 0xffn, 0x7fffn, 0x8000n, 0xffffn, 1n << 20n, 0x7fffffffn],
  ...[0x80000000n, 0xfffffffen, 0xffffffffn, (1n << 53n) - 1n, 1n << 53n, (1n << 63n) - 1n],
  ...[1n << 63n, (1n << 64n) - 1n],
] as const;
/** Texts that often go wrong in place of a number. */
const TEXTS = ["-1", "0", "1e309", "NaN", "99999999999999999999", "2147483648", "\0", "\ufeff"];

/** Returns the input with one to `CHANGES_MAX` changes. */
export function mutateBytes(
  input: Uint8Array,
  random: SimRandom,
  seeds: readonly Uint8Array[],
): Uint8Array {
  let bytes = input;
  for (let changes = 1 + random.int(CHANGES_MAX); changes > 0; changes--) {
    bytes = change(bytes, random, seeds);
  }
  return bytes.subarray(0, BYTES_MAX);
}

function change(
  bytes: Uint8Array,
  random: SimRandom,
  seeds: readonly Uint8Array[],
): Uint8Array {
  const at = random.int(bytes.length + 1);
  switch (random.int(10)) {
    case 0:
      return at < bytes.length ? written(bytes, at, [bytes[at]! ^ 1 << random.int(8)]) : bytes;
    case 1:
      return written(bytes, at, [random.pick([0, 1, 0x7f, 0x80, 0xff, random.int(256)])]);
    case 2:
    case 3:
      return written(bytes, at, numberBytes(random, bytes.length));
    case 4:
      return spliced(bytes, at, lengthOf(random, bytes.length - at), new Uint8Array());
    case 5: {
      const part = bytes.subarray(at, at + lengthOf(random, bytes.length - at));
      return spliced(bytes, random.int(bytes.length + 1), 0, part);
    }
    case 6: {
      const noise = Uint8Array.from({ length: 1 + random.int(16) }, () => random.int(256));
      return spliced(bytes, at, 0, noise);
    }
    case 7:
      return random.chance(0.3) ? bytes.slice(0, at) : bytes;
    case 8: {
      const other = seeds[random.int(seeds.length)]!;
      const from = random.int(other.length + 1);
      const part = other.subarray(from, from + lengthOf(random, other.length - from));
      return spliced(bytes, at, random.chance(0.5) ? part.length : 0, part);
    }
    default: {
      const text = new TextEncoder().encode(TEXTS[random.int(TEXTS.length)]!);
      const digits = digitsFrom(bytes, at);
      return digits === undefined
        ? spliced(bytes, at, 0, text)
        : spliced(bytes, digits.start, digits.length, text);
    }
  }
}

/** Draws the length of a part, which is mostly short. */
function lengthOf(random: SimRandom, max: number): number {
  return random.int(Math.min(max, random.chance(0.8) ? 16 : 4_096) + 1);
}

function numberBytes(random: SimRandom, length: number): Uint8Array {
  const near = BigInt(Math.max(0, length + random.int(5) - 2));
  const number = random.chance(0.2) ? near : NUMBERS[random.int(NUMBERS.length)]!;
  const width = random.pick([1, 2, 4, 8]);
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt.asUintN(64, number), true);
  const cut = bytes.slice(0, width);
  return random.chance(0.5) ? cut : cut.reverse();
}

function written(bytes: Uint8Array, at: number, part: ArrayLike<number>): Uint8Array {
  const start = Math.max(0, Math.min(at, bytes.length - part.length));
  return spliced(bytes, start, part.length, Uint8Array.from(part));
}

function spliced(bytes: Uint8Array, at: number, removed: number, part: Uint8Array): Uint8Array {
  return joined([bytes.subarray(0, at), part, bytes.subarray(at + removed)]);
}

/** Finds the first decimal number at or after `from`. */
function digitsFrom(
  bytes: Uint8Array,
  from: number,
): { readonly start: number; readonly length: number } | undefined {
  const isDigit = (at: number) => bytes[at]! >= 0x30 && bytes[at]! <= 0x39;
  let start = from;
  while (start < bytes.length && !isDigit(start)) start++;
  if (start === bytes.length) return undefined;
  let end = start;
  while (end < bytes.length && isDigit(end)) end++;
  return { start, length: end - start };
}
