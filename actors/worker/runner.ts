/**
 * Runners: where a task's pipeline runs, apart from the actor that serves its elements. A user
 * function that spins keeps a runner busy, never a worker's mailbox or a socket.
 *
 * @module
 */
import type { WireError } from "../../core/error.ts";
import type { WirePolicy } from "../../data/sharding/custom_policy.ts";
import type { Shard, ShardingMode } from "../../data/sharding_policy.ts";
import type { Split, SplitTable } from "../../data/splits.ts";
import type { JointSaveSettings, SaveWork } from "../../data/stored/joint/work.ts";
import type { FrameCodec } from "../../transport/compression.ts";

/** What to run. Plain data: it travels to a runner's thread. */
export interface RunnerSettings {
  /** `Dataset.serialize()`. */
  readonly graph: Uint8Array;
  /** What people know it by. Default: nothing. */
  readonly name?: string;
  /** The seed of the iteration, 16 hexadecimal digits; it gives way to a seed the pipeline names. */
  readonly seed: string;
  /** Sets the luck of its functions apart from that of tasks that have other elements; 0: not at all. */
  readonly task?: number;
  /** Counts the iterations of the job. */
  readonly epoch: number;
  /** Whether sources read only the splits they are handed. */
  readonly splits: boolean;
  /** Static policies: the part of the pipeline that is run. */
  readonly shard?: RunnerShard;
  /** Whether elements are to lie in memory that several threads may read. */
  readonly shared: boolean;
  /** What is saved and where, for a pipeline whose elements go to files. */
  readonly save?: JointSaveSettings;
}

/** A worker's part of a pipeline. */
export interface RunnerShard extends Shard {
  readonly mode: ShardingMode;
  /** CUSTOM: which policy. */
  readonly policy?: WirePolicy;
}

/** A split of an ordered chain, which is run as a dataset of its own. */
export type OnlySplit = Split & {
  /** Its place in its table. */
  readonly index: number;
  /** Which of all that the task was handed: the same split may come again, and is run again then. */
  readonly grant: number;
};

/** A step that is not simply the next one of the pipeline: of one split alone, or a piece of a save. */
export type OwnStep = OnlySplit | SaveWork;

/** How an element is to be compressed. */
export interface CompressionWish {
  readonly codec: FrameCodec;
  /** Only tried, on a part of the element, to learn what it would bring; it is left as it is. */
  readonly isTrial: boolean;
}

/** What compressing has brought, whether the element was left as it is or not. */
export interface CompressionTrial {
  /** Of what was compressed: the element, or a part of it. */
  readonly bytes: number;
  readonly compressedBytes: number;
  readonly ms: number;
}

/**
 * One step of a pipeline. A frame lies at the end of a buffer of its own. One that compressing would
 * not make smaller is left as it is.
 */
export type RunnerOutcome =
  | { readonly kind: "element"; readonly frame: Uint8Array; readonly trial?: CompressionTrial }
  /** `isFinal`: no element's, but why reading cannot go on; every step after it is answered alike. */
  | { readonly kind: "error"; readonly error: WireError; readonly isFinal?: true }
  /** The last rows of such a split, as a batch, where they do not fill one; the end is next. */
  | { readonly kind: "remainder"; readonly frame: Uint8Array; readonly trial?: CompressionTrial }
  | { readonly kind: "end" };

/** Hands splits to a runner. */
export interface RunnerSplits {
  /** The next split of a source, or null when the repetition has no more for anybody. */
  next(source: number, repetition: number): Promise<Split | null>;
  /** How many splits the source has in all. */
  total(source: number): Promise<number>;
}

/** A pipeline that runs. */
export interface Runner {
  /**
   * The next element, encoded. Calls may overlap and are answered in order. An element that fails is
   * an outcome, not a rejection.
   *
   * @param only of this split alone, instead of what the sources are handed. Several may be under way;
   * each is run once, and has ended for good when it has. Or a piece of work of a save: the "element"
   * says what came of it.
   * @param wish What to do about compressing the element; left out: nothing.
   *
   * @throws LeatError `unavailable` when the runner itself died: its place in the data is lost.
   */
  next(only?: OwnStep, wish?: CompressionWish): Promise<RunnerOutcome>;
  /** Bytes its pipeline has read from files so far. */
  readonly bytesRead: number;
  /** Stops the pipeline, at once and whatever it is doing. Idempotent. */
  dispose(): void;
}

/** What processes of runners use beside the worker's own process. */
export interface RunnerUsage {
  /** Processor time of all of them since the beginning, those that have ended included. */
  readonly cpuSeconds: number;
  /** Resident memory of those that are there. */
  readonly memoryBytes: number;
}

/** Makes runners. */
export interface RunnerFactory {
  /** How many threads run on that were told to end long ago; left out: there can be none. */
  readonly runaways?: number;
  /** What the processes of runners use, and those that have ended have used; left out: there are none. */
  readonly usage?: RunnerUsage;
  /** Starts a pipeline; it begins to work at the first `next()`. */
  start(settings: RunnerSettings, splits: RunnerSplits): Runner;
  /**
   * Lists the splits of a pipeline's sources.
   *
   * @param signal Nobody waits for them any more: what has not begun need not begin.
   * @throws LeatError what the listing failed with.
   */
  listSplits(graph: Uint8Array, signal?: AbortSignal): Promise<SplitTable>;
  /** Disposes all runners and lets go of their threads. */
  close(): Promise<void>;
}
