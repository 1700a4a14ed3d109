/**
 * PNG images, by LodePNG compiled to WebAssembly.
 */

import { Buffer } from "node:buffer";
import { nodeZlib } from "../core/builtins.ts";
import { LeatError } from "../core/error.ts";
import {
  beginsWith,
  type Channels,
  type ImageFormat,
  type ImageSize,
  importLibrary,
  packRgba,
  RGBA_BYTES,
} from "./image_format.ts";
import { PNG_SIGNATURE, type PngChunk, pngChunks } from "./png_chunks.ts";
import { WasmLibrary } from "./wasm_library.ts";

/** The part of LodePNG that is used: writes where RGBA bytes are, and the size; answers 0, or the number of an error. */
interface Lodepng {
  lodepng_decode32(
    rgba: number,
    width: number,
    height: number,
    png: number,
    byteLength: number,
  ): number;
}

const CHUNK_FRAME_BYTES = 12;
const HEADER_BYTES = 13;
/** Samples of a pixel, by colour type. */
const SAMPLES: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };
/** Rows are preceded by a byte each, and an interlaced picture is stored as seven smaller ones. */
const ROWS_FACTOR_MAX = 7;
/** How many times its size data can inflate to. */
const INFLATION_MAX = 1032;
/**
 * Data that cannot inflate beyond this, or beyond what the picture needs, is decoded at once. Other data is inflated once before, up to
 * the size of the picture and no further, because the library has no such bound.
 */
const INFLATED_BYTES_UNCHECKED_MAX = 16 * 1024 * 1024;
/** All that pixels need. Others could hold texts that inflate to any size. */
const CHUNKS_USED: ReadonlySet<string> = new Set(["IHDR", "PLTE", "tRNS", "IDAT", "IEND"]);

/**
 * Decodes PNGs on the calling thread: of every colour type, palettes, interlaced. Of 16-bit channels the upper 8 bits are used, gamma
 * is not applied. All checksums are checked.
 */
export class PngFormat implements ImageFormat {
  readonly name = "PNG";
  #library: WasmLibrary<Lodepng> | undefined;

  matches(bytes: Uint8Array): boolean {
    return beginsWith(bytes, PNG_SIGNATURE);
  }

  readSize(bytes: Uint8Array): ImageSize {
    const { width, height } = readHeader(bytes);
    return { width, height };
  }

  bytesToDecode(bytes: Uint8Array): number {
    const { width, height, inflatedBytes } = readHeader(bytes);
    // Inflated data as it is stored and without its filters, and the pixels.
    return 2 * inflatedBytes + width * height * RGBA_BYTES + bytes.length;
  }

  load(): Promise<void> | undefined {
    return this.#library === undefined ? this.#load() : undefined;
  }

  decode(bytes: Uint8Array, into: Uint8Array, channels: Channels): void {
    const chunks = pngChunks(bytes);
    if (!chunks.some(({ type }) => type === "IEND")) throw damaged(bytes, "it is truncated");
    const { width, height, inflatedBytes } = readHeader(bytes);
    const used: PngChunk[] = [];
    for (const chunk of chunks) {
      if (CHUNKS_USED.has(chunk.type)) used.push(chunk);
      else if (!isSound(chunk)) throw damaged(bytes, `the checksum of its ${chunk.type} is wrong`);
    }
    try {
      requireBounded(used, inflatedBytes);
    } catch (cause) {
      throw damaged(bytes, "its contents are damaged", cause);
    }
    this.#library!.call((library, memory) => {
      const byteLength = used.reduce((sum, { whole }) => sum + whole.length, PNG_SIGNATURE.length);
      const input = memory.allocate(byteLength);
      const png = memory.view(input, byteLength);
      png.set(PNG_SIGNATURE);
      let at = PNG_SIGNATURE.length;
      for (const { whole } of used) {
        png.set(whole, at);
        at += whole.length;
      }
      const found = memory.allocate(12);
      let error: number;
      try {
        error = library.lodepng_decode32(found, found + 4, found + 8, input, byteLength);
      } catch (cause) {
        throw damaged(bytes, "its contents are damaged", cause);
      }
      const [rgba = 0] = memory.integers(found, 1);
      memory.free(found);
      memory.free(input);
      if (error !== 0) throw damaged(bytes, `its contents are damaged (LodePNG's error ${error})`);
      packRgba(memory.view(rgba, width * height * RGBA_BYTES), into, channels);
      memory.free(rgba);
    });
  }

  async #load(): Promise<void> {
    this.#library = await importLibrary(
      "@cwasm/lodepng",
      async () =>
        // @ts-expect-error: TypeScript does not know `import.source`.
        new WasmLibrary<Lodepng>(await import.source("@cwasm/lodepng/lodepng.wasm")),
      "run with --allow-read of Deno's npm cache (deno info shows where)",
      "it is an npm package of WebAssembly",
    );
  }
}

interface Header extends ImageSize {
  /** Most bytes that the data of such a picture inflates to. */
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

/** Throws where the data inflates to more than a picture of its size needs. */
function requireBounded(chunks: readonly PngChunk[], maxOutputLength: number): void {
  const data = chunks.filter(({ type }) => type === "IDAT").map(({ data }) => data);
  const byteLength = data.reduce((sum, part) => sum + part.length, 0);
  if (byteLength * INFLATION_MAX <= Math.max(maxOutputLength, INFLATED_BYTES_UNCHECKED_MAX)) return;
  nodeZlib().inflateSync(Buffer.concat(data), { maxOutputLength });
}

function isSound({ whole }: PngChunk): boolean {
  const stored = new DataView(whole.buffer, whole.byteOffset + whole.length - 4).getUint32(0);
  return nodeZlib().crc32(whole.subarray(4, -4)) === stored;
}

function damaged(bytes: Uint8Array, why: string, cause?: unknown): LeatError {
  return new LeatError("data_loss", `Damaged PNG of ${bytes.length} bytes: ${why}.`, { cause });
}
