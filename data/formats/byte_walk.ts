/** Reads the bytes of a file in order, to check them before a library decodes them. */

/** The bytes of an integer of 64 bits. */
const VARINT_BYTES_MAX = 10;

/** A position in bytes, for the walks that skip what they read. */
export class ByteWalk {
  at: number;
  protected readonly bytes: Uint8Array;
  readonly #what: string;

  /** @param what Names the part of the file that these bytes are, in messages. */
  constructor(bytes: Uint8Array, what: string, start = 0) {
    this.bytes = bytes;
    this.#what = what;
    this.at = start;
  }

  /** hyparquet reads integers of any length: as NaN, or in time that grows with the square. */
  protected varint(): number {
    let value = 0;
    for (let i = 0; i < VARINT_BYTES_MAX; i++) {
      const byte = this.byte();
      value += (byte & 0x7f) * 128 ** i;
      if (byte < 128) return value;
    }
    throw new Error(`an integer has more than ${VARINT_BYTES_MAX} bytes`);
  }

  protected byte(): number {
    const byte = this.bytes[this.at];
    if (byte === undefined) throw this.endsWithin();
    this.at++;
    return byte;
  }

  protected endsWithin(): Error {
    return new Error(`it ends within ${this.#what}`);
  }
}
