/**
 * Shared by tests of block formats: reading bytes as a file, and the laws of positions and parts.
 */

import { assertEquals } from "../../assert.ts";
import { Tensor } from "../../../core/tensor.ts";
import type { FormatReader, ReadFrom, SourceFile } from "../../../data/formats/format_reader.ts";
import { END } from "../../../data/iterator.ts";
import { AGAIN } from "../../../data/iterators/stepping.ts";
import { BytesFile, type FileOptions, readAll } from "./reading.ts";

/** A file source, for one file. */
export interface RowSource {
  openReader(source: SourceFile, from: ReadFrom): FormatReader | Promise<FormatReader>;
  countParts(source: SourceFile): Promise<number>;
}

/** Bytes as an open file, with a name that has spaces in it. */
export function fileOf(bytes: Uint8Array, options?: FileOptions): SourceFile {
  return { path: "my data", file: new BytesFile(bytes, options), compression: undefined };
}

/** Every row; errors in place of rows; an error of opening as the only entry. */
export async function rowsOf(
  node: RowSource,
  bytes: Uint8Array,
  from: ReadFrom = {},
  options?: FileOptions,
): Promise<unknown[]> {
  try {
    return await readAll(await node.openReader(fileOf(bytes, options), from));
  } catch (error) {
    return [error];
  }
}

/**
 * Checks that the parts together give the whole, that a reader opened from any position gives the
 * rest, and that the file's read sizes and timing do not matter. Returns the rows.
 */
export async function assertLaws(node: RowSource, bytes: Uint8Array): Promise<unknown[]> {
  const whole = await rowsOf(node, bytes);
  for (const options of [{ later: true }, { bytesPerRead: 7 }]) {
    assertEquals(await rowsOf(node, bytes, {}, options), whole);
  }
  const parts: unknown[] = [];
  for (let part = 0; part < await node.countParts(fileOf(bytes)); part++) {
    const rows = await rowsOf(node, bytes, { part });
    parts.push(...rows);
    await assertPositions(node, bytes, rows, part);
  }
  assertEquals(parts, whole);
  await assertPositions(node, bytes, whole, undefined);
  return whole;
}

async function assertPositions(
  node: RowSource,
  bytes: Uint8Array,
  rows: readonly unknown[],
  part: number | undefined,
): Promise<void> {
  const reader = await node.openReader(fileOf(bytes), { part });
  for (let read = 0;;) {
    const position = JSON.parse(JSON.stringify(reader.save()));
    assertEquals(await rowsOf(node, bytes, { part, position }), rows.slice(read));
    const element = await reader.step();
    if (element === END) break;
    if (element !== AGAIN) read++;
  }
  reader.close();
}

/** A tensor's parts, for comparisons. */
export function tensorParts(value: unknown): unknown {
  return value instanceof Tensor ? [value.dtype, value.shape, value.toArray()] : value;
}
