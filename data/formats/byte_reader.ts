/**
 * Reading a file from its beginning to its end in chunks, decompressed on the way where it is compressed.
 */

import { createGunzip, createInflate } from "node:zlib";
import { pipeline, Readable } from "node:stream";
import { LeatError } from "../../core/error.ts";
import type { OpenFile } from "../host.ts";

/** How a file is compressed. */
export type Compression = "gzip" | "zlib";

/** The names of all compressions. */
export const COMPRESSIONS: readonly Compression[] = ["gzip", "zlib"];

/** Bytes asked of a file at once; what is buffered beyond the wanted is at most as much. */
export const READ_BYTES = 256 * 1024;

/** Smallest buffer; that of a small file is as large as the file. */
const BUFFER_BYTES_MIN = 1024;

/** Bytes in order. 0 is the end. */
interface ByteSource {
  read(into: Uint8Array): number | Promise<number>;
  close(): void;
}

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
  #position = 0;
  #ended = false;
  #closed = false;

  constructor(path: string, file: OpenFile, compression?: Compression) {
    this.path = path;
    this.stream = compression === undefined ? "" : " of its decompressed contents";
    this.#sizeBytes = compression === undefined ? file.sizeBytes : Infinity;
    this.#buffer = new Uint8Array(
      Math.min(READ_BYTES, Math.max(BUFFER_BYTES_MIN, this.#sizeBytes)),
    );
    this.#source = compression === undefined
      ? new PlainBytes(file)
      : new InflatedBytes(path, file, compression);
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

class PlainBytes implements ByteSource {
  readonly #file: OpenFile;
  #offset = 0;

  constructor(file: OpenFile) {
    this.#file = file;
  }

  read(into: Uint8Array): number | Promise<number> {
    // The size is known: asking a far storage for the end would cost a journey for nothing.
    if (this.#offset >= this.#file.sizeBytes) return 0;
    const read = this.#file.read(into, this.#offset);
    return read instanceof Promise
      ? read.then((count) => this.#advance(count))
      : this.#advance(read);
  }

  close(): void {
    this.#file.close();
  }

  #advance(count: number): number {
    this.#offset += count;
    return count;
  }
}

/** Node's zlib, because a gzip file may have several members, which the web's `DecompressionStream` refuses. */
class InflatedBytes implements ByteSource {
  readonly #path: string;
  readonly #compression: Compression;
  readonly #file: OpenFile;
  readonly #inflate: ReturnType<typeof createGunzip>;
  readonly #chunks: AsyncIterator<Uint8Array>;
  #chunk: Uint8Array = new Uint8Array(0);

  constructor(path: string, file: OpenFile, compression: Compression) {
    this.#path = path;
    this.#compression = compression;
    this.#file = file;
    const options = { chunkSize: READ_BYTES };
    this.#inflate = compression === "gzip" ? createGunzip(options) : createInflate(options);
    // Errors reach the iterator below; the callback is there so that nothing else is told of them.
    pipeline(
      Readable.from(chunksOf(file), { objectMode: true, highWaterMark: 1 }),
      this.#inflate,
      () => {},
    );
    this.#chunks = this.#inflate[Symbol.asyncIterator]();
  }

  read(into: Uint8Array): number | Promise<number> {
    return this.#chunk.length > 0 ? this.#give(into) : this.#nextChunk(into);
  }

  close(): void {
    this.#inflate.destroy();
    this.#file.close();
  }

  async #nextChunk(into: Uint8Array): Promise<number> {
    try {
      const { done, value } = await this.#chunks.next();
      if (done) return 0;
      this.#chunk = value;
      return this.#give(into);
    } catch (cause) {
      if (cause instanceof LeatError) throw cause; // the file could not be read
      throw new LeatError(
        "data_loss",
        `Damaged file ${this.#path}: its ${this.#compression} compression cannot be undone: ${
          LeatError.from(cause).message
        }.`,
        { cause, details: { path: this.#path } },
      );
    }
  }

  #give(into: Uint8Array): number {
    const count = Math.min(into.length, this.#chunk.length);
    into.set(this.#chunk.subarray(0, count));
    this.#chunk = this.#chunk.subarray(count);
    return count;
  }
}

async function* chunksOf(file: OpenFile): AsyncGenerator<Uint8Array> {
  for (let offset = 0; offset < file.sizeBytes;) {
    const chunk = new Uint8Array(READ_BYTES);
    const count = await file.read(chunk, offset);
    if (count === 0) return;
    offset += count;
    yield chunk.subarray(0, count);
  }
}
