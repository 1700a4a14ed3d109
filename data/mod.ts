/**
 * The public surface of the data engine.
 */
export type { FunctionExtra } from "./udf/call.ts";
export { specOf } from "./elements/components.ts";
export { Dataset } from "./dataset.ts";
export type {
  BucketBySequenceLengthOptions,
  Datasets,
  DeserializeOptions,
  ElementFunction,
  Extra,
  Files,
  FilterOptions,
  FlatMapOptions,
  FunctionOptions,
  GroupByReducerOptions,
  GroupByWindowOptions,
  InterleaveOptions,
  LoadOptions,
  MapOptions,
  RejectionResampleOptions,
  Rewrite,
  SampleFromDatasetsOptions,
  SaveOptions,
  SnapshotOptions,
  Zipped,
} from "./dataset_options.ts";
export { DatasetIterator, type IterationOptions, openIterator } from "./dataset_iterator.ts";
export type {
  Batched,
  Packed,
  RaggedBatched,
  Sliced,
  Tensorized,
  Windowed,
} from "./elements/element_types.ts";
export { type ExplainedOperator, Explanation } from "./explanation.ts";
export { parseExample } from "./formats/tfrecord/example.ts";
export { encodeExample, type FeatureValue } from "./formats/tfrecord/example_encoding.ts";
export { encodeTfRecord } from "./formats/tfrecord/tfrecord.ts";
export type {
  Feature,
  FeatureDType,
  Features,
  FeatureScalar,
  ParsedExample,
} from "./formats/tfrecord/example_features.ts";
export {
  type AudioCodec,
  type DecodedAudio,
  type Host,
  type ImageCodec,
  type ImageDecodeOptions,
  installHost,
  type MelSpectrogramOptions,
} from "./host.ts";
export { UNKNOWN_CARDINALITY } from "./node.ts";
export type { BatchOptions } from "./operators/batching/batch.ts";
export type { DistributeOptions } from "./operators/distribute.ts";
export type { FromIdOptions } from "./operators/sources/from_id.ts";
export type { DatasetOptions } from "./operators/options.ts";
export { AUTOTUNE } from "./parallelism.ts";
export {
  type CustomShardingPolicy,
  type ShardExtra,
  shardingPolicy,
  type ShardingPolicyOptions,
} from "./sharding/custom_policy.ts";
export { type Shard, SHARD_HINT, ShardingPolicy } from "./sharding/sharding_policy.ts";
export type { TargetWorkers } from "./service/target_workers.ts";
export type { CsvColumn, CsvColumns, CsvRow } from "./formats/csv/csv_columns.ts";
export type { CsvDType, CsvValue } from "./formats/csv/csv_values.ts";
export type { Compression, FileCompression } from "./formats/compression/compression.ts";
export type { CsvOptions } from "./sources/csv.ts";
export type { FileSourceOptions } from "./sources/file_source.ts";
export type { FixedLengthRecordOptions } from "./sources/fixed_length_records.ts";
export {
  imageClasses,
  type ImageFolderOptions,
  type LabelledImage,
} from "./sources/image_folder.ts";
export type { ListFilesOptions } from "./sources/list_files.ts";
export type { ColumnFileOptions, RowFileOptions } from "./sources/row_files.ts";
export type { AudioFile } from "./sources/wav.ts";
export type { WebDatasetOptions } from "./sources/web_dataset.ts";
export { type ElementSpec, TensorSpec } from "./elements/spec.ts";
export type { LoadWait } from "./saved/growing.ts";
export type {
  DistributedSaveOptions,
  DistributedSaveProgress,
} from "./saved/distributed/options.ts";
export type { SaveProgress } from "./saved/save.ts";
export type { IteratorStats, OperatorStats, ServiceRead, ServiceStats } from "./iterators/stats.ts";
export { udf } from "./udf/user_function.ts";
