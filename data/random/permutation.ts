/** Permutations of 0, 1, … n - 1 that are computed index by index, in constant memory. */
import type { RandomStream } from "../../core/philox.ts";

/** Four rounds are secure for long blocks (Luby and Rackoff); short blocks need more to look random. */
const ROUNDS = 12;

/**
 * A pseudorandom permutation: a Feistel network over the least power of two that is at least n. A
 * result of n or more goes through it again until it is smaller (cycle walking): on average at most two
 * passes.
 */
export class Permutation {
  readonly #count: number;
  /** An index has an upper and a lower part. The width of the lower, in bits. */
  readonly #lowBits: number;
  readonly #highMask: number;
  readonly #lowMask: number;
  readonly #keys: Uint32Array;

  /** `count`: at most 2⁵³ - 1. The keys are drawn from `random` here, once. */
  constructor(count: number, random: RandomStream) {
    const bits = bitsOf(count - 1);
    const highBits = Math.floor(bits / 2);
    this.#count = count;
    this.#lowBits = bits - highBits;
    this.#highMask = 2 ** highBits - 1;
    this.#lowMask = 2 ** this.#lowBits - 1;
    this.#keys = Uint32Array.from({ length: ROUNDS }, () => random.int(2 ** 32));
  }

  /** The value at `index`, an integer from 0 to n - 1. */
  at(index: number): number {
    const highFactor = 2 ** this.#lowBits;
    let value = index;
    do {
      let high = Math.floor(value / highFactor);
      let low = value % highFactor;
      for (let round = 0; round < ROUNDS; round += 2) {
        high ^= mixed(low, this.#keys[round]!) & this.#highMask;
        low ^= mixed(high, this.#keys[round + 1]!) & this.#lowMask;
      }
      value = high * highFactor + low;
    } while (value >= this.#count);
    return value;
  }
}

function bitsOf(value: number): number {
  let bits = 0;
  for (let rest = value; rest >= 1; rest /= 2) bits++;
  return bits;
}

/** 32 bits, each of which depends on all of `word` and `key` (the finaliser of MurmurHash3). */
function mixed(word: number, key: number): number {
  let hash = word ^ key;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
