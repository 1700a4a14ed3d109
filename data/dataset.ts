/**
 * `Dataset`: the class with which users build pipelines. Every operator makes one node. Nothing runs
 * before the first `next()` of an iterator.
 */
import { LeatError } from "../core/error.ts";
import { definedFields, isPlainObject } from "../core/tree.ts";
import { NodeFunction } from "./udf/call.ts";
import type { Arity } from "./udf/extra.ts";
import { checkBoolean, checkOptionalBoolean, invalidArgument, optionsOf, show } from "./check.ts";
import { type DatasetIterator, openIterator } from "./dataset_iterator.ts";
import type { IterationOptions } from "./iteration_options.ts";
import type {
  Batched,
  Packed,
  RaggedBatched,
  Sliced,
  Tensorized,
  Windowed,
} from "./elements/element_types.ts";
import { Explanation } from "./explanation.ts";
import type { CsvColumns, CsvRow } from "./formats/csv/csv_columns.ts";
import {
  type Features,
  featuresSpec,
  type ParsedExample,
} from "./formats/tfrecord/example_features.ts";
import { LastReaders } from "./service/last_readers.ts";
import { type DatasetNode, installFacade, nodeOf } from "./node.ts";
import { AssertCardinalityNode } from "./operators/assert_cardinality.ts";
import { BatchNode, type BatchOptions } from "./operators/batching/batch.ts";
import {
  BucketBySequenceLengthNode,
  type BucketBySequenceLengthOptions,
} from "./operators/batching/bucket_by_sequence_length.ts";
import { CacheNode } from "./operators/caching/cache.ts";
import {
  ChooseFromDatasetsNode,
  type ChooseFromDatasetsOptions,
} from "./operators/combining/choose_from_datasets.ts";
import { ConcatenateNode } from "./operators/combining/concatenate.ts";
import { CounterNode } from "./operators/sources/counter.ts";
import { CutPointNode } from "./operators/cut_point.ts";
import { DistributeNode, type DistributeOptions, rewritten } from "./operators/distribute.ts";
import { EnumerateNode } from "./operators/enumerate.ts";
import { FilterNode, type FilterOptions } from "./operators/calling/filter.ts";
import { FlatMapNode, type FlatMapOptions } from "./operators/calling/flat_map.ts";
import { FromNode, FromTensorSlicesNode, FromTensorsNode } from "./operators/sources/from.ts";
import { FromIdNode, type FromIdOptions } from "./operators/sources/from_id.ts";
import { FromGeneratorNode } from "./operators/sources/from_generator.ts";
// Imported to register their kinds: only services and offloading make these nodes.
import "./operators/sources/given.ts";
import "./operators/stand_in.ts";
import "./sources/file_groups.ts";
import { GlobalShuffleNode } from "./operators/shuffling/global_shuffle.ts";
import {
  GroupByReducerNode,
  type GroupByReducerOptions,
} from "./operators/grouping/group_by_reducer.ts";
import {
  GroupByWindowNode,
  type GroupByWindowOptions,
} from "./operators/grouping/group_by_window.ts";
import { IgnoreErrorsNode, type IgnoreErrorsOptions } from "./operators/ignore_errors.ts";
import { InterleaveNode, type InterleaveOptions } from "./operators/combining/interleave.ts";
import { MapNode, type MapOptions } from "./operators/calling/map.ts";
import { OffloadNode, type OffloadOptions } from "./operators/offload.ts";
import { type DatasetOptions, OptionsNode } from "./operators/options.ts";
import { PackNode, type PackOptions } from "./operators/batching/pack.ts";
import { PadToCardinalityNode } from "./operators/batching/pad_to_cardinality.ts";
import { PaddedBatchNode, type PaddedBatchOptions } from "./operators/batching/padded_batch.ts";
import { PrefetchNode, type PrefetchOptions } from "./operators/prefetch.ts";
import { RaggedBatchNode, type RaggedBatchOptions } from "./operators/batching/ragged_batch.ts";
import { RandomNode, type RandomOptions } from "./operators/sources/random.ts";
import { RangeNode } from "./operators/sources/range.ts";
import { RebatchNode, type RebatchOptions } from "./operators/batching/rebatch.ts";
import {
  RejectionResampleNode,
  type RejectionResampleOptions,
} from "./operators/combining/rejection_resample.ts";
import { RepeatNode } from "./operators/repeat.ts";
import {
  SampleFromDatasetsNode,
  type SampleFromDatasetsOptions,
} from "./operators/combining/sample_from_datasets.ts";
import { ScanNode } from "./operators/calling/scan.ts";
import { SelectNode } from "./operators/select.ts";
import { ShardNode } from "./operators/shard.ts";
import { ShuffleNode, type ShuffleOptions } from "./operators/shuffling/shuffle.ts";
import { SnapshotNode, type SnapshotOptions } from "./operators/caching/snapshot.ts";
import { SkipNode, TakeNode } from "./operators/take_skip.ts";
import { TakeWhileNode } from "./operators/take_while.ts";
import { UnbatchNode } from "./operators/batching/unbatch.ts";
import { UniqueNode } from "./operators/unique.ts";
import { WindowNode, type WindowOptions } from "./operators/batching/window.ts";
import { ZipNode } from "./operators/combining/zip.ts";
import { elementAt } from "./random_access.ts";
import { reduceGraph, reduceOptions, singleElementOf } from "./reduce.ts";
import { ShardingPolicy } from "./sharding/sharding_policy.ts";
import { ArrowNode } from "./sources/arrow.ts";
import { CsvNode, type CsvOptions } from "./sources/csv.ts";
import {
  type FixedLengthRecordOptions,
  FixedLengthRecordsNode,
} from "./sources/fixed_length_records.ts";
import {
  ImageFolderNode,
  type ImageFolderOptions,
  type LabelledImage,
} from "./sources/image_folder.ts";
import { JsonLinesNode } from "./sources/json_lines.ts";
import { ListFilesNode, type ListFilesOptions } from "./sources/list_files.ts";
import { NpyNode } from "./sources/npy.ts";
import { NpzNode } from "./sources/npz.ts";
import { ParquetNode } from "./sources/parquet.ts";
import { TextLinesNode } from "./sources/text_lines.ts";
import { TfRecordsNode } from "./sources/tf_records.ts";
import { type AudioFile, WavNode } from "./sources/wav.ts";
import { WebDatasetNode, type WebDatasetOptions } from "./sources/web_dataset.ts";
import type { ElementSpec } from "./elements/spec.ts";
import { checkWait, type LoadOptions, loadOptions, TailLoadNode } from "./saved/tail_load.ts";
import {
  savedIn,
  saveGraph,
  type SaveOptions,
  saveOptions,
  type SaveProgress,
} from "./saved/save.ts";
import { shardDatasets } from "./saved/shards.ts";
import { storedNode } from "./saved/stored_node.ts";
import type { Captures, UserFunction } from "./udf/user_function.ts";
import {
  deserializeGraph,
  type DeserializeOptions,
  deserializeOptions,
  fingerprintGraph,
  serializeGraph,
} from "./wire.ts";
import type {
  Datasets,
  ElementFunction,
  Extra,
  FilePaths,
  FunctionOptions,
  Rewrite,
  Zipped,
} from "./dataset_types.ts";
import type { FileSourceOptions } from "./sources/file_source.ts";
import type { ColumnFileOptions, RowFileOptions } from "./sources/row_files.ts";

// The types in the signatures below, which users import.
export type {
  AudioFile,
  BatchOptions,
  BucketBySequenceLengthOptions,
  ChooseFromDatasetsOptions,
  ColumnFileOptions,
  CsvOptions,
  DatasetOptions,
  Datasets,
  DeserializeOptions,
  DistributeOptions,
  ElementFunction,
  Extra,
  FilePaths,
  FileSourceOptions,
  FilterOptions,
  FixedLengthRecordOptions,
  FlatMapOptions,
  FromIdOptions,
  FunctionOptions,
  GroupByReducerOptions,
  GroupByWindowOptions,
  IgnoreErrorsOptions,
  ImageFolderOptions,
  InterleaveOptions,
  LabelledImage,
  ListFilesOptions,
  LoadOptions,
  MapOptions,
  OffloadOptions,
  PackOptions,
  PaddedBatchOptions,
  PrefetchOptions,
  RaggedBatchOptions,
  RandomOptions,
  RebatchOptions,
  RejectionResampleOptions,
  Rewrite,
  RowFileOptions,
  SampleFromDatasetsOptions,
  SaveOptions,
  SaveProgress,
  ShuffleOptions,
  SnapshotOptions,
  WebDatasetOptions,
  WindowOptions,
  Zipped,
};
export type { OffloadChoice } from "./operators/offload.ts";
export type { LoadWait } from "./saved/tail_load.ts";
export type { PaddedShape, PaddedShapes, PaddingValues } from "./elements/padding.ts";
export type { PackAlgorithm } from "./elements/packing.ts";

const iteratorOptions = optionsOf<Pick<IterationOptions, "isReadOnly" | "needsOrder">>("iterator", {
  isReadOnly: true,
  needsOrder: true,
});

/**
 * A sequence of elements, described by the operators that make it. Immutable: every operator returns a
 * new dataset.
 *
 * Elements are trees of plain objects and arrays with leaves that are numbers, bigints, booleans,
 * strings, typed arrays and tensors. Arguments are checked when an operator is called
 * (`invalid_argument`). An error in the data fails the element concerned, and no other.
 *
 * @example
 * ```ts
 * import { Dataset } from "../mod.ts";
 *
 * const dataset = Dataset.range(10).map((x) => x * x).filter((x) => x % 2 === 0).batch(3);
 * for await (const batch of dataset) console.log(batch.toArray()); // [0, 4, 16] then [36, 64]
 * ```
 */
export class Dataset<out T> implements AsyncIterable<T, undefined> {
  /**
   * The last operator of the graph.
   *
   * @ignore
   */
  readonly node: DatasetNode;
  #iterations = 0;
  readonly #lastReaders = new LastReaders();

  /**
   * A dataset over a graph; users start from the static methods.
   *
   * @ignore
   */
  constructor(node: DatasetNode) {
    this.node = node;
  }

  /**
   * Evenly spaced numbers: from 0, or from `start`, up to but not including `stop`.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * for await (const x of Dataset.range(5, 0, -2)) console.log(x); // 5 3 1
   * ```
   */
  static range(stop: number): Dataset<number>;
  /** Evenly spaced numbers from `start` up to but not including `stop`. */
  static range(start: number, stop: number, step?: number): Dataset<number>;
  static range(first: number, stop?: number, step = 1): Dataset<number> {
    const node = stop === undefined
      ? new RangeNode(0, first, step)
      : new RangeNode(first, stop, step);
    return new Dataset(node);
  }

  /**
   * An endless sequence of evenly spaced numbers.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * for await (const x of Dataset.counter(5, -2).take(3)) console.log(x); // 5 3 1
   * ```
   */
  static counter(start?: number, step?: number): Dataset<number> {
    return new Dataset(new CounterNode(start, step));
  }

  /**
   * An endless sequence of random integers from 0 up to but not including 2³², as plain numbers.
   * Every iteration gives the same numbers, unless `rerandomizeEachIteration`. Every run does if
   * there is a seed (here, or by `withOptions`).
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const coins = Dataset.random({ seed: 4 }).map((x) => x % 2 === 0).take(3);
   * ```
   */
  static random(options?: RandomOptions): Dataset<number> {
    return new Dataset(new RandomNode(RandomNode.options(options)));
  }

  /**
   * The elements of an iterable, unchanged. The call reads them all, and keeps them in memory.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const words = Dataset.from(["a", "b"]);
   * for await (const word of words) console.log(word); // a b
   * ```
   */
  static from<T>(elements: Iterable<T>): Dataset<T> {
    return new Dataset(new FromNode(elements));
  }

  /**
   * A dataset of one element. Nested arrays of scalars are read as tensors.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const one = Dataset.fromTensors({ x: [[1, 2], [3, 4]], y: 5 });
   * for await (const { x } of one) console.log(x.shape); // [2, 2]
   * ```
   */
  static fromTensors<E>(element: E): Dataset<Tensorized<E>> {
    return new Dataset(new FromTensorsNode(element));
  }

  /**
   * Slices along axis 0 of every component: rows of nested arrays, tensors and typed arrays, all
   * with the same number of rows. Rows that are scalars are plain values.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const rows = Dataset.fromTensorSlices({ x: [[1, 2], [3, 4]], y: ["a", "b"] });
   * for await (const { x, y } of rows) console.log(x.toArray(), y); // [1, 2] a, then [3, 4] b
   * ```
   */
  static fromTensorSlices<const C>(components: C): Dataset<Sliced<C>> {
    return new Dataset(new FromTensorSlicesNode(components));
  }

  /**
   * The elements that a generator yields. `fn` is called for every iteration. Workers cannot divide
   * the elements. To restore a saved iterator, the generator runs again up to its position.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const squares = Dataset.fromGenerator(function* () {
   *   for (let i = 0;; i++) yield i * i;
   * });
   * for await (const x of squares.take(3)) console.log(x); // 0 1 4
   * ```
   */
  static fromGenerator<T, C extends Captures = Captures>(
    fn: UserFunction<(extra: Extra<C>) => Iterable<T> | AsyncIterable<T>>,
    options?: FunctionOptions<C>,
  ): Dataset<T> {
    const { captures } = FromGeneratorNode.options(options);
    return new Dataset(
      new FromGeneratorNode(
        new NodeFunction("fromGenerator", "fn", fn, captures, { arity: 0 }),
      ),
    );
  }

  /**
   * The names of the files that match a glob pattern, or one of several. They are shuffled in every
   * iteration, unless `shuffle` is false. If no file matches, the first element fails with `not_found`.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const files = Dataset.listFiles("./corpus/*.tfrecord", { shuffle: false });
   * ```
   */
  static listFiles(
    pattern: string | readonly string[],
    options?: ListFilesOptions,
  ): Dataset<string> {
    return new Dataset(new ListFilesNode(pattern, ListFilesNode.options(options)));
  }

  /**
   * The lines of text files, without line ends. Uncompressed files are divided among workers. A line
   * that is not UTF-8 fails with `data_loss`: convert the file, as with `iconv`.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const lines = Dataset.textLines(["./a.txt", "./b.txt.gz"], { compression: "auto" });
   * ```
   */
  static textLines(files: FilePaths, options?: FileSourceOptions): Dataset<string> {
    return new Dataset(new TextLinesNode(unwrap(files), TextLinesNode.options(options)));
  }

  /**
   * The records of TFRecord files, with both checksums verified. A record is a byte string:
   * functions get a `Uint8Array`, and a batch of n records is a `bytes` tensor of shape [n]. A
   * `Uint8Array` that a function returns is `uint8`, unless its `spec` says `bytes`. A record of more
   * than 1 GiB fails with `resource_exhausted`.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const records = Dataset.tfRecords(Dataset.listFiles("./corpus/*.tfrecord"));
   * ```
   */
  static tfRecords(files: FilePaths, options?: FileSourceOptions): Dataset<Uint8Array> {
    return new Dataset(new TfRecordsNode(unwrap(files), TfRecordsNode.options(options)));
  }

  /**
   * The samples of tar archives that follow WebDataset's convention: consecutive files whose names are
   * equal up to the first dot are the parts of one sample, `{ __key__, jpg, json, cls, … }`. Parts are
   * bytes, unless `decode` says otherwise; decode images with `image.decode()` in `map()`. Extensions
   * are in lower case. Links, folders, files without an extension and files named `__x__` are skipped.
   * A name that is not UTF-8 is read as Latin-1.
   *
   * A damaged or truncated archive gives the samples before the damage, then one error that names
   * file and byte. An empty file is an archive without samples. An archive may end after any file
   * without the usual blocks of zeros, as in `tar`.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const labelled = Dataset.webDataset<{ jpg: Uint8Array; cls: number }>(
   *   Dataset.listFiles("./corpus/train-*.tar"),
   *   { extensions: ["jpg", "cls"], decode: ["cls"] },
   * ).map(async ({ jpg, cls }, { image }) => ({
   *   image: await image.decode(jpg, { resize: { width: 224, height: 224 } }),
   *   label: cls,
   * }));
   * ```
   */
  static webDataset<P = Record<string, unknown>>(
    files: FilePaths,
    options?: WebDatasetOptions,
  ): Dataset<{ readonly __key__: string } & P> {
    return new Dataset(new WebDatasetNode(unwrap(files), WebDatasetNode.options(options)));
  }

  /**
   * The images (`.jpg`, `.jpeg`, `.png`, `.webp`) in a folder with one subfolder per class, at any
   * depth, as `{ image, label }`: uint8 of shape [height, width, channels], and the number of the
   * class. `imageClasses(root)` lists the classes' names in the order of their numbers; with
   * `classNames` workers need not list them again, and a class without an image is `not_found`.
   * Files come in random order, unless `shuffle` is false. An image that cannot be decoded is a
   * failed element. With `path: true` elements also have
   * the `path` of their file, so that functions can name it.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const flowers = Dataset.imageFolder("./flowers", {
   *   classNames: ["daisy", "tulip"],
   *   decode: { resize: { width: 180, height: 180 } },
   * });
   * const batches = flowers.batch(32); // image [n, 180, 180, 3], label int32 [n]
   * ```
   */
  static imageFolder(
    root: string,
    options: ImageFolderOptions & { readonly decode: false; readonly path: true },
  ): Dataset<LabelledImage<Uint8Array> & { readonly path: string }>;
  /** Reads a folder of images, as above, as the bytes of the files. */
  static imageFolder(
    root: string,
    options: ImageFolderOptions & { readonly decode: false },
  ): Dataset<LabelledImage<Uint8Array>>;
  /** Reads a folder of images, as above, with the paths of the files. */
  static imageFolder(
    root: string,
    options: ImageFolderOptions & { readonly path: true },
  ): Dataset<LabelledImage & { readonly path: string }>;
  /** Reads a folder of images, as above, and decodes them. */
  static imageFolder(root: string, options?: ImageFolderOptions): Dataset<LabelledImage>;
  static imageFolder(root: string, options?: ImageFolderOptions): Dataset<LabelledImage<unknown>> {
    return new Dataset(new ImageFolderNode(root, ImageFolderNode.options(options)));
  }

  /**
   * The sound of WAV files, as `{ path, samples, sampleRate }`: float32 of shape [frames, channels]
   * from -1 to 1. Files may have PCM with 8 to 32 bits, or floats. `audio.melSpectrogram()` makes
   * spectrograms of the samples. A file that cannot be decoded is a failed element.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const spectrograms = Dataset.wav(Dataset.listFiles("./speech/*.wav")).map(
   *   ({ samples, sampleRate }, { audio }) =>
   *     audio.melSpectrogram(samples, { sampleRate, frameLength: 400, frameStep: 160 }),
   * );
   * ```
   */
  static wav(files: FilePaths, options?: FileSourceOptions): Dataset<AudioFile> {
    return new Dataset(new WavNode(unwrap(files), WavNode.options(options)));
  }

  /**
   * The values of files with one JSON value per line. A null stays null, and a key that a line lacks
   * is missing. Neither can be batched with other values: replace them with `map`. A line that is not
   * JSON in UTF-8 fails with `data_loss`.
   *
   * Numbers are those of `JSON.parse()`: integers beyond 2⁵³ are rounded, and 1e400 is Infinity. Write
   * long ids as texts, and use `BigInt(id)` in `map` if they must be numbers.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const texts = Dataset.jsonLines<{ text: string; stars?: number | null }>("./texts.jsonl")
   *   .map(({ text, stars }) => ({ text, stars: stars ?? 0 }));
   * ```
   */
  static jsonLines<T = unknown>(files: FilePaths, options?: FileSourceOptions): Dataset<T> {
    return new Dataset(new JsonLinesNode(unwrap(files), JsonLinesNode.options(options)));
  }

  /**
   * The records of CSV files, as objects keyed by column name or, if `columns` is an array, as
   * tuples. `columns` declares types; without it every field is a string. Columns of int64 and
   * uint64 are bigints. A column without a default is required: a missing field (an empty one, or
   * `naValue`) is an error, also for strings.
   *
   * Blank lines and a byte order mark are skipped. A record with too few or too many fields, a
   * missing value or an invalid number, such as 1e400, or 1e39 in a column of float32, fails:
   * `data_loss` with file, line and column. So does a record that is not UTF-8: convert the file, as
   * with `iconv`. A header without a required column fails the file. An empty file has no records. Lines
   * end with `\n` or `\r\n`: a header with `\r` alone fails the file.
   *
   * Quoted fields may contain line ends, so files are read from their beginning; with
   * `useQuoteDelim: false` they are divided among workers like those of `textLines()`.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const rows = Dataset.csv("./prices.csv", {
   *   columns: { name: "string", price: { dtype: "float32", default: 0 }, id: "int64" },
   * });
   * console.log(rows.map(({ name, price }) => `${name} ${price.toFixed(2)}`).cardinality()); // -2
   *
   * const pairs = Dataset.csv("./pairs.tsv", {
   *   header: false,
   *   delimiter: "\t",
   *   columns: ["float32", "float32"],
   *   select: [0, 3],
   * });
   * console.log(pairs.map(([x, y]) => x * y).cardinality()); // -2
   * ```
   */
  static csv<const C extends CsvColumns>(
    files: FilePaths,
    options: CsvOptions<C> & { readonly columns: C },
  ): Dataset<CsvRow<C>>;
  /** The fields of each record as strings, for files without a header. */
  static csv(files: FilePaths, options: CsvOptions & { readonly header: false }): Dataset<string[]>;
  /** The fields of each record as strings, by the names in the header. */
  static csv(files: FilePaths, options?: CsvOptions): Dataset<Record<string, string>>;
  static csv(files: FilePaths, options?: CsvOptions): Dataset<unknown> {
    return new Dataset(new CsvNode(unwrap(files), CsvNode.options(options)));
  }

  /**
   * The records of files whose records all have `recordBytes` bytes. A header before them and a footer
   * after them are skipped. A record is a byte string, as in `tfRecords()`. Uncompressed files are
   * divided among workers. A file whose size does not fit fails with `invalid_argument`, naming the
   * sizes; a compressed one gives its records first.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const images = Dataset.fixedLengthRecords("./cifar10/data_batch_1.bin", { recordBytes: 3073 })
   *   .map((record) => ({ label: record[0]!, pixels: record.subarray(1) }));
   * ```
   */
  static fixedLengthRecords(
    files: FilePaths,
    options: FixedLengthRecordOptions,
  ): Dataset<Uint8Array> {
    return new Dataset(
      new FixedLengthRecordsNode(unwrap(files), FixedLengthRecordsNode.options(options)),
    );
  }

  /**
   * The rows of Parquet files as objects `{ column: value }`. Only the chosen `columns` are read
   * and decoded. One row group of these columns is in memory at a time; files are divided into
   * parts of row groups that have at most 16 MiB together, but at least one.
   *
   * Integers of 64 bits are bigints; byte arrays are `Uint8Array`s; structs and maps are objects, with
   * the texts of a map's keys. A list of numbers is a typed array. A list of booleans, strings, byte
   * strings, or lists of equal length is a tensor. It is an array if its lists differ in length, or an
   * item is null. Times and dates are the stored integers: since 1970, in the column's unit (INT96:
   * nanoseconds). Decimals are numbers. Missing values are null, which cannot be batched with other
   * values: replace them with `map`.
   *
   * A damaged row group is one `data_loss` error, and reading continues with the next. Errors of a
   * file: `data_loss` for a damaged footer, `not_found` for a column that it does not have.
   * `unimplemented` is what cannot be read: the codec LZO, DELTA_BYTE_ARRAY in data pages of version 1,
   * maps whose keys are bytes, lists, structs or maps, and a chosen column, or a field in it, whose name
   * another one has.
   *
   * @example
   * ```ts
   * import { Dataset, TensorSpec } from "../mod.ts";
   * const rows = Dataset.parquet<{ age: number; name: string }>("./people.parquet", {
   *   columns: ["age", "name"],
   *   spec: { age: new TensorSpec("int32", []), name: new TensorSpec("string", []) },
   * });
   * console.log(rows.batch(8).elementSpec); // with ages of int32; without the spec they are float64
   *
   * const scored = Dataset.parquet<{ name: string; score: number | null }>("./scores.parquet")
   *   .map((row) => ({ ...row, score: row.score ?? -1 }));
   * ```
   */
  static parquet<T = Record<string, unknown>>(
    files: FilePaths,
    options?: ColumnFileOptions,
  ): Dataset<T> {
    return new Dataset(new ParquetNode(unwrap(files), ParquetNode.options(options)));
  }

  /**
   * The rows of Arrow's IPC files (Feather, version 2) and streams as objects `{ column: value }`,
   * with values like those of `parquet()`. One record batch is in memory at a time; it is read
   * whole, whichever `columns` are chosen. Files are divided by record batches; streams are not
   * divided.
   *
   * Errors like `parquet()`; `unimplemented` for unions and intervals.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const texts = Dataset.arrow<{ text: string }>("./corpus.arrow", { columns: ["text"] });
   * ```
   */
  static arrow<T = Record<string, unknown>>(
    files: FilePaths,
    options?: ColumnFileOptions,
  ): Dataset<T> {
    return new Dataset(new ArrowNode(unwrap(files), ArrowNode.options(options)));
  }

  /**
   * The rows of the arrays in NumPy's .npy files, along axis 0: plain values for arrays with one
   * axis, tensors for those with more. Rows are read in place, about 256 KiB at a time; files are
   * divided into runs of about 4 MiB. Dtypes are the integers and floats of either byte order,
   * booleans, and S and U, which become strings. To batch the plain values of a uint64 array, pass
   * `spec: new TensorSpec("uint64", [])`: bigints without a spec are int64.
   *
   * Errors of a file: `data_loss` if it is damaged or truncated; `unimplemented` for other dtypes, and
   * for Fortran order with several axes; `invalid_argument` for a scalar.
   *
   * @example
   * ```ts
   * import { Dataset, type Tensor } from "../mod.ts";
   * const images = Dataset.npy<Tensor>(["./images_0.npy", "./images_1.npy"]).batch(32);
   * ```
   */
  static npy<T = unknown>(files: FilePaths, options?: RowFileOptions): Dataset<T> {
    return new Dataset(new NpyNode(unwrap(files), NpyNode.options(options)));
  }

  /**
   * The rows of the arrays in NumPy's .npz archives, zipped into objects `{ array: row }`;
   * `columns` chooses arrays by name. Stored arrays are read like `npy()`; compressed ones
   * (`np.savez_compressed`) are in memory while the archive is read, and are not divided. The
   * checksums of stored arrays are not checked, because a reader reads only the rows that it gives.
   *
   * Errors like `npy()`; `not_found` for a missing array, `invalid_argument` for arrays of
   * different lengths.
   *
   * @example
   * ```ts
   * import { Dataset, type Tensor } from "../mod.ts";
   * const digits = Dataset.npz<{ x_train: Tensor; y_train: number }>("./mnist.npz", {
   *   columns: ["x_train", "y_train"],
   * });
   * ```
   */
  static npz<T = Record<string, unknown>>(
    files: FilePaths,
    options?: ColumnFileOptions,
  ): Dataset<T> {
    return new Dataset(new NpzNode(unwrap(files), NpzNode.options(options)));
  }

  /**
   * Combines the elements of several datasets into an array or object like the given one, which may
   * be nested. `Dataset.zip(a, b)` is `Dataset.zip([a, b])`. Ends with the shortest. DYNAMIC refuses
   * it if workers would have to divide the datasets separately, as with files.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const pairs = Dataset.zip({ x: Dataset.range(3), y: Dataset.from("abc") });
   * for await (const { x, y } of pairs) console.log(x, y); // 0 a, 1 b, 2 c
   * ```
   */
  static zip<const D extends Datasets>(datasets: D): Dataset<Zipped<D>>;
  /** Combines the elements of several datasets into arrays. Ends with the shortest. */
  static zip<
    const D extends readonly [Dataset<unknown>, Dataset<unknown>, ...Dataset<unknown>[]],
  >(...datasets: D): Dataset<Zipped<D>>;
  static zip(...datasets: readonly unknown[]): Dataset<unknown> {
    if (datasets.length > 1) return new Dataset(zipNode(datasets));
    const [structure] = datasets;
    if (nodeOf(structure) === undefined) return new Dataset(zipNode(structure));
    const wanted = "at least two, as in Dataset.zip(a, b), or an array or object of them";
    throw invalidArgument("zip", "datasets", wanted, structure);
  }

  /**
   * Draws elements from several datasets at random: by `weights` (one number for each dataset, or a
   * dataset of such arrays, one for each element), or equally often. When a dataset has no more
   * elements, the others continue, unless `stopOnEmptyDataset`. Every iteration draws the same, unless
   * `rerandomizeEachIteration`; every run draws the same if there is a seed (here, or by
   * `withOptions`). It also ends when a dataset of weights ends.
   *
   * Errors: `invalid_argument` for negative weights or a wrong number of them, and for datasets
   * whose elements differ in structure.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const [common, rare] = [Dataset.from(["a"]).repeat(), Dataset.from(["b"]).repeat()];
   * const mixture = Dataset.sampleFromDatasets([common, rare], { weights: [0.9, 0.1], seed: 7 });
   * console.log(await Array.fromAsync(mixture.take(10))); // about nine times "a"
   * ```
   */
  static sampleFromDatasets<const D extends readonly Dataset<unknown>[]>(
    datasets: D,
    options?: SampleFromDatasetsOptions,
  ): Dataset<Zipped<D>[number]> {
    const { weights, ...rest } = SampleFromDatasetsNode.options(options);
    const nodes = nodesIn("sampleFromDatasets", datasets);
    return new Dataset(new SampleFromDatasetsNode(nodes, nodeOf(weights) ?? weights, rest));
  }

  /**
   * Takes elements from several datasets in the order of `choice`, a dataset of their indices. Ends
   * with `choice`, or when a chosen dataset has no more elements. With `stopOnEmptyDataset: false` such
   * a choice is skipped, and the end comes when no dataset has more. A choice out of range is a failed
   * element.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const words = [Dataset.from(["foo"]).repeat(), Dataset.from(["bar"]).repeat()];
   * const chosen = Dataset.chooseFromDatasets(words, Dataset.from([0, 1, 1, 0]));
   * for await (const word of chosen) console.log(word); // foo bar bar foo
   * ```
   */
  static chooseFromDatasets<const D extends readonly Dataset<unknown>[]>(
    datasets: D,
    choice: Dataset<number | bigint>,
    options?: ChooseFromDatasetsOptions,
  ): Dataset<Zipped<D>[number]> {
    const nodes = nodesIn("chooseFromDatasets", datasets);
    const chooser = nodeIn("chooseFromDatasets", "choice", choice);
    return new Dataset(
      new ChooseFromDatasetsNode(nodes, chooser, ChooseFromDatasetsNode.options(options)),
    );
  }

  /**
   * Applies `fn` to every element, in order. With `numParallelCalls`, several calls of an asynchronous
   * function are in flight. With `deterministic: false`, results come as they complete.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const centred = Dataset.range(4).map((x, { mean }) => x - mean, { captures: { mean: 1.5 } });
   * for await (const x of centred) console.log(x); // -1.5 -0.5 0.5 1.5
   * ```
   */
  map<R, C extends Captures = Captures>(
    fn: ElementFunction<T, R, C>,
    options?: MapOptions<C>,
  ): Dataset<Awaited<R>> {
    const { captures, ...rest } = MapNode.options(options);
    return new Dataset(new MapNode(this.node, new NodeFunction("map", "fn", fn, captures), rest));
  }

  /**
   * Decodes the requested features of serialised `tf.train.Example`s into objects. A feature is a
   * single value (a bigint, number, `Uint8Array` or string) or, with a shape, a tensor. With the shape
   * `[null]`, its length is that in the example. An example fails with `data_loss` if a feature without
   * a default is missing, or has another type or size.
   *
   * @example
   * ```ts
   * import { Dataset, encodeExample } from "../mod.ts";
   * const records = Dataset.from([encodeExample({ label: 3n, tokens: [7n, 8n] })]);
   * const examples = records.parseExamples({
   *   label: "int64",
   *   tokens: { dtype: "int64", shape: [null] },
   *   weight: { dtype: "float32", default: 1 },
   * });
   * for await (const { label, tokens, weight } of examples) {
   *   console.log(label, tokens.toArray(), weight); // 3n [7n, 8n] 1
   * }
   * ```
   */
  parseExamples<const F extends Features>(
    this: Dataset<Uint8Array>,
    features: F,
  ): Dataset<ParsedExample<F>> {
    const spec = featuresSpec(features);
    return this.map((bytes, { example, features }) => example.parse(bytes, features), {
      captures: { features },
      spec,
    });
  }

  /**
   * Keeps the elements for which `predicate` returns (or resolves to) true. With `numParallelCalls`
   * several calls of an asynchronous predicate are in flight. The predicate must not change its element
   * in place: `restore()` recomputes an element that is held without calling it.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * for await (const x of Dataset.range(5).filter((x) => x % 2 === 1)) console.log(x); // 1 3
   * ```
   */
  filter<C extends Captures = Captures>(
    predicate: ElementFunction<T, boolean | Promise<boolean>, C>,
    options?: FilterOptions<C>,
  ): Dataset<T> {
    const { captures, ...rest } = FilterNode.options(options);
    const fn = new NodeFunction("filter", "predicate", predicate, captures);
    return new Dataset(new FilterNode(this.node, fn, rest));
  }

  /**
   * Applies `fn` to every element and to a state that each call passes on to the next. `fn` returns
   * `[state, element]`, or a promise of it, and must not change in place the state that it gets. A
   * failed call loses its element; the next call gets the state from before it.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const sums = Dataset.range(1, 5).scan(0, (sum, x) => [sum + x, sum + x]);
   * for await (const x of sums) console.log(x); // 1 3 6 10
   * ```
   */
  scan<S, R, C extends Captures = Captures>(
    initial: S,
    fn: UserFunction<
      (state: S, element: T, extra: Extra<C>) => readonly [S, R] | Promise<readonly [S, R]>
    >,
    options?: FlatMapOptions<C>,
  ): Dataset<R> {
    const { captures, spec } = ScanNode.options(options);
    const bound = new NodeFunction("scan", "fn", fn, captures, { arity: 2 });
    return new Dataset(new ScanNode(this.node, initial, bound, spec));
  }

  /**
   * Drops elements that are equal to an earlier one. Elements must be numbers, bigints, booleans,
   * strings or byte strings. All distinct elements are kept in memory: `stats()` says how many bytes.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * for await (const x of Dataset.from([1, 37, 2, 37, 2, 1]).unique()) console.log(x); // 1 37 2
   * ```
   */
  unique(): Dataset<T> {
    return new Dataset(new UniqueNode(this.node));
  }

  /**
   * The elements of the datasets that `fn` returns, one dataset after the other.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const numbers = Dataset.range(4).flatMap((n, { Dataset }) => Dataset.range(n));
   * for await (const x of numbers) console.log(x); // 0 0 1 0 1 2
   * ```
   */
  flatMap<R, C extends Captures = Captures>(
    fn: ElementFunction<T, Dataset<R> | Promise<Dataset<R>>, C>,
    options?: FlatMapOptions<C>,
  ): Dataset<R> {
    const { captures, spec } = FlatMapNode.options(options);
    return new Dataset(
      new FlatMapNode(this.node, new NodeFunction("flatMap", "fn", fn, captures), spec),
    );
  }

  /**
   * The elements of the datasets that `fn` makes: `cycleLength` (4) of them are open at once, and
   * give `blockLength` (1) elements each, round-robin. When a dataset ends, its slot gets the next
   * dataset when the slot comes up again.
   *
   * With `numParallelCalls` (1 to 1024, or `AUTOTUNE`) elements are fetched ahead, from the first
   * one on. At most that many fetches and calls of `fn` run at once. Up to two blocks are fetched
   * ahead of each of `cycleLength + numParallelCalls` datasets. The order stays the same, unless
   * `deterministic` is false: then elements come as they are ready.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const turns = Dataset.from(["ab", "cd"]).interleave((word, { Dataset }) => Dataset.from(word));
   * for await (const x of turns) console.log(x); // a c b d
   * ```
   */
  interleave<R, C extends Captures = Captures>(
    fn: ElementFunction<T, Dataset<R> | Promise<Dataset<R>>, C>,
    options?: InterleaveOptions<C>,
  ): Dataset<R> {
    const { captures, ...rest } = InterleaveNode.options(options);
    return new Dataset(
      new InterleaveNode(this.node, new NodeFunction("interleave", "fn", fn, captures), rest),
    );
  }

  /**
   * Stacks `size` consecutive elements at a time: every leaf gets a new first axis. Numbers become
   * float64 (or the dtype of a spec), bigints int64. Shapes must agree. A failed element is left out;
   * the elements gathered before it stay in the batch.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * for await (const x of Dataset.range(5).batch(2)) console.log(x.toArray()); // [0, 1] [2, 3] [4]
   * ```
   */
  batch<R = Batched<T>>(size: number, options?: BatchOptions): Dataset<R> {
    return new Dataset(new BatchNode(this.node, size, BatchNode.options(options)));
  }

  /**
   * Like `batch`, with every component padded to `paddedShapes`. There -1 and null (the default) mean
   * the longest length in the batch. Padding is 0, "" or `paddingValues`, in which null means the
   * default. An element longer than a fixed length fails with `data_loss`.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const rows = Dataset.range(1, 3).map((n) => new Float32Array(n).fill(n)).paddedBatch(2);
   * for await (const x of rows) console.log(x.toArray()); // [[1, 0], [2, 2]]
   * ```
   */
  paddedBatch<R = Batched<T>>(size: number, options?: PaddedBatchOptions): Dataset<R> {
    return new Dataset(new PaddedBatchNode(this.node, size, PaddedBatchNode.options(options)));
  }

  /**
   * Like `batch`, with components of different lengths concatenated into `RaggedTensor`s. This applies
   * to all leaves with an axis, unless the spec says that their shape does not vary. Only the first
   * axis may vary.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const rows = Dataset.range(1, 4).map((n) => new Int32Array(n).fill(n)).raggedBatch(3);
   * for await (const x of rows) console.log(x.toArray()); // [[1], [2, 2], [3, 3, 3]]
   * ```
   */
  raggedBatch<R = RaggedBatched<T>>(size: number, options?: RaggedBatchOptions): Dataset<R> {
    return new Dataset(new RaggedBatchNode(this.node, size, RaggedBatchNode.options(options)));
  }

  /**
   * Regroups the rows of batches into batches of `size`. A list of sizes is used cyclically; 0 gives an
   * empty batch. Like `unbatch` and `batch` together, but it copies many rows at a time, and a batch
   * cut from a larger one shares its memory.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const batches = Dataset.range(6).batch(4).rebatch([1, 2]);
   * for await (const x of batches) console.log(x.toArray()); // [0] [1, 2] [3] [4, 5]
   * ```
   */
  rebatch(size: number | readonly number[], options?: RebatchOptions): Dataset<T> {
    return new Dataset(new RebatchNode(this.node, size, RebatchNode.options(options)));
  }

  /**
   * Concatenates sequences (typed arrays, tensors) of different lengths into rows of `length` tokens,
   * so that batches contain little padding. A row is `{ tokens, segmentIds, positions }`.
   * `segmentIds` has the number of each token's sequence (1, 2, …; 0 is padding), and `positions` the
   * token's position in the sequence (from 0). If an element is an object of sequences of equal length,
   * the row has their names in place of `tokens`.
   *
   * `maxOpenBins` rows are filled at a time; when a sequence fits none, the fullest row is given.
   * The remaining rows come at the end. Which sequences share a row depends on their order alone.
   * Sequences without tokens are left out. Those longer than a row are errors, unless `overflow`
   * says otherwise.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const texts = Dataset.from([[5, 6, 7], [8, 9], [3]]).map((ids) => new Int32Array(ids));
   * for await (const row of texts.pack({ length: 4 })) {
   *   console.log(row.tokens.toArray(), row.segmentIds.toArray(), row.positions.toArray());
   *   // [5, 6, 7, 3] [1, 1, 1, 2] [0, 1, 2, 0], then [8, 9, 0, 0] [1, 1, 0, 0] [0, 1, 0, 0]
   * }
   * ```
   */
  pack<R = Packed<T>>(options: PackOptions): Dataset<R> {
    return new Dataset(new PackNode(this.node, PackNode.options(options)));
  }

  /**
   * The rows of every element, one by one. Rows that are scalars are plain values.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * for await (const x of Dataset.range(3).batch(2).unbatch()) console.log(x); // 0 1 2
   * ```
   */
  unbatch<R = Sliced<T>>(): Dataset<R> {
    return new Dataset(new UnbatchNode(this.node));
  }

  /**
   * Shuffles elements: each is drawn at random from a buffer of `bufferSize`, which is kept full. The
   * order differs in every iteration and repetition, unless `reshuffleEachIteration` is false. With a
   * seed (here, or by `withOptions`), every run has the same orders. Under DYNAMIC the draws are the
   * same, but which elements a worker gets may differ.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const shuffled = Dataset.range(100).shuffle(100, { seed: 7 });
   * ```
   */
  shuffle(bufferSize: number, options?: ShuffleOptions): Dataset<T> {
    return new Dataset(new ShuffleNode(this.node, bufferSize, ShuffleNode.options(options)));
  }

  /**
   * All elements in random order, without a buffer: each is fetched by its index when it is due. So the
   * first element comes at once, the order uses no memory, and a saved position is one number. It is
   * reshuffled like `shuffle()`. Its input must support `at()`: a source in memory, such as a list of
   * file names that a later `map` reads, with one-to-one operators. Workers of a service divide one
   * permutation.
   *
   * `failed_precondition` for a dataset without random access.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const order = Dataset.range(1_000_000_000).globalShuffle({ seed: 7 }).take(3);
   * for await (const x of order) console.log(x); // any three, without waiting
   * ```
   */
  globalShuffle(options?: ShuffleOptions): Dataset<T> {
    return new Dataset(new GlobalShuffleNode(this.node, GlobalShuffleNode.options(options)));
  }

  /**
   * The elements `count` times over; endlessly without `count`, or with -1. An empty dataset stays
   * empty.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * for await (const x of Dataset.range(2).repeat(2)) console.log(x); // 0 1 0 1
   * ```
   */
  repeat(count?: number): Dataset<T> {
    return new Dataset(new RepeatNode(this.node, count));
  }

  /**
   * The first `count` elements, or all with -1. Failed ones are not counted.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * for await (const x of Dataset.range(9).take(2)) console.log(x); // 0 1
   * ```
   */
  take(count: number): Dataset<T> {
    return new Dataset(new TakeNode(this.node, count));
  }

  /**
   * The elements before the first one for which `predicate` returns (or resolves to) false. Nothing is
   * read after that element. As in `filter`, the predicate must not change its element in place.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * for await (const x of Dataset.range(10).takeWhile((x) => x < 3)) console.log(x); // 0 1 2
   * ```
   */
  takeWhile<C extends Captures = Captures>(
    predicate: ElementFunction<T, boolean | Promise<boolean>, C>,
    options?: FunctionOptions<C>,
  ): Dataset<T> {
    const { captures } = TakeWhileNode.options(options);
    const fn = new NodeFunction("takeWhile", "predicate", predicate, captures);
    return new Dataset(new TakeWhileNode(this.node, fn));
  }

  /**
   * Some fields of each element, in this order. Of Parquet and Arrow files only these columns are
   * decoded, unless the source has a `spec`, or an operator in between needs whole rows. An element
   * without one of the fields fails with `invalid_argument`.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const rows = Dataset.from([{ id: 1, text: "a" }, { id: 2, text: "b" }]);
   * for await (const { text } of rows.select(["text"])) console.log(text); // a b
   * ```
   */
  select<const K extends keyof T & string>(fields: readonly K[]): Dataset<Pick<T, K>> {
    return new Dataset(new SelectNode(this.node, fields));
  }

  /**
   * All but the first `count` elements, or none with -1. A failed element does not count, and still
   * rejects its `next()`.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * for await (const x of Dataset.range(4).skip(2)) console.log(x); // 2 3
   * ```
   */
  skip(count: number): Dataset<T> {
    return new Dataset(new SkipNode(this.node, count));
  }

  /**
   * Every `numShards`-th element, starting with number `index`. Processes that each read one shard get
   * each element once if they have one seed and no operator before it may reorder, as with
   * `deterministic: false`. With `shard(SHARD_HINT, SHARD_HINT)`, a service under HINT sets both for
   * each worker; other iterations fail (`failed_precondition`).
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * for await (const x of Dataset.range(7).shard(3, 1)) console.log(x); // 1 4
   * ```
   */
  shard(numShards: number, index: number): Dataset<T> {
    return new Dataset(new ShardNode(this.node, numShards, index));
  }

  /**
   * Keeps the elements of the first complete pass without errors; later iterations read the copy.
   * Without `path` the copy is in memory, for the iterations of this dataset; below `distribute()`
   * every worker or reader that runs the cache has a copy of its own. With `path` it is in
   * files in that folder of the machine that iterates (`--allow-write`), also for other processes and
   * runs. A pass that fails, is abandoned, or ends with its process leaves nothing behind.
   * If a later `take` ends a pass early, `prefetch` and parallel calls between them may have read to
   * the end, so that the copy is kept, or not: call `take` before `cache`.
   * Each iteration gets copies of what is in memory, and may change them in place.
   *
   * With `path`, operators before the cache keep the order of elements, whatever `deterministic` says.
   * So every program that fills the folder fills it in the same order.
   *
   * The copy is not compared with the input files, nor with the files of functions that `udf()` or
   * `python()` names: if their contents change, remove the folder.
   *
   * Errors of the first element: `already_exists` while another iterator fills the same folder,
   * `failed_precondition` if it has the elements of another pipeline (remove the folder, or choose
   * another) or the dataset is read in splits, `permission_denied`. Damaged files are `data_loss`.
   *
   * If operators before the cache may draw random numbers, a seed of `withOptions` belongs to the
   * pipeline, wherever it is set: with another one, the folder is refused. A seed for operators after
   * the cache alone is theirs, as in `shuffle(1000, { seed })`.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const squares = Dataset.range(1000).map((x) => x * x).cache().repeat(3);
   * const decoded = Dataset.range(3).map((x) => `${x}`).cache("./.cache/example-cache");
   * for await (const x of decoded.repeat(2)) console.log(x); // 0 1 2, and from the files 0 1 2
   * ```
   */
  cache(path?: string): Dataset<T> {
    return new Dataset(new CacheNode(this.node, path));
  }

  /**
   * Stores the elements of the first complete pass in files, like `cache(path)`, but in a separate
   * folder below `path` for each pipeline. If operators, arguments or the source text of functions
   * before this point change, the elements are made again. So they are with another seed of
   * `withOptions`, wherever it is set, if operators before this point may draw random numbers. Folders
   * of old pipelines stay until you remove them. As before `cache(path)`, operators keep the order.
   *
   * The copy is not compared with the input files, nor with the files of functions that `udf()` or
   * `python()` names: if their contents change, remove the folder, or give new files new names.
   *
   * While another iterator writes the same snapshot, elements are given without being stored. Of
   * several that a pipeline opens at once on one thread, as in `zip(s, s)`, the first one writes.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const numbers = Dataset.range(6).snapshot("./.cache/example-snapshot", {
   *   shardFunc: (x) => x % 2,
   *   readerFunc: (shards) => shards.interleave((shard) => shard, { cycleLength: 2 }),
   * });
   * for await (const x of numbers.repeat(2)) console.log(x);
   * ```
   */
  snapshot<R = T, C extends Captures = Captures>(
    path: string,
    options?: SnapshotOptions<T, R, C>,
  ): Dataset<T | R> {
    const { compression, shardFunc, readerFunc, captures } = SnapshotNode.options(options);
    const bind = (argument: string, fn: unknown) =>
      fn === undefined ? undefined : new NodeFunction("snapshot", argument, fn, captures);
    return new Dataset(
      new SnapshotNode(this.node, path, {
        compression,
        shardFunc: bind("shardFunc", shardFunc),
        readerFunc: bind("readerFunc", readerFunc),
      }),
    );
  }

  /**
   * Reads up to `n` elements ahead of the consumer; with `AUTOTUNE`, as many as the consumer needs (4
   * to 64), within the RAM budget of `withOptions({ autotune })`. With `thread`, all operators before
   * it run on a thread of their own.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const batches = Dataset.range(100).batch(10).prefetch(2);
   * const apart = Dataset.range(100).map((x) => x * 2).batch(10).prefetch(2, { thread: true });
   * ```
   */
  prefetch(n: number, options?: PrefetchOptions): Dataset<T> {
    return new Dataset(new PrefetchNode(this.node, n, PrefetchNode.options(options)));
  }

  /**
   * These elements, then those of `other`, which must have the same structure.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * for await (const x of Dataset.range(2).concatenate(Dataset.range(1))) console.log(x); // 0 1 0
   * ```
   */
  concatenate<O = T>(other: Dataset<O>): Dataset<T | O> {
    const node = nodeIn("concatenate", "other", other);
    return new Dataset(new ConcatenateNode(this.node, node));
  }

  /**
   * Pairs of an element and one of `other`. Ends with the shorter dataset.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const pairs = Dataset.range(2).zip(Dataset.from(["a", "b"]));
   * for await (const [x, y] of pairs) console.log(x, y); // 0 a, 1 b
   * ```
   */
  zip<O>(other: Dataset<O>): Dataset<[T, O]> {
    return new Dataset(new ZipNode([this.node, nodeIn("zip", "other", other)], null));
  }

  /**
   * Elements with their numbers, from `start`. A failed element is counted, too.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * for await (const [i, x] of Dataset.from(["a"]).enumerate(5)) console.log(i, x); // 5 a
   * ```
   */
  enumerate(start?: number): Dataset<[number, T]> {
    return new Dataset(new EnumerateNode(this.node, start));
  }

  /**
   * Windows: datasets of `size` elements, which are `stride` (1) apart. Each window starts `shift`
   * (`size`) elements after the previous one. Windows may overlap, and be iterated more than once. The
   * last ones are shorter, unless `dropRemainder` leaves them out. A failed element is left out; the
   * elements gathered before it stay.
   *
   * If elements have components, a window has a dataset for each component, in the same structure.
   * `Dataset.zip` combines them again.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const pairs = Dataset.range(4).window(2, { shift: 1, dropRemainder: true })
   *   .flatMap((window) => window.batch(2));
   * for await (const x of pairs) console.log(x.toArray()); // [0, 1] [1, 2] [2, 3]
   *
   * const records = Dataset.range(4).map((x) => ({ x, y: x * x })).window(2)
   *   .flatMap((window, { Dataset }) => Dataset.zip(window).batch(2));
   * for await (const { y } of records) console.log(y.toArray()); // [0, 1] [4, 9]
   * ```
   */
  window<R = Windowed<T>>(size: number, options?: WindowOptions): Dataset<R> {
    return new Dataset(new WindowNode(this.node, size, WindowNode.options(options)));
  }

  /**
   * The same elements, with `expected` (or `Infinity`) as `cardinality()`, for an input whose own is
   * unknown. If there are more or fewer, it ends with `failed_precondition`. Workers that read a part
   * of the dataset do not check.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const odd = Dataset.range(10).filter((x) => x % 2 === 1).assertCardinality(5);
   * console.log(odd.batch(2).cardinality()); // 3
   * ```
   */
  assertCardinality(expected: number): Dataset<T> {
    return new Dataset(new AssertCardinalityNode(this.node, expected));
  }

  /**
   * The elements, which must be objects, followed by padding until there are `count`. Padding has the
   * structure and shapes of the last element, with numbers 0, strings "" and tensors of zeros. The
   * component `maskKey` ("valid") is true in elements and false in padding. Use it to make shards
   * equally long.
   *
   * Errors: `invalid_argument` for an input known to be longer, or with a component of that name;
   * `failed_precondition` at the first element beyond `count`.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const padded = Dataset.from([{ x: 1 }]).padToCardinality(2);
   * for await (const { x, valid } of padded) console.log(x, valid); // 1 true, then 0 false
   * ```
   */
  padToCardinality<const K extends string = "valid">(
    count: number,
    maskKey?: K,
  ): Dataset<T & { [key in K]: boolean }> {
    return new Dataset(new PadToCardinalityNode(this.node, count, maskKey));
  }

  /**
   * Drops elements at random, so that classes have the frequencies of `targetDist`, and gives pairs
   * `[class, element]`. `classOf` returns an element's class, an index into `targetDist`. The original
   * frequencies are `initialDist`, or estimated from the elements so far.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const balanced = Dataset.range(1000).rejectionResample({
   *   classOf: (x) => x % 10 === 0 ? 1 : 0,
   *   targetDist: [0.5, 0.5],
   *   initialDist: [0.9, 0.1],
   *   seed: 7,
   * });
   * console.log((await Array.fromAsync(balanced)).length); // about 200
   * ```
   */
  rejectionResample<C extends Captures = Captures>(
    options: RejectionResampleOptions<T, C>,
  ): Dataset<[number, T]> {
    const { classOf, captures, ...rest } = RejectionResampleNode.options(options);
    const fn = new NodeFunction("rejectionResample", "classOf", classOf, captures);
    return new Dataset(new RejectionResampleNode(this.node, fn, rest));
  }

  /**
   * Drops elements that fail. `stats()` counts them as `errors`; `logWarning` also logs them. If
   * more fail than `maxErrors`, or a larger share than `maxFraction`, it ends with
   * `resource_exhausted`, which says how many failed and has the last error as its cause. An error that
   * ends the reading, because a service or the storage cannot be reached, belongs to no element and is
   * not ignored.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const dataset = Dataset.from(["1", "x", "3"]).map((text) => JSON.parse(text) as number)
   *   .ignoreErrors({ maxFraction: 0.5 });
   * for await (const x of dataset) console.log(x); // 1 3
   * ```
   */
  ignoreErrors(options?: IgnoreErrorsOptions): Dataset<T> {
    return new Dataset(new IgnoreErrorsNode(this.node, IgnoreErrorsNode.options(options)));
  }

  /**
   * Gathers elements by `key` into windows of `windowSize`. For each window, `reduce` returns a dataset,
   * whose elements are given. Windows that are not full at the end come in increasing order of keys. If
   * `reduce` fails, the elements of its window are lost.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const byParity = Dataset.range(6).groupByWindow({
   *   key: (x) => x % 2,
   *   reduce: (_key, window) => window.batch(2),
   *   windowSize: 2,
   * });
   * for await (const x of byParity) console.log(x.toArray()); // [0, 2] [1, 3] [4] [5]
   * ```
   */
  groupByWindow<R, C extends Captures = Captures>(
    options: GroupByWindowOptions<T, R, C>,
  ): Dataset<R> {
    const { key, reduce, windowSize, captures } = GroupByWindowNode.options(options);
    const bind = (argument: string, fn: unknown, arity: Arity = 1) =>
      new NodeFunction("groupByWindow", argument, fn, captures, { arity });
    return new Dataset(
      new GroupByWindowNode(
        this.node,
        bind("key", key),
        bind("reduce", reduce, 2),
        typeof windowSize === "number" ? windowSize : bind("windowSize", windowSize),
      ),
    );
  }

  /**
   * One element for each `key`, in increasing order of keys, after the whole input was read: `reduce`
   * folds the elements with that key, starting from `init`, and `finalize` converts the result. An
   * element for which a function fails is left out. An endless input is refused (`invalid_argument`).
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const sums = Dataset.range(5).groupByReducer({
   *   key: (x) => x % 2,
   *   init: () => 0,
   *   reduce: (sum: number, x) => sum + x,
   *   finalize: (sum, key) => `${key}: ${sum}`,
   * });
   * for await (const x of sums) console.log(x); // 0: 6, then 1: 4
   * ```
   */
  groupByReducer<S, R = S, C extends Captures = Captures>(
    options: GroupByReducerOptions<T, S, R, C>,
  ): Dataset<R> {
    const { key, init, reduce, finalize, captures, spec } = GroupByReducerNode.options(options);
    const bind = (argument: string, fn: unknown, arity: Arity = 1) =>
      new NodeFunction("groupByReducer", argument, fn, captures, { arity });
    const functions = {
      key: bind("key", key),
      init: bind("init", init),
      reduce: bind("reduce", reduce, 2),
      finalize: finalize === undefined ? undefined : bind("finalize", finalize, 2),
    };
    return new Dataset(new GroupByReducerNode(this.node, functions, spec));
  }

  /**
   * Padded batches of elements of similar length: bucket i gathers elements whose length is at least
   * `boundaries[i - 1]` and below `boundaries[i]`, into batches of `batchSizes[i]`. With
   * `padToBucketBoundary` they are padded to the boundary minus one, and longer elements are errors.
   * With `noPadding` shapes must agree.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const batches = Dataset.range(1, 9).map((n) => new Int32Array(n)).bucketBySequenceLength({
   *   length: (x) => x.length,
   *   boundaries: [4],
   *   batchSizes: [3, 2],
   * });
   * for await (const x of batches) console.log(x.shape); // [3, 3] [2, 5] [2, 7] [1, 8]
   * ```
   */
  bucketBySequenceLength<C extends Captures = Captures, R = Batched<T>>(
    options: BucketBySequenceLengthOptions<T, C>,
  ): Dataset<R> {
    const { length, captures, ...rest } = BucketBySequenceLengthNode.options(options);
    const fn = new NodeFunction("bucketBySequenceLength", "length", length, captures);
    return new Dataset(new BucketBySequenceLengthNode(this.node, fn, rest));
  }

  /**
   * Returns `fn(this)`, to build pipelines from parts.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const evens = (numbers: Dataset<number>) => numbers.filter((x) => x % 2 === 0);
   * for await (const x of Dataset.range(3).apply(evens)) console.log(x); // 0 2
   * ```
   */
  apply<R>(fn: (dataset: Dataset<T>) => Dataset<R>): Dataset<R> {
    if (typeof fn !== "function") throw invalidArgument("apply", "fn", "a function", fn);
    const made = fn(this);
    nodeIn("apply", "what fn returns", made);
    return made;
  }

  /**
   * Sets options for the whole pipeline. A later call takes precedence over an earlier one, and an
   * operator's own options over both. In a dataset that a function returns, as that of `flatMap`, a
   * call has no effect on the operators: give them options of their own. A `seed` also holds for the job of a `distribute` or `offload`
   * before it, but not for a dataset of `fromId`, which keeps the seed that it was registered with. Of
   * the other options, workers get those that are set before `distribute` or before the operators that
   * `offload` gives them.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const noisy = Dataset.range(3).map((x, { random }) => x + random.next()).withOptions({ seed: 1 });
   * ```
   */
  withOptions(options: DatasetOptions): Dataset<T> {
    return new Dataset(new OptionsNode(this.node, OptionsNode.options(options)));
  }

  /**
   * Runs the dataset to its end and writes its elements to files in a folder, for `Dataset.load()`,
   * which can read them once everything is written. The first error ends the save and removes its
   * files. Resolves to how much was written.
   *
   * Errors: `already_exists` if the folder has a saved dataset (unless `overwrite`, which replaces it at
   * the end) or is being written, `invalid_argument` for an endless dataset, `permission_denied`
   * without `--allow-write`, `unimplemented` for remote storage, `failed_precondition` for elements
   * that are not plain data.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const path = "./.cache/example-saved";
   * const { elements } = await Dataset.range(10).batch(4).save(path, { overwrite: true });
   * const batches = await Dataset.load(path);
   * console.log(elements, batches.cardinality(), batches.elementSpec); // 3 3 TensorSpec { … }
   * ```
   */
  async save<C extends Captures = Captures>(
    path: string,
    options?: SaveOptions<T, C>,
  ): Promise<SaveProgress> {
    const { shardFunc, captures, ...rest } = saveOptions(options);
    const shard = shardFunc === undefined
      ? undefined
      : new NodeFunction("save", "shardFunc", shardFunc, captures);
    return await saveGraph(this.node, path, rest, shard, this.#nextIteration());
  }

  /**
   * The dataset that `save()` or `distributedSave()` wrote to a folder, in the order of its elements.
   * Shards come one after the other, unless `readerFunc` combines them otherwise. Spec and number of
   * elements are known; workers of a service divide the files.
   *
   * With `wait`, elements are read in the same order while the save runs, until it has finished. A file
   * is read once it is complete, so a `save()` of less than its `chunkBytesMax`, or with `shardFunc`, is
   * read at its end. Spec and number of elements are then unknown, and workers do not divide the files.
   * Reading fails if the save fails or is abandoned (the code of its failure, or `aborted`), if another
   * save replaces it (`failed_precondition`), or if it writes nothing for long (`deadline_exceeded`).
   *
   * Errors: `not_found` if nothing is saved, or only a part; `data_loss` if the list of files is
   * damaged. Damaged files, and files with fewer or more elements than were saved in them, are errors
   * of their elements. Files are known by their names: do not rename them.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const path = "./.cache/example-shards";
   * await Dataset.range(6).save(path, { shardFunc: (x) => x % 2, overwrite: true });
   * const numbers = await Dataset.load<number>(path, {
   *   readerFunc: (shards) => shards.interleave((shard) => shard),
   * });
   * for await (const x of numbers) console.log(x); // 0 1 2 3 4 5
   *
   * const saving = Dataset.range(3).save("./.cache/example-growing", { overwrite: true });
   * const growing = await Dataset.load<number>("./.cache/example-growing", { wait: true });
   * for await (const x of growing) console.log(x); // 0 1 2
   * await saving;
   * ```
   */
  static async load<T = unknown, R = T>(
    path: string,
    options?: LoadOptions<T, R>,
  ): Promise<Dataset<R>> {
    const { readerFunc, wait } = loadOptions(options);
    if (readerFunc !== undefined && typeof readerFunc !== "function") {
      throw invalidArgument("load", "readerFunc", "a function", readerFunc);
    }
    const waiting = checkWait(wait);
    if (waiting !== undefined) {
      if (readerFunc === undefined) return new Dataset(new TailLoadNode(path, waiting));
      const wanted = "left out with wait, because the shards are unknown until the save ends";
      throw invalidArgument("load", "readerFunc", wanted, readerFunc);
    }
    const manifest = await savedIn(path);
    if (readerFunc === undefined) return new Dataset(storedNode(path, manifest));
    const made = readerFunc(shardDatasets(path, manifest) as Dataset<Dataset<T>>);
    nodeIn("load", "what readerFunc returns", made);
    return made;
  }

  /**
   * Folds all elements into one value. Rejects at the first error, and with `invalid_argument` for an
   * endless dataset.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * console.log(await Dataset.range(5).reduce(0, (sum, x) => sum + x)); // 10
   * ```
   */
  async reduce<S, C extends Captures = Captures>(
    initial: S,
    fn: UserFunction<(state: S, element: T, extra: Extra<C>) => S | Promise<S>>,
    options?: FunctionOptions<C>,
  ): Promise<S> {
    const { captures } = reduceOptions(options);
    const bound = new NodeFunction("reduce", "fn", fn, captures, { arity: 2 });
    return await reduceGraph(this.node, initial, bound, this.#nextIteration()) as S;
  }

  /**
   * The only element of the dataset. Rejects with its error if it fails, and with `invalid_argument`
   * unless there is exactly one.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const all = await Dataset.range(4).batch(4).getSingleElement();
   * console.log(all.toArray()); // [0, 1, 2, 3]
   * ```
   */
  async getSingleElement(): Promise<T> {
    return await singleElementOf(this.node, this.#nextIteration()) as T;
  }

  /**
   * Element number `index`, without reading those before it. Works for `range`, `from`, `fromTensors`
   * and `fromTensorSlices`, and for `map`, `take`, `skip`, `shard`, `repeat(n)`, `zip`, `concatenate`,
   * `enumerate`, `prefetch` and `globalShuffle` over these. It is the element of epoch 0; without a
   * seed every call draws its own random numbers.
   *
   * Rejects with `out_of_range` if there is no such element, with the element's error if it fails,
   * and with `failed_precondition` for a dataset that can only be iterated over.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * console.log(await Dataset.range(1_000_000).map((x) => 2 * x).at(999_999)); // 1999998
   * ```
   */
  async at(index: number): Promise<T> {
    try {
      return await elementAt(this.node, index, {}) as T;
    } catch (error) {
      throw LeatError.from(error);
    }
  }

  /**
   * Runs everything before this point in the workers of a service; operators after it run here.
   * `rewrite` changes what precedes: `distribute({ rewrite, …options })` is
   * `rewrite(dataset).distribute(options)`, for programs that get their options from elsewhere.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const batches = Dataset.range(1000).batch(10).distribute({
   *   service: "ws://127.0.0.1:5050",
   *   processingMode: "DYNAMIC",
   * });
   * ```
   */
  distribute<R = T>(options: DistributeOptions & { readonly rewrite?: Rewrite<T, R> }): Dataset<R> {
    const { rewrite, ...distribution } = DistributeNode.options(options);
    const node = rewritten("distribute", this, rewrite);
    return new Dataset(walking(() => new DistributeNode(node, distribution)));
  }

  /**
   * Lets the workers of a service run a part of the pipeline for a share of the elements; the rest runs
   * here (FastFlow paper). Without a `plan`, it measures before the first element which part and what
   * share to offload, or nothing if that would not make training faster. `fit()` does the same with
   * the measured time of a training step.
   *
   * Elements come once each. Their order depends on the plan; with `deterministic` only on its
   * candidate. If the service fails, they are prepared here until it is back. An iterator's `save()`
   * includes what workers do. Functions that use the clock or ambient random numbers are not offloaded.
   *
   * @example
   * ```ts
   * import { Dataset, LocalCluster } from "../mod.ts";
   * await using service = await LocalCluster.start({ workers: 1 });
   * const plan = { candidate: "p'3", ratio: 0.5 };
   * const batches = Dataset.range(100).map((x) => x * 2).batch(10).offload({ service, plan });
   * console.log((await Array.fromAsync(batches)).length); // 10
   * ```
   */
  offload(options: OffloadOptions): Dataset<T> {
    return new Dataset(new OffloadNode(this.node, OffloadNode.options(options)));
  }

  /**
   * Marks a point where `offload` may divide the pipeline: everything before it may then run
   * remotely and everything after it here, as one more candidate with this name. Changes nothing
   * else.
   * @throws {LeatError} `invalid_argument` for a name that another candidate has: `"p'1"`, `"p'2"`,
   * `"p'3"`, or that of an earlier cut point.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const batches = Dataset.range(100).map((x) => x * 2).cutPoint("doubled").map((x) => x + 1).batch(10);
   * ```
   */
  cutPoint(name: string): Dataset<T> {
    return new Dataset(new CutPointNode(this.node, name));
  }

  /**
   * A dataset registered with a service, by its id: `not_found` if the dispatcher does not have it. Its
   * cardinality is unknown here, and its element spec too, unless `spec` is given. Under DETERMINISTIC
   * the pipeline is fetched from the dispatcher, because a part of it runs here: operators that cannot
   * run split by split, and batches of rows from several splits. Functions in that part run in a
   * confined process, unless `trustPipeline` is true. Reading fails with `permission_denied` if no such
   * process can be started (it needs Linux and `--allow-run=deno`), or if that part opens files.
   *
   * @example
   * ```ts
   * import { Dataset, LocalCluster, registerDataset } from "../mod.ts";
   * await using cluster = await LocalCluster.start({ workers: 2 });
   * await registerDataset(cluster, Dataset.range(6), { datasetId: "six" });
   * const numbers = Dataset.fromId<number>(cluster, "six", { processingMode: "DATA" });
   * console.log((await Array.fromAsync(numbers)).length); // 6
   * ```
   */
  static fromId<T = unknown>(
    service: DistributeOptions["service"],
    datasetId: string,
    options?: FromIdOptions,
  ): Dataset<T> {
    return new Dataset(new FromIdNode({ ...FromIdNode.options(options), service }, datasetId));
  }

  /**
   * Starts iterating. The iterator continues after a failed element, and has `stats()`.
   *
   * `isReadOnly`: you promise that nothing changes an element in place or transfers it, as when each is
   * only copied to an accelerator. Then `from()`, `fromTensors()`, `fromTensorSlices()`, `cache()` in
   * memory, `rebatch()` and `unbatch()` give what they keep, not copies of it, if no function gets it
   * either. Default false.
   *
   * `needsOrder`: datasets that functions make, and operators without an option of their own, keep the
   * order of elements, whatever `deterministic` says there and in `withOptions`. If such a dataset reads
   * from a service, other than from a DETERMINISTIC job without `jobName`, `next()` rejects with
   * `failed_precondition`. Default false.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * await using iterator = Dataset.range(2).iterator();
   * console.log(await iterator.next()); // { done: false, value: 0 }
   * ```
   */
  iterator(
    options?: { readonly isReadOnly?: boolean; readonly needsOrder?: boolean },
  ): DatasetIterator<T> {
    const { isReadOnly, needsOrder } = iteratorOptions(options);
    checkOptionalBoolean("iterator", "isReadOnly", isReadOnly);
    checkOptionalBoolean("iterator", "needsOrder", needsOrder);
    return this.#open(definedFields({ isReadOnly, needsOrder }));
  }

  /**
   * For `for await`. The first element that fails ends the loop and closes the iterator. JavaScript
   * does not close an iterator whose `next()` rejects, and the caller has no reference to it. So it
   * would keep reading ahead.
   */
  [Symbol.asyncIterator](): DatasetIterator<T> {
    return this.#open({ closesAtError: true });
  }

  #nextIteration(): Pick<IterationOptions, "epoch" | "lastReaders"> {
    return { epoch: this.#iterations++, lastReaders: this.#lastReaders };
  }

  #open(
    options: Pick<IterationOptions, "closesAtError" | "isReadOnly" | "needsOrder">,
  ): DatasetIterator<T> {
    return openIterator<T>(this.node, {
      ...options,
      ...this.#nextIteration(),
      onRestored: (epoch, lastReaders) => {
        const next = epoch + 1;
        this.#iterations = hasEpochsOnce(this.node) ? Math.max(this.#iterations, next) : next;
        this.#lastReaders.resumeAfter(lastReaders);
      },
    });
  }

  /**
   * Structure, dtypes and shapes of the elements, as far as they are known before running.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * console.log(Dataset.range(10).batch(4).elementSpec); // TensorSpec { dtype: "float64", shape: [null] }
   * ```
   */
  get elementSpec(): ElementSpec {
    return walking(() => this.node.elementSpec);
  }

  /**
   * The number of elements: exact, `Infinity`, or `UNKNOWN_CARDINALITY` (-2).
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * console.log(Dataset.range(10).batch(4).cardinality()); // 3
   * ```
   */
  cardinality(): number {
    return walking(() => this.node.cardinality);
  }

  /**
   * The dataset as bytes, for another thread or host. Its functions must be references made by
   * `udf()`, or self-contained; otherwise `failed_precondition` names the outer variable that a
   * function uses.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * const bytes = Dataset.range(3).map((x) => x + 1).serialize();
   * const copy = Dataset.deserialize(bytes, { trustPipeline: true });
   * for await (const x of copy) console.log(x); // 1 2 3
   * ```
   */
  serialize(): Uint8Array {
    return walking(() => serializeGraph(this.node));
  }

  /**
   * The dataset that `serialize()` wrote, which can be inspected, registered and distributed. This
   * evaluates nothing. When the dataset is iterated, its functions run in a confined process,
   * unless `trustPipeline` is true. Iterating fails with `permission_denied` if no such process can
   * be started (it needs Linux and `--allow-run=deno`), or if the pipeline opens a file or reads
   * from a service. `invalid_argument` for any other bytes.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * console.log(Dataset.deserialize(Dataset.range(3).serialize()).cardinality()); // 3
   * ```
   */
  static deserialize(bytes: Uint8Array, options?: DeserializeOptions): Dataset<unknown> {
    const { trustPipeline } = deserializeOptions(options);
    const isOwn = checkBoolean("deserialize", "trustPipeline", trustPipeline, false);
    return new Dataset(deserializeGraph(bytes, { isOwn }));
  }

  /**
   * A digest of the graph, 64 hexadecimal digits: equal for equal pipelines, including functions'
   * sources and modules' URLs. Errors like `serialize()`.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * console.log(Dataset.range(3).fingerprint() === Dataset.range(3).fingerprint()); // true
   * ```
   */
  fingerprint(): string {
    return walking(() => fingerprintGraph(this.node));
  }

  /**
   * The graph in words: operators, arguments, specs and cardinalities.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   * console.log(String(Dataset.range(10).batch(4).explain()));
   * ```
   */
  explain(): Explanation {
    return walking(() => new Explanation(this.node));
  }
}

/** Runs what recurses into inputs. The stack overflows if the pipeline nests too deep. */
function walking<R>(walk: () => R): R {
  try {
    return walk();
  } catch (error) {
    throw LeatError.from(error);
  }
}

function unwrap(files: FilePaths): unknown {
  return nodeOf(files) ?? files;
}

function nodeIn(operator: string, argument: string, value: unknown): DatasetNode {
  const node = nodeOf(value);
  if (node === undefined) throw notDataset(operator, argument, value);
  return node;
}

/** Zips an array or object of datasets. Nested arrays and objects become zips of their own. */
function zipNode(datasets: unknown): DatasetNode {
  if (!Array.isArray(datasets) && !isPlainObject(datasets)) {
    throw notDataset("zip", "datasets", datasets);
  }
  const keys = Array.isArray(datasets) ? null : Object.keys(datasets);
  const inputs = Object.values<unknown>(datasets).map((part) => nodeOf(part) ?? zipNode(part));
  return new ZipNode(inputs, keys);
}

/** Whether the graph reads from a service in a mode in which no epoch can be read again. */
function hasEpochsOnce(node: DatasetNode): boolean {
  const isDistributed = node instanceof DistributeNode || node instanceof FromIdNode;
  if (isDistributed) return node.options.processingMode !== ShardingPolicy.DETERMINISTIC;
  return node.inputs.some(hasEpochsOnce);
}

function nodesIn(operator: string, datasets: unknown): DatasetNode[] {
  if (!Array.isArray(datasets)) throw invalidArgument(operator, "datasets", "an array", datasets);
  return datasets.map((dataset) => nodeIn(operator, "datasets", dataset));
}

function notDataset(operator: string, argument: string, value: unknown): LeatError {
  return new LeatError(
    "invalid_argument",
    `${operator}: ${argument} must be a Dataset, got ${show(value)}`,
  );
}

installFacade({ Dataset, wrap: (node) => new Dataset(node) });
