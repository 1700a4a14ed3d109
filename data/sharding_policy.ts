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

const STATIC: ReadonlySet<ShardingMode> = new Set([
  ShardingPolicy.FILE,
  ShardingPolicy.DATA,
  ShardingPolicy.FILE_OR_DATA,
  ShardingPolicy.HINT,
  "CUSTOM",
]);

/** Whether each worker of a fixed list has a share of its own. */
export function isStatic(mode: ShardingMode): boolean {
  return STATIC.has(mode);
}
