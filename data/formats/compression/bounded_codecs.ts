/** Decompresses data of unknown decompressed size, up to a limit. */
import { Decompress } from "fzstd";
import lz4 from "lz4js";
import { joined } from "../../../core/bytes.ts";
import { LeatError } from "../../../core/error.ts";
import { ZstdFrames } from "./zstd_frames.ts";

const lz4Bound: (data: Uint8Array) => number = lz4.decompressBound;
const decompressLz4: (data: Uint8Array, bytesMax: number) => Uint8Array = lz4.decompress;

/**
 * Decompresses zstd frames. Four bytes may become 128 KiB. Damage throws the library's error.
 *
 * @throws {LeatError} `resource_exhausted` beyond `bytesMax`, naming `limit`.
 */
export function unzstd(data: Uint8Array, bytesMax: number, limit: string): Uint8Array {
  new ZstdFrames().push(data);
  const chunks: Uint8Array[] = [];
  let byteLength = 0;
  const stream = new Decompress((chunk) => {
    byteLength += chunk.length;
    if (byteLength > bytesMax) throw tooLong(bytesMax, limit);
    chunks.push(chunk);
  });
  stream.push(data, true);
  return chunks.length === 1 ? chunks[0]! : joined(chunks);
}

/** Decompresses an LZ4 frame; throws like {@linkcode unzstd}. */
export function unlz4(data: Uint8Array, bytesMax: number, limit: string): Uint8Array {
  const bound = lz4Bound(data);
  if (!(bound <= bytesMax)) throw tooLong(bytesMax, limit);
  return decompressLz4(data, bound);
}

function tooLong(bytesMax: number, limit: string): LeatError {
  return new LeatError(
    "resource_exhausted",
    `it decompresses to more than ${bytesMax} bytes (${limit})`,
  );
}
