/** The public API of the data engine. */

// Datasets, and the options of their methods.
export * from "./dataset.ts";
export { UNKNOWN_CARDINALITY } from "./node.ts";
export { AUTOTUNE } from "./parallelism.ts";

// Iterators, their figures, and explanations.
export { DatasetIterator } from "./dataset_iterator.ts";
export { type ExplainedOperator, Explanation } from "./explanation.ts";
export type { AutotuneOptions } from "./autotune/options.ts";
export type { OptimizationOptions, OptimizationRules } from "./optimizer/options.ts";
export type {
  IteratorStats,
  OperatorStats,
  ServiceRead,
  ServiceStats,
  ThreadStats,
  TuningStats,
} from "./iterators/stats.ts";

// Elements: their specs and types.
export { specOf } from "./elements/components.ts";
export { releaseElement } from "./elements/released.ts";
export type {
  Batched,
  Packed,
  RaggedBatched,
  Scalar,
  Sliced,
  Tensorized,
  Windowed,
} from "./elements/element_types.ts";
export { type ElementSpec, TensorSpec } from "./elements/spec.ts";

// User functions.
export type { FunctionExtra } from "./udf/call.ts";
export { ModuleFunction, udf } from "./udf/module_function.ts";
export { python, PythonFunction } from "./udf/python_function.ts";
export { SourceFunction } from "./udf/source_function.ts";
export type { AnyFunction, Captures, UserFunction } from "./udf/user_function.ts";

// Files and their formats.
export type { Compression, FileCompression } from "./formats/compression/compression.ts";
export type {
  AnyCsvColumn,
  CsvColumn,
  CsvColumnDType,
  CsvColumns,
  CsvRow,
} from "./formats/csv/csv_columns.ts";
export type { CsvDType, CsvValue } from "./formats/csv/csv_values.ts";
export type { DecodedExtension } from "./formats/tar/sample_parts.ts";
export { parseExample } from "./formats/tfrecord/example.ts";
export { encodeExample, type FeatureValue } from "./formats/tfrecord/example_encoding.ts";
export type {
  Feature,
  FeatureDType,
  FeatureDTypeOf,
  Features,
  FeatureScalar,
  ParsedExample,
} from "./formats/tfrecord/example_features.ts";
export { encodeTfRecord } from "./formats/tfrecord/tfrecord.ts";
export { imageClasses } from "./sources/image_folder.ts";

// Saved datasets.
export type {
  DistributedSaveOptions,
  DistributedSaveProgress,
} from "./saved/distributed/options.ts";

// How workers of a service share a dataset.
export type { ElementCompression, TargetWorkers } from "./service/reading_choices.ts";
export {
  CustomShardingPolicy,
  type ShardExtra,
  shardingPolicy,
  type ShardingPolicyOptions,
} from "./sharding/custom_policy.ts";
export { type Shard, SHARD_HINT, ShardingPolicy } from "./sharding/sharding_policy.ts";

// Images.
export {
  adjustBrightness,
  adjustContrast,
  adjustHue,
  adjustSaturation,
  colorJitter,
  type ColorJitterOptions,
  grayscale,
} from "./media/colour.ts";
export { convertImage, type ConvertOptions } from "./media/convert.ts";
export {
  centerCrop,
  cropImage,
  cutout,
  type CutoutOptions,
  flipImage,
  type ImagePadding,
  type ImageRegion,
  padImage,
} from "./media/geometry.ts";
export type { ImageOperations, ImageTools } from "./media/image.ts";
export type { ImageDType, ImageSize } from "./media/image_tensor.ts";
export { cutmix, type MixedBatch, type MixOptions, mixup } from "./media/mixing.ts";
export {
  type RandomCropOptions,
  randomResizedCrop,
  randomResizedCropRegion,
} from "./media/random_crop.ts";
export { randAugment, type RandAugmentOptions } from "./media/rand_augment.ts";
export { resizeImage, type ResizeMethod, type ResizeOptions } from "./media/resize.ts";

// The machine that pipelines run on.
export {
  type AudioCodec,
  type DctMethod,
  type DecodedAudio,
  type Files,
  type Host,
  type ImageCodec,
  type ImageDecodeOptions,
  type ImageLayout,
  installHost,
  type MelSpectrogramOptions,
  type NewFile,
  type NewFiles,
  type Normalization,
  type OpenFile,
  type PlaceOf,
} from "./host.ts";
