/** Reports workers that cannot be reached, once for all iterators that share a world. */
import type { LeatError } from "../../core/error.ts";
import type { TaskSource } from "../dispatcher/protocol.ts";
import type { Timer, World } from "../runtime/world.ts";
import { countText } from "../../data/amounts.ts";

/** How long after a report the same failure of other iterators is counted and not logged, in ms. */
const SPAN_MS = 60_000;

/** One worker that could not be reached. */
interface Unreached {
  readonly loggedMs: number;
  /** Iterators with the same failure since. */
  others: number;
}

/** By key, oldest first. The nodes of this process that dial services share one world. */
const unreached = new WeakMap<World, Map<string, Unreached>>();

interface UnreachedNews {
  /** Identifies the worker and its address. */
  readonly key: string;
  readonly message: string;
}

/**
 * Logs that a worker cannot be reached: the first failure at once, and a minute later how many
 * other iterators failed to reach it, too. A timer of the first iterator logs this count. If that
 * iterator is closed by then, the next call of this function logs it.
 */
export function warnUnreached(
  world: World,
  timer: (delayMs: number, fn: () => void) => Timer,
  { key, message }: UnreachedNews,
): void {
  const known = unreached.getOrInsertComputed(world, () => new Map());
  for (const [oldKey, old] of known) {
    if (world.nowMs() - old.loggedMs < SPAN_MS) break;
    warnOfOthers(world, old, oldKey);
    known.delete(oldKey);
  }
  const before = known.get(key);
  if (before !== undefined) {
    before.others++;
    return;
  }
  const entry = { loggedMs: world.nowMs(), others: 0 };
  known.set(key, entry);
  world.log("warn", message);
  timer(SPAN_MS, () => warnOfOthers(world, entry, key));
}

function warnOfOthers(world: World, entry: Unreached, key: string): void {
  const { others } = entry;
  entry.others = 0;
  if (others === 0) return;
  world.log(
    "warn",
    `${countText(others, "more iterator")} of this process could not read from ${key}`,
  );
}

/** How long a failed attempt counts, in ms: longer than it takes until the next one has failed. */
const LATELY_MS = 10_000;

/** The tasks of an iteration that a client has lately failed to read, by id. */
export class UnreadTasks {
  readonly #failures = new Map<number, { readonly atMs: number; readonly message: string }>();

  /** Tasks that give this client nothing more, as their workers say. */
  readonly #ended = new Set<number>();

  /** The client begins to read a task, or another incarnation of it. */
  opened({ taskId }: TaskSource): void {
    this.#ended.delete(taskId);
  }

  ended({ taskId }: TaskSource): void {
    this.#ended.add(taskId);
  }

  /**
   * A sentence if all workers say that they have given everything, while the job goes on. The job may
   * rightly wait for workers that only other clients read.
   */
  whyAllEnded(tasks: ReadonlyMap<number, TaskSource>): string | undefined {
    const [first] = tasks.values();
    if (first === undefined || tasks.keys().some((taskId) => !this.#ended.has(taskId))) return;
    return `All ${tasks.size} workers that it reads have sent the end of their tasks, and the ` +
      "dispatcher says that the job goes on. If no other worker still works for it, start these " +
      `again: first worker "${first.worker}" at ${first.source.node}`;
  }

  failed({ taskId, worker, source }: TaskSource, { message }: LeatError, nowMs: number): void {
    const text = `worker "${worker}" at ${source.node}: ${message}`;
    this.#failures.set(taskId, { atMs: nowMs, message: text });
  }

  answered({ taskId }: TaskSource): void {
    this.#failures.delete(taskId);
  }

  /** A sentence about the tasks that cannot be read now, if there are any. */
  why(tasks: ReadonlyMap<number, TaskSource>, nowMs: number): string | undefined {
    for (const [taskId, { atMs }] of this.#failures) {
      if (!tasks.has(taskId) || nowMs - atMs > LATELY_MS) this.#failures.delete(taskId);
    }
    const [first] = this.#failures.values();
    if (first === undefined) return undefined;
    return `It cannot read from ${this.#failures.size} of its ${tasks.size} workers, and tries ` +
      `again: ${first.message}`;
  }
}
