/**
 * The checkpoints in `checkpoints.json`: saved iterators of many pipelines, and their remaining
 * elements.
 */
import { ELEMENTS_MAX, open, PIPELINES, prepared } from "../data/lib/checkpoint_pipelines.ts";
import { outcomesOf, readOutcomes } from "../data/lib/outcomes.ts";
import { describe } from "../transport/vectors/cases.ts";

/** Number of elements before each is saved. */
const POSITION = 3;
/** Pipelines that write files, which are not part of a checkpoint. */
const WRITING = ["cacheWriting", "snapshotWriting"];

/** One checkpoint. */
export interface Checkpoint {
  /** The pipeline's name. */
  name: string;
  /** The result of `save()`, in Base64. */
  saved: string;
  /** All elements and errors after it. */
  rest: unknown;
}

/** `checkpoints.json` as the current code would write it. */
export async function makeCheckpoints(): Promise<Checkpoint[]> {
  const all: Checkpoint[] = [];
  for (const [name, make] of Object.entries(PIPELINES)) {
    if (WRITING.includes(name)) continue;
    const host = await prepared();
    // How far operators work ahead depends on when they yield to the event loop: not by the clock.
    host.nowMs = () => 0;
    await using iterator = open(await make(), host);
    await readOutcomes(iterator, POSITION);
    const saved = (await iterator.save()).toBase64();
    all.push({ name, saved, rest: describe(await outcomesOf(iterator, ELEMENTS_MAX)) });
  }
  return all;
}
