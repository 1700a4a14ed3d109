/**
 * Cuts a column of a row group into pieces, because decoding is synchronous and blocks the thread.
 */
import type { ColumnMetaData } from "hyparquet";
import type { Page } from "./parquet_pages.ts";

/** Minimum values of a piece, except the last one. Decoding them takes some milliseconds. */
const PIECE_VALUES_MIN = 16 * 1024;

/** Minimum values of a piece per dictionary entry, because every piece decodes the dictionary again. */
const VALUES_PER_ENTRY = 4;

/** Consecutive pages of a column, which the library decodes as if they were a whole column. */
export interface ColumnPiece {
  readonly bytes: ArrayBuffer;
  readonly column: ColumnMetaData;
  /** The pages in `bytes`. */
  readonly pages: readonly Page[];
}

/**
 * Cuts a column into pieces of whole pages.
 *
 * @param pages All pages of `chunk`. Each value must be a row, because a list could continue in the
 * next page.
 */
export function piecesOf(
  chunk: ArrayBuffer,
  column: ColumnMetaData,
  pages: readonly Page[],
): ColumnPiece[] {
  const dictionaries = pages.filter(({ entries }) => entries > 0);
  const entries = dictionaries.reduce((sum, page) => sum + page.entries, 0);
  const valuesMin = Math.max(PIECE_VALUES_MIN, VALUES_PER_ENTRY * entries);
  const runs: Page[][] = [[]];
  let values = 0;
  for (const page of pages) {
    if (page.values === 0) continue;
    if (values >= valuesMin) {
      runs.push([]);
      values = 0;
    }
    runs.at(-1)!.push(page);
    values += page.values;
  }
  if (runs.length === 1) return [{ bytes: chunk, column, pages }];
  return runs.map((run) => pieceOf(chunk, column, [...dictionaries, ...run]));
}

function pieceOf(chunk: ArrayBuffer, column: ColumnMetaData, pages: readonly Page[]): ColumnPiece {
  const size = pages.reduce((sum, { start, stop }) => sum + stop - start, 0);
  const bytes = new Uint8Array(size);
  let at = 0;
  let values = 0;
  const moved: Page[] = [];
  for (const page of pages) {
    const { start, stop, dataStart, values: count } = page;
    moved.push({ ...page, start: at, stop: at + stop - start, dataStart: at + dataStart - start });
    bytes.set(new Uint8Array(chunk, start, stop - start), at);
    at += stop - start;
    values += count;
  }
  return {
    bytes: bytes.buffer,
    column: { ...column, num_values: BigInt(values), total_compressed_size: BigInt(size) },
    pages: moved,
  };
}
