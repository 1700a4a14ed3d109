/** Decompresses gzip and zlib files, up to the last byte before any damage. */
import { LeatError } from "../../../core/error.ts";
import type { OpenFile } from "../../host.ts";
import type { Decoder } from "../byte_source.ts";
import type { Compression } from "./compression.ts";
import { Inflation } from "./inflation.ts";
import { plainBytes, READ_BYTES } from "../plain_bytes.ts";

/** Bytes decompressed at a time. Their output, at most 1032 times as large, is held in memory. */
const STEP_BYTES = 32 * 1024;
/** Limit of the zeros after a gzip member. A sparse file could have terabytes, which read as no data. */
export const PADDING_BYTES_MAX = 1024 * 1024;

type Zlib = Exclude<Compression, "zstd">;

/** Decompresses a file of one or more members. Zeros after a gzip member are padding. */
export function zlibDecoder(path: string, file: OpenFile, compression: Zlib): Decoder {
  const members = new ZlibMembers(path, file, compression);
  const chunks = members.chunks();
  return { next: () => chunks.next(), destroy: () => members.destroy() };
}

class ZlibMembers {
  readonly #path: string;
  readonly #file: OpenFile;
  readonly #compression: Zlib;
  #inflation: Inflation | undefined;
  #destroyed = false;

  constructor(path: string, file: OpenFile, compression: Zlib) {
    this.#path = path;
    this.#file = file;
    this.#compression = compression;
  }

  async *chunks(): AsyncGenerator<Uint8Array> {
    for (let start = 0; start < this.#file.sizeBytes;) {
      start = yield* this.#stream(start);
      if (this.#compression === "gzip") start = await this.#pastZeros(start);
    }
  }

  destroy(): void {
    this.#destroyed = true;
    this.#inflation?.destroy();
  }

  /**
   * Decompresses the member at `start`, and returns the offset after it. zlib loses the output of the
   * step that meets damage. So the member is decompressed again, with the input of that step byte by
   * byte.
   */
  async *#stream(start: number): AsyncGenerator<Uint8Array, number> {
    let yieldedBytes = 0;
    let soundBytes = Infinity;
    for (;;) {
      const inflation = this.#begin();
      let repeatedBytes = yieldedBytes;
      for await (const input of this.#inputs(start, soundBytes)) {
        for (const chunk of await inflation.take(input)) {
          const fresh = chunk.subarray(repeatedBytes);
          repeatedBytes -= chunk.length - fresh.length;
          yieldedBytes += fresh.length;
          if (fresh.length > 0) yield fresh;
        }
        if (inflation.ended || inflation.error !== undefined) break;
      }
      inflation.destroy();
      if (inflation.error === undefined) return start + inflation.consumed;
      if (soundBytes < Infinity || inflation.error.code !== "Z_DATA_ERROR") {
        throw this.#damaged(start + inflation.consumed, inflation.error);
      }
      soundBytes = inflation.consumed;
    }
  }

  /**
   * Yields the bytes from `start` on, then an empty array. After the first `soundBytes`, each array is
   * one byte.
   */
  async *#inputs(start: number, soundBytes: number): AsyncGenerator<Uint8Array> {
    const bytes = plainBytes(this.#path, this.#file, start);
    const buffer = new Uint8Array(READ_BYTES);
    for (let done = 0;;) {
      const count = await bytes.read(buffer);
      for (let at = 0; at < count;) {
        const step = done < soundBytes ? Math.min(STEP_BYTES, count - at, soundBytes - done) : 1;
        yield buffer.subarray(at, at + step);
        at += step;
        done += step;
      }
      if (count === 0) return yield buffer.subarray(0, 0);
    }
  }

  /**
   * Returns the offset of the first byte from `start` on that is not zero.
   * @throws {LeatError} `data_loss` if there are too many zeros.
   */
  async #pastZeros(start: number): Promise<number> {
    const bytes = plainBytes(this.#path, this.#file, start);
    const buffer = new Uint8Array(READ_BYTES);
    for (let offset = start;;) {
      const count = await bytes.read(buffer);
      const other = buffer.subarray(0, count).findIndex((byte) => byte !== 0);
      if (other >= 0) return offset + other;
      if (count === 0) return offset;
      offset += count;
      if (offset - start > PADDING_BYTES_MAX) throw this.#padded(start);
    }
  }

  #padded(start: number): LeatError {
    return new LeatError(
      "data_loss",
      `Damaged file ${this.#path}: more than ${PADDING_BYTES_MAX} zeros (PADDING_BYTES_MAX) follow ` +
        `the gzip data that ends at byte ${start}. Cut the file off there, or write it again`,
      { details: { path: this.#path, offset: start } },
    );
  }

  #begin(): Inflation {
    if (this.#destroyed) throw new LeatError("cancelled", `Reading ${this.#path} was cancelled.`);
    return this.#inflation = new Inflation(this.#compression);
  }

  #damaged(offset: number, cause: Error): LeatError {
    return new LeatError(
      "data_loss",
      `Damaged file ${this.#path}: its ${this.#compression} compression cannot be undone from byte ` +
        `${offset} on: ${cause.message}.`,
      { cause, details: { path: this.#path, offset } },
    );
  }
}
