/** Writes PNGs of every colour type and bit depth, whole or interlaced, straight from the specification. */

import { crc32, deflateSync } from "node:zlib";
import { concat } from "../../data/formats/reading.ts";

export const PNG_SIGNATURE = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** The colour types of the specification, by how many samples a pixel has. */
export const GREY = { type: 0, samples: 1 };
export const RGB = { type: 2, samples: 3 };
export const PALETTE = { type: 3, samples: 1 };
export const GREY_ALPHA = { type: 4, samples: 2 };
export const RGBA = { type: 6, samples: 4 };

export interface PngPicture {
  readonly width: number;
  readonly height: number;
  readonly depth: 1 | 2 | 4 | 8 | 16;
  readonly colour: typeof GREY;
  /** Sample `channel` of the pixel at (x, y), from 0 to 2^depth - 1. */
  readonly at: (x: number, y: number, channel: number) => number;
  readonly interlaced?: boolean;
  /** Chunks between the header and the data: a palette, transparency. */
  readonly chunks?: readonly Uint8Array[];
}

/** The pixel positions of each of Adam7's seven pictures. */
const PASSES = [
  { x: 0, y: 0, dx: 8, dy: 8 },
  { x: 4, y: 0, dx: 8, dy: 8 },
  { x: 0, y: 4, dx: 4, dy: 8 },
  { x: 2, y: 0, dx: 4, dy: 4 },
  { x: 0, y: 2, dx: 2, dy: 4 },
  { x: 1, y: 0, dx: 2, dy: 2 },
  { x: 0, y: 1, dx: 1, dy: 2 },
];

export function pngChunk(type: string, data: Uint8Array): Uint8Array<ArrayBuffer> {
  const chunk = new Uint8Array(12 + data.length);
  const view = new DataView(chunk.buffer);
  view.setUint32(0, data.length);
  chunk.set(new TextEncoder().encode(type), 4);
  chunk.set(data, 8);
  view.setUint32(8 + data.length, crc32(chunk.subarray(4, 8 + data.length)));
  return chunk;
}

export function pngHeader(
  { width, height, depth, colour, interlaced = false }: Omit<PngPicture, "at">,
): Uint8Array<ArrayBuffer> {
  const header = new Uint8Array(13);
  new DataView(header.buffer).setUint32(0, width);
  new DataView(header.buffer).setUint32(4, height);
  header.set([depth, colour.type, 0, 0, interlaced ? 1 : 0], 8);
  return pngChunk("IHDR", header);
}

export function writePng(picture: PngPicture): Uint8Array<ArrayBuffer> {
  const { interlaced = false, chunks = [] } = picture;
  const passes = interlaced ? PASSES : [{ x: 0, y: 0, dx: 1, dy: 1 }];
  const rows = passes.flatMap((pass) => rowsOf(picture, pass));
  const data = pngChunk("IDAT", deflateSync(concat(...rows)));
  const end = pngChunk("IEND", new Uint8Array(0));
  return concat(PNG_SIGNATURE, pngHeader(picture), ...chunks, data, end);
}

/** The rows of one pass, each after its filter (none), samples packed from the highest bit down. */
function rowsOf(picture: PngPicture, pass: typeof PASSES[number]): Uint8Array[] {
  const { width, height, depth, colour, at } = picture;
  const columns = Math.ceil((width - pass.x) / pass.dx);
  if (columns <= 0) return [];
  const rows: Uint8Array[] = [];
  for (let y = pass.y; y < height; y += pass.dy) {
    const row = new Uint8Array(1 + Math.ceil(columns * colour.samples * depth / 8));
    let bit = 8;
    for (let x = pass.x; x < width; x += pass.dx) {
      for (let channel = 0; channel < colour.samples; channel++, bit += depth) {
        const value = at(x, y, channel);
        if (depth === 16) row.set([value >> 8, value & 0xff], bit >> 3);
        else row[bit >> 3]! |= value << (8 - depth - bit % 8);
      }
    }
    rows.push(row);
  }
  return rows;
}
