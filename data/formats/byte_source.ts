/**
 * Where a `ByteReader` gets its bytes: from a file as it is, or from a compressed one.
 */

import { createGunzip, createInflate } from "node:zlib";
import { pipeline, Readable } from "node:stream";
import { Decompress } from "fzstd";
import { LeatError } from "../../core/error.ts";
import type { OpenFile } from "../host.ts";
import type { Compression } from "./compression.ts";

/** Bytes asked of a file at once; what is buffered beyond the wanted is at most as much. */
export const READ_BYTES = 256 * 1024;

/** Bytes given to zstd at once. All that they decompress to is held, at most 128 KiB for 4 of them. */
const ZSTD_PUSH_BYTES = 8 * 1024;

/** Bytes in order. 0 is the end. */
export interface ByteSource {
  read(into: Uint8Array): number | Promise<number>;
  /** Steps over at most `count` bytes and answers how many, where that needs no reading. */
  skip?(count: number): number;
  close(): void;
}

/** The bytes of a file from `offset` on: in the file, or in what it decompresses to, which is decompressed up to there. */
export function byteSource(
  path: string,
  file: OpenFile,
  compression: Compression | undefined,
  offset: number,
): ByteSource {
  const plain = new PlainBytes(path, file, compression === undefined ? offset : 0);
  return compression === undefined
    ? plain
    : new DecompressedBytes(path, plain, compression, offset);
}

class PlainBytes implements ByteSource {
  readonly #path: string;
  readonly #file: OpenFile;
  #offset: number;

  constructor(path: string, file: OpenFile, offset: number) {
    this.#path = path;
    this.#file = file;
    this.#offset = offset;
  }

  read(into: Uint8Array): number | Promise<number> {
    // The size is known: asking a far storage for the end would cost a journey for nothing.
    if (this.#offset >= this.#file.sizeBytes) return 0;
    const read = this.#file.read(into, this.#offset);
    return read instanceof Promise
      ? read.then((count) => this.#advance(count))
      : this.#advance(read);
  }

  skip(count: number): number {
    const skipped = Math.min(count, Math.max(this.#file.sizeBytes - this.#offset, 0));
    this.#offset += skipped;
    return skipped;
  }

  close(): void {
    this.#file.close();
  }

  #advance(count: number): number {
    if (count === 0) {
      throw new LeatError(
        "data_loss",
        `${this.#path} was cut short while it was read: it had ${this.#file.sizeBytes} bytes when it ` +
          `was opened, and ends at byte ${this.#offset} now.`,
        { details: { path: this.#path } },
      );
    }
    this.#offset += count;
    return count;
  }
}

/** Chunks of what a file decompresses to. */
interface Decoder {
  next(): Promise<IteratorResult<Uint8Array, unknown>>;
  /** Gives up what is going on; idempotent. */
  destroy(): void;
}

class DecompressedBytes implements ByteSource {
  readonly #path: string;
  readonly #compression: Compression;
  readonly #source: ByteSource;
  readonly #decoder: Decoder;
  #chunk: Uint8Array = new Uint8Array(0);
  /** Bytes before the first that is wanted. */
  #unwanted: number;

  constructor(path: string, source: ByteSource, compression: Compression, offset: number) {
    this.#path = path;
    this.#compression = compression;
    this.#source = source;
    this.#unwanted = offset;
    this.#decoder = compression === "zstd" ? zstdDecoder(source) : zlibDecoder(source, compression);
  }

  read(into: Uint8Array): number | Promise<number> {
    return this.#chunk.length > 0 ? this.#give(into) : this.#nextChunk(into);
  }

  close(): void {
    this.#decoder.destroy();
    this.#source.close();
  }

  async #nextChunk(into: Uint8Array): Promise<number> {
    try {
      for (;;) {
        const { done, value } = await this.#decoder.next();
        if (done) return 0;
        this.#chunk = value.subarray(this.#unwanted);
        this.#unwanted -= value.length - this.#chunk.length;
        if (this.#chunk.length > 0) return this.#give(into);
      }
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

/** Node's zlib, because a gzip file may have several members, which the web's `DecompressionStream` refuses. */
function zlibDecoder(source: ByteSource, compression: "gzip" | "zlib"): Decoder {
  const options = { chunkSize: READ_BYTES };
  const inflate = compression === "gzip" ? createGunzip(options) : createInflate(options);
  // Errors reach the iterator below; the callback is there so that nothing else is told of them.
  pipeline(
    Readable.from(chunksOf(source), { objectMode: true, highWaterMark: 1 }),
    inflate,
    () => {},
  );
  const chunks: AsyncIterator<Uint8Array> = inflate[Symbol.asyncIterator]();
  return { next: () => chunks.next(), destroy: () => inflate.destroy() };
}

/**
 * A library, because Deno's `node:zlib` takes the first frame of several for the whole, and a frame that is cut short for a whole one.
 * Neither checks the contents against their checksum.
 */
function zstdDecoder(source: ByteSource): Decoder {
  const chunks = decodeZstd(source);
  return { next: () => chunks.next(), destroy: () => {} };
}

async function* decodeZstd(source: ByteSource): AsyncGenerator<Uint8Array> {
  const decoded: Uint8Array[] = [];
  const stream = new Decompress((chunk) => void decoded.push(chunk));
  for await (const chunk of chunksOf(source)) {
    for (let at = 0; at < chunk.length; at += ZSTD_PUSH_BYTES) {
      stream.push(chunk.subarray(at, at + ZSTD_PUSH_BYTES));
      yield* decoded.splice(0);
    }
  }
  stream.push(new Uint8Array(0), true);
}

async function* chunksOf(source: ByteSource): AsyncGenerator<Uint8Array> {
  for (;;) {
    const chunk = new Uint8Array(READ_BYTES);
    const count = await source.read(chunk);
    if (count === 0) return;
    yield chunk.subarray(0, count);
  }
}
