/** A split in progress on this host, as items. */
import type { DatasetIterator } from "../../data/dataset_iterator.ts";
import { ReadingFailure } from "../../data/iterators/reading_failure.ts";
import type { Item, ItemPlace } from "./items.ts";

export interface SplitRun {
  readonly sequence: number;
  readonly split: number;
  readonly iterator: DatasetIterator<unknown>;
  /** How many items it has given. */
  index: number;
  remainder: { readonly rows: unknown } | undefined;
  hasEnded: boolean;
}

export function nextPlace(run: SplitRun): ItemPlace {
  return { sequence: run.sequence, split: run.split, index: run.index++ };
}

/**
 * The next element or error; undefined at the end.
 * @throws {ReadingFailure} when the split cannot be read further.
 */
export async function nextElement(run: SplitRun): Promise<Item | undefined> {
  if (run.hasEnded) return undefined;
  try {
    const { done, value } = await run.iterator.next();
    if (!done) return { kind: "element", place: nextPlace(run), element: value };
  } catch (error) {
    if (error instanceof ReadingFailure) throw error;
    return { kind: "error", place: nextPlace(run), error };
  }
  run.hasEnded = true;
  return undefined;
}
