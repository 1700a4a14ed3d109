/**
 * The law of checkpoints: an iterator restored from what another one saved gives what the other one
 * would have given, and the other one still gives it.
 */
import { type Dataset, openIterator } from "../../../mod.ts";
import { assertEquals } from "../../assert.ts";
import { outcomesOf, readOutcomes } from "./outcomes.ts";

/** How a law is tried. */
export interface LawOptions {
  /** False where the order of elements is left to chance; then they are compared as a set. */
  readonly inOrder?: boolean;
  /** The seed of all luck; left out, each iterator draws its own and what was saved has to bring it. */
  readonly seed?: bigint;
  /** How far into the dataset positions are tried; for endless ones. Default: to the end and past it. */
  readonly elementsMax?: number;
  /** Awaited before iterators are saved: lets what goes on in the background get somewhere. */
  readonly beforeSave?: () => Promise<void>;
}

/**
 * Tries the law at every position from 0 to the end and one past it: save, restore, save again a
 * little later, restore again.
 *
 * @param make makes the dataset anew, as another process would.
 */
export async function assertCheckpointLaw(
  make: () => Dataset<unknown>,
  { inOrder = true, seed = 11n, elementsMax = Infinity, beforeSave }: LawOptions = {},
): Promise<void> {
  const open = () => openIterator(make().node, { seed });
  const whole = await outcomesOf(open(), elementsMax);
  const compare = (found: unknown[], from: number, what: string) => {
    const wanted = whole.slice(from);
    if (inOrder) assertEquals(found, wanted, what);
    else assertEquals([...found].sort(byText), [...wanted].sort(byText), what);
  };
  const last = elementsMax === Infinity ? whole.length + 1 : whole.length;
  for (let position = 0; position <= last; position++) {
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
    const rest = elementsMax - position;
    const from = Math.min(position, whole.length);
    const what = `position ${position} of ${whole.length}`;
    if (!inOrder) {
      compare([...before, ...await outcomesOf(saver, rest)], 0, `${what}: the saver went on`);
      const tail = await outcomesOf(again, rest - between.length);
      compare([...before, ...between, ...tail], 0, `${what}: restored twice`);
      continue;
    }
    compare(
      between.concat(await outcomesOf(restored, rest - between.length)),
      from,
      `${what}: restored`,
    );
    compare(
      between.concat(await outcomesOf(again, rest - between.length)),
      from,
      `${what}: restored twice`,
    );
    compare(await outcomesOf(saver, rest), from, `${what}: the saver went on`);
  }
}

function byText(a: unknown, b: unknown): number {
  const [left, right] = [JSON.stringify(a), JSON.stringify(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}
