/**
 * Reading a file from its beginning to its end in chunks, decompressed on the way where it is compressed.
 */

import type { OpenFile } from "../host.ts";
import { type ByteSource, byteSource } from "./byte_source.ts";
import type { Compression } from "./compression.ts";
import type { SourceFile } from "./format_reader.ts";
import { READ_BYTES } from "./plain_bytes.ts";

export { READ_BYTES };

/** Smallest buffer; that of a small file is as large as the file. */
const BUFFER_BYTES_MIN = 1024;

/** A buffer that moves along a file. Answers at once where the file does. */
export class ByteReader {
  /** The file, for messages. */
  readonly path: string;
  /** Where offsets count, for messages: in the file, or in what it decompresses to. */
  readonly stream: string;
  readonly #source: ByteSource;
  readonly #sizeBytes: number;
  #buffer: Uint8Array<ArrayBuffer>;
  #start = 0;
  #stop = 0;
  #position: number;
  #ended = false;
  #closed = false;

  /** @param offset of the first byte to read: in the file, or in what it decompresses to, which is decompressed up to there. */
  constructor(path: string, file: OpenFile, compression?: Compression, offset = 0) {
    this.path = path;
    this.stream = compression === undefined ? "" : " of its decompressed contents";
    this.#sizeBytes = compression === undefined ? file.sizeBytes : Infinity;
    this.#position = offset;
    this.#buffer = new Uint8Array(
      Math.min(READ_BYTES, Math.max(BUFFER_BYTES_MIN, this.#sizeBytes)),
    );
    this.#source = byteSource(path, file, compression, offset);
  }

  /** The bytes of a file from `offset` on, its compression undone. */
  static of({ path, file, compression }: SourceFile, offset = 0): ByteReader {
    return new ByteReader(path, file, compression, offset);
  }

  /** The offset of the next byte. */
  get position(): number {
    return this.#position;
  }

  /** How many bytes are in `buffer` from `start` on. */
  get available(): number {
    return this.#stop - this.#start;
  }

  /** The buffer itself, until the next `fill` or `takeInto`. */
  get buffer(): Uint8Array<ArrayBuffer> {
    return this.#buffer;
  }

  /** Where the next byte stands in `buffer`. */
  get start(): number {
    return this.#start;
  }

  /** Bytes that were in the file, when it was opened, from here on; `Infinity` where it is compressed. */
  get remaining(): number {
    return this.#sizeBytes - this.#position;
  }

  /** Whether `close()` was called; then there is nothing more. */
  get closed(): boolean {
    return this.#closed;
  }

  /**
   * Buffers `count` bytes, fewer only at the end of the file, and answers `available`. The buffer grows to hold them, so the caller
   * has compared `count` with a limit of its own. Where reading fails, what was buffered is given up and the file is over.
   */
  fill(count: number): number | Promise<number> {
    while (this.available < count && !this.#ended) {
      this.#makeRoom(count);
      const read = this.#read(this.#buffer.subarray(this.#stop));
      if (read instanceof Promise) return this.#fillLater(count, read);
      this.#stop += read;
    }
    return this.available;
  }

  /** Steps over `count` buffered bytes. */
  skip(count: number): void {
    this.#start += count;
    this.#position += count;
  }

  /** A copy of the next `count` buffered bytes, then stepped over: a view would keep the whole buffer alive. */
  take(count: number): Uint8Array<ArrayBuffer> {
    const bytes = this.#buffer.slice(this.#start, this.#start + count);
    this.skip(count);
    return bytes;
  }

  /**
   * Fills `into` from here on, without the buffer where it can, and answers how many bytes there were; fewer only at the end.
   */
  takeInto(into: Uint8Array): number | Promise<number> {
    let count = Math.min(into.length, this.available);
    into.set(this.#buffer.subarray(this.#start, this.#start + count));
    this.skip(count);
    while (count < into.length && !this.#ended) {
      const read = this.#read(into.subarray(count));
      if (read instanceof Promise) return this.#takeLater(into, count, read);
      this.#position += read;
      count += read;
    }
    return count;
  }

  /**
   * Steps over `count` bytes, buffered or not, and answers how many there were; fewer only at the end. A file that is not compressed is
   * not read for it.
   */
  pass(count: number): number | Promise<number> {
    const buffered = Math.min(count, this.available);
    this.skip(buffered);
    const left = count - buffered;
    if (left === 0 || this.#ended) return buffered;
    if (this.#source.skip === undefined) return this.#readPast(count, left);
    const skipped = this.#source.skip(left);
    this.#position += skipped;
    return buffered + skipped;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#end();
    this.#source.close();
  }

  async #fillLater(count: number, pending: Promise<number>): Promise<number> {
    const read = await pending;
    if (!this.#closed) this.#stop += read;
    return await this.fill(count);
  }

  async #takeLater(into: Uint8Array, count: number, pending: Promise<number>): Promise<number> {
    const read = await pending;
    this.#position += read;
    return count + read + await this.takeInto(into.subarray(count + read));
  }

  async #readPast(count: number, left: number): Promise<number> {
    while (left > 0 && await this.fill(1) > 0) {
      const buffered = Math.min(left, this.available);
      this.skip(buffered);
      left -= buffered;
    }
    return count - left;
  }

  #read(into: Uint8Array): number | Promise<number> {
    try {
      const read = this.#source.read(into);
      if (read instanceof Promise) return this.#readLater(read);
      if (read === 0) this.#ended = true;
      return read;
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  async #readLater(pending: Promise<number>): Promise<number> {
    try {
      const read = await pending;
      if (read === 0) this.#ended = true;
      return read;
    } catch (error) {
      // Nobody waits for what a closed file had to say.
      if (this.#closed) return 0;
      this.#end();
      throw error;
    }
  }

  #end(): void {
    this.#ended = true;
    this.#start = this.#stop = 0;
  }

  #makeRoom(count: number): void {
    const kept = this.#buffer.subarray(this.#start, this.#stop);
    if (count > this.#buffer.length) {
      // Doubled, or a long line would be copied once for every chunk of it.
      const grown = new Uint8Array(Math.max(count, 2 * this.#buffer.length));
      grown.set(kept);
      this.#buffer = grown;
    } else if (this.#start > 0) this.#buffer.copyWithin(0, this.#start, this.#stop);
    this.#start = 0;
    this.#stop = kept.length;
  }
}
