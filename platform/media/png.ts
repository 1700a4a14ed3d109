/** PNG images, decoded by LodePNG compiled to WebAssembly. */

import { nodeZlib } from "../../core/builtins.ts";
import { LeatError } from "../../core/error.ts";
import { beginsWith, type Channels, packRgba, type PixelSize, RGBA_BYTES } from "./image_format.ts";
import { outOfMemory, WasmFormat, WasmLibrary } from "./wasm_library.ts";

/**
 * The used part of LodePNG: writes the address of RGBA bytes and the size; returns 0 or an error.
 */
interface Lodepng {
  lodepng_decode32(
    rgba: number,
    width: number,
    height: number,
    png: number,
    byteLength: number,
  ): number;
}

/** LodePNG's error if it cannot allocate memory. */
const NO_MEMORY = 83;

/** Length and type before a chunk's data, and the checksum after it. */
const CHUNK_FRAME_BYTES = 12;
const HEADER_BYTES = 13;
/** Samples per pixel, by colour type. */
const SAMPLES: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };
/** For an upper bound: a row has one byte more, and an interlaced image is stored as seven smaller ones. */
const ROWS_FACTOR_MAX = 7;
/** The chunks that the library gets. Others could hold text that inflates to any size. */
const CHUNKS_USED: ReadonlySet<string> = new Set(["IHDR", "PLTE", "tRNS", "IDAT", "IEND"]);

/**
 * Decodes every colour type, palettes, and interlaced images. 16-bit channels are reduced to their upper 8
 * bits; gamma is not applied. All checksums are verified.
 */
export class PngFormat extends WasmFormat<Lodepng> {
  readonly name = "PNG";
  protected readonly packageName = "@cwasm/lodepng";

  matches(bytes: Uint8Array): boolean {
    return beginsWith(bytes, PNG_SIGNATURE);
  }

  readSize(bytes: Uint8Array): PixelSize {
    const { width, height } = readHeader(bytes);
    return { width, height };
  }

  bytesToDecode(bytes: Uint8Array): number {
    const { width, height, inflatedBytes } = readHeader(bytes);
    // The inflated data exists four times (here, as the library's input, as raw rows, unfiltered).
    return 4 * inflatedBytes + width * height * RGBA_BYTES + bytes.length;
  }

  protected decodeInto(
    library: WasmLibrary<Lodepng>,
    bytes: Uint8Array,
    into: Uint8Array,
    channels: Channels,
  ): void {
    checkChunks(bytes);
    const { width, height, inflatedBytes } = readHeader(bytes);
    const parts = [PNG_SIGNATURE, ...usedChunks(bytes, storedChunk(bytes, inflatedBytes))];
    library.call((library, memory) => {
      const byteLength = parts.reduce((sum, { length }) => sum + length, 0);
      const input = memory.allocate(byteLength);
      const png = memory.view(input, byteLength);
      let at = 0;
      for (const part of parts) {
        png.set(part, at);
        at += part.length;
      }
      const outputs = memory.allocate(12);
      let error: number;
      try {
        error = library.lodepng_decode32(outputs, outputs + 4, outputs + 8, input, byteLength);
      } catch (cause) {
        throw damaged(bytes, "its contents are damaged", cause);
      }
      const [rgba = 0] = memory.integers(outputs, 1);
      memory.free(outputs);
      memory.free(input);
      if (error === NO_MEMORY) throw outOfMemory(this.bytesToDecode(bytes));
      if (error !== 0) throw damaged(bytes, `its contents are damaged (LodePNG's error ${error})`);
      packRgba(memory.view(rgba, width * height * RGBA_BYTES), into, channels);
      memory.free(rgba);
    });
  }

  protected async importLibrary(): Promise<WasmLibrary<Lodepng>> {
    // @ts-expect-error: TypeScript does not know `import.source`.
    return new WasmLibrary<Lodepng>(await import.source("@cwasm/lodepng/lodepng.wasm"));
  }
}

interface Header extends PixelSize {
  /** Limit of the image's inflated data, in bytes. */
  readonly inflatedBytes: number;
}

function readHeader(bytes: Uint8Array): Header {
  const offset = PNG_SIGNATURE.length;
  if (bytes.length < offset + CHUNK_FRAME_BYTES + HEADER_BYTES) {
    throw damaged(bytes, "it is truncated within its header");
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset + offset);
  const type = String.fromCharCode(...bytes.subarray(offset + 4, offset + 8));
  if (view.getUint32(0) !== HEADER_BYTES || type !== "IHDR") {
    throw damaged(bytes, "it does not begin with its header");
  }
  const width = view.getUint32(8), height = view.getUint32(12);
  if (width === 0 || height === 0) {
    throw damaged(bytes, `its header claims ${width} × ${height} pixels`);
  }
  const depth = view.getUint8(16), samples = SAMPLES[view.getUint8(17)];
  if (samples === undefined || depth > 16) {
    throw damaged(bytes, `its header claims colour type ${view.getUint8(17)}, ${depth} bits deep`);
  }
  const rowBytes = Math.ceil(width * samples * depth / 8);
  const inflatedBytes = (rowBytes + ROWS_FACTOR_MAX) * (height + ROWS_FACTOR_MAX);
  return { width, height, inflatedBytes };
}

/**
 * Returns the image's data as one chunk of uncompressed blocks. The library itself would inflate without a
 * limit, and three times slower than Node's zlib.
 */
function storedChunk(bytes: Uint8Array, maxOutputLength: number): Uint8Array {
  try {
    const inflated = nodeZlib().inflateSync(dataOf(bytes), { maxOutputLength });
    const zlib = nodeZlib().deflateSync(inflated, { level: 0, chunkSize: inflated.length + 1024 });
    return pngChunk("IDAT", zlib);
  } catch (cause) {
    throw damaged(bytes, "its contents are damaged", cause);
  }
}

/** Returns the deflated data of the image. */
function dataOf(bytes: Uint8Array): Uint8Array {
  // It has no more bytes than the file.
  const all = new Uint8Array(bytes.length);
  let length = 0;
  for (const { type, data } of pngChunks(bytes)) {
    if (type !== "IDAT") continue;
    all.set(data, length);
    length += data.length;
  }
  return all.subarray(0, length);
}

/** Yields the chunks that pixels need, one of each type, with all data in one. */
function* usedChunks(bytes: Uint8Array, data: Uint8Array): Iterable<Uint8Array> {
  const used = new Set<string>();
  for (const { type, whole } of pngChunks(bytes)) {
    if (used.has(type) || !CHUNKS_USED.has(type)) continue;
    used.add(type);
    yield type === "IDAT" ? data : whole;
  }
}

/** @throws {LeatError} `data_loss` if the image has no end, or a chunk a wrong checksum. */
function checkChunks(bytes: Uint8Array): void {
  let corrupt: string | undefined;
  let hasEnd = false;
  for (const chunk of pngChunks(bytes)) {
    if (!hasValidChecksum(chunk)) corrupt ??= chunk.type;
    hasEnd = chunk.type === "IEND";
  }
  if (!hasEnd) throw damaged(bytes, "it is truncated");
  if (corrupt === undefined) return;
  throw damaged(bytes, `the checksum of its ${JSON.stringify(corrupt)} chunk is wrong`);
}

function damaged(bytes: Uint8Array, why: string, cause?: unknown): LeatError {
  return new LeatError("data_loss", `Damaged PNG of ${bytes.length} bytes: ${why}.`, { cause });
}

const PNG_SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];

const CRC_BYTES = 4;

interface PngChunk {
  readonly type: string;
  readonly data: Uint8Array;
  /** With length, type and checksum. */
  readonly whole: Uint8Array;
}

/** Yields all complete chunks up to the end of the image. A list of empty ones would be many times as long. */
function* pngChunks(bytes: Uint8Array): Generator<PngChunk> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = PNG_SIGNATURE.length; at + CHUNK_FRAME_BYTES <= bytes.length;) {
    const end = at + view.getUint32(at) + CHUNK_FRAME_BYTES;
    if (end > bytes.length) break;
    const whole = bytes.subarray(at, end);
    const type = String.fromCharCode(...whole.subarray(4, 8));
    yield { type, data: whole.subarray(8, -4), whole };
    if (type === "IEND") return;
    at = end;
  }
}

/** Whether a chunk's checksum is right. */
function hasValidChecksum({ whole }: PngChunk): boolean {
  return viewOf(whole).getUint32(whole.length - CRC_BYTES) === crcOf(whole);
}

function pngChunk(type: string, data: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(CHUNK_FRAME_BYTES + data.length);
  const view = viewOf(whole);
  view.setUint32(0, data.length);
  for (let i = 0; i < type.length; i++) whole[4 + i] = type.charCodeAt(i);
  whole.set(data, 8);
  view.setUint32(whole.length - CRC_BYTES, crcOf(whole));
  return whole;
}

/** The checksum of type and data. */
function crcOf(whole: Uint8Array): number {
  return nodeZlib().crc32(whole.subarray(4, -CRC_BYTES));
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
