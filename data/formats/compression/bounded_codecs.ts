/** Decompresses data of unknown decompressed size, up to a limit. */
import { nodeZlib } from "../../../core/builtins.ts";
import { joined } from "../../../core/bytes.ts";
import { LeatError } from "../../../core/error.ts";
import { lz4Content, readLz4Frame } from "./lz4_frames.ts";
import { FRAME_MAGIC_BYTES, inflateFrame, ZstdFrames } from "./zstd_frames.ts";

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
    const content = inflateFrame(data.subarray(start, piece.stop), bytesLeft);
    if (content === undefined) throw tooLong(bytesMax, limit);
    contents.push(content);
    bytesLeft -= content.length;
    start = undefined;
  }
  frames.end();
  return joined(contents);
}

/** Decompresses an LZ4 frame; throws like {@linkcode unzstd}. */
export function unlz4(data: Uint8Array, bytesMax: number, limit: string): Uint8Array {
  const frame = readLz4Frame(data);
  if (frame.sizeMax > bytesMax) throw tooLong(bytesMax, limit);
  return lz4Content(data, frame);
}

/** Bytes that brotli is decompressed by, unless the content is shorter. */
const BROTLI_CHUNK_BYTES = 128 * 1024;

/**
 * Decompresses brotli, of which a few bytes may become megabytes. Throws like {@linkcode unzstd}, but
 * returns only what precedes damage.
 */
export function unbrotli(data: Uint8Array, bytesMax: number, limit: string): Uint8Array {
  const chunkSize = Math.min(1024 + bytesMax, BROTLI_CHUNK_BYTES);
  try {
    // The limit has to be above 0.
    const options = { chunkSize, maxOutputLength: bytesMax + 1 };
    const content = nodeZlib().brotliDecompressSync(data, options);
    if (content.length <= bytesMax) return content;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_BUFFER_TOO_LARGE") throw error;
  }
  throw tooLong(bytesMax, limit);
}

function tooLong(bytesMax: number, limit: string): LeatError {
  return new LeatError(
    "resource_exhausted",
    `it decompresses to more than ${bytesMax} bytes (${limit})`,
  );
}
