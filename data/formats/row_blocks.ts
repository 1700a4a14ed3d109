/** Files that are read in blocks of rows: row groups, record batches, runs of an array. */
import { LeatError } from "../../core/error.ts";
import type { OpenFile } from "../host.ts";
import { END } from "../iterator.ts";
import { AGAIN } from "../iterators/stepping.ts";
import type { FormatReader, ReadFrom } from "./format_reader.ts";

export interface Rows {
  readonly length: number;
  /** Makes an element from a row, in memory of its own. If it throws, the row is lost. */
  at(index: number): unknown;
}

/** An open file as blocks of rows. */
export interface RowBlocks {
  /** Number of blocks; `Infinity` if only reading shows it. */
  readonly count: number;
  /** Number of consecutive blocks in a part. */
  readonly blocksPerPart: number;
  /**
   * Reads a block. Yields where other work may run, and returns `undefined` after the last block.
   * If it throws, the block is lost, and the next one is read.
   */
  read(block: number): AsyncGenerator<void, Rows | undefined>;
}

/** Between two rows: `row` of block `block` is next. */
export interface BlockPosition {
  readonly block: number;
  readonly row: number;
}

/**
 * Number of parts that can be read independently; 1 if the file is empty, or its blocks are not
 * known before reading.
 */
export function countParts({ count, blocksPerPart }: RowBlocks): number {
  return count === Infinity ? 1 : Math.max(1, Math.ceil(count / blocksPerPart));
}

/** The rows of a file, or of a part of it. At most one block is in memory. */
export class BlockReader implements FormatReader {
  readonly #file: OpenFile;
  readonly #blocks: RowBlocks;
  readonly #stop: number;
  #block: number;
  #row: number;
  #rows: Rows | undefined;
  #loading: AsyncGenerator<void, Rows | undefined> | undefined;
  #closed = false;

  /** @throws {LeatError} `out_of_range` if there is no such part. */
  constructor(file: OpenFile, blocks: RowBlocks, { part, position }: ReadFrom) {
    const parts = countParts(blocks);
    if (part !== undefined && !(Number.isInteger(part) && part >= 0 && part < parts)) {
      throw new LeatError("out_of_range", `There is no part ${part} in a file of ${parts}.`);
    }
    const { count, blocksPerPart } = blocks;
    // With infinitely many blocks there is one part, which begins at 0: 0 times Infinity is NaN.
    const start = part === undefined || part === 0 ? 0 : part * blocksPerPart;
    const { block, row } = (position ?? { block: start, row: 0 }) as BlockPosition;
    this.#file = file;
    this.#blocks = blocks;
    this.#stop = part === undefined ? count : Math.min(count, start + blocksPerPart);
    this.#block = block;
    this.#row = row;
  }

  get disposed(): boolean {
    return this.#closed;
  }

  step(): unknown {
    if (this.#closed) return END;
    if (this.#rows === undefined) return this.#block < this.#stop ? this.#load() : END;
    if (this.#row < this.#rows.length) return this.#rows.at(this.#row++);
    this.#advance();
    return AGAIN;
  }

  save(): BlockPosition {
    return { block: this.#block, row: this.#row };
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#rows = this.#loading = undefined;
    this.#file.close();
  }

  async #load(): Promise<typeof AGAIN | typeof END> {
    try {
      this.#loading ??= this.#blocks.read(this.#block);
      const { done, value } = await this.#loading.next();
      if (this.#closed) return END;
      if (!done) return AGAIN;
      this.#loading = undefined;
      if (value === undefined) {
        this.close();
        return END;
      }
      this.#rows = value;
      return AGAIN;
    } catch (error) {
      // The result of a closed file is not needed any more.
      if (this.#closed) return END;
      this.#advance();
      throw error;
    }
  }

  #advance(): void {
    this.#rows = this.#loading = undefined;
    this.#block++;
    this.#row = 0;
  }
}
