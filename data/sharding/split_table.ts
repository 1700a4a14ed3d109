/** Split tables, as the dispatcher keeps and journals them: two numbers per split. */
import { LeatError } from "../../core/error.ts";
import { hashBytes, hashJson } from "../../core/hash.ts";
import type { Split, SplitTable } from "./splits.ts";

/** Maximum number of splits of an iteration, over all its sources. */
export const SPLITS_MAX = 2 ** 24;

/** Per source: start and stop of the first split, then of the second, and so on. */
export type SplitBounds = readonly Float64Array[];

/**
 * Packs a table.
 *
 * @throws {LeatError} `resource_exhausted` above {@linkcode SPLITS_MAX}, `internal` for invalid splits.
 */
export function packSplits(table: SplitTable): SplitBounds {
  const count = table.reduce((sum, splits) => sum + splits.length, 0);
  if (count > SPLITS_MAX) {
    throw new LeatError(
      "resource_exhausted",
      `The dataset has ${count} splits, and at most ${SPLITS_MAX} can be assigned; put more data ` +
        `into each file, or use processingMode "OFF", where each worker gives all elements`,
    );
  }
  return table.map((splits, source) => {
    const bounds = new Float64Array(2 * splits.length);
    splits.forEach(({ start, stop }, i) => {
      if (
        !(Number.isSafeInteger(start) && Number.isSafeInteger(stop) && 0 <= start && start <= stop)
      ) {
        throw new LeatError(
          "internal",
          `Split ${i} of source ${source} runs from ${start} to ${stop}, which is not a range`,
        );
      }
      bounds[2 * i] = start;
      bounds[2 * i + 1] = stop;
    });
    return bounds;
  });
}

/** Whether a value can be the bounds of a source's splits. */
export function areBounds(value: unknown): value is Float64Array {
  return value instanceof Float64Array && value.length % 2 === 0 &&
    value.every((at, i) => Number.isSafeInteger(at) && at >= (i % 2 === 0 ? 0 : value[i - 1]!));
}

export function splitCount(bounds: SplitBounds, source: number): number {
  return (bounds[source]?.length ?? 0) / 2;
}

export function splitAt(bounds: SplitBounds, source: number, index: number): Split {
  const { [source]: runs } = bounds;
  return { start: runs![2 * index]!, stop: runs![2 * index + 1]! };
}

/** A digest that is equal only for equal tables. */
export function digestOfSplits(bounds: SplitBounds): string {
  return hashJson(
    bounds.map((runs) => hashBytes(new Uint8Array(runs.buffer, runs.byteOffset, runs.byteLength))),
  );
}
