/**
 * The names of each operator's options. A misspelt option, or another value in place of the options
 * object, is refused.
 */
import { LeatError } from "../core/error.ts";
import { invalidArgument, show } from "./check.ts";
import type {
  BucketBySequenceLengthOptions,
  DeserializeOptions,
  FilterOptions,
  FlatMapOptions,
  FunctionOptions,
  GroupByReducerOptions,
  GroupByWindowOptions,
  InterleaveOptions,
  LoadOptions,
  MapOptions,
  RejectionResampleOptions,
  SampleFromDatasetsOptions,
  SaveOptions,
  SnapshotOptions,
} from "./dataset_options.ts";
import type { BatchOptions } from "./operators/batching/batch.ts";
import type { ChooseFromDatasetsOptions } from "./operators/combining/choose_from_datasets.ts";
import type { DistributeOptions } from "./operators/distribute.ts";
import type { FromIdOptions } from "./operators/sources/from_id.ts";
import type { IgnoreErrorsOptions } from "./operators/ignore_errors.ts";
import type { DatasetOptions } from "./operators/options.ts";
import type { PackOptions } from "./operators/batching/pack.ts";
import type { PaddedBatchOptions } from "./operators/batching/padded_batch.ts";
import type { RaggedBatchOptions } from "./operators/batching/ragged_batch.ts";
import type { RandomOptions } from "./operators/sources/random.ts";
import type { RebatchOptions } from "./operators/batching/rebatch.ts";
import type { ShuffleOptions } from "./operators/shuffling/shuffle.ts";
import type { WindowOptions } from "./operators/batching/window.ts";
import type { CsvOptions } from "./sources/csv.ts";
import type { FileSourceOptions } from "./sources/file_source.ts";
import type { FixedLengthRecordOptions } from "./sources/fixed_length_records.ts";
import type { ImageFolderOptions } from "./sources/image_folder.ts";
import type { ListFilesOptions } from "./sources/list_files.ts";
import type { ColumnFileOptions, RowFileOptions } from "./sources/row_files.ts";
import type { WebDatasetOptions } from "./sources/web_dataset.ts";
import type { DistributedSaveOptions } from "./saved/distributed/options.ts";
import type { Captures } from "./udf/user_function.ts";

/** Every option and no other: the compiler checks that. */
function of<O>(names: { readonly [name in keyof Required<O>]: true }): readonly string[] {
  return Object.keys(names);
}

/** Formats with their own compression refuse `compression` with an explanation. */
type AndCompression<O> = O & Pick<FileSourceOptions, "compression">;

const files = of<FileSourceOptions>({ compression: true, numParallelReads: true });
const columnFiles = of<AndCompression<ColumnFileOptions>>({
  columns: true,
  spec: true,
  numParallelReads: true,
  compression: true,
});
const shuffling = of<ShuffleOptions>({ seed: true, reshuffleEachIteration: true });
const functions = of<FunctionOptions<Captures>>({ captures: true });
const distribution = {
  processingMode: true,
  jobName: true,
  consumerIndex: true,
  numConsumers: true,
  sharing: true,
  maxOutstandingRequests: true,
  targetWorkers: true,
  runId: true,
  targetTags: true,
  token: true,
  ca: true,
} as const;

const OPTIONS = {
  arrow: columnFiles,
  batch: of<BatchOptions>({ dropRemainder: true, numParallelCalls: true, deterministic: true }),
  bucketBySequenceLength: of<BucketBySequenceLengthOptions<unknown, Captures>>({
    length: true,
    boundaries: true,
    batchSizes: true,
    paddedShapes: true,
    paddingValues: true,
    padToBucketBoundary: true,
    noPadding: true,
    dropRemainder: true,
    captures: true,
  }),
  chooseFromDatasets: of<ChooseFromDatasetsOptions>({ stopOnEmptyDataset: true }),
  csv: of<CsvOptions>({
    columns: true,
    header: true,
    select: true,
    exclude: true,
    delimiter: true,
    useQuoteDelim: true,
    naValue: true,
    compression: true,
    numParallelReads: true,
  }),
  deserialize: of<DeserializeOptions>({ trustPipeline: true }),
  distribute: of<DistributeOptions & { readonly rewrite?: unknown }>({
    service: true,
    rewrite: true,
    compression: true,
    ...distribution,
  }),
  distributedSave: of<DistributedSaveOptions>({
    compression: true,
    overwrite: true,
    chunkBytesMax: true,
    onProgress: true,
    signal: true,
    token: true,
    ca: true,
  }),
  filter: of<FilterOptions<Captures>>({
    numParallelCalls: true,
    deterministic: true,
    captures: true,
  }),
  fixedLengthRecords: of<FixedLengthRecordOptions>({
    recordBytes: true,
    headerBytes: true,
    footerBytes: true,
    compression: true,
    numParallelReads: true,
  }),
  flatMap: of<FlatMapOptions<Captures>>({ spec: true, captures: true }),
  fromGenerator: functions,
  fromId: of<FromIdOptions>({ spec: true, trustPipeline: true, ...distribution }),
  globalShuffle: shuffling,
  groupByReducer: of<GroupByReducerOptions<unknown, unknown, unknown, Captures>>({
    key: true,
    init: true,
    reduce: true,
    finalize: true,
    spec: true,
    captures: true,
  }),
  groupByWindow: of<GroupByWindowOptions<unknown, unknown, Captures>>({
    key: true,
    reduce: true,
    windowSize: true,
    captures: true,
  }),
  ignoreErrors: of<IgnoreErrorsOptions>({
    logWarning: true,
    maxErrors: true,
    maxFraction: true,
  }),
  imageFolder: of<ImageFolderOptions>({
    classNames: true,
    decode: true,
    numParallelReads: true,
    shuffle: true,
    seed: true,
  }),
  interleave: of<InterleaveOptions<Captures>>({
    cycleLength: true,
    blockLength: true,
    numParallelCalls: true,
    deterministic: true,
    spec: true,
    captures: true,
  }),
  jsonLines: files,
  listFiles: of<ListFilesOptions>({ shuffle: true, seed: true }),
  load: of<LoadOptions<unknown, unknown>>({ readerFunc: true, wait: true }),
  map: of<MapOptions<Captures>>({
    numParallelCalls: true,
    deterministic: true,
    spec: true,
    captures: true,
  }),
  npy: of<AndCompression<RowFileOptions>>({
    spec: true,
    numParallelReads: true,
    compression: true,
  }),
  npz: columnFiles,
  pack: of<PackOptions>({
    length: true,
    algorithm: true,
    maxOpenBins: true,
    overflow: true,
    paddingValues: true,
  }),
  paddedBatch: of<PaddedBatchOptions>({
    paddedShapes: true,
    paddingValues: true,
    dropRemainder: true,
  }),
  parquet: columnFiles,
  raggedBatch: of<RaggedBatchOptions>({ dropRemainder: true }),
  random: of<RandomOptions>({ seed: true, rerandomizeEachIteration: true }),
  rebatch: of<RebatchOptions>({ dropRemainder: true }),
  reduce: functions,
  registerDataset: of<
    & Pick<DistributeOptions, "compression" | "token" | "ca">
    & { readonly datasetId?: string; readonly rewrite?: unknown }
  >({ datasetId: true, compression: true, rewrite: true, token: true, ca: true }),
  rejectionResample: of<RejectionResampleOptions<unknown, Captures>>({
    classOf: true,
    targetDist: true,
    initialDist: true,
    seed: true,
    captures: true,
  }),
  sampleFromDatasets: of<SampleFromDatasetsOptions>({
    weights: true,
    seed: true,
    stopOnEmptyDataset: true,
    rerandomizeEachIteration: true,
  }),
  save: of<SaveOptions<unknown, Captures>>({
    shardFunc: true,
    compression: true,
    overwrite: true,
    chunkBytesMax: true,
    onProgress: true,
    captures: true,
  }),
  scan: of<FlatMapOptions<Captures>>({ spec: true, captures: true }),
  shuffle: shuffling,
  snapshot: of<SnapshotOptions<unknown, unknown, Captures>>({
    compression: true,
    shardFunc: true,
    readerFunc: true,
    captures: true,
  }),
  takeWhile: functions,
  textLines: files,
  tfRecords: files,
  wav: files,
  webDataset: of<WebDatasetOptions>({
    extensions: true,
    decode: true,
    sampleBytesMax: true,
    compression: true,
    numParallelReads: true,
  }),
  window: of<WindowOptions>({ shift: true, stride: true, dropRemainder: true }),
  withOptions: of<DatasetOptions>({ seed: true, deterministic: true }),
};

/** The options, checked against an operator's names; an empty object where they are left out. */
export function checkOptions<O extends object>(
  operator: keyof typeof OPTIONS,
  options: O | undefined,
): O {
  if (options === undefined) return {} as O;
  const known = OPTIONS[operator];
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw invalidArgument(operator, "options", `an object such as { ${known[0]} }`, options);
  }
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || known.includes(name)) continue;
    throw new LeatError(
      "invalid_argument",
      `${operator}: there is no option ${show(name)}; its options are ${known.join(", ")}`,
    );
  }
  return options;
}
