/** The interface to the threads that call functions of pipelines. The host provides it. */
import type { PhiloxBlock } from "../../core/philox.ts";
import type { Budgets } from "../autotune/hill_climbing.ts";
import type { RandomState } from "../iteration_options.ts";
import type { IteratorStats } from "../iterators/stats.ts";
import type { RuleName } from "../optimizer/options.ts";
import type { CallContext } from "../udf/call.ts";
import type { FirstNumbers } from "../operator_instances.ts";
import type { PackedError } from "./packed_error.ts";

/** A function of one operator in one iteration, for other threads. Plain data. */
export interface ThreadFunction extends Pick<CallContext, "randomState" | "readsSplits"> {
  /** The function and its captures (`WireFunction`), packed. */
  readonly fn: unknown;
  /** The name of the operator's random stream. Call i gets its fork i. */
  readonly random: PhiloxBlock;
  /** The operator, for error messages. */
  readonly operator: string;
  readonly number: number;
}

/** Calls that go to a thread together. */
export interface CallBlock {
  /** The number of each call. */
  readonly indexes: readonly number[];
  /** The element of each call, packed. */
  readonly elements: readonly unknown[];
  /** Buffers of the elements, which move to the thread. */
  readonly buffers: readonly ArrayBuffer[];
}

/** What a call gave: a packed result, an error, or the reason why its result cannot be sent. */
export type CallOutcome =
  | { readonly value: unknown }
  | { readonly error: PackedError }
  | { readonly obstacle: string };

export interface BlockOutcome {
  readonly outcomes: readonly CallOutcome[];
  /** How long the thread worked on the block, in ms. */
  readonly tookMs: number;
  /** Whether a call returned a promise. */
  readonly waited: boolean;
}

/** How many threads may work at once. Both may change while the pipeline runs. */
export interface ThreadLimits {
  /** The limit that all operators of an iteration share: the same object for all of them. */
  readonly pipeline: { readonly threads: number };
  /** The limit of the operator: `numParallelCalls`. */
  readonly operator: { readonly value: number };
}

export type BlockDepth = number | "alone";

/** A function that threads can call. */
export interface OpenFunction {
  /** Resolves once a thread has loaded it; rejects with the reason why none can. */
  readonly ready: Promise<void>;
  /**
   * Calls it on the first thread that is free. If the thread ends, a block that was the only one there
   * rejects with `internal`, because it ended the thread. If there were several, any of them may have
   * ended it, because calls that wait overlap: all of them reject with `unavailable`. In both cases the
   * calls may be repeated.
   *
   * @param depth How many blocks of this function one thread may hold, running ones included.
   *   `"alone"`: the thread gets this block only when it has no others, and no others until it is done.
   */
  run(block: CallBlock, depth: BlockDepth): Promise<BlockOutcome>;
  /**
   * Drops blocks that no thread has begun (their promises never settle), and lets the threads forget the
   * function. Idempotent.
   */
  close(): void;
}

/** A part of a pipeline for a thread of its own: an operator and all below it. Plain data. */
export interface Segment {
  readonly graph: Uint8Array;
  /** The states that its nodes share with other iterations, encoded. */
  readonly shared: Uint8Array;
  readonly randomState: Omit<RandomState, "root"> & { readonly root: PhiloxBlock };
  readonly deterministic: boolean;
  readonly needsOrder: boolean;
  /** The budgets of `AUTOTUNE`; undefined if it is off. */
  readonly budgets: Budgets | undefined;
  readonly rules: readonly RuleName[];
  /** The number of its last operator in the whole graph. */
  readonly first: FirstNumbers;
}

export type SegmentRequest =
  | { readonly kind: "next" }
  | { readonly kind: "again"; readonly token: Uint8Array }
  | { readonly kind: "save" }
  | { readonly kind: "restore"; readonly state: Uint8Array };

/** A packed element, or why there is none. */
export type SegmentElement = { readonly value: unknown } | { readonly error: PackedError };

export interface SegmentAnswer {
  /** The answer to `next`: elements, in order; the answer to `again`: one element. */
  readonly answers?: readonly SegmentElement[];
  /** Whether nothing follows. */
  readonly isEnd?: boolean;
  /** Why reading cannot continue. */
  readonly failure?: PackedError;
  /** The answer to `save`: the encoded state. */
  readonly state?: Uint8Array;
  readonly stats: IteratorStats;
}

/** A segment that runs on a thread of its own. */
export interface OpenSegment {
  /** Rejects with the error of the request, and with `internal` if the thread has ended. */
  ask(request: SegmentRequest): Promise<SegmentAnswer>;
  /** Ends the segment, and frees its thread. Idempotent. */
  close(): void;
}

/** Threads that call functions: one pool for the whole process. */
export interface FunctionThreads {
  /** How many there can be: one for each core. */
  readonly count: number;
  /** Whether they run already; starting them takes time. */
  readonly isWarm: boolean;
  open(fn: ThreadFunction, limits: ThreadLimits): OpenFunction;
  /** Starts a segment on a thread that calls no functions for others. */
  openSegment(segment: Segment): Promise<OpenSegment>;
}
