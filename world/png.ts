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
} from "./image_format.ts";

/** The part of `@cwasm/lodepng` that is used. */
interface Lodepng {
  decode(png: Uint8Array): { readonly data: Uint8ClampedArray<ArrayBuffer> };
}

const SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
const CHUNK_FRAME_BYTES = 12;
const HEADER_BYTES = 13;
/** Of one pixel, at most: four channels of 16 bits. */
const PIXEL_BYTES_MAX = 8;
/** Rows are preceded by a byte each, and an interlaced picture is stored as seven smaller ones. */
const ROWS_FACTOR_MAX = 7;
/** How many times its size data can inflate to. */
const INFLATION_MAX = 1032;
/**
 * Data that cannot inflate beyond this is decoded at once. Other data is inflated once before, up to the size of the picture and no
 * further, because the library has no such bound, and its memory is never given back.
 */
const INFLATED_BYTES_UNCHECKED_MAX = 512 * 1024 * 1024;

/**
 * Decodes PNGs on the calling thread: of every colour type, palettes, interlaced. Of 16-bit channels the upper 8 bits are used, gamma
 * is not applied. All checksums are checked.
 */
export class PngFormat implements ImageFormat {
  readonly name = "PNG";
  #library: Lodepng | undefined;

  matches(bytes: Uint8Array): boolean {
    return beginsWith(bytes, SIGNATURE);
  }

  readSize(bytes: Uint8Array): ImageSize {
    const offset = SIGNATURE.length;
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
    return { width, height };
  }

  load(): Promise<void> | undefined {
    return this.#library === undefined ? this.#load() : undefined;
  }

  decode(bytes: Uint8Array, into: Uint8Array, channels: Channels): void {
    const chunks = chunksOf(bytes);
    if (!chunks.some(({ type }) => type === "IEND")) throw damaged(bytes, "it is truncated");
    try {
      requireBounded(chunks, this.readSize(bytes));
      packRgba(new Uint8Array(this.#library!.decode(bytes).data.buffer), into, channels);
    } catch (cause) {
      throw damaged(bytes, "its contents are damaged", cause);
    }
  }

  async #load(): Promise<void> {
    this.#library = await importLibrary<Lodepng>(
      "@cwasm/lodepng",
      () => import("@cwasm/lodepng") as unknown as Promise<{ default: unknown }>,
      "run with --allow-read of Deno's npm cache (deno info shows where)",
      "it is an npm package of WebAssembly",
    );
  }
}

interface Chunk {
  readonly type: string;
  readonly data: Uint8Array;
}

/** Throws where the data inflates to more than a picture of its size needs. */
function requireBounded(chunks: readonly Chunk[], { width, height }: ImageSize): void {
  const data = chunks.filter(({ type }) => type === "IDAT").map(({ data }) => data);
  const byteLength = data.reduce((sum, part) => sum + part.length, 0);
  if (byteLength * INFLATION_MAX <= INFLATED_BYTES_UNCHECKED_MAX) return;
  const maxOutputLength = (width * PIXEL_BYTES_MAX + ROWS_FACTOR_MAX) * (height + ROWS_FACTOR_MAX);
  nodeZlib().inflateSync(Buffer.concat(data), { maxOutputLength });
}

/** All chunks, as far as they are whole. */
function chunksOf(bytes: Uint8Array): Chunk[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const chunks: Chunk[] = [];
  for (let at = SIGNATURE.length; at + CHUNK_FRAME_BYTES <= bytes.length;) {
    const length = view.getUint32(at);
    const type = String.fromCharCode(...bytes.subarray(at + 4, at + 8));
    if (at + length + CHUNK_FRAME_BYTES <= bytes.length) {
      chunks.push({ type, data: bytes.subarray(at + 8, at + 8 + length) });
    }
    at += length + CHUNK_FRAME_BYTES;
  }
  return chunks;
}

function damaged(bytes: Uint8Array, why: string, cause?: unknown): LeatError {
  return new LeatError("data_loss", `Damaged PNG of ${bytes.length} bytes: ${why}.`, { cause });
}
