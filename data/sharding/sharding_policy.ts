/** How the workers of a service divide the production of a dataset. */

/** The policies, with the names that they have in tf.data service. */
export const ShardingPolicy = {
  /** Every worker produces the whole dataset: with a seed in the same order, else each in its own. */
  OFF: "OFF",
  /** The dispatcher assigns splits of the sources on request; every element is produced once. */
  DYNAMIC: "DYNAMIC",
  /** Of n listed workers, worker i reads the files i, i + n, … */
  FILE: "FILE",
  /** Of n listed workers, worker i runs the whole pipeline and keeps its elements i, i + n, … */
  DATA: "DATA",
  /** FILE if the pipeline reads files, otherwise DATA. */
  FILE_OR_DATA: "FILE_OR_DATA",
  /** Of n listed workers, worker i runs `shard(n, i)` in place of `shard(SHARD_HINT, …)`. */
  HINT: "HINT",
  /**
   * Like DYNAMIC, but splits are numbered. Lost ones are produced again, and the reader puts them in
   * order: one stream with every element once, which is the same for any cluster.
   */
  DETERMINISTIC: "DETERMINISTIC",
} as const;

/** One of the policies. */
export type ShardingPolicy = typeof ShardingPolicy[keyof typeof ShardingPolicy];

/** How a job is sharded: by one of the policies, or by a user's policy (`"CUSTOM"`). */
export type ShardingMode = ShardingPolicy | "CUSTOM";

/**
 * A placeholder in `shard(SHARD_HINT, SHARD_HINT)`. A HINT job replaces the two arguments by the number
 * of workers and by each worker's index.
 */
export const SHARD_HINT: number = -1;

/** Which share of a dataset a worker produces. */
export interface Shard {
  /** The worker's index among those that share the dataset, from 0. */
  readonly index: number;
  /** The number of workers that share the dataset. */
  readonly count: number;
}

/** Properties of a mode. */
interface ModeFacts {
  /** The dispatcher divides the sources into splits. */
  readonly isSplit: boolean;
  /** A task requests splits one after the other, and reads only these. */
  readonly asksForSplits: boolean;
  /** Element n of one task is not element n of another, so functions draw other numbers in each. */
  readonly elementsDifferByTask: boolean;
  /** If the dataset is endless, what each client reads is endless. */
  readonly keepsEndless: boolean;
  /** If the dataset is empty, what each client reads is empty. */
  readonly keepsEmpty: boolean;
}

const WHOLE: ModeFacts = {
  isSplit: false,
  asksForSplits: false,
  elementsDifferByTask: false,
  keepsEndless: true,
  keepsEmpty: true,
};
const PART: ModeFacts = { ...WHOLE, keepsEndless: false, keepsEmpty: false };

/** By the mode of the job. DETERMINISTIC tasks run each split as a dataset of its own. */
export const MODE_FACTS: Readonly<Record<ShardingMode, ModeFacts>> = {
  OFF: WHOLE,
  DYNAMIC: { ...WHOLE, isSplit: true, asksForSplits: true, elementsDifferByTask: true },
  FILE: { ...PART, elementsDifferByTask: true },
  DATA: WHOLE,
  FILE_OR_DATA: { ...PART, keepsEmpty: true },
  HINT: PART,
  CUSTOM: PART,
  DETERMINISTIC: { ...WHOLE, isSplit: true },
};
