/**
 * `Dataset`: what users build pipelines with. Every method makes one node; nothing runs before an
 * iterator is asked for its first element.
 */
import { LeatError } from "../core/error.ts";
import { type FunctionExtra, NodeFunction } from "./call.ts";
import { invalidArgument, show } from "./check.ts";
import { type DatasetIterator, openIterator } from "./dataset_iterator.ts";
import type { Batched, Sliced, Tensorized } from "./element_types.ts";
import { Explanation } from "./explanation.ts";
import { type DatasetNode, type HasNode, installFacade, nodeOf } from "./node.ts";
import { BatchNode } from "./operators/batch.ts";
import {
  type BucketAttributes,
  BucketBySequenceLengthNode,
} from "./operators/bucket_by_sequence_length.ts";
import { CacheNode } from "./operators/cache.ts";
import { ConcatenateNode } from "./operators/concatenate.ts";
import { DistributeNode, type DistributeOptions } from "./operators/distribute.ts";
import { EnumerateNode } from "./operators/enumerate.ts";
import { FilterNode } from "./operators/filter.ts";
import { FlatMapNode } from "./operators/flat_map.ts";
import { FromNode, FromTensorSlicesNode, FromTensorsNode } from "./operators/from.ts";
import { FromGeneratorNode } from "./operators/from_generator.ts";
import { GroupByWindowNode } from "./operators/group_by_window.ts";
import { type InterleaveAttributes, InterleaveNode } from "./operators/interleave.ts";
import { MapNode } from "./operators/map.ts";
import { type DatasetOptions, OptionsNode } from "./operators/options.ts";
import { type PaddedBatchAttributes, PaddedBatchNode } from "./operators/padded_batch.ts";
import { PrefetchNode } from "./operators/prefetch.ts";
import { RangeNode } from "./operators/range.ts";
import { RepeatNode } from "./operators/repeat.ts";
import { ShardNode } from "./operators/shard.ts";
import { type ShuffleAttributes, ShuffleNode } from "./operators/shuffle.ts";
import { SkipNode, TakeNode } from "./operators/take_skip.ts";
import { UnbatchNode } from "./operators/unbatch.ts";
import { ZipNode } from "./operators/zip.ts";
import { reduceGraph } from "./reduce.ts";
import type { FileSourceOptions } from "./sources/file_source.ts";
import { JsonLinesNode } from "./sources/json_lines.ts";
import { ListFilesNode, type ListFilesOptions } from "./sources/list_files.ts";
import { TextLinesNode } from "./sources/text_lines.ts";
import { TfRecordsNode } from "./sources/tf_records.ts";
import type { ElementSpec } from "./spec.ts";
import type { Captures, UserFunction } from "./udf/user_function.ts";
import { deserializeGraph, fingerprintGraph, serializeGraph } from "./wire.ts";

/** The last argument of every user function. */
export type Extra<C extends Captures = Captures> =
  & Omit<FunctionExtra, "Dataset">
  & { readonly Dataset: typeof Dataset }
  & C;

/** A function of an element: itself, or a reference to one made by `udf()`. */
export type ElementFunction<T, R, C extends Captures> = UserFunction<
  (element: T, extra: Extra<C>) => R
>;

/** Values that the function is given by name in its last argument. */
export interface FunctionOptions<C extends Captures> {
  readonly captures?: C;
}

/** Options of `map`. */
export interface MapOptions<C extends Captures> extends FunctionOptions<C> {
  /** At most this many calls at once, or `AUTOTUNE`; by default one at a time. */
  readonly numParallelCalls?: number;
  /** Whether elements keep their order when several calls are in flight; default true. */
  readonly deterministic?: boolean;
  /** What the function returns, for `elementSpec` and for the dtype of batched numbers. */
  readonly spec?: ElementSpec;
}

/** Options of `flatMap`. */
export interface FlatMapOptions<C extends Captures> extends FunctionOptions<C> {
  /** What the datasets that the function makes give, for `elementSpec` and the dtypes of batches. */
  readonly spec?: ElementSpec;
}

/** Options of `batch`. */
export interface BatchOptions {
  /** Leaves out a last batch that is not full; default false. */
  readonly dropRemainder?: boolean;
}

/** Options of `groupByWindow`. */
export interface GroupByWindowOptions<T, R, C extends Captures> extends FunctionOptions<C> {
  /** The window an element belongs to: an integer. */
  readonly key: UserFunction<(element: T, extra: Extra<C>) => number | bigint | Promise<number>>;
  /** What a window becomes. The window may be iterated more than once. */
  readonly reduce: UserFunction<
    (key: number, window: Dataset<T>, extra: Extra<C>) => Dataset<R> | Promise<Dataset<R>>
  >;
  /** How many elements make a window full. */
  readonly windowSize: number | UserFunction<(key: number, extra: Extra<C>) => number>;
}

/** Options of `bucketBySequenceLength`. */
export interface BucketOptions<T, C extends Captures> extends FunctionOptions<C>, BucketAttributes {
  /** The length of an element. */
  readonly length: UserFunction<(element: T, extra: Extra<C>) => number | Promise<number>>;
}

type Datasets = readonly Dataset<unknown>[] | Readonly<Record<string, Dataset<unknown>>>;

/** The elements of several datasets side by side. */
export type Zipped<D> = { -readonly [K in keyof D]: D[K] extends Dataset<infer E> ? E : never };

/**
 * A sequence of elements, described by how it is made. Immutable: every method gives a new dataset.
 *
 * Elements are trees of plain objects and arrays with leaves that are numbers, bigints, booleans,
 * strings, typed arrays and tensors. Arguments are checked when an operator is called
 * (`invalid_argument`); what only the data can show is an error of the element that shows it, and
 * costs that element alone.
 *
 * @example
 * ```ts
 * import { Dataset } from "../mod.ts";
 *
 * const dataset = Dataset.range(10).map((x) => x * x).filter((x) => x % 2 === 0).batch(3);
 * for await (const batch of dataset) console.log(batch.toArray()); // [0, 4, 16] then [36, 64]
 * ```
 */
export class Dataset<out T> implements AsyncIterable<T, undefined>, HasNode {
  /** The last operator of the graph. */
  readonly node: DatasetNode;
  #iterations = 0;

  /** A dataset over a graph; users start from the static methods. */
  constructor(node: DatasetNode) {
    this.node = node;
  }

  /**
   * Evenly spaced numbers: from 0, or from `start`, up to but not including `stop`.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * for await (const x of Dataset.range(5, 0, -2)) console.log(x); // 5 3 1
   * ```
   */
  static range(stop: number): Dataset<number>;
  static range(start: number, stop: number, step?: number): Dataset<number>;
  static range(first: number, stop?: number, step = 1): Dataset<number> {
    const node = stop === undefined
      ? new RangeNode(0, first, step)
      : new RangeNode(first, stop, step);
    return new Dataset(node);
  }

  /**
   * The elements of an iterable as they are. They are read once, now, and kept.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * const words = Dataset.from(["a", "b"]);
   * for await (const word of words) console.log(word); // a b
   * ```
   */
  static from<T>(elements: Iterable<T>): Dataset<T> {
    return new Dataset(new FromNode(elements));
  }

  /**
   * One element. Nested arrays of scalars are read as tensors.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * const one = Dataset.fromTensors({ x: [[1, 2], [3, 4]], y: 5 });
   * for await (const { x } of one) console.log(x.shape); // [2, 2]
   * ```
   */
  static fromTensors<E>(element: E): Dataset<Tensorized<E>> {
    return new Dataset(new FromTensorsNode(element));
  }

  /**
   * Slices along axis 0 of every component: rows of nested arrays, tensors and typed arrays, which
   * all have the same number of them. Rows that are scalars are plain values.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * const rows = Dataset.fromTensorSlices({ x: [[1, 2], [3, 4]], y: ["a", "b"] });
   * for await (const { x, y } of rows) console.log(x.toArray(), y); // [1, 2] a, then [3, 4] b
   * ```
   */
  static fromTensorSlices<const C>(components: C): Dataset<Sliced<C>> {
    return new Dataset(new FromTensorSlicesNode(components));
  }

  /**
   * What a generator yields, called anew for every iteration. It cannot be split among workers.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * const squares = Dataset.fromGenerator(function* () {
   *   for (let i = 0;; i++) yield i * i;
   * });
   * for await (const x of squares.take(3)) console.log(x); // 0 1 4
   * ```
   */
  static fromGenerator<T, const C extends Captures = Captures>(
    fn: UserFunction<(extra: Extra<C>) => Iterable<T> | AsyncIterable<T>>,
    options: FunctionOptions<C> = {},
  ): Dataset<T> {
    return new Dataset(
      new FromGeneratorNode(new NodeFunction("fromGenerator", "fn", fn, options.captures)),
    );
  }

  /**
   * The names of the files that match a glob pattern, or one of several; shuffled, in another order
   * in every iteration, unless `shuffle` is false. `not_found` when there is none.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * const files = Dataset.listFiles("./corpus/*.tfrecord", { shuffle: false });
   * ```
   */
  static listFiles(
    pattern: string | readonly string[],
    options?: ListFilesOptions,
  ): Dataset<string> {
    return new Dataset(new ListFilesNode(pattern, options));
  }

  /**
   * The lines of text files, without their ends.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * const lines = Dataset.textLines(["./a.txt", "./b.txt.gz"].slice(0, 1));
   * ```
   */
  static textLines(files: Files, options?: FileSourceOptions): Dataset<string> {
    return new Dataset(new TextLinesNode(unwrap(files), options));
  }

  /**
   * The records of TFRecord files, with both checksums checked. A record is a byte string: functions
   * are given a `Uint8Array`, and a batch of n records is a `bytes` tensor of shape [n]. What a
   * function makes of it is `uint8` again, unless its `spec` says `bytes`.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * const records = Dataset.tfRecords(Dataset.listFiles("./corpus/*.tfrecord"));
   * ```
   */
  static tfRecords(files: Files, options?: FileSourceOptions): Dataset<Uint8Array> {
    return new Dataset(new TfRecordsNode(unwrap(files), options));
  }

  /**
   * The values of files that have a JSON value on each line.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * const texts = Dataset.jsonLines<{ text: string }>("./corpus/texts.jsonl").map((x) => x.text);
   * ```
   */
  static jsonLines<T = unknown>(files: Files, options?: FileSourceOptions): Dataset<T> {
    return new Dataset(new JsonLinesNode(unwrap(files), options));
  }

  /**
   * Elements of several datasets side by side, as an array or an object like the one given. It ends
   * with the shortest.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * const pairs = Dataset.zip({ x: Dataset.range(3), y: Dataset.from("abc") });
   * for await (const { x, y } of pairs) console.log(x, y); // 0 a, 1 b, 2 c
   * ```
   */
  static zip<const D extends Datasets>(datasets: D): Dataset<Zipped<D>> {
    if (typeof datasets !== "object" || datasets === null) {
      throw notDataset("zip", "datasets", datasets);
    }
    const keys = Array.isArray(datasets) ? null : Object.keys(datasets);
    const inputs = Object.values(datasets).map((dataset) => nodeIn("zip", "datasets", dataset));
    return new Dataset(new ZipNode(inputs, keys));
  }

  /**
   * `fn` of every element, in order. With `numParallelCalls` several calls of an asynchronous
   * function are in flight; `deterministic: false` gives their results as they come.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * const centred = Dataset.range(4).map((x, { mean }) => x - mean, { captures: { mean: 1.5 } });
   * for await (const x of centred) console.log(x); // -1.5 -0.5 0.5 1.5
   * ```
   */
  map<R, const C extends Captures = Captures>(
    fn: ElementFunction<T, R, C>,
    options: MapOptions<C> = {},
  ): Dataset<Awaited<R>> {
    const { captures, ...how } = options;
    return new Dataset(new MapNode(this.node, new NodeFunction("map", "fn", fn, captures), how));
  }

  /**
   * The elements for which `predicate` returns (or resolves to) true.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * for await (const x of Dataset.range(5).filter((x) => x % 2 === 1)) console.log(x); // 1 3
   * ```
   */
  filter<const C extends Captures = Captures>(
    predicate: ElementFunction<T, boolean | Promise<boolean>, C>,
    options: FunctionOptions<C> = {},
  ): Dataset<T> {
    const fn = new NodeFunction("filter", "predicate", predicate, options.captures);
    return new Dataset(new FilterNode(this.node, fn));
  }

  /**
   * The elements of the datasets that `fn` makes, one dataset after the other.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * const numbers = Dataset.range(4).flatMap((n, { Dataset }) => Dataset.range(n));
   * for await (const x of numbers) console.log(x); // 0 0 1 0 1 2
   * ```
   */
  flatMap<R, const C extends Captures = Captures>(
    fn: ElementFunction<T, Dataset<R> | Promise<Dataset<R>>, C>,
    options: FlatMapOptions<C> = {},
  ): Dataset<R> {
    const { captures, spec } = options;
    return new Dataset(
      new FlatMapNode(this.node, new NodeFunction("flatMap", "fn", fn, captures), spec),
    );
  }

  /**
   * The elements of the datasets that `fn` makes, `cycleLength` (4) of them open at once and
   * `blockLength` (1) elements of each in turn. A dataset that ends makes place for the next when
   * its turn comes again.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * const turns = Dataset.from(["ab", "cd"]).interleave((word, { Dataset }) => Dataset.from(word));
   * for await (const x of turns) console.log(x); // a c b d
   * ```
   */
  interleave<R, const C extends Captures = Captures>(
    fn: ElementFunction<T, Dataset<R> | Promise<Dataset<R>>, C>,
    options: FunctionOptions<C> & InterleaveAttributes = {},
  ): Dataset<R> {
    const { captures, ...how } = options;
    return new Dataset(
      new InterleaveNode(this.node, new NodeFunction("interleave", "fn", fn, captures), how),
    );
  }

  /**
   * `size` consecutive elements at a time, every leaf stacked along a new first axis. Numbers become
   * float64 (or what a spec says), bigints int64. Shapes must agree. A failed element is left out;
   * what was gathered stays.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * for await (const x of Dataset.range(5).batch(2)) console.log(x.toArray()); // [0, 1] [2, 3] [4]
   * ```
   */
  batch<R = Batched<T>>(size: number, options: BatchOptions = {}): Dataset<R> {
    return new Dataset(new BatchNode(this.node, size, options.dropRemainder));
  }

  /**
   * Like `batch`, with every component padded: to `paddedShapes`, where -1 or null (and everything,
   * by default) is the longest of the batch. Padding is 0, "" or `paddingValues`. An element longer
   * than a fixed length is `data_loss`.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * const rows = Dataset.range(1, 3).map((n) => new Float32Array(n).fill(n)).paddedBatch(2);
   * for await (const x of rows) console.log(x.toArray()); // [[1, 0], [2, 2]]
   * ```
   */
  paddedBatch<R = Batched<T>>(size: number, options?: PaddedBatchAttributes): Dataset<R> {
    return new Dataset(new PaddedBatchNode(this.node, size, options));
  }

  /**
   * The rows of every element, one by one. Rows that are scalars are plain values.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * for await (const x of Dataset.range(3).batch(2).unbatch()) console.log(x); // 0 1 2
   * ```
   */
  unbatch<R = Sliced<T>>(): Dataset<R> {
    return new Dataset(new UnbatchNode(this.node));
  }

  /**
   * Elements in random order, each drawn from a buffer of `bufferSize` that is kept full. Another
   * order in every iteration and repetition, unless `reshuffleEachIteration` is false; with a seed
   * (here, or by `withOptions`) the orders themselves repeat from run to run.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * const shuffled = Dataset.range(100).shuffle(100, { seed: 7 });
   * ```
   */
  shuffle(bufferSize: number, options?: ShuffleAttributes): Dataset<T> {
    return new Dataset(new ShuffleNode(this.node, bufferSize, options));
  }

  /**
   * The elements `count` times over; for ever without `count`, or with -1. Over an empty dataset it
   * ends.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * for await (const x of Dataset.range(2).repeat(2)) console.log(x); // 0 1 0 1
   * ```
   */
  repeat(count?: number): Dataset<T> {
    return new Dataset(new RepeatNode(this.node, count));
  }

  /**
   * The first `count` elements; all with -1. Failed ones are not counted.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * for await (const x of Dataset.range(9).take(2)) console.log(x); // 0 1
   * ```
   */
  take(count: number): Dataset<T> {
    return new Dataset(new TakeNode(this.node, count));
  }

  /**
   * All but the first `count` elements; none with -1.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * for await (const x of Dataset.range(4).skip(2)) console.log(x); // 2 3
   * ```
   */
  skip(count: number): Dataset<T> {
    return new Dataset(new SkipNode(this.node, count));
  }

  /**
   * Every `numShards`-th element, beginning with number `index`.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * for await (const x of Dataset.range(7).shard(3, 1)) console.log(x); // 1 4
   * ```
   */
  shard(numShards: number, index: number): Dataset<T> {
    return new Dataset(new ShardNode(this.node, numShards, index));
  }

  /**
   * Keeps the elements in memory after the first complete pass without errors; later iterations of
   * this dataset read them from there.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * const squares = Dataset.range(1000).map((x) => x * x).cache().repeat(3);
   * ```
   */
  cache(): Dataset<T> {
    return new Dataset(new CacheNode(this.node));
  }

  /**
   * Reads up to `n` elements ahead of the consumer and no further. `AUTOTUNE`: a modest number,
   * bounded in bytes.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * const batches = Dataset.range(100).batch(10).prefetch(2);
   * ```
   */
  prefetch(n: number): Dataset<T> {
    return new Dataset(new PrefetchNode(this.node, n));
  }

  /**
   * These elements, then those of `other`, which must be of the same structure.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * for await (const x of Dataset.range(2).concatenate(Dataset.range(1))) console.log(x); // 0 1 0
   * ```
   */
  concatenate<O = T>(other: Dataset<O>): Dataset<T | O> {
    const node = nodeIn("concatenate", "other", other);
    return new Dataset(new ConcatenateNode(this.node, node));
  }

  /**
   * Pairs with the elements of `other`; ends with the shorter.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * const pairs = Dataset.range(2).zip(Dataset.from(["a", "b"]));
   * for await (const [x, y] of pairs) console.log(x, y); // 0 a, 1 b
   * ```
   */
  zip<O>(other: Dataset<O>): Dataset<[T, O]> {
    return new Dataset(new ZipNode([this.node, nodeIn("zip", "other", other)], null));
  }

  /**
   * Elements with their numbers, from `start`.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * for await (const [i, x] of Dataset.from(["a"]).enumerate(5)) console.log(i, x); // 5 a
   * ```
   */
  enumerate(start?: number): Dataset<[number, T]> {
    return new Dataset(new EnumerateNode(this.node, start));
  }

  /**
   * Gathers elements by `key` into windows of `windowSize`, and gives the elements of what `reduce`
   * makes of each. Windows that are not full at the end come in increasing order of their keys.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * const byParity = Dataset.range(6).groupByWindow({
   *   key: (x) => x % 2,
   *   reduce: (_key, window) => window.batch(2),
   *   windowSize: 2,
   * });
   * for await (const x of byParity) console.log(x.toArray()); // [0, 2] [1, 3] [4] [5]
   * ```
   */
  groupByWindow<R, const C extends Captures = Captures>(
    options: GroupByWindowOptions<T, R, C>,
  ): Dataset<R> {
    const { key, reduce, windowSize, captures } = options;
    const bind = (argument: string, fn: unknown) =>
      new NodeFunction("groupByWindow", argument, fn, captures);
    return new Dataset(
      new GroupByWindowNode(
        this.node,
        bind("key", key),
        bind("reduce", reduce),
        typeof windowSize === "number" ? windowSize : bind("windowSize", windowSize),
      ),
    );
  }

  /**
   * Batches of elements of like length: bucket i holds lengths from `boundaries[i - 1]`, inclusive,
   * to `boundaries[i]`, exclusive, and gives padded batches of `batchSizes[i]`. With
   * `padToBucketBoundary` they are padded to the boundary less one, and longer elements are errors;
   * with `noPadding` shapes must agree.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * const batches = Dataset.range(1, 9).map((n) => new Int32Array(n)).bucketBySequenceLength({
   *   length: (x) => x.length,
   *   boundaries: [4],
   *   batchSizes: [3, 2],
   * });
   * for await (const x of batches) console.log(x.shape); // [3, 3] [2, 5] [2, 7] [1, 8]
   * ```
   */
  bucketBySequenceLength<const C extends Captures = Captures, R = Batched<T>>(
    options: BucketOptions<T, C>,
  ): Dataset<R> {
    const { length, captures, ...how } = options;
    const fn = new NodeFunction("bucketBySequenceLength", "length", length, captures);
    return new Dataset(new BucketBySequenceLengthNode(this.node, fn, how));
  }

  /**
   * `fn` of this dataset: for pipelines in parts.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
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
   * Sets options for the whole pipeline; what is set later in the chain wins.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * const noisy = Dataset.range(3).map((x, { random }) => x + random.next()).withOptions({ seed: 1 });
   * ```
   */
  withOptions(options: DatasetOptions): Dataset<T> {
    return new Dataset(new OptionsNode(this.node, options));
  }

  /**
   * Folds all elements into one value; rejects at the first error.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * console.log(await Dataset.range(5).reduce(0, (sum, x) => sum + x)); // 10
   * ```
   */
  async reduce<S, const C extends Captures = Captures>(
    initial: S,
    fn: UserFunction<(state: S, element: T, extra: Extra<C>) => S | Promise<S>>,
    options: FunctionOptions<C> = {},
  ): Promise<S> {
    const bound = new NodeFunction("reduce", "fn", fn, options.captures);
    return await reduceGraph(this.node, initial, bound, { epoch: this.#iterations++ }) as S;
  }

  /**
   * Has everything before this point run by the workers of a service; what comes after runs here.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * const batches = Dataset.range(1000).batch(10).distribute({
   *   service: "ws://127.0.0.1:5050",
   *   processingMode: "DYNAMIC",
   * });
   * ```
   */
  distribute(options: DistributeOptions): Dataset<T> {
    return new Dataset(new DistributeNode(this.node, options));
  }

  /**
   * Starts iterating. The iterator goes on after a failed element, and says what it has done.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * await using iterator = Dataset.range(2).iterator();
   * console.log(await iterator.next()); // { done: false, value: 0 }
   * ```
   */
  iterator(): DatasetIterator<T> {
    return openIterator<T>(this.node, { epoch: this.#iterations++ });
  }

  [Symbol.asyncIterator](): DatasetIterator<T> {
    return this.iterator();
  }

  /**
   * Structure, dtypes and shapes of the elements, as far as they are known before running.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * console.log(Dataset.range(10).batch(4).elementSpec); // TensorSpec { dtype: "float64", shape: [null] }
   * ```
   */
  get elementSpec(): ElementSpec {
    return this.node.elementSpec;
  }

  /**
   * The number of elements: exact, `Infinity`, or `UNKNOWN_CARDINALITY` (-2).
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * console.log(Dataset.range(10).batch(4).cardinality()); // 3
   * ```
   */
  cardinality(): number {
    return this.node.cardinality;
  }

  /**
   * The dataset as bytes, for another thread or host. Its functions must be able to travel:
   * references made by `udf()`, or self-contained ones; `failed_precondition` names what a function
   * takes from around it.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * const bytes = Dataset.range(3).map((x) => x + 1).serialize();
   * for await (const x of Dataset.deserialize(bytes)) console.log(x); // 1 2 3
   * ```
   */
  serialize(): Uint8Array {
    return serializeGraph(this.node);
  }

  /**
   * The dataset that `serialize()` wrote. Functions in it are code: take it only from where you would
   * take a program. `invalid_argument` for any other bytes.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * console.log(Dataset.deserialize(Dataset.range(3).serialize()).cardinality()); // 3
   * ```
   */
  static deserialize(bytes: Uint8Array): Dataset<unknown> {
    return new Dataset(deserializeGraph(bytes));
  }

  /**
   * A digest of the graph, 64 hexadecimal digits: equal for equal pipelines, functions' sources and
   * modules' URLs included. Errors as `serialize()`.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * console.log(Dataset.range(3).fingerprint() === Dataset.range(3).fingerprint()); // true
   * ```
   */
  fingerprint(): string {
    return fingerprintGraph(this.node);
  }

  /**
   * The graph in words: operators, arguments, what is known of elements and their number.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * console.log(String(Dataset.range(10).batch(4).explain()));
   * ```
   */
  explain(): Explanation {
    return new Explanation(this.node);
  }
}

/** What file sources read: a path, several, or a dataset of paths. */
export type Files = string | readonly string[] | Dataset<string>;

function unwrap(files: Files): unknown {
  return nodeOf(files) ?? files;
}

function nodeIn(operator: string, argument: string, value: unknown): DatasetNode {
  const node = nodeOf(value);
  if (node === undefined) throw notDataset(operator, argument, value);
  return node;
}

function notDataset(operator: string, argument: string, value: unknown): LeatError {
  return new LeatError(
    "invalid_argument",
    `${operator}: ${argument} must be a Dataset, got ${show(value)}`,
  );
}

installFacade({ Dataset, wrap: (node) => new Dataset(node) });
