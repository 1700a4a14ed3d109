/**
 * How the workers of a service share the production of one dataset.
 */

/** The policies, by tf.data service's names. */
export const ShardingPolicy = {
  /** Every worker produces the whole dataset, each in an order of its own. */
  OFF: "OFF",
  /** Splits of the sources are handed out to whoever asks first; every element is produced once. */
  DYNAMIC: "DYNAMIC",
  /** Of n listed workers, worker i reads the files i, i + n, … */
  FILE: "FILE",
  /** Of n listed workers, worker i runs the whole pipeline and keeps its elements i, i + n, … */
  DATA: "DATA",
  /** As FILE where the pipeline reads files, as DATA otherwise. */
  FILE_OR_DATA: "FILE_OR_DATA",
  /** Of n listed workers, worker i reads `shard(n, i)` where the pipeline says `shard(SHARD_HINT, …)`. */
  HINT: "HINT",
  /**
   * As DYNAMIC, with every split numbered, produced again if it is lost, and put back in order by the
   * reader: one stream, the same for any cluster, with every element once.
   */
  DETERMINISTIC: "DETERMINISTIC",
} as const;

/** One of the policies. */
export type ShardingPolicy = typeof ShardingPolicy[keyof typeof ShardingPolicy];

/** How a job is sharded: by one of the policies, or by one of the user's own (`"CUSTOM"`). */
export type ShardingMode = ShardingPolicy | "CUSTOM";

/**
 * Stands for the number of workers in `shard(SHARD_HINT, SHARD_HINT)`, which a HINT job replaces by
 * that number and each worker's place among them.
 */
export const SHARD_HINT = -1;

/** One worker's place among those that share a dataset. */
export interface Shard {
  /** From 0. */
  readonly index: number;
  readonly count: number;
}

/** What a task of a mode asks for, and what it has. */
interface TaskFacts {
  /** It is handed out one split after another, and reads these alone. */
  readonly asksForSplits: boolean;
  /** No other task has the same elements: their numbers alone would give them the same random state. */
  readonly hasElementsOfItsOwn: boolean;
}

/** By the mode of its job. Tasks under DETERMINISTIC are run split by split, each as a dataset of its own. */
export const TASK_FACTS: Readonly<Record<ShardingMode, TaskFacts>> = {
  OFF: { asksForSplits: false, hasElementsOfItsOwn: false },
  DYNAMIC: { asksForSplits: true, hasElementsOfItsOwn: true },
  FILE: { asksForSplits: false, hasElementsOfItsOwn: true },
  DATA: { asksForSplits: false, hasElementsOfItsOwn: false },
  FILE_OR_DATA: { asksForSplits: false, hasElementsOfItsOwn: false },
  HINT: { asksForSplits: false, hasElementsOfItsOwn: false },
  CUSTOM: { asksForSplits: false, hasElementsOfItsOwn: false },
  DETERMINISTIC: { asksForSplits: false, hasElementsOfItsOwn: false },
};
