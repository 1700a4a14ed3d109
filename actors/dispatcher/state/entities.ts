/**
 * What the dispatcher's state is made of: plain data, with null for what is not known, so that a
 * snapshot of the state is its entities and nothing else.
 *
 * @module
 */
import type { LeatErrorCode, WireError } from "../../../core/error.ts";
import type { FencedRef } from "../../runtime/ref.ts";
import type { ElementSourceProtocol, WorkerProtocol } from "../../worker/protocol.ts";
import type { ModeState } from "../modes/mode_state.ts";
import type { DatasetDefinition, JobParameters } from "../protocol.ts";
import type { SplitBounds } from "./split_table.ts";

/** How many of a task's newest requests per source are remembered, to be answered again alike. */
export const SPLIT_REQUESTS_KEPT = 16;

/** What clients with the same name and parameters share. */
export interface Job {
  readonly jobId: number;
  /** Null: the job is its only client's own. */
  readonly name: string | null;
  /** The name of the identity that began it. */
  readonly owner: string;
  readonly parameters: JobParameters;
  /** Static policies: who shares its iterations, each at its index. Null for others. */
  readonly workers: readonly string[] | null;
}

/** One pass over a job's dataset. */
export interface Iteration extends ModeState {
  readonly iterationId: number;
  readonly jobId: number;
  readonly repetition: number;
  readonly seed: string;
  /** DETERMINISTIC: the run whose readers alone read it; null: they have named none. */
  readonly run: { readonly stream: string; readonly runId: string } | null;
  /** A task has produced everything: the iteration can finish. */
  anyCompleted: boolean;
  finished: boolean;
  splits: Splits | null;
  /** Why it cannot go on: clients are told this, and no worker gets a task of it any more. */
  error: WireError | null;
  /** How runners of its tasks died, by what they ran. */
  deaths: Deaths[];
}

/** The deaths of runners that ran the same piece of an iteration, on whichever workers. */
export interface Deaths {
  /**
   * The piece: the place of a split (DETERMINISTIC), the first split of a run of a save, the index of a
   * share (static policies). Null: the pipeline as a whole, or the ledger of a save.
   */
  readonly place: number | null;
  /** Oldest first. */
  readonly runners: readonly RunnerDeath[];
}

/** How a runner ended. */
export interface RunnerDeath {
  readonly worker: string;
  readonly taskId: number;
  readonly code: LeatErrorCode;
  readonly message: string;
}

/** The splits of an iteration and how far they have been handed out. */
export interface Splits {
  readonly bounds: SplitBounds;
  readonly digest: string;
  readonly cursors: { repetition: number; next: number }[];
}

/** An iteration's pipeline on a worker, from its creation until it is fenced. */
export interface Task {
  readonly taskId: number;
  readonly iterationId: number;
  readonly worker: string;
  readonly seed: string;
  source: FencedRef<ElementSourceProtocol> | null;
  completed: boolean;
  /** How many of its runners have died, as far as its worker has said. */
  runnerDeaths: number;
  /**
   * Per source, a ring of its newest requests that were granted a split: request n is at place
   * 2 (n mod {@linkcode SPLIT_REQUESTS_KEPT}), and its split's index behind it. 0: none yet.
   */
  readonly requests: number[][];
}

/** A task, and the iteration that it is of. */
export interface TaskOfIteration {
  readonly task: Task;
  readonly iteration: Iteration;
}

/** A worker, by its stable name. */
export interface Worker {
  readonly name: string;
  ref: FencedRef<WorkerProtocol>;
  tags: readonly string[];
  /** Null: it has not said. */
  process: string | null;
  /** Nobody but the clients of its process reaches it. */
  isPrivate: boolean;
  /** The name of the identity that has registered it; null: nobody has said. */
  owner: string | null;
  alive: boolean;
  /** Incarnations that were followed by a newer one, newest last. */
  pastLives: string[];
}

/** A client of an iteration. */
export interface Client {
  readonly clientId: number;
  readonly iterationId: number;
  readonly requestId: string;
  readonly consumerIndex: number | null;
  /** A digest of what is presented with its requests. Null: nothing is. */
  readonly secret: string | null;
  /** Null: it has not said. */
  readonly process: string | null;
  /** Coordinated reads: the first schedule put in force since it came; it begins there. */
  firstVersion: number | null;
}

/** Who has read a stream of DETERMINISTIC jobs, or been one consumer of it. */
export interface StreamReaders {
  /** The client that came last. */
  readonly newest: number;
  /** The last that was restored: who was there before its first client reads no more. Null: none was. */
  readonly restored: { readonly name: string; readonly first: number } | null;
}

/** The readers of a stream that were started together, as they say by a common name. */
export interface StreamRun {
  readonly runId: string;
  /** Those before it, newest last: they read no more. */
  readonly past: readonly string[];
  /** The client of it that came last. */
  readonly newest: number;
  /** Per job of the stream and consumer, the last repetition that it is done with; -1: none. */
  readonly passed: { readonly jobName: string; readonly repetitions: number[] }[];
}

/** A client that was released, to be told what became of it. */
export interface ReleasedClient {
  readonly iterationId: number;
  readonly secret: string | null;
  /** It was over by then, and the client may not have been told. */
  readonly saveEnd?: SaveEnd;
}

/** How a save ended; null: all was written. */
export interface SaveEnd {
  readonly error: WireError | null;
}

/** A dataset as it was registered. */
export type Dataset = DatasetDefinition;

/** Whether clients can read from the task: one that has produced everything still has rounds, or the end. */
export function isServing(task: Task | undefined): task is Task {
  return task !== undefined && task.source !== null;
}
