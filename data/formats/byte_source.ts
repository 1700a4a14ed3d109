/** Provides the bytes that a `ByteReader` reads, from a plain or a compressed file. */
import type { OpenFile } from "../host.ts";
import type { Compression } from "./compression/compression.ts";
import { plainBytes } from "./plain_bytes.ts";
import { zlibDecoder } from "./compression/zlib_decoder.ts";

/** The bytes of a file, in order. */
export interface ByteSource {
  /** Reads the next bytes, and returns how many; 0 at the end. */
  read(into: Uint8Array): number | Promise<number>;
  /** Skips at most `count` bytes without reading, and returns how many. */
  skip?(count: number): number;
  close(): void;
}

/**
 * Decompresses a file in chunks. Returns everything before any damage, then throws `data_loss` naming
 * the file and the offset.
 */
export interface Decoder {
  next(): Promise<IteratorResult<Uint8Array, unknown>>;
  /** Cancels pending work; idempotent. */
  destroy(): void;
}

/**
 * Opens the contents of a file at `offset`. In a compressed file, `offset` counts decompressed bytes,
 * and everything before it is decompressed as well.
 */
export function byteSource(
  path: string,
  file: OpenFile,
  compression: Compression | undefined,
  offset: number,
): ByteSource {
  return compression === undefined
    ? plainBytes(path, file, offset)
    : decompressedBytes(path, file, compression, offset);
}

/** Loads the module of the zstd decoder only when a file needs it. */
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

function decompressedBytes(
  path: string,
  file: OpenFile,
  compression: Compression,
  offset: number,
): ByteSource {
  const decoder: Decoder = compression === "zstd"
    ? lateZstdDecoder(path, file)
    : zlibDecoder(path, file, compression);
  let chunk: Uint8Array = new Uint8Array(0);
  /** Bytes still to drop before the requested offset. */
  let unwanted = offset;
  const give = (into: Uint8Array) => {
    const count = Math.min(into.length, chunk.length);
    into.set(chunk.subarray(0, count));
    chunk = chunk.subarray(count);
    return count;
  };
  const nextChunk = async (into: Uint8Array) => {
    for (;;) {
      const { done, value } = await decoder.next();
      if (done) return 0;
      chunk = value.subarray(unwanted);
      unwanted -= value.length - chunk.length;
      if (chunk.length > 0) return give(into);
    }
  };
  return {
    read: (into) => chunk.length > 0 ? give(into) : nextChunk(into),
    close: () => {
      decoder.destroy();
      file.close();
    },
  };
}
