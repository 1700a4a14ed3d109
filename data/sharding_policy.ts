/**
 * How the workers of a service share the production of one dataset.
 */

/** The policies, by tf.data service's names. */
export const ShardingPolicy = {
  /** Every worker produces the whole dataset, each in an order of its own. */
  OFF: "OFF",
  /** Splits of the sources are handed out to whoever asks first; every element is produced once. */
  DYNAMIC: "DYNAMIC",
} as const;

/** One of the policies. */
export type ShardingPolicy = typeof ShardingPolicy[keyof typeof ShardingPolicy];
