/**
 * Decompresses blocks of LZ4, because hyparquet-compressors misreads the lengths of matches, and lz4js
 * reads zeros where a length or an offset is damaged.
 */
import { ByteWalk } from "../byte_walk.ts";

const MATCH_BYTES_MIN = 4;
/** Bits of a token that hold the length of a match. The others hold the number of literals. */
const MATCH_BITS = 4;
/** This length in a token is continued by the next bytes, of which the last is not 255. */
const LENGTH_MAX = 15;
/** A block begins with a literal, so its first byte is at least this. */
const TOKEN_MIN = 1 << MATCH_BITS;

/**
 * Decompresses a page of codec LZ4_RAW: a bare block.
 *
 * @throws {Error} if the block is damaged, or its content does not have `sizeBytes`.
 */
export function unlz4Block(page: Uint8Array, sizeBytes: number): Uint8Array {
  const blocks = new Lz4Blocks(page, sizeBytes);
  blocks.block(page.length);
  return blocks.end();
}

/**
 * Decompresses a page of codec LZ4: blocks in Hadoop's framing, or a bare block of an old Arrow.
 *
 * @throws {Error} as {@linkcode unlz4Block} does.
 */
export function unlz4Hadoop(page: Uint8Array, sizeBytes: number): Uint8Array {
  // Writers frame no content in several ways.
  if (sizeBytes === 0) return new Uint8Array(0);
  // Hadoop's framing begins with a size in big-endian order. With this first byte, it would be at
  // least 256 MiB.
  if (page[0]! >= TOKEN_MIN) return unlz4Block(page, sizeBytes);
  const blocks = new Lz4Blocks(page, sizeBytes);
  blocks.frames();
  return blocks.end();
}

/** Decompresses blocks into one content of at most `sizeBytes`. */
export class Lz4Blocks extends ByteWalk {
  readonly #content: Uint8Array;
  #length = 0;

  constructor(page: Uint8Array, sizeBytes: number) {
    super(page, "a block of LZ4");
    this.#content = new Uint8Array(sizeBytes);
  }

  /** The content so far, which keeps no larger memory. */
  get content(): Uint8Array {
    const isWhole = this.#length === this.#content.length;
    return isWhole ? this.#content : this.#content.slice(0, this.#length);
  }

  /** Walks frames: the size of the content, then blocks of it, each after its own size. */
  frames(): void {
    while (this.at < this.bytes.length) {
      const stop = this.#length + this.#size();
      while (this.#length < stop) {
        const bytes = this.#size();
        if (bytes > this.bytes.length - this.at) throw this.endsWithin();
        this.block(this.at + bytes);
      }
    }
  }

  /** Copies the content of a block that is not compressed, and ends at `stop`. */
  stored(stop: number): void {
    this.#copyLiterals(stop - this.at, stop);
  }

  /** Decompresses the block that ends at `stop`. @param start Where the content begins that it may repeat. */
  block(stop: number, start = this.#length): void {
    while (this.at < stop) {
      const token = this.byte();
      this.#copyLiterals(this.#lengthOf(token >> MATCH_BITS), stop);
      // The last token has no match.
      if (this.at === stop) break;
      const offset = this.byte() | this.byte() << 8;
      if (offset === 0 || offset > this.#length - start) {
        throw new Error(
          `a match of LZ4 begins ${offset} bytes before byte ${this.#length - start}`,
        );
      }
      this.#copyMatch(offset, this.#lengthOf(token & LENGTH_MAX) + MATCH_BYTES_MIN);
    }
    if (this.at > stop) throw this.endsWithin();
  }

  /** Returns the content. */
  end(): Uint8Array {
    const { length } = this.#content;
    if (this.#length === length) return this.#content;
    throw new Error(`its header claims ${length} decompressed bytes, and it has ${this.#length}`);
  }

  #size(): number {
    let size = 0;
    for (let i = 0; i < 4; i++) size = size * 256 + this.byte();
    return size;
  }

  #lengthOf(nibble: number): number {
    let length = nibble;
    if (nibble < LENGTH_MAX) return length;
    for (let byte = 255; byte === 255;) {
      byte = this.byte();
      length += byte;
    }
    return length;
  }

  #copyLiterals(count: number, stop: number): void {
    if (count > stop - this.at) throw this.endsWithin();
    this.#checkSpace(count);
    this.#content.set(this.bytes.subarray(this.at, this.at + count), this.#length);
    this.at += count;
    this.#length += count;
  }

  /** A match may overlap what it copies. */
  #copyMatch(offset: number, count: number): void {
    this.#checkSpace(count);
    const content = this.#content;
    const stop = this.#length + count;
    for (let at = this.#length; at < stop; at++) content[at] = content[at - offset]!;
    this.#length = stop;
  }

  #checkSpace(count: number): void {
    const { length } = this.#content;
    if (count <= length - this.#length) return;
    throw new Error(`it decompresses to more than the ${length} bytes that its header claims`);
  }
}
