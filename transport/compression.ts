/**
 * Compressed messages: one MessagePack extension with the codec and the length of the message.
 * `docs/wire.md` specifies the format.
 */
import { nodeZlib, zstdDecompressed } from "../core/builtins.ts";
import { LeatError } from "../core/error.ts";
import { MESSAGE_BYTES_MAX } from "./codec.ts";

export type FrameCodec = "zstd" | "gzip";

/** The bytes before the compressed data. */
export const COMPRESSED_HEADER_BYTES = 11;

const EXT32 = 0xc9;
/** The extension's type: `Z`. */
const COMPRESSED = 0x5a;
const TYPE_AT = 5;
const CODEC_AT = 6;
const SIZE_AT = 7;
/** The codecs by their number; 0 is none. */
const CODECS: readonly (FrameCodec | undefined)[] = [undefined, "zstd", "gzip"];

/**
 * The fastest level: higher ones cost the runner's thread more time and gain a few percent. A
 * checksum, because zstd alone does not detect all damage.
 */
function zstdOptions() {
  const { constants } = nodeZlib();
  return { params: { [constants.ZSTD_c_compressionLevel]: 1, [constants.ZSTD_c_checksumFlag]: 1 } };
}

const GZIP_LEVEL = 1;
/** The library allocates at most this many bytes at once, so memory grows only with real data. */
const CHUNK_BYTES_MAX = 2 ** 20;
const CHUNK_BYTES_MIN = 1_024;
/** Limit of these bytes in compressing: the result is usually much smaller than the message. */
const COMPRESSED_CHUNK_BYTES = 128 * 2 ** 10;

/** See {@linkcode expandsMuch}. */
export const EXPANSION_BYTES_MAX = 64 * 2 ** 20;
const EXPANSION_RATIO_MAX = 16;

const SAMPLE_PIECES = 3;
const SAMPLE_PIECE_BYTES = 32 * 2 ** 10;

/**
 * Compresses a message.
 * @param into The kind of buffer of the result. Default `"arraybuffer"`.
 * @returns The compressed message, alone in its buffer; `undefined` if it would not be smaller.
 */
export function compressFrame(
  frame: Uint8Array,
  codec: FrameCodec,
  into: "arraybuffer" | "shared" = "arraybuffer",
): Uint8Array | undefined {
  const compressed = compress(frame, codec);
  const byteLength = COMPRESSED_HEADER_BYTES + compressed.length;
  if (byteLength >= frame.length) return undefined;
  const bytes = new Uint8Array(
    into === "shared" ? new SharedArrayBuffer(byteLength) : new ArrayBuffer(byteLength),
  );
  const view = new DataView(bytes.buffer);
  view.setUint8(0, EXT32);
  view.setUint32(1, byteLength - CODEC_AT);
  view.setUint8(TYPE_AT, COMPRESSED);
  view.setUint8(CODEC_AT, CODECS.indexOf(codec));
  view.setUint32(SIZE_AT, frame.length);
  bytes.set(compressed, COMPRESSED_HEADER_BYTES);
  return bytes;
}

/** Compresses a sample of a message, to estimate the ratio of the whole. */
export function sampleCompression(
  frame: Uint8Array,
  codec: FrameCodec,
): { readonly bytes: number; readonly compressedBytes: number } {
  const sample = sampleOf(frame);
  return { bytes: sample.length, compressedBytes: compress(sample, codec).length };
}

export function isCompressed(bytes: Uint8Array): boolean {
  return bytes[0] === EXT32;
}

/**
 * Whether decompressing a message takes so much more memory than it has bytes that it should wait
 * until the message is needed: a hostile sender makes a gigabyte of a few bytes.
 */
export function expandsMuch(bytes: Uint8Array): boolean {
  const announced = announcedBytes(bytes);
  return announced > EXPANSION_BYTES_MAX && announced > EXPANSION_RATIO_MAX * bytes.length;
}

/** The length that a compressed message announces; 0 if that is missing. */
export function announcedBytes({ buffer, byteOffset, byteLength }: Uint8Array): number {
  const isWhole = byteLength >= COMPRESSED_HEADER_BYTES;
  return isWhole ? new DataView(buffer, byteOffset).getUint32(SIZE_AT) : 0;
}

/** A message that may be compressed, decompressed; throws like {@linkcode decompressFrame}. */
export function decompressed(bytes: Uint8Array): Uint8Array {
  return isCompressed(bytes) ? decompressFrame(bytes) : bytes;
}

/**
 * Decompresses a message.
 * @param bytesMax A larger message is refused before memory is allocated for it.
 * @throws {LeatError} `resource_exhausted` for a larger one; `data_loss` when bytes are missing,
 * damaged, or not as many as announced; `invalid_argument` for anything that no writer of this
 * format writes.
 */
export function decompressFrame(bytes: Uint8Array, bytesMax = MESSAGE_BYTES_MAX): Uint8Array {
  const { codec, byteLength } = headerOf(bytes);
  if (byteLength > bytesMax) {
    throw new LeatError(
      "resource_exhausted",
      `a compressed message of ${byteLength} bytes is over the limit of ${bytesMax} bytes; send ` +
        `smaller batches or raise the limit`,
      { details: { byteLength, bytesMax } },
    );
  }
  const message = decompress(bytes.subarray(COMPRESSED_HEADER_BYTES), codec, byteLength);
  if (message.length === byteLength) return message;
  throw new LeatError(
    "data_loss",
    `a compressed message was announced with ${byteLength} bytes and has ${message.length}`,
    { details: { byteLength, decompressedBytes: message.length } },
  );
}

function compress(frame: Uint8Array, codec: FrameCodec): Uint8Array {
  const chunkSize = Math.min(chunkSizeFor(frame.length), COMPRESSED_CHUNK_BYTES);
  return codec === "zstd"
    ? nodeZlib().zstdCompressSync(frame, { ...zstdOptions(), chunkSize })
    : nodeZlib().gzipSync(frame, { level: GZIP_LEVEL, chunkSize });
}

function decompress(bytes: Uint8Array, codec: FrameCodec, byteLength: number): Uint8Array {
  const options = { chunkSize: chunkSizeFor(byteLength), maxOutputLength: byteLength };
  try {
    const { buffer, byteOffset, length } = codec === "zstd"
      ? zstdDecompressed(bytes, options)
      : nodeZlib().gunzipSync(bytes, options);
    if (codec === "gzip") checkEnd(bytes, length);
    // A plain `Uint8Array`: a slice of a `Buffer` is a `Buffer`.
    return new Uint8Array(buffer, byteOffset, length);
  } catch (error) {
    throw new LeatError(
      "data_loss",
      `a message compressed with ${codec} is damaged: ${LeatError.from(error).message}`,
      { cause: error },
    );
  }
}

/**
 * Node ignores zeros after the end of a gzip stream, whose last four bytes are the length of its data.
 */
function checkEnd(bytes: Uint8Array, length: number): void {
  const size = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    .getUint32(bytes.length - 4, true);
  if (size !== length) throw new LeatError("data_loss", "it has bytes after its end");
}

function headerOf(bytes: Uint8Array): { codec: FrameCodec; byteLength: number } {
  if (bytes.length < COMPRESSED_HEADER_BYTES) throw cutShort(bytes.length, COMPRESSED_HEADER_BYTES);
  const view = new DataView(bytes.buffer, bytes.byteOffset, COMPRESSED_HEADER_BYTES);
  const expected = CODEC_AT + view.getUint32(1);
  if (bytes.length < expected) throw cutShort(bytes.length, expected);
  const codec = CODECS[view.getUint8(CODEC_AT)];
  const byteLength = view.getUint32(SIZE_AT);
  if (bytes.length > expected || view.getUint8(TYPE_AT) !== COMPRESSED || byteLength === 0) {
    throw new LeatError(
      "invalid_argument",
      "no writer of this format wrote this compressed message",
    );
  }
  if (codec === undefined) {
    throw new LeatError(
      "invalid_argument",
      `a message is compressed with codec ${view.getUint8(CODEC_AT)}; known are 1 (zstd) and 2 ` +
        "(gzip)",
    );
  }
  return { codec, byteLength };
}

function cutShort(byteLength: number, expected: number): LeatError {
  return new LeatError(
    "data_loss",
    `a compressed message ends after ${byteLength} of ${expected} bytes`,
    { details: { byteLength, expected } },
  );
}

/** The beginning, the middle and the end: components of an element differ. */
function sampleOf(frame: Uint8Array): Uint8Array {
  if (frame.length <= SAMPLE_PIECES * SAMPLE_PIECE_BYTES) return frame;
  const sample = new Uint8Array(SAMPLE_PIECES * SAMPLE_PIECE_BYTES);
  const stride = Math.floor((frame.length - SAMPLE_PIECE_BYTES) / (SAMPLE_PIECES - 1));
  for (let piece = 0; piece < SAMPLE_PIECES; piece++) {
    const from = piece * stride;
    sample.set(frame.subarray(from, from + SAMPLE_PIECE_BYTES), piece * SAMPLE_PIECE_BYTES);
  }
  return sample;
}

function chunkSizeFor(byteLength: number): number {
  return Math.max(CHUNK_BYTES_MIN, Math.min(CHUNK_BYTES_MAX, byteLength));
}
