/**
 * Counter-based random numbers: a draw is a pure function of (seed, labels, index), so it is the
 * same on every host and does not affect other draws. Philox4x32-10 of Salmon et al., "Parallel
 * Random Numbers: As Easy as 1, 2, 3" (SC 2011), section 4.
 */
import { LeatError } from "./error.ts";

/** Four 32-bit words: a Philox counter, or the random words made from it. */
export type PhiloxBlock = readonly [number, number, number, number];

/**
 * Philox4x32-10: maps a counter of four 32-bit words and a key of two to four random 32-bit words.
 * Pure.
 */
export function philox4x32(counter: PhiloxBlock, key: readonly [number, number]): PhiloxBlock {
  const out = [0, 0, 0, 0];
  philoxInto(out, 0, counter[0], counter[1], counter[2], counter[3], key[0], key[1]);
  return [out[0]! >>> 0, out[1]! >>> 0, out[2]! >>> 0, out[3]! >>> 0];
}

/**
 * A stream of draws named by a seed and a path of labels. The draws at (seed, labels, index) depend
 * on nothing else: not on other streams, nor on the thread or host. Forking does not advance the
 * parent, and the order of forks does not matter.
 *
 * `next()` takes two 32-bit words of the stream, and `normal()` four. `int(n)` takes one, or two if
 * `n` is above 2³²; rarely it takes more, to stay unbiased.
 *
 * @example
 * ```ts
 * import { RandomStream } from "./philox.ts";
 *
 * const random = new RandomStream(42n, ["shuffle", 3]);
 * random.int(10); // the same on every host
 * random.fork("augment").next();
 * ```
 */
export class RandomStream {
  /**
   * Words 0 to 3 identify the stream. Words 4 to 7 are the last block that was computed. All are
   * signed integers. A plain array, because there is a stream for each element, and to allocate a
   * typed array takes longer than a draw.
   */
  readonly #words: number[];
  #blockIndex = -1;
  #position = 0;

  /**
   * A stream, at its beginning.
   *
   * @param seed An integer, of which the low 64 bits count (two's complement if negative); a number
   * must be a safe integer. Or a stream, whose seed and labels come before `labels`.
   * @param labels The path of the stream: see {@linkcode RandomStream.fork}.
   */
  constructor(seed: bigint | number | RandomStream, labels: readonly (string | number)[] = []) {
    this.#words = seed instanceof RandomStream ? seed.#words.slice() : seededWords(seed);
    for (const label of labels) absorbLabel(this.#words, label);
  }

  /**
   * The stream whose path has `label` added. Different paths give different streams: `"1"` and `1`
   * differ, and so do `["a", "b"]` and `["ab"]`.
   */
  fork(label: string | number): RandomStream {
    return new RandomStream(this, [label]);
  }

  /**
   * Four words that identify seed and labels: see {@linkcode RandomStream.named}.
   *
   * @ignore
   */
  get name(): PhiloxBlock {
    const [first, second, third, fourth] = this.#words as [number, number, number, number];
    return [first, second, third, fourth];
  }

  /**
   * The stream that has this {@linkcode RandomStream.name}, at its beginning.
   *
   * @ignore
   */
  static named(name: PhiloxBlock): RandomStream {
    const stream = new RandomStream(0);
    stream.#words.splice(0, name.length, ...name.map((word) => word | 0));
    return stream;
  }

  /** How many 32-bit words have been drawn: with the seed and labels, the whole state. */
  get position(): number {
    return this.#position;
  }

  /** Moves to `position` (earlier or later): the index of the next word. */
  seek(position: number): void {
    if (!Number.isSafeInteger(position) || position < 0) {
      throw new LeatError(
        "invalid_argument",
        `a position in a random stream is an integer from 0 up, not ${position}`,
      );
    }
    this.#position = position;
  }

  /** Uniform in [0, 1), with 53 random bits. */
  next(): number {
    const high = this.#word() >>> 5;
    return (high * 0x4000000 + (this.#word() >>> 6)) / 0x20000000000000;
  }

  /**
   * A uniform integer in [0, n), unbiased.
   *
   * @throws {LeatError} `invalid_argument` unless `n` is an integer from 1 to 2⁵³ - 1.
   */
  int(n: number): number {
    if (!Number.isSafeInteger(n) || n < 1) {
      throw new LeatError(
        "invalid_argument",
        `int(n) needs an integer n from 1 to 2^53 - 1, not ${n}`,
      );
    }
    // Draws from the last multiple of n on are rejected: they would favour low results.
    if (n <= 0x100000000) {
      const limit = 0x100000000 - 0x100000000 % n;
      for (;;) {
        const word = this.#word();
        if (word < limit) return word % n;
      }
    }
    const limit = 0x20000000000000 - 0x20000000000000 % n;
    for (;;) {
      const draw = this.next() * 0x20000000000000;
      if (draw < limit) return draw % n;
    }
  }

  /**
   * A normal deviate of mean 0 and variance 1 (Box–Muller). The second of each pair is dropped, so
   * that `position` is the whole state.
   */
  normal(): number {
    const radius = Math.sqrt(-2 * Math.log(1 - this.next()));
    return radius * Math.cos(2 * Math.PI * this.next());
  }

  #word(): number {
    const words = this.#words;
    const position = this.#position++;
    const index = Math.floor(position / 4);
    if (index !== this.#blockIndex) {
      this.#blockIndex = index;
      const indexHigh = Math.floor(index / 0x100000000);
      philoxInto(words, 4, index, indexHigh, words[2]!, words[3]!, words[0]!, words[1]!);
    }
    return words[4 + (position & 3)]! >>> 0;
  }
}

// Multipliers and Weyl increments of the paper's Philox4x32.
const MULTIPLIER_0 = 0xd2511f53;
const MULTIPLIER_1 = 0xcd9e8d57;
const WEYL_0 = 0x9e3779b9;
const WEYL_1 = 0xbb67ae85;
const ROUNDS = 10;

/** Uses int32 arithmetic (no BigInt, no objects), because every random draw runs this function. */
function philoxInto(
  out: number[],
  offset: number,
  c0: number,
  c1: number,
  c2: number,
  c3: number,
  k0: number,
  k1: number,
): void {
  for (let round = 0; round < ROUNDS; round++) {
    const high0 = multiplyHigh(MULTIPLIER_0, c0);
    const low0 = Math.imul(MULTIPLIER_0, c0);
    const high1 = multiplyHigh(MULTIPLIER_1, c2);
    const low1 = Math.imul(MULTIPLIER_1, c2);
    c0 = high1 ^ c1 ^ k0;
    c1 = low1;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 = (k0 + WEYL_0) | 0;
    k1 = (k1 + WEYL_1) | 0;
  }
  out[offset] = c0 | 0;
  out[offset + 1] = c1 | 0;
  out[offset + 2] = c2 | 0;
  out[offset + 3] = c3 | 0;
}

/**
 * The upper 32 bits of the product of two unsigned 32-bit words, computed from 16-bit halves. No
 * partial sum reaches 2³².
 */
function multiplyHigh(a: number, b: number): number {
  const aLow = a & 0xffff;
  const aHigh = a >>> 16;
  const bLow = b & 0xffff;
  const bHigh = b >>> 16;
  const middle = aHigh * bLow + ((aLow * bLow) >>> 16);
  const carry = aLow * bHigh + (middle & 0xffff);
  return aHigh * bHigh + (middle >>> 16) + (carry >>> 16);
}

// First word of each block of an encoded label. Numbers need 21 bits of the second word, so the
// tags are above those bits.
const TAG_SEED = 0x10000000;
const TAG_NUMBER = 0x20000000;
const TAG_STRING = 0x40000000;

function seededWords(seed: bigint | number): number[] {
  if (typeof seed === "number" && !Number.isSafeInteger(seed)) {
    throw new LeatError("invalid_argument", `a seed is a safe integer or a bigint, not ${seed}`);
  }
  const bits = BigInt.asUintN(64, BigInt(seed));
  const state = [TAG_SEED, TAG_SEED, TAG_SEED, TAG_SEED, 0, 0, 0, 0];
  absorb(state, Number(bits & 0xffffffffn), Number(bits >> 32n));
  return state;
}

function absorbLabel(state: number[], label: string | number): void {
  if (typeof label === "number") {
    if (!Number.isSafeInteger(label) || label < 0) {
      throw new LeatError(
        "invalid_argument",
        `a number that labels a random stream is an integer from 0 up, not ${label}`,
      );
    }
    absorb(state, label, TAG_NUMBER + Math.floor(label / 0x100000000));
    return;
  }
  // The length comes first, so that no label is a prefix of another.
  absorb(state, label.length, TAG_STRING);
  for (let i = 0; i < label.length; i += 4) {
    absorb(state, unitsAt(label, i), unitsAt(label, i + 2));
  }
}

/** Two UTF-16 code units as one word; past the end, zeros. */
function unitsAt(text: string, index: number): number {
  const low = index < text.length ? text.charCodeAt(index) : 0;
  const high = index + 1 < text.length ? text.charCodeAt(index + 1) : 0;
  return low | (high << 16);
}

/**
 * One Davies–Meyer step: the state is encrypted under the message block and added to itself, so the
 * step cannot be inverted.
 */
function absorb(state: number[], low: number, high: number): void {
  philoxInto(state, 4, state[0]!, state[1]!, state[2]!, state[3]!, low, high);
  for (let i = 0; i < 4; i++) state[i] = state[i]! ^ state[4 + i]!;
}
