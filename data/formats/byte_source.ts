/**
 * Where a `ByteReader` gets its bytes: from a file as it is, or from a compressed one.
 */

import type { OpenFile } from "../host.ts";
import type { Compression } from "./compression.ts";
import { PlainBytes } from "./plain_bytes.ts";
import { zlibDecoder } from "./zlib_decoder.ts";

/** Bytes in order. 0 is the end. */
export interface ByteSource {
  read(into: Uint8Array): number | Promise<number>;
  /** Steps over at most `count` bytes and answers how many, where that needs no reading. */
  skip?(count: number): number;
  close(): void;
}

/**
 * Chunks of what a file decompresses to: all that can be had before any damage, which then is
 * `data_loss` naming the file and the offset.
 */
export interface Decoder {
  next(): Promise<IteratorResult<Uint8Array, unknown>>;
  /** Gives up what is going on; idempotent. */
  destroy(): void;
}

/** The bytes of a file from `offset` on: in the file, or in what it decompresses to, which is decompressed up to there. */
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

/** Its program is loaded by those who read such files. */
function lateZstdDecoder(path: string, file: OpenFile): Decoder {
  let decoder: Decoder | undefined;
  return {
    async next() {
      decoder ??= (await import("./zstd_decoder.ts")).zstdDecoder(path, file);
      return await decoder.next();
    },
    destroy: () => decoder?.destroy(),
  };
}

class DecompressedBytes implements ByteSource {
  readonly #file: OpenFile;
  readonly #decoder: Decoder;
  #chunk: Uint8Array = new Uint8Array(0);
  /** Bytes before the first that is wanted. */
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
