/** A bit set with one bit for each consumer of the job. */

export class ConsumerSet {
  readonly #words: Uint32Array;
  #size = 0;

  constructor(numConsumers: number) {
    this.#words = new Uint32Array(Math.ceil(numConsumers / 32));
  }

  get size(): number {
    return this.#size;
  }

  get byteLength(): number {
    return this.#words.byteLength;
  }

  has(index: number): boolean {
    return (this.#words[index >> 5]! & (1 << (index & 31))) !== 0;
  }

  /** Returns false if the set already contains the consumer. */
  add(index: number): boolean {
    if (this.has(index)) return false;
    this.#words[index >> 5]! |= 1 << (index & 31);
    this.#size++;
    return true;
  }

  /** The size of the union with the other set. */
  sizeWith(other: ConsumerSet): number {
    let size = 0;
    for (let i = 0; i < this.#words.length; i++) size += onesIn(this.#words[i]! | other.#words[i]!);
    return size;
  }

  equals(other: ConsumerSet): boolean {
    if (this.#size !== other.#size) return false;
    for (let i = 0; i < this.#words.length; i++) {
      if (this.#words[i] !== other.#words[i]) return false;
    }
    return true;
  }
}

function onesIn(word: number): number {
  let ones = 0;
  for (let left = word; left !== 0; left &= left - 1) ones++;
  return ones;
}
