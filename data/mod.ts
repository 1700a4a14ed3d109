/**
 * The public surface of the data engine.
 */
export type { FunctionExtra } from "./call.ts";
export {
  type BatchOptions,
  type BucketOptions,
  Dataset,
  type ElementFunction,
  type Extra,
  type Files,
  type FlatMapOptions,
  type FunctionOptions,
  type GroupByWindowOptions,
  type MapOptions,
  type Zipped,
} from "./dataset.ts";
export { DatasetIterator, type IterationOptions, openIterator } from "./dataset_iterator.ts";
export type { Batched, Sliced, Tensorized } from "./element_types.ts";
export { type ExplainedOperator, Explanation } from "./explanation.ts";
export { type Host, installHost } from "./host.ts";
export { UNKNOWN_CARDINALITY } from "./node.ts";
export type { DistributeOptions } from "./operators/distribute.ts";
export type { DatasetOptions } from "./operators/options.ts";
export { AUTOTUNE } from "./parallelism.ts";
export { ShardingPolicy } from "./sharding_policy.ts";
export { type ElementSpec, TensorSpec } from "./spec.ts";
export type { IteratorStats, OperatorStats } from "./stats.ts";
export { udf } from "./udf/user_function.ts";
