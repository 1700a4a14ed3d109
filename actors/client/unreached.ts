/** Reports workers that cannot be reached, once for all iterators of a process. */
import type { Timer, World } from "../runtime/world.ts";
import { countText } from "../../data/amounts.ts";

/** After a report, other iterators with the same failure are only counted for this time, in ms. */
const SPAN_MS = 60_000;

/** One worker that could not be reached. */
interface Unreached {
  readonly saidMs: number;
  /** Iterators with the same failure since. */
  others: number;
}

/** By key, oldest first. All clients of a process share one world. */
const unreached = new WeakMap<World, Map<string, Unreached>>();

interface UnreachedNews {
  /** Identifies the worker and its address. */
  readonly key: string;
  readonly sentence: string;
}

/**
 * Reports that a worker cannot be reached. The failure of the first iterator is reported at once. A
 * minute later it reports how many others failed the same way. If the first iterator is closed by
 * then, the next call reports this number.
 */
export function sayUnreached(
  world: World,
  timer: (delayMs: number, fn: () => void) => Timer,
  { key, sentence }: UnreachedNews,
): void {
  const known = unreached.getOrInsertComputed(world, () => new Map());
  for (const [oldKey, old] of known) {
    if (world.nowMs() - old.saidMs < SPAN_MS) break;
    sayOthers(world, old, oldKey);
    known.delete(oldKey);
  }
  const before = known.get(key);
  if (before !== undefined) {
    before.others++;
    return;
  }
  const now = { saidMs: world.nowMs(), others: 0 };
  known.set(key, now);
  world.log("warn", sentence);
  timer(SPAN_MS, () => sayOthers(world, now, key));
}

function sayOthers(world: World, said: Unreached, key: string): void {
  const { others } = said;
  said.others = 0;
  if (others === 0) return;
  world.log(
    "warn",
    `${countText(others, "more iterator")} of this process could not read from ${key}`,
  );
}
