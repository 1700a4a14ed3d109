/** The bytes that a `ByteReader` reads: of a plain or a compressed file. */
import type { OpenFile } from "../host.ts";
import type { Compression } from "./compression/compression.ts";
import { PlainBytes } from "./plain_bytes.ts";
import { zlibDecoder } from "./compression/zlib_decoder.ts";

/** Bytes in order. `read` returns 0 at the end. */
export interface ByteSource {
  read(into: Uint8Array): number | Promise<number>;
  /** Skips at most `count` bytes without reading, and returns how many. */
  skip?(count: number): number;
  close(): void;
}

/**
 * Decompressed chunks of a file. Gives everything before any damage; the damage itself is
 * `data_loss` naming the file and the offset.
 */
export interface Decoder {
  next(): Promise<IteratorResult<Uint8Array, unknown>>;
  /** Cancels pending work; idempotent. */
  destroy(): void;
}

/**
 * The contents of a file from `offset` on, which counts decompressed bytes; everything before it is
 * decompressed as well.
 */
export function byteSource(
  path: string,
  file: OpenFile,
  compression: Compression | undefined,
  offset: number,
): ByteSource {
  return compression === undefined
    ? new PlainBytes(path, file, offset)
    : new DecompressedBytes(path, file, compression, offset);
}

/** Loads the zstd decoder only when such a file is read. */
function lateZstdDecoder(path: string, file: OpenFile): Decoder {
  let decoder: Decoder | undefined;
  return {
    async next() {
      decoder ??= (await import("./compression/zstd_decoder.ts")).zstdDecoder(path, file);
      return await decoder.next();
    },
    destroy: () => decoder?.destroy(),
  };
}

class DecompressedBytes implements ByteSource {
  readonly #file: OpenFile;
  readonly #decoder: Decoder;
  #chunk: Uint8Array = new Uint8Array(0);
  /** Bytes still to drop before the requested offset. */
  #unwanted: number;

  constructor(path: string, file: OpenFile, compression: Compression, offset: number) {
    this.#file = file;
    this.#unwanted = offset;
    this.#decoder = compression === "zstd"
      ? lateZstdDecoder(path, file)
      : zlibDecoder(path, file, compression);
  }

  read(into: Uint8Array): number | Promise<number> {
    return this.#chunk.length > 0 ? this.#give(into) : this.#nextChunk(into);
  }

  close(): void {
    this.#decoder.destroy();
    this.#file.close();
  }

  async #nextChunk(into: Uint8Array): Promise<number> {
    for (;;) {
      const { done, value } = await this.#decoder.next();
      if (done) return 0;
      this.#chunk = value.subarray(this.#unwanted);
      this.#unwanted -= value.length - this.#chunk.length;
      if (this.#chunk.length > 0) return this.#give(into);
    }
  }

  #give(into: Uint8Array): number {
    const count = Math.min(into.length, this.#chunk.length);
    into.set(this.#chunk.subarray(0, count));
    this.#chunk = this.#chunk.subarray(count);
    return count;
  }
}
