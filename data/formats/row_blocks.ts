/** Reads files in blocks of rows: row groups, record batches, or consecutive rows of an array. */
import { LeatError } from "../../core/error.ts";
import type { OpenFile } from "../host.ts";
import { END } from "../iterator.ts";
import { ReadingFailure } from "../iterators/reading_failure.ts";
import { AGAIN } from "../iterators/stepping.ts";
import type { FormatReader, ReadFrom } from "./format_reader.ts";

export interface Rows {
  readonly length: number;
  /** Makes an element from a row, in memory of its own. If it throws, the row is lost. */
  at(index: number): unknown;
}

export interface RowBlocks {
  /** Number of blocks; `Infinity` if it is unknown until the end is read. */
  readonly count: number;
  readonly partCount: number;
  /** The first block of a part; for `partCount` the number of blocks. */
  partStart(part: number): number;
  /** Tells the storage that these blocks will be read, if it would help. */
  expect?(start: number, stop: number): void;
  /**
   * Reads a block; `undefined` after the last one. Yields where other work may run. If it throws, the
   * block is lost, and reading continues with the next one. After a `ReadingFailure` nothing is read.
   */
  read(block: number): AsyncGenerator<void, Rows | undefined>;
}

/** The position of the next row. */
export interface BlockPosition {
  readonly block: number;
  readonly row: number;
}

/**
 * Divides blocks into parts that can be read independently. It is one if the file is empty or `count` is
 * unknown.
 */
export function equalParts(
  count: number,
  blocksPerPart: number,
): Pick<RowBlocks, "count" | "partCount" | "partStart"> {
  const partCount = count === Infinity ? 1 : Math.max(1, Math.ceil(count / blocksPerPart));
  // Part 0 is a case of its own, because `0 * Infinity` is NaN.
  const partStart = (part: number) => part === 0 ? 0 : Math.min(count, part * blocksPerPart);
  return { count, partCount, partStart };
}

/** Reads the rows of a file, or of a part of it. At most one block is in memory. */
export function blockReader(
  file: OpenFile,
  blocks: RowBlocks,
  { part, position }: ReadFrom,
): FormatReader {
  const { count, partCount: parts } = blocks;
  if (part !== undefined && !(Number.isInteger(part) && part >= 0 && part < parts)) {
    throw new LeatError("out_of_range", `There is no part ${part} in a file of ${parts}.`);
  }
  const start = blocks.partStart(part ?? 0);
  const stop = part === undefined ? count : blocks.partStart(part + 1);
  let { block, row } = (position ?? { block: start, row: 0 }) as BlockPosition;
  if (part !== undefined) blocks.expect?.(block, stop);
  let rows: Rows | undefined;
  let loading: AsyncGenerator<void, Rows | undefined> | undefined;
  let isClosed = false;
  const close = () => {
    if (isClosed) return;
    isClosed = true;
    rows = loading = undefined;
    file.close();
  };
  const advance = () => {
    rows = loading = undefined;
    block++;
    row = 0;
  };
  const load = async () => {
    try {
      loading ??= blocks.read(block);
      const { done, value } = await loading.next();
      if (isClosed) return END;
      if (!done) return AGAIN;
      loading = undefined;
      if (value === undefined) {
        close();
        return END;
      }
      rows = value;
      return AGAIN;
    } catch (error) {
      // Closing the file cancels its reads.
      if (isClosed) return END;
      if (!(error instanceof ReadingFailure)) advance();
      throw error;
    }
  };
  return {
    get disposed() {
      return isClosed;
    },
    step: () => {
      if (isClosed) return END;
      if (rows === undefined) return block < stop ? load() : END;
      if (row < rows.length) return rows.at(row++);
      advance();
      return AGAIN;
    },
    save: () => ({ block, row }) satisfies BlockPosition,
    close,
  };
}
