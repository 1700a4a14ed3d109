/**
 * Runners run a task's pipeline apart from the actor that serves its elements. A user function that
 * spins keeps a runner busy, never a worker's mailbox or a socket.
 */
import { LeatError, type WireError } from "../../../core/error.ts";
import type { WirePolicy } from "../../../data/sharding/custom_policy.ts";
import type { Shard, ShardingMode } from "../../../data/sharding/sharding_policy.ts";
import type { Split } from "../../../data/sharding/splits.ts";
import type { SplitBounds } from "../../../data/sharding/split_table.ts";
import type { ReadingTask } from "../../../data/service/reading_task.ts";
import type { DistributedSaveSettings, SaveWork } from "../../../data/saved/distributed/work.ts";
import type { FrameCodec } from "../../../transport/compression.ts";

/** What to run. Plain data: it is sent to the runner's thread. */
export interface RunnerSettings {
  /** `Dataset.serialize()`. */
  readonly graph: Uint8Array;
  /** A name for log and error messages. Default: none. */
  readonly name?: string;
  /** The iteration's seed, 16 hexadecimal digits; a seed in the pipeline takes precedence. */
  readonly seed: string;
  /** Makes random numbers differ between tasks with different elements; 0: all tasks draw the same. */
  readonly task?: number;
  /** Counts the iterations of the job. */
  readonly epoch: number;
  /** Whether sources read only assigned splits. */
  readonly splits: boolean;
  /** Static policies: the part of the pipeline to run. */
  readonly shard?: RunnerShard;
  /** Whether elements are written to memory that several threads may read. */
  readonly shared: boolean;
  /** What is saved and where, for a pipeline whose elements go to files. */
  readonly save?: DistributedSaveSettings;
  /** The task whose pipeline it is. Left out: it belongs to no task. */
  readonly forTask?: ReadingTask;
}

/** A worker's shard of a pipeline. */
interface RunnerShard extends Shard {
  readonly mode: ShardingMode;
  /** CUSTOM: which policy. */
  readonly policy?: WirePolicy;
}

/** A split of an ordered chain, which runs as a dataset of its own. */
export type OnlySplit = Split & {
  /** Its position in its table. */
  readonly index: number;
  /** The assignment's number in the task: a split that is assigned again runs again. */
  readonly grant: number;
};

/** A step other than the pipeline's next one: of one split alone, or a piece of a save. */
export type OwnStep = OnlySplit | SaveWork;

export interface CompressionWish {
  readonly codec: FrameCodec;
  /** Compress only a part of the element, to measure the gain, and send it uncompressed. */
  readonly isTrial: boolean;
}

/** The result of compressing, even if the element is then sent uncompressed. */
export interface CompressionTrial {
  /** Bytes of what was compressed: the element, or a part of it. */
  readonly bytes: number;
  readonly compressedBytes: number;
  readonly ms: number;
}

/**
 * One step of a pipeline. A frame lies at the end of a buffer of its own. A frame that compression
 * would not shrink stays uncompressed.
 */
export type RunnerOutcome =
  | { readonly kind: "element"; readonly frame: Uint8Array; readonly trial?: CompressionTrial }
  /** `isFinal`: reading cannot continue; every later step gets this answer. */
  | { readonly kind: "error"; readonly error: WireError; readonly isFinal?: true }
  /** The last rows of an {@linkcode OnlySplit}, if they do not fill a batch; the end is next. */
  | { readonly kind: "remainder"; readonly frame: Uint8Array; readonly trial?: CompressionTrial }
  | { readonly kind: "end" };

/** The `details.reason` of a failure that ends a task: the dispatcher gives it no splits any more. */
export const TASK_FENCED = "task_fenced";

export interface RunnerSplits {
  /**
   * The next split of a source, or null when no splits remain in the repetition.
   * @throws {LeatError} with {@linkcode TASK_FENCED} if the task gets no splits any more.
   */
  next(source: number, repetition: number): Promise<Split | null>;
  total(source: number): Promise<number>;
  /**
   * Encoded `GivenElements` of a split, from element `from` on, which the reader of the task sends.
   * Left out: the task has no reader that sends any.
   */
  read?(split: number, from: number): Promise<Uint8Array>;
}

/** For a pipeline that requests no splits. Each piece of a save names its splits. */
export const NO_SPLITS: RunnerSplits = {
  next: () => Promise.resolve(null),
  total: () => Promise.resolve(0),
};

/** @throws {LeatError} `failed_precondition` if the task has no reader that sends elements. */
export async function givenBy(
  splits: RunnerSplits | undefined,
  split: number,
  from: number,
): Promise<Uint8Array> {
  if (splits?.read !== undefined) return await splits.read(split, from);
  throw new LeatError("failed_precondition", "This task has no reader that sends elements");
}

export interface Runner {
  /**
   * The next element, encoded. An element that fails is an outcome, not a rejection. Calls may
   * overlap and are answered in order.
   * @param ownStep A step of this split alone, or a piece of a save. Several splits may be under way;
   *   each runs once.
   * @param wish Whether to compress the element. Default: no.
   * @throws LeatError `unavailable` when the runner itself died: its position in the data is lost.
   */
  next(ownStep?: OwnStep, wish?: CompressionWish): Promise<RunnerOutcome>;
  /** Gives back the memory of an element that was delivered, for later elements. */
  recycle?(buffer: ArrayBuffer): void;
  /** Bytes its pipeline has read from files so far. */
  readonly bytesRead: number;
  /** Stops the pipeline at once, whatever it is doing. Idempotent. */
  dispose(): void;
}

/** Who needs a pipeline or its splits. */
export interface RunnerCaller {
  /** The identity whose job it is. Identities take turns. */
  readonly owner: string;
  /**
   * Resolves when somebody waits for an element. Until then, what somebody waits for may start first.
   * Left out: somebody waits already.
   */
  readonly asked?: Promise<void>;
}

/** What processes of runners use in addition to the worker's own process. */
export interface RunnerUsage {
  /** CPU time of all of them since the beginning, ended ones included. */
  readonly cpuSeconds: number;
  /** Resident memory of the running ones. */
  readonly memoryBytes: number;
}

export interface RunnerFactory {
  /** Threads that still run long after they were told to end; left out: there can be none. */
  readonly runaways?: number;
  /** Usage of processes of runners, ended ones included; left out: there are none. */
  readonly usage?: RunnerUsage;
  /** Starts a pipeline; it begins to work at the first `next()`. */
  start(settings: RunnerSettings, splits: RunnerSplits, caller?: RunnerCaller): Runner;
  /** Lists a pipeline's splits; pending work stops with `signal`. @throws LeatError */
  listSplits(graph: Uint8Array, signal?: AbortSignal, caller?: RunnerCaller): Promise<SplitBounds>;
  /** Disposes all runners and releases their threads. */
  close(): Promise<void>;
}
