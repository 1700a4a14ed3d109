/** Decompresses data of unknown decompressed size, up to a limit. */
import lz4 from "lz4js";
import { nodeZlib } from "../../../core/builtins.ts";
import { joined } from "../../../core/bytes.ts";
import { LeatError } from "../../../core/error.ts";
import { FRAME_MAGIC_BYTES, ZstdFrames } from "./zstd_frames.ts";

const lz4Bound: (data: Uint8Array) => number = lz4.decompressBound;
const decompressLz4: (data: Uint8Array, bytesMax: number) => Uint8Array = lz4.decompress;

/** Bytes of a buffer for decompressed bytes: a block of zstd has no more. */
const CHUNK_BYTES = 128 * 1024;

/**
 * Decompresses zstd frames. Four bytes may become 128 KiB. Damage throws the library's error.
 *
 * @throws {LeatError} `resource_exhausted` beyond `bytesMax`, naming `limit`.
 */
export function unzstd(data: Uint8Array, bytesMax: number, limit: string): Uint8Array {
  const frames = new ZstdFrames();
  const contents: Uint8Array[] = [];
  let bytesLeft = bytesMax;
  let start: number | undefined;
  // Deno's zlib decompresses the first frame only, and takes a truncated one for a whole one.
  for (const piece of frames.push(data)) {
    start ??= piece.start - FRAME_MAGIC_BYTES.length;
    if (!piece.endsFrame) continue;
    const content = unzstdFrame(data.subarray(start, piece.stop), bytesLeft);
    if (content === undefined) throw tooLong(bytesMax, limit);
    contents.push(content);
    bytesLeft -= content.length;
    start = undefined;
  }
  frames.end();
  return joined(contents);
}

/** Decompresses a frame; `undefined` if it has more than `bytesMax` bytes. */
function unzstdFrame(frame: Uint8Array, bytesMax: number): Uint8Array | undefined {
  // The option has to be above 0.
  const options = { chunkSize: CHUNK_BYTES, maxOutputLength: bytesMax + 1 };
  try {
    const content = nodeZlib().zstdDecompressSync(frame, options);
    return content.length > bytesMax ? undefined : content;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") return undefined;
    throw error;
  }
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
