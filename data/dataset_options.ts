/**
 * The options and function types in the signatures of `Dataset`'s methods, where several operators
 * share them or they name `Dataset` itself. Other options are next to their operators.
 */
import type { Dataset } from "./dataset.ts";
import type { PaddedShapes, PaddingValues } from "./elements/padding.ts";
import type { ElementSpec } from "./elements/spec.ts";
import type { LoadWait } from "./saved/tail_load.ts";
import type { SaveProgress } from "./saved/save.ts";
import type { FunctionExtra } from "./udf/call.ts";
import type { Captures, UserFunction } from "./udf/user_function.ts";

/** The last argument of every user function: what the engine provides, and the captures by name. */
export type Extra<C extends Captures = Captures> =
  & Omit<FunctionExtra, "Dataset">
  & { readonly Dataset: typeof Dataset }
  & C;

/** A function of an element, or a reference to one made by `udf()`. */
export type ElementFunction<T, R, C extends Captures> = UserFunction<
  (element: T, extra: Extra<C>) => R
>;

/** What file sources read: a path, several paths, or a dataset of paths. */
export type FilePaths = string | readonly string[] | Dataset<string>;

/** Changes a pipeline before it is registered with a service. Runs at once, in this process. */
export type Rewrite<T, R = T> = (dataset: Dataset<T>) => Dataset<R>;

/** Datasets in nested arrays and objects: the argument of `zip`. */
export type Datasets =
  | readonly (Dataset<unknown> | Datasets)[]
  | { readonly [component: string]: Dataset<unknown> | Datasets };

/** The elements of `zip`: the structure of its argument, with an element for each dataset. */
export type Zipped<D> = {
  -readonly [K in keyof D]: D[K] extends Dataset<infer E> ? E
    : D[K] extends Datasets ? Zipped<D[K]>
    : never;
};

/** Options of operators that only call a function: `takeWhile`, `fromGenerator`, `reduce`. */
export interface FunctionOptions<C extends Captures> {
  /** Values that the function gets by name in its last argument. Default: none. */
  readonly captures?: C;
}

/** Options of `map`. */
export interface MapOptions<C extends Captures> extends FunctionOptions<C> {
  /** At most this many calls at once, or `AUTOTUNE`. Default 1. */
  readonly numParallelCalls?: number;
  /** Whether parallel calls keep the order of elements. Default: as `withOptions` says (true). */
  readonly deterministic?: boolean;
  /**
   * The spec of the function's results, for `elementSpec` and the dtype of batched numbers. A result
   * of another dtype, shape or structure fails with `invalid_argument`. A part that is `undefined`,
   * and a length of null, accept anything. Default: unknown.
   */
  readonly spec?: ElementSpec;
}

/** Options of `filter`. */
export interface FilterOptions<C extends Captures> extends FunctionOptions<C> {
  /** At most this many calls at once, or `AUTOTUNE`. Default 1. */
  readonly numParallelCalls?: number;
  /** Whether parallel calls keep the order of elements. Default: as `withOptions` says (true). */
  readonly deterministic?: boolean;
}

/** Options of `flatMap` and `scan`. */
export interface FlatMapOptions<C extends Captures> extends FunctionOptions<C> {
  /**
   * The spec of the resulting elements, for `elementSpec` and the dtypes of batches. Default:
   * unknown.
   */
  readonly spec?: ElementSpec;
}

/** Options of `interleave`. */
export interface InterleaveOptions<C extends Captures> extends FlatMapOptions<C> {
  /** How many datasets are open at once. Default, and for `AUTOTUNE`: 4. */
  readonly cycleLength?: number | undefined;
  /** How many elements in a row come from one dataset. Default 1. */
  readonly blockLength?: number | undefined;
  /** How many elements are fetched at once, or `AUTOTUNE`. Default: one, on demand. */
  readonly numParallelCalls?: number | undefined;
  /** Whether parallel fetches keep the order. Default: as `withOptions` says (true). */
  readonly deterministic?: boolean | undefined;
}

/** Options of `groupByWindow`. */
export interface GroupByWindowOptions<T, R, C extends Captures> extends FunctionOptions<C> {
  /** The key of an element: an integer. */
  readonly key: UserFunction<(element: T, extra: Extra<C>) => number | bigint | Promise<number>>;
  /** Turns a window into a dataset. It may iterate the window several times. */
  readonly reduce: UserFunction<
    (key: number, window: Dataset<T>, extra: Extra<C>) => Dataset<R> | Promise<Dataset<R>>
  >;
  /** The number of elements that fill a window, or a function of the key that returns it. */
  readonly windowSize: number | UserFunction<(key: number, extra: Extra<C>) => number>;
}

/** Options of `groupByReducer`. */
export interface GroupByReducerOptions<T, S, R, C extends Captures> extends FlatMapOptions<C> {
  /** The key of an element: an integer. */
  readonly key: UserFunction<(element: T, extra: Extra<C>) => number | bigint | Promise<number>>;
  /** The state of a key before its first element. */
  readonly init: UserFunction<(key: number, extra: Extra<C>) => S | Promise<S>>;
  /** The state after an element. It must not change the state it is given. */
  readonly reduce: UserFunction<(state: S, element: T, extra: Extra<C>) => S | Promise<S>>;
  /** The element made of the last state of a key. Default: the state itself. */
  readonly finalize?: UserFunction<(state: S, key: number, extra: Extra<C>) => R | Promise<R>>;
}

/** Options of `bucketBySequenceLength`. */
export interface BucketBySequenceLengthOptions<T, C extends Captures> extends FunctionOptions<C> {
  /** The length of an element. */
  readonly length: UserFunction<(element: T, extra: Extra<C>) => number | Promise<number>>;
  /** Increasing lengths: bucket i holds lengths from `boundaries[i - 1]` to `boundaries[i]` - 1. */
  readonly boundaries: readonly number[];
  /** The batch size of each bucket: one more than there are boundaries. */
  readonly batchSizes: readonly number[];
  /** The shape that each component is padded to, as in `paddedBatch`. Default: the largest. */
  readonly paddedShapes?: PaddedShapes | undefined;
  /** The values to pad with: one, or one per component. Default: 0, `false` or `""`. */
  readonly paddingValues?: PaddingValues | undefined;
  /** Pads to the bucket's boundary less one; longer elements are errors. Default false. */
  readonly padToBucketBoundary?: boolean | undefined;
  /** Pads nothing: elements of a batch must have equal shapes. Default false. */
  readonly noPadding?: boolean | undefined;
  /** Drops the last batch of a bucket if it is not full. Default false. */
  readonly dropRemainder?: boolean | undefined;
}

/** Options of `sampleFromDatasets`. */
export interface SampleFromDatasetsOptions {
  /**
   * How often each dataset is drawn, relative to the others; a dataset of such arrays varies it.
   * Default: all equally often.
   */
  readonly weights?: readonly number[] | Dataset<unknown>;
  /** The seed of the draws. Default: derived from that of `withOptions`. */
  readonly seed?: number | bigint | undefined;
  /** Whether every iteration and repetition makes new draws. Default false. */
  readonly rerandomizeEachIteration?: boolean | undefined;
  /** Ends when the drawn dataset has no more elements; otherwise the others continue. Default false. */
  readonly stopOnEmptyDataset?: boolean | undefined;
}

/** Options of `rejectionResample`. */
export interface RejectionResampleOptions<T, C extends Captures> extends FunctionOptions<C> {
  /** The class of an element: an index into `targetDist`. */
  readonly classOf: ElementFunction<T, number | bigint | Promise<number | bigint>, C>;
  /** The wanted frequency of each class, relative to the others. */
  readonly targetDist: readonly number[];
  /** The actual frequency of each class. Default: estimated from the elements so far. */
  readonly initialDist?: readonly number[] | undefined;
  /** The seed of the draws. Default: derived from that of `withOptions`. */
  readonly seed?: number | bigint | undefined;
}

/** Options of `save`. */
export interface SaveOptions<T, C extends Captures> extends FunctionOptions<C> {
  /** Assigns elements to shards, numbered from 0 to at most 1023. Default: one shard. */
  readonly shardFunc?: ElementFunction<T, number | bigint | Promise<number>, C>;
  /** Default: no compression. */
  readonly compression?: "gzip" | undefined;
  /** Whether to replace a saved dataset; otherwise that is `already_exists`. Default false. */
  readonly overwrite?: boolean | undefined;
  /**
   * Size in bytes after which a new file begins; workers divide the reading by files. Default 256
   * MiB.
   */
  readonly chunkBytesMax?: number | undefined;
  /** Called whenever bytes were written, and at the end. */
  readonly onProgress?: ((progress: SaveProgress) => void) | undefined;
}

/** Options of `load`. */
export interface LoadOptions<T, R> {
  /** Combines the datasets of the shards. Default: one shard after the other. */
  readonly readerFunc?: (shards: Dataset<Dataset<T>>) => Dataset<R>;
  /** Whether to read elements while they are being written, or before that began. Default false. */
  readonly wait?: boolean | LoadWait;
}

/** Options of `snapshot`. */
export interface SnapshotOptions<T, R, C extends Captures> extends FunctionOptions<C> {
  /** Default: no compression. */
  readonly compression?: "gzip";
  /** Assigns elements to shards, numbered from 0 to at most 1023. Default: one shard. */
  readonly shardFunc?: ElementFunction<T, number | bigint | Promise<number>, C>;
  /** Combines the datasets of the shards. Default: one shard after the other. */
  readonly readerFunc?: ElementFunction<Dataset<Dataset<T>>, Dataset<R> | Promise<Dataset<R>>, C>;
}

/** Options of `deserialize`. */
export interface DeserializeOptions {
  /**
   * Whether to trust the author of the pipeline like the author of this program: its functions then
   * run in this process, with all its permissions. Default false: they run in a confined process.
   */
  readonly trustPipeline?: boolean;
}
