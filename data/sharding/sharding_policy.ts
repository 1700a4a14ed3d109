/** How the workers of a service share the production of one dataset. */

/** The policies, by tf.data service's names. */
export const ShardingPolicy = {
  /** Every worker produces the whole dataset, each in its own order. */
  OFF: "OFF",
  /** The dispatcher assigns splits of the sources on request; every element is produced once. */
  DYNAMIC: "DYNAMIC",
  /** Of n listed workers, worker i reads the files i, i + n, … */
  FILE: "FILE",
  /** Of n listed workers, worker i runs the whole pipeline and keeps its elements i, i + n, … */
  DATA: "DATA",
  /** FILE if the pipeline reads files, otherwise DATA. */
  FILE_OR_DATA: "FILE_OR_DATA",
  /**
   * Of n listed workers, worker i reads `shard(n, i)` where the pipeline has `shard(SHARD_HINT,
   * …)`.
   */
  HINT: "HINT",
  /**
   * Like DYNAMIC, but splits are numbered, produced again if they are lost, and put in order by the
   * reader: one stream with every element once, the same for any cluster.
   */
  DETERMINISTIC: "DETERMINISTIC",
} as const;

/** One of the policies. */
export type ShardingPolicy = typeof ShardingPolicy[keyof typeof ShardingPolicy];

/** How a job is sharded: by one of the policies, or by a user's policy (`"CUSTOM"`). */
export type ShardingMode = ShardingPolicy | "CUSTOM";

/**
 * A placeholder for the number of workers in `shard(SHARD_HINT, SHARD_HINT)`; a HINT job replaces
 * it by that number and by each worker's index.
 */
export const SHARD_HINT: number = -1;

/** A worker's index among those that share a dataset. */
export interface Shard {
  /** From 0. */
  readonly index: number;
  /** The number of workers that share the dataset. */
  readonly count: number;
}

/** What a mode means for its tasks and readers. */
interface ModeFacts {
  /** The dispatcher divides the sources into splits. */
  readonly isSplit: boolean;
  /** A task requests splits one after the other, and reads only these. */
  readonly asksForSplits: boolean;
  /**
   * Element n of one task differs from element n of another, so random state depends on the task,
   * too.
   */
  readonly hasElementsOfItsOwn: boolean;
  /** If the dataset is endless, what each client reads is endless. */
  readonly keepsEndless: boolean;
  /** If the dataset is empty, what each client reads is empty. */
  readonly keepsEmpty: boolean;
}

const WHOLE: ModeFacts = {
  isSplit: false,
  asksForSplits: false,
  hasElementsOfItsOwn: false,
  keepsEndless: true,
  keepsEmpty: true,
};
const PART: ModeFacts = { ...WHOLE, keepsEndless: false, keepsEmpty: false };

/** By the mode of the job. DETERMINISTIC tasks run each split as a dataset of its own. */
export const MODE_FACTS: Readonly<Record<ShardingMode, ModeFacts>> = {
  OFF: WHOLE,
  DYNAMIC: { ...WHOLE, isSplit: true, asksForSplits: true, hasElementsOfItsOwn: true },
  FILE: { ...PART, hasElementsOfItsOwn: true },
  DATA: WHOLE,
  FILE_OR_DATA: { ...PART, keepsEmpty: true },
  HINT: PART,
  CUSTOM: PART,
  DETERMINISTIC: { ...WHOLE, isSplit: true },
};
