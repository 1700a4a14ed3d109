/**
 * The names of each operator's options. A misspelt option, or another value in place of the options
 * object, is refused.
 */
import { LeatError } from "../core/error.ts";
import { invalidArgument, show } from "./check.ts";
import type {
  BucketOptions,
  DeserializeOptions,
  FilterOptions,
  FlatMapOptions,
  FunctionOptions,
  GroupByReducerOptions,
  GroupByWindowOptions,
  LoadOptions,
  MapOptions,
  ResampleOptions,
  SampleOptions,
  SaveOptions,
  SnapshotOptions,
} from "./dataset.ts";
import type { BatchAttributes } from "./operators/batching/batch.ts";
import type { ChooseAttributes } from "./operators/combining/choose_from_datasets.ts";
import type { DistributeOptions } from "./operators/distribute.ts";
import type { FromIdOptions } from "./operators/sources/from_id.ts";
import type { IgnoreErrorsAttributes } from "./operators/ignore_errors.ts";
import type { InterleaveAttributes } from "./operators/combining/interleave.ts";
import type { DatasetOptions } from "./operators/options.ts";
import type { PackAttributes } from "./operators/batching/pack.ts";
import type { PaddedBatchAttributes } from "./operators/batching/padded_batch.ts";
import type { RaggedBatchAttributes } from "./operators/batching/ragged_batch.ts";
import type { RandomAttributes } from "./operators/sources/random.ts";
import type { RebatchAttributes } from "./operators/batching/rebatch.ts";
import type { ShuffleAttributes } from "./operators/shuffling/shuffle.ts";
import type { WindowAttributes } from "./operators/batching/window.ts";
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
const shuffling = of<ShuffleAttributes>({ seed: true, reshuffleEachIteration: true });
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
  batch: of<BatchAttributes>({ dropRemainder: true, numParallelCalls: true, deterministic: true }),
  bucketBySequenceLength: of<BucketOptions<unknown, Captures>>({
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
  chooseFromDatasets: of<ChooseAttributes>({ stopOnEmptyDataset: true }),
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
  ignoreErrors: of<IgnoreErrorsAttributes>({
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
  interleave: of<InterleaveAttributes & FunctionOptions<Captures>>({
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
  pack: of<PackAttributes>({
    length: true,
    algorithm: true,
    maxOpenBins: true,
    overflow: true,
    paddingValues: true,
  }),
  paddedBatch: of<PaddedBatchAttributes>({
    paddedShapes: true,
    paddingValues: true,
    dropRemainder: true,
  }),
  parquet: columnFiles,
  raggedBatch: of<RaggedBatchAttributes>({ dropRemainder: true }),
  random: of<RandomAttributes>({ seed: true, rerandomizeEachIteration: true }),
  rebatch: of<RebatchAttributes>({ dropRemainder: true }),
  reduce: functions,
  registerDataset: of<
    & Pick<DistributeOptions, "compression" | "token" | "ca">
    & { readonly datasetId?: string; readonly rewrite?: unknown }
  >({ datasetId: true, compression: true, rewrite: true, token: true, ca: true }),
  rejectionResample: of<ResampleOptions<unknown, Captures>>({
    classOf: true,
    targetDist: true,
    initialDist: true,
    seed: true,
    captures: true,
  }),
  sampleFromDatasets: of<SampleOptions>({
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
  window: of<WindowAttributes>({ shift: true, stride: true, dropRemainder: true }),
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
