/** WebP images, by libwebp compiled to WebAssembly. */

import { LeatError } from "../../core/error.ts";
import { beginsWith, type Channels, packRgba, type PixelSize, RGBA_BYTES } from "./image_format.ts";
import { WasmFormat, WasmLibrary } from "./wasm_library.ts";

/** The part of libwebp that is used: returns the address of RGBA bytes, or 0. */
interface Webp {
  WebPDecodeRGBA(webp: number, byteLength: number, width: number, height: number): number;
}

/** Bytes per pixel while decoding: the library's own ARGB or planes, and its RGBA output. */
const PIXEL_BYTES = 4 + RGBA_BYTES;

const RIFF = [0x52, 0x49, 0x46, 0x46];
const WEBP = [0x57, 0x45, 0x42, 0x50];
/** RIFF, length, WEBP, the first chunk's type and length. */
const CHUNK_OFFSET = 20;
/** Enough of the first chunk to tell the size. */
const HEADER_BYTES = CHUNK_OFFSET + 10;
/** Enough of it in a lossless image, which may end soon after. */
const LOSSLESS_HEADER_BYTES = CHUNK_OFFSET + 5;
const ANIMATION_FLAG = 0x02;

/** Decodes lossy and lossless WebPs, with or without alpha, on this thread; no animations. */
export class WebpFormat extends WasmFormat<Webp> {
  readonly name = "WebP";
  protected readonly packageName = "@cwasm/webp";

  matches(bytes: Uint8Array): boolean {
    return beginsWith(bytes, RIFF) && beginsWith(bytes, WEBP, 8);
  }

  readSize(bytes: Uint8Array): PixelSize {
    const type = chunkType(bytes);
    const neededBytes = type === "VP8L" ? LOSSLESS_HEADER_BYTES : HEADER_BYTES;
    if (bytes.length < neededBytes) throw damaged(bytes, "it is truncated within its header");
    const view = chunkView(bytes);
    switch (type) {
      case "VP8 ":
        if (view.getUint8(3) !== 0x9d || view.getUint8(4) !== 0x01 || view.getUint8(5) !== 0x2a) {
          throw damaged(bytes, "it does not begin with a key frame");
        }
        return requirePixels(
          bytes,
          view.getUint16(6, true) & 0x3fff,
          view.getUint16(8, true) & 0x3fff,
        );
      case "VP8L": {
        if (view.getUint8(0) !== 0x2f) throw damaged(bytes, "its lossless data has no signature");
        const bits = view.getUint32(1, true);
        return { width: (bits & 0x3fff) + 1, height: (bits >>> 14 & 0x3fff) + 1 };
      }
      case "VP8X":
        return { width: readUint24(view, 4) + 1, height: readUint24(view, 7) + 1 };
      default:
        throw damaged(bytes, `its first chunk is of type ${JSON.stringify(type)}`);
    }
  }

  bytesToDecode(bytes: Uint8Array): number {
    const { width, height } = this.readSize(bytes);
    return width * height * PIXEL_BYTES + bytes.length;
  }

  protected decodeInto(
    library: WasmLibrary<Webp>,
    bytes: Uint8Array,
    into: Uint8Array,
    channels: Channels,
  ): void {
    const { width, height } = this.readSize(bytes);
    if (chunkType(bytes) === "VP8X" && (chunkView(bytes).getUint8(0) & ANIMATION_FLAG) !== 0) {
      throw new LeatError("unimplemented", "An animated WebP is not decoded; extract a frame.");
    }
    const claimed = new DataView(bytes.buffer, bytes.byteOffset).getUint32(4, true) + 8;
    if (claimed > bytes.length) {
      throw damaged(bytes, `it is truncated: it claims ${claimed} bytes`);
    }
    library.call((library, memory) => {
      const input = memory.allocate(bytes.length);
      memory.view(input, bytes.length).set(bytes);
      const size = memory.allocate(8);
      let rgba: number;
      try {
        rgba = library.WebPDecodeRGBA(input, bytes.length, size, size + 4);
      } catch (cause) {
        throw damaged(bytes, "its compressed data is damaged", cause);
      }
      const [decodedWidth = 0, decodedHeight = 0] = memory.integers(size, 2);
      memory.free(size);
      memory.free(input);
      if (rgba === 0) {
        // The library does not tell lack of memory from damage. `allocate` throws if there is none.
        memory.free(memory.allocate(this.bytesToDecode(bytes)));
        throw damaged(bytes, "its compressed data is damaged");
      }
      if (decodedWidth !== width || decodedHeight !== height) {
        throw damaged(
          bytes,
          `its header says ${width} × ${height} pixels, its data ${decodedWidth} × ${decodedHeight}`,
        );
      }
      packRgba(memory.view(rgba, width * height * RGBA_BYTES), into, channels);
      memory.free(rgba);
    });
  }

  protected async importLibrary(): Promise<WasmLibrary<Webp>> {
    // @ts-expect-error: TypeScript does not know `import.source`.
    const module = await import.source("@cwasm/webp/webp.wasm");
    const files = { fd_close: noFiles, fd_seek: noFiles, fd_write: noFiles };
    return new WasmLibrary<Webp>(module, { wasi_snapshot_preview1: files });
  }
}

function noFiles(): never {
  throw new Error("libwebp was compiled with access to files, but must not use it");
}

/** The type of the first chunk. */
function chunkType(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes.subarray(CHUNK_OFFSET - 8, CHUNK_OFFSET - 4));
}

/** The data of the first chunk. */
function chunkView(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset + CHUNK_OFFSET);
}

function readUint24(view: DataView, at: number): number {
  return view.getUint16(at, true) | view.getUint8(at + 2) << 16;
}

function requirePixels(bytes: Uint8Array, width: number, height: number): PixelSize {
  if (width > 0 && height > 0) return { width, height };
  throw damaged(bytes, `its header claims ${width} × ${height} pixels`);
}

function damaged(bytes: Uint8Array, why: string, cause?: unknown): LeatError {
  return new LeatError("data_loss", `Damaged WebP of ${bytes.length} bytes: ${why}.`, { cause });
}
