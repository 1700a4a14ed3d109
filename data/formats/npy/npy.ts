/** Reads NumPy's .npy files by rows, along axis 0. */
import {
  type DTypeArrays,
  isFixedDType,
  TYPED_ARRAYS,
  type TypedArray,
} from "../../../core/dtype.ts";
import { utf8Text } from "../../../core/bytes.ts";
import { Tensor } from "../../../core/tensor.ts";
import { ByteRanges } from "../byte_ranges.ts";
import type { SourceFile } from "../format_reader.ts";
import { type NpyArray, readNpyHeader, rowBytesOf } from "./npy_header.ts";
import { equalParts, type RowBlocks, type Rows } from "../row_blocks.ts";

/** Bytes of rows that are read together. A single larger row is read whole. */
const BLOCK_BYTES = 256 * 1024;

/** A part has about 4 MiB, much more than the header, which is read again for each part. */
export const BLOCKS_PER_PART = 16;

/**
 * Opens the rows of a file: plain values if the array has one axis, otherwise tensors. Throws like
 * {@linkcode readNpyHeader}.
 */
export async function openNpy(source: SourceFile): Promise<RowBlocks> {
  const bytes = ByteRanges.of(".npy", source);
  const file = new NpyFile(bytes, await readNpyHeader(bytes));
  const blockRows = rowsPerBlock(file.rowBytes);
  return {
    ...equalParts(Math.ceil(file.length / blockRows), BLOCKS_PER_PART),
    expect: (start, stop) => file.expect(start * blockRows, stop * blockRows),
    async *read(block) {
      const start = block * blockRows;
      const stop = Math.min(start + blockRows, file.length);
      if (start >= stop) return undefined;
      const rows = await file.readRows(start, stop);
      yield;
      return rows;
    },
  };
}

/** An array whose rows are read directly from the file. */
export class NpyFile {
  readonly array: NpyArray;
  readonly #bytes: ByteRanges;

  constructor(bytes: ByteRanges, array: NpyArray) {
    this.#bytes = bytes;
    this.array = array;
  }

  get length(): number {
    return this.array.shape[0]!;
  }

  get rowBytes(): number {
    return rowBytesOf(this.array);
  }

  /** Tells the storage that these rows will be read; fewer if there are not as many. */
  expect(start: number, stop: number): void {
    const { dataOffset } = this.array;
    const offsetOf = (row: number) => dataOffset + Math.min(row, this.length) * this.rowBytes;
    this.#bytes.expect(offsetOf(start), offsetOf(stop));
  }

  async readRows(start: number, stop: number): Promise<Rows> {
    const { dtype, shape, dataOffset } = this.array;
    const offset = dataOffset + start * this.rowBytes;
    const stored = await this.#bytes.read(offset, offset + (stop - start) * this.rowBytes);
    swapToLittleEndian(this.array, stored);
    // NumPy takes any byte but 0 for true.
    if (dtype === "bool") stored.forEach((byte, i) => stored[i] = byte === 0 ? 0 : 1);
    const blockShape = [stop - start, ...shape.slice(1)];
    if (isFixedDType(dtype)) {
      const { BYTES_PER_ELEMENT: itemBytes } = TYPED_ARRAYS[dtype];
      const data = new TYPED_ARRAYS[dtype](stored.buffer, 0, stored.length / itemBytes);
      return tensorRows(new Tensor(dtype, blockShape, data as DTypeArrays[typeof dtype]));
    }
    return { length: stop - start, at: (index) => this.#textRow(stored, index, start + index) };
  }

  /** Decodes the texts of one row of a block. */
  #textRow(stored: Uint8Array<ArrayBuffer>, index: number, row: number): string | Tensor {
    const { shape } = this.array;
    const start = index * this.rowBytes;
    try {
      const texts = textsOf(this.array, stored.subarray(start, start + this.rowBytes));
      return shape.length === 1 ? texts[0]! : new Tensor("string", shape.slice(1), texts);
    } catch (error) {
      throw this.#bytes.failed(`the texts of row ${row}`, error);
    }
  }
}

/** Swaps the bytes of each number in place, or of each character of strings. */
function swapToLittleEndian(
  { itemBytes, characterBytes, isBigEndian }: NpyArray,
  stored: Uint8Array,
) {
  const width = characterBytes || itemBytes;
  if (!isBigEndian || width === 1) return;
  for (let at = 0; at < stored.length; at += width) stored.subarray(at, at + width).reverse();
}

/** Decodes strings of fixed length, UTF-8 (dtype S) or code points (U), without their trailing zeros. */
function textsOf(
  { itemBytes, characterBytes }: NpyArray,
  stored: Uint8Array<ArrayBuffer>,
): string[] {
  const length = itemBytes / characterBytes;
  const characters = characterBytes === 1
    ? stored
    : new Uint32Array(stored.buffer, stored.byteOffset, stored.length / characterBytes);
  return Array.from({ length: stored.length / itemBytes }, (_, i) => {
    let stop = (i + 1) * length;
    while (stop > i * length && characters[stop - 1] === 0) stop--;
    const stored = characters.subarray(i * length, stop);
    const text = stored instanceof Uint8Array ? utf8Text(stored) : textOf(stored);
    if (text !== undefined) return text;
    throw new Error(
      `text ${i} of them is not UTF-8; save the array's bytes, as with .view("uint8")`,
    );
  });
}

/** Code points converted at a time, because the engine's stack limits the number of arguments. */
const POINTS_MAX = 8_192;

function textOf(points: Uint32Array): string {
  let text = "";
  for (let at = 0; at < points.length; at += POINTS_MAX) {
    text += String.fromCodePoint(...points.subarray(at, at + POINTS_MAX));
  }
  return text;
}

/** Returns how many rows of `rowBytes` bytes are read together; at least one. */
export function rowsPerBlock(rowBytes: number): number {
  return Math.max(1, Math.floor(BLOCK_BYTES / Math.max(1, rowBytes)));
}

/** Makes rows of a tensor. Each is a copy, because a view would keep all of them alive. */
function tensorRows({ dtype, data, shape }: Tensor): Rows {
  const [length = 0, ...rowShape] = shape;
  const rowSize = rowShape.reduce((size, length) => size * length, 1);
  return {
    length,
    at(index) {
      if (shape.length === 1) return dtype === "bool" ? data[index] !== 0 : data[index]!;
      const start = index * rowSize;
      const row = (data as TypedArray).slice(start, start + rowSize);
      return new Tensor(dtype, rowShape, row as DTypeArrays[typeof dtype]);
    },
  };
}
