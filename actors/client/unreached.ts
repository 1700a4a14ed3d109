/**
 * Workers that iterators of one process cannot reach, said once for all of these.
 *
 * @module
 */
import type { Timer, World } from "../runtime/world.ts";

/** In what time further iterators that meet the same are counted instead, in ms. */
const SPAN_MS = 60_000;

/** One worker that could not be reached. */
interface Unreached {
  readonly saidMs: number;
  /** Iterators that have met it since. */
  others: number;
}

/** By key, the newest last. The clients of a process have one world in common. */
const unreached = new WeakMap<World, Map<string, Unreached>>();

/** What is said. */
export interface UnreachedNews {
  /** Names the worker where it was looked for. */
  readonly key: string;
  readonly sentence: string;
}

/**
 * Says that a worker cannot be reached. Of the iterators that meet the same within a minute only the
 * first says it at once; how many more there were is said at the end of that minute, if the first one
 * still reads then, or before the next worker that cannot be reached.
 */
export function sayUnreached(
  world: World,
  timer: (delayMs: number, fn: () => void) => Timer,
  { key, sentence }: UnreachedNews,
): void {
  const known = unreached.get(world) ?? new Map<string, Unreached>();
  unreached.set(world, known);
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
    `${others} more iterator${others === 1 ? "" : "s"} of this process could not read from ${key}`,
  );
}
