/** The rows of NumPy's .npy files, along axis 0. */
import {
  type DTypeArrays,
  isFixedDType,
  TYPED_ARRAYS,
  type TypedArray,
} from "../../../core/dtype.ts";
import { Tensor } from "../../../core/tensor.ts";
import type { NestedArray } from "../../../core/tensor_values.ts";
import { ByteRanges } from "../byte_ranges.ts";
import type { SourceFile } from "../format_reader.ts";
import { type NpyArray, readNpyHeader, rowBytesOf } from "./npy_header.ts";
import type { RowBlocks, Rows } from "../row_blocks.ts";

/** Bytes of rows that are read together; a single larger row is read whole. */
const BLOCK_BYTES = 256 * 1024;

/** About 4 MiB: large compared with the header, which is read again for each part. */
export const BLOCKS_PER_PART = 16;

/** Reads the header of a file. Throws like {@linkcode readNpyHeader}. */
export async function openNpy(source: SourceFile): Promise<NpyBlocks> {
  const bytes = ByteRanges.of(".npy", source);
  return new NpyBlocks(new NpyFile(bytes, await readNpyHeader(bytes)));
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

  async readRows(start: number, stop: number): Promise<TensorRows> {
    const { dtype, shape, dataOffset } = this.array;
    const offset = dataOffset + start * this.rowBytes;
    const stored = await this.#bytes.read(offset, offset + (stop - start) * this.rowBytes);
    swapToLittleEndian(this.array, stored);
    const whole = [stop - start, ...shape.slice(1)];
    if (isFixedDType(dtype)) {
      const { BYTES_PER_ELEMENT: itemBytes } = TYPED_ARRAYS[dtype];
      const data = new TYPED_ARRAYS[dtype](stored.buffer, 0, stored.length / itemBytes);
      return new TensorRows(new Tensor(dtype, whole, data as DTypeArrays[typeof dtype]));
    }
    const count = whole.reduce((size, length) => size * length, 1);
    try {
      return new TensorRows(new Tensor("string", whole, texts(this.array, stored, count)));
    } catch (error) {
      throw this.#bytes.failed(`its texts from row ${start} to ${stop}`, error);
    }
  }
}

/** Swaps bytes in place. For strings, swaps each character. */
function swapToLittleEndian(
  { itemBytes, characterBytes, isBigEndian }: NpyArray,
  stored: Uint8Array,
) {
  const width = characterBytes || itemBytes;
  if (!isBigEndian || width === 1) return;
  for (let at = 0; at < stored.length; at += width) stored.subarray(at, at + width).reverse();
}

/** Texts of a fixed length without trailing zeros: UTF-8 (dtype S) or code points (U). */
function texts(
  { itemBytes, characterBytes }: NpyArray,
  stored: Uint8Array<ArrayBuffer>,
  count: number,
): string[] {
  const length = itemBytes / characterBytes;
  const characters = characterBytes === 1 ? stored : new Uint32Array(stored.buffer);
  const utf8 = new TextDecoder();
  return Array.from({ length: count }, (_, i) => {
    let stop = (i + 1) * length;
    while (stop > i * length && characters[stop - 1] === 0) stop--;
    const text = characters.subarray(i * length, stop);
    return text instanceof Uint8Array ? utf8.decode(text) : String.fromCodePoint(...text);
  });
}

/** The rows of an array: plain values if it has one axis, otherwise tensors. */
class NpyBlocks implements RowBlocks {
  readonly blocksPerPart = BLOCKS_PER_PART;
  readonly count: number;
  readonly #file: NpyFile;
  readonly #rowsPerBlock: number;

  constructor(file: NpyFile) {
    this.#file = file;
    this.#rowsPerBlock = rowsPerBlock(file.rowBytes);
    this.count = Math.ceil(file.length / this.#rowsPerBlock);
  }

  async *read(block: number): AsyncGenerator<void, Rows | undefined> {
    const start = block * this.#rowsPerBlock;
    const stop = Math.min(start + this.#rowsPerBlock, this.#file.length);
    if (start >= stop) return undefined;
    const rows = await this.#file.readRows(start, stop);
    yield;
    return rows;
  }
}

/** Number of rows of `rowBytes` bytes that are read together; at least one. */
export function rowsPerBlock(rowBytes: number): number {
  return Math.max(1, Math.floor(BLOCK_BYTES / Math.max(1, rowBytes)));
}

/** The rows of a tensor, each copied: a view would keep all of them alive. */
class TensorRows implements Rows {
  readonly #tensor: Tensor;
  readonly #rowShape: readonly number[];
  readonly #rowSize: number;

  constructor(tensor: Tensor) {
    this.#tensor = tensor;
    this.#rowShape = tensor.shape.slice(1);
    this.#rowSize = this.#rowShape.reduce((size, length) => size * length, 1);
  }

  get length(): number {
    return this.#tensor.shape[0]!;
  }

  at(index: number): Tensor | NestedArray {
    const { dtype, data, shape } = this.#tensor;
    if (shape.length === 1) {
      return dtype === "bool" ? data[index] !== 0 : data[index]!;
    }
    const start = index * this.#rowSize;
    const row = (data as TypedArray).slice(start, start + this.#rowSize);
    return new Tensor(dtype, this.#rowShape, row as DTypeArrays[typeof dtype]);
  }
}
