/** The options of an iteration, and of its contexts. */
import type { RandomStream } from "../core/philox.ts";
import type { TunerOptions, TuningPolicy } from "./autotune/tuner.ts";
import type { SavedIteration } from "./checkpoint/saving.ts";
import type { IteratorContext } from "./context.ts";
import type { BatchMemory } from "./elements/batch_rows.ts";
import type { ForeignRunner } from "./foreign/foreign_runners.ts";
import type { Host } from "./host.ts";
import type { Rules } from "./optimizer/options.ts";
import type { FirstNumbers, OperatorInstance } from "./operator_instances.ts";
import type { LastReaders } from "./service/last_readers.ts";
import type { SplitSource } from "./sharding/splits.ts";
import type { ThreadOptions } from "./threads/cores.ts";

/** Options for Leat's own code that runs a pipeline, such as a worker's task or a test. */
export interface IterationOptions {
  /** Default: the installed host. */
  readonly host?: Host;
  /** Overrides the seed of `withOptions`. */
  readonly seed?: bigint;
  /**
   * Gives this task other random numbers than other tasks that run the same dataset get. Default 0.
   */
  readonly salt?: bigint;
  /** Makes functions draw other random numbers than in tasks with other elements. Default 0. */
  readonly task?: number;
  /** Counts the iterations of the dataset. Default 0. */
  readonly epoch?: number;
  /** The number of the split that runs as a dataset of its own. Default 0. */
  readonly split?: number;
  /** As in {@linkcode RootOptions}. */
  readonly needsOrder?: boolean;
  /** As in {@linkcode RootOptions}. */
  readonly isReadOnly?: boolean;
  /** As in {@linkcode RootOptions}. */
  readonly first?: FirstNumbers;
  /** Settings of the iteration that this one is a part of. Default: those of the graph. */
  readonly settings?: Settings | undefined;
  /** Where the splits to read come from; without it sources are read whole. */
  readonly splits?: SplitSource;
  /**
   * Memory for batches that other iterations share, such as those of other splits. Default: its
   * own.
   */
  readonly batchMemory?: BatchMemory | undefined;
  /** The identities under which the dataset's iterations have read streams. Default: none. */
  readonly lastReaders?: LastReaders;
  /** As in {@linkcode RootOptions}. */
  readonly within?: IteratorContext;
  /** Called with the epoch and the reader identities of a restored iteration: the next one needs them. */
  readonly onRestored?: (epoch: number, lastReaders: LastReaders) => void;
  /** Closes the iterator at the first element that fails. */
  readonly closesAtError?: boolean;
  /** Sets the values of `AUTOTUNE`, for tests. Default: the model decides. */
  readonly tuningPolicy?: TuningPolicy;
  /** Rejects with the `ReadingFailure` itself, so that callers can tell it from an element's error. */
  readonly keepsReadingFailures?: boolean;
}

/** An iteration's random state, as checkpoints save it. */
export type Coordinates = Omit<SavedIteration, "shared" | "state" | "ahead">;

/** The random state of a whole iteration; operators and elements derive theirs from it. */
export interface RandomState {
  /** The stream that all others are forked from; created on demand. */
  readonly root: () => RandomStream;
  /** Whether the user chose the seed; otherwise it was drawn for this iteration. */
  readonly seeded: boolean;
  /** The seed that the pipeline's `withOptions` sets, if one does. Default: none. */
  readonly chosenSeed?: bigint | undefined;
  /** Distinguishes a task from others that run the same dataset with the same seed; else 0. */
  readonly salt: bigint;
  /** Counts the iterators made from a dataset, and its repetitions. */
  readonly epoch: number;
  /** The number of the split that runs as a dataset of its own; else 0. */
  readonly split: number;
  /** Makes functions draw other random numbers than in tasks with other elements. Default 0. */
  readonly task?: number;
}

/** How the contexts of an iteration are made. */
export interface RootOptions extends ThreadOptions {
  readonly randomState: RandomState;
  /** Whether operators keep the order unless they say otherwise. */
  readonly deterministic: boolean;
  /**
   * Whether the order of elements is needed. Then `withOptions` cannot leave it, and datasets that
   * functions make keep it even if they say otherwise, and must not read from a service in no fixed
   * order. Operators of the graph may. Default false.
   */
  readonly needsOrder?: boolean | undefined;
  /**
   * Whether the reader changes no element in place. Then it needs no copies of the elements that
   * operators keep. Default false.
   */
  readonly isReadOnly?: boolean | undefined;
  /** How `AUTOTUNE` chooses. Default: it keeps its first values. */
  readonly tuning?: TunerOptions | undefined;
  /** The rules of static optimisation. Default: all. */
  readonly rules?: Rules | undefined;
  readonly splits?: SplitSource | undefined;
  readonly batchMemory?: BatchMemory | undefined;
  /** The dataset's last readers. Default: those of this iteration alone. */
  readonly lastReaders?: LastReaders | undefined;
  /** The iteration that contains this one: one process runs the foreign functions of both. */
  readonly within?: IteratorContext | undefined;
  /** The numbers of the last operator. Default: 0. */
  readonly first?: FirstNumbers | undefined;
}

/** The settings of an iteration that do not change its elements. */
export type Settings = Pick<RootOptions, "tuning" | "rules" | "threads" | "cores">;

/** See `IteratorContext.delegation`. */
export interface Delegation {
  readonly options: RootOptions;
  readonly host: Host;
  readonly deterministic: boolean;
  readonly instance: OperatorInstance;
  /** Returns the runner of the iteration; the first call starts it. */
  readonly start: () => ForeignRunner;
  /** The context, for this epoch, of an operator below that stays in this process. */
  readonly contextOf: (instance: OperatorInstance, epoch: number) => IteratorContext;
}
