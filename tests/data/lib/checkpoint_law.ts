/**
 * The law of checkpoints: a restored iterator gives what the saved one would have given, and the
 * saved one still gives it.
 */
import { openIterator } from "../../../data/dataset_iterator.ts";
import type { Dataset } from "../../../mod.ts";
import { assertEquals } from "../../assert.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { type Outcome, outcomesOf, readOutcomes } from "./outcomes.ts";

/** How the law is tested. */
export interface LawOptions {
  /** False if the order of elements is not deterministic; then they are compared as a set. */
  readonly inOrder?: boolean;
  /**
   * The seed; or `"drawn"`: there is no user's seed, each iterator and dataset draws its own, and
   * the checkpoint has to include them.
   */
  readonly seed?: bigint | "drawn";
  /**
   * Number of elements whose positions are tested, for endless datasets. Default: to the end and
   * past it.
   */
  readonly elementsMax?: number;
  /** Awaited before iterators are saved, so that background work can progress. */
  readonly beforeSave?: () => Promise<void>;
  /** The host with the files. With drawn seeds, its random numbers repeat from run to run. */
  readonly host?: DenoHost;
}

/**
 * Tests the law at every position from 0 to one past the end: save, restore, save again a little
 * later, restore again.
 *
 * @param make Makes the dataset again, like another process would.
 */
export async function assertCheckpointLaw(
  make: () => Dataset<unknown>,
  { inOrder = true, seed = 11n, elementsMax = Infinity, beforeSave, host }: LawOptions = {},
): Promise<void> {
  const ran = host ?? new DenoHost();
  let drawn = 0n;
  ran.entropy64 = () => ++drawn;
  const open = () =>
    openIterator(make().node, seed === "drawn" ? { host: ran } : { host: ran, seed });
  await using first = open();
  const known = seed === "drawn" ? undefined : await outcomesOf(first, elementsMax);
  for (let position = 0; position <= elementsMax; position++) {
    await using saver = open();
    const before = await readOutcomes(saver, position);
    await beforeSave?.();
    const state = await saver.save();
    await using restored = open();
    await restored.restore(state);
    const between = await readOutcomes(restored, Math.min(position % 3, elementsMax - position));
    await beforeSave?.();
    const secondState = await restored.save();
    await using again = open();
    await again.restore(secondState);
    const left = elementsMax - before.length;
    const rests = {
      "restored": [...between, ...await outcomesOf(restored, left - between.length)],
      "restored twice": [...between, ...await outcomesOf(again, left - between.length)],
      "the saver went on": await outcomesOf(saver, left),
    };
    const whole = known ?? [...before, ...rests["the saver went on"]];
    for (const [what, rest] of Object.entries(rests)) {
      const where = `position ${position} of ${whole.length}: ${what}`;
      if (inOrder) assertEquals(rest, whole.slice(before.length), where);
      else assertEquals(sorted([...before, ...rest]), sorted(whole), where);
    }
    if (before.length < position) return;
  }
}

function sorted(outcomes: Outcome[]): Outcome[] {
  return outcomes.sort(byText);
}

function byText(a: unknown, b: unknown): number {
  const [left, right] = [JSON.stringify(a), JSON.stringify(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}
