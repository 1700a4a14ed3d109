/** Crops, resizes (bilinear), mirrors and converts in one pass over the resulting pixels. */

import type { ImageLayout } from "../../../data/host.ts";
import { LeatError } from "../../../core/error.ts";
import type { TypedArray } from "../../../core/dtype.ts";
import type { DecodePlan } from "../decode_plan.ts";
import type { PixelSize, Region } from "../image_format.ts";
import { ROW_WASM } from "./row_wasm.ts";

/** How to transform the pixels in the memory of {@linkcode Resampler.pixels}. */
export interface ResampleRequest {
  readonly channels: 1 | 3 | 4;
  /** Pixels per row of the image. */
  readonly width: number;
  /** The rectangle to use, inside the image. */
  readonly crop: Region;
  readonly size: PixelSize;
  /** Whether to swap left and right. */
  readonly flip: boolean;
  readonly layout: ImageLayout;
}

/** How bytes become floats: `byte · scale + offset`, with a scale and an offset for each channel. */
export interface Conversion {
  readonly scale: readonly number[];
  readonly offset: readonly number[];
}

/** Memory up to this size is kept between images. */
const KEPT_BYTES_MAX = 64 * 1024 * 1024;

/** Weights out of 2¹¹ : 255 · 2¹¹ · 2¹¹ still fits an integer of 32 bits. */
const WEIGHT_ONE = 1 << 11;

const PAGE_BYTES = 65_536;
/** Constants of `row.wat`: four scales and four offsets. */
const CONSTANT_BYTES = 32;
/** A column in `row.wat`: two offsets and two weights. */
const COLUMN_BYTES = 12;
/** A pixel of a row that was resized horizontally by `row.wat`: four integers. */
const PIXEL_BYTES = 16;
/** A row reads and writes up to three values beyond its end. */
const MARGIN_BYTES = 16;

type Columns = (from: number, column: number, columnEnd: number, out: number) => void;

type Row = (
  top: number,
  bottom: number,
  topEnd: number,
  bottomWeight: number,
  out: number,
  channels: number,
  plane: number,
  isFloat: number,
) => void;

interface Kernel {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): void };
  readonly columns: Columns;
  readonly row: Row;
}

let module: WebAssembly.Module | undefined;

/** Transforms one image at a time, in memory of its own. */
export class Resampler {
  #kernel: Kernel | undefined;
  /** The address of the columns. The pixels are before them, after the constants. */
  #columns = CONSTANT_BYTES;

  /** Returns memory for the pixels of an image, row by row. It is valid until the next call. */
  pixels(byteLength: number): Uint8Array<ArrayBuffer> {
    if (this.#byteLength > KEPT_BYTES_MAX) this.#kernel = undefined;
    this.#columns = aligned(CONSTANT_BYTES + byteLength + MARGIN_BYTES);
    return new Uint8Array(this.#reserve(this.#columns), CONSTANT_BYTES, byteLength);
  }

  /** Writes the transformed image as bytes. */
  bytes(into: Uint8Array, request: ResampleRequest): void {
    if (isCropOnly(request)) return this.#copyRows(into, request);
    const at = this.#run(request, 1, NO_CONVERSION);
    into.set(new Uint8Array(this.#kernel!.memory.buffer, at, into.length));
  }

  /** Writes the transformed image as floats, which are not rounded to whole numbers before. */
  floats(
    into: Float32Array | Float16Array,
    request: ResampleRequest,
    conversion: Conversion,
  ): void {
    const at = this.#run(request, 4, conversion);
    into.set(new Float32Array(this.#kernel!.memory.buffer, at, into.length));
  }

  /** Returns the address of the transformed image. */
  #run(request: ResampleRequest, itemBytes: 1 | 4, { scale, offset }: Conversion): number {
    const { channels, width, crop, size, layout } = request;
    const begin = this.#columns, end = begin + size.width * COLUMN_BYTES;
    const rowBytes = size.width * PIXEL_BYTES;
    const kept = aligned(end), out = kept + 2 * rowBytes;
    const outBytes = size.width * size.height * channels * itemBytes;
    const buffer = this.#reserve(out + outBytes + MARGIN_BYTES);
    const unit = 1 / (WEIGHT_ONE * WEIGHT_ONE);
    new Float32Array(buffer, 0, 4).set(scale.map((scale) => scale * unit));
    new Float32Array(buffer, 16, 4).set(offset);
    writeColumns(new Int32Array(buffer, begin, (end - begin) / 4), request);
    const rows = tapsOf(crop.height, size.height);
    const isPlanar = layout === "CHW" && channels > 1;
    const plane = isPlanar ? size.width * size.height * itemBytes : 0;
    const step = size.width * itemBytes * (isPlanar ? 1 : channels);
    const { columns, row } = this.#kernel!;
    // Keeps two horizontally resized rows, one per parity, because the next output row often needs them.
    const keptRows = [-1, -1];
    const keep = (y: number): number => {
      const parity = y & 1, at = kept + parity * rowBytes;
      if (keptRows[parity] !== y) {
        columns(CONSTANT_BYTES + (crop.y + y) * width * channels, begin, end, at);
        keptRows[parity] = y;
      }
      return at;
    };
    for (let y = 0; y < size.height; y++) {
      const top = keep(rows.low[y]!), bottom = keep(rows.high[y]!);
      const weight = rows.highWeight[y]!, to = out + y * step;
      row(top, bottom, top + rowBytes, weight, to, channels, plane, itemBytes === 4 ? 1 : 0);
    }
    return out;
  }

  #copyRows(into: Uint8Array, { channels, width, crop }: ResampleRequest): void {
    const rowBytes = crop.width * channels;
    for (let y = 0; y < crop.height; y++) {
      const at = CONSTANT_BYTES + ((crop.y + y) * width + crop.x) * channels;
      into.set(new Uint8Array(this.#kernel!.memory.buffer, at, rowBytes), y * rowBytes);
    }
  }

  get #byteLength(): number {
    return this.#kernel?.memory.buffer.byteLength ?? 0;
  }

  /** Returns the memory, grown to at least `byteLength` bytes. */
  #reserve(byteLength: number): ArrayBuffer {
    this.#kernel ??= newKernel();
    const { memory } = this.#kernel;
    const missing = byteLength - memory.buffer.byteLength;
    if (missing <= 0) return memory.buffer;
    try {
      memory.grow(Math.ceil(missing / PAGE_BYTES));
    } catch (cause) {
      throw new LeatError(
        "resource_exhausted",
        `There is no memory to resize an image: ${byteLength} bytes were asked for`,
        { cause },
      );
    }
    return memory.buffer;
  }
}

/**
 * Writes the image of a plan.
 *
 * @param resampler holds the decoded pixels.
 * @param region the part of the image that these pixels show.
 * @param into an array of the plan's dtype.
 */
export function transform(
  resampler: Resampler,
  { channels, crop, size, flip, layout, conversion }: DecodePlan,
  region: Region,
  into: TypedArray,
): void {
  const inside = { ...crop, x: crop.x - region.x, y: crop.y - region.y };
  const request = { channels, width: region.width, crop: inside, size, flip, layout };
  if (into instanceof Uint8Array) resampler.bytes(into, request);
  else resampler.floats(into as Float32Array | Float16Array, request, conversion);
}

const NO_CONVERSION: Conversion = { scale: [], offset: [] };

function newKernel(): Kernel {
  module ??= new WebAssembly.Module(Uint8Array.fromBase64(ROW_WASM));
  return new WebAssembly.Instance(module).exports as unknown as Kernel;
}

function isCropOnly({ crop, size, flip, layout }: ResampleRequest): boolean {
  return crop.width === size.width && crop.height === size.height && !flip && layout === "HWC";
}

function aligned(address: number): number {
  return Math.ceil(address / 16) * 16;
}

/** Writes the byte offsets within a row of each column's two neighbours, and their weights. */
function writeColumns(into: Int32Array, { channels, crop, size, flip }: ResampleRequest): void {
  const { low, high, highWeight } = tapsOf(crop.width, size.width);
  for (let x = 0, at = 0; x < size.width; x++) {
    const tap = flip ? size.width - 1 - x : x;
    into[at++] = (crop.x + low[tap]!) * channels;
    into[at++] = (crop.x + high[tap]!) * channels;
    into[at++] = (WEIGHT_ONE - highWeight[tap]!) | highWeight[tap]! << 16;
  }
}

interface Taps {
  readonly low: Int32Array;
  readonly high: Int32Array;
  /** The weight of `high`, out of `WEIGHT_ONE`; the rest is that of `low`. */
  readonly highWeight: Int32Array;
}

/** Finds the two neighbours, among `from` samples, of each of `to`. At the edges both are the outermost. */
function tapsOf(from: number, to: number): Taps {
  const low = new Int32Array(to), high = new Int32Array(to), highWeight = new Int32Array(to);
  const scale = from / to;
  for (let i = 0; i < to; i++) {
    const at = Math.min(Math.max((i + 0.5) * scale - 0.5, 0), from - 1);
    const floor = Math.floor(at);
    low[i] = floor;
    high[i] = Math.min(floor + 1, from - 1);
    highWeight[i] = Math.round((at - floor) * WEIGHT_ONE);
  }
  return { low, high, highWeight };
}
