/**
 * The entities of the state: plain data, with null for unknown values, as snapshots contain them.
 */
import type { LeatErrorCode, WireError } from "../../../core/error.ts";
import type { FencedRef } from "../../runtime/ref.ts";
import type { ElementSourceProtocol, WorkerProtocol } from "../../worker/protocol.ts";
import type { ModeState } from "../modes/mode_state.ts";
import type { DatasetDefinition, JobParameters } from "../protocol.ts";
import type { SplitBounds } from "../../../data/sharding/split_table.ts";

/**
 * How many of a task's newest requests per source are remembered, so that repeated ones get the
 * same answer. A request for several splits counts once per split. Two requests of the largest size
 * must fit.
 */
export const SPLIT_REQUESTS_KEPT = 64;

/** The job that clients with the same name and parameters share. */
export interface Job {
  readonly jobId: number;
  /** Null: the job is private to its only client. */
  readonly name: string | null;
  /** The identity that created it. */
  readonly owner: string;
  readonly parameters: JobParameters;
  /** Static policies: the workers that share its iterations, by index. Null in other modes. */
  readonly workers: readonly string[] | null;
}

/** One pass over a job's dataset. */
export interface Iteration extends ModeState {
  readonly iterationId: number;
  readonly jobId: number;
  readonly repetition: number;
  readonly seed: string;
  /**
   * DETERMINISTIC: only readers of this run may read the iteration. Null if readers name no runs.
   */
  readonly run: RunOfIteration | null;
  /** Whether a task has produced everything. Only then can the iteration finish. */
  anyCompleted: boolean;
  finished: boolean;
  splits: Splits | null;
  /** Why the iteration cannot continue. Clients receive this error. */
  error: WireError | null;
  /** Deaths of its tasks' runners, by piece of work. */
  deaths: Deaths[];
}

/** The run that reads an iteration, and of which iterator of the dataset (0) it is a pass. */
export interface RunOfIteration {
  readonly stream: string;
  readonly runId: string;
  readonly iterator?: number;
}

/** The deaths of runners at one piece of an iteration's work, on any worker. */
export interface Deaths {
  /**
   * The piece: the position of a split (DETERMINISTIC), the first split of a save's run, or the
   * index of a share (static policies). Null means the whole pass, an entry of a save's ledger, or
   * splits that are not assigned to the task; `LISTING` means the listing of the splits.
   */
  readonly place: number | null;
  /** Oldest first. */
  readonly runners: readonly RunnerDeath[];
}

export interface RunnerDeath {
  readonly worker: string;
  /** Null: it listed the splits. */
  readonly taskId: number | null;
  readonly code: LeatErrorCode;
  readonly message: string;
}

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
  /** How many of its runners have died, as reported by its worker. */
  runnerDeaths: number;
  /**
   * Per source, a ring of the newest granted requests: the number n is at index 2 (n mod
   * `SPLIT_REQUESTS_KEPT`), followed by the index of the granted split. 0 means none yet. The ring is
   * empty where no request was granted; in older snapshots it holds zeros.
   */
  readonly requests: number[][];
}

export interface TaskOfIteration {
  readonly task: Task;
  readonly iteration: Iteration;
}

/** A worker, by its stable name. */
export interface Worker {
  readonly name: string;
  ref: FencedRef<WorkerProtocol>;
  tags: readonly string[];
  /** Null: not reported. */
  process: string | null;
  /** Only clients of its own process can reach it. */
  isPrivate: boolean;
  /** The identity that registered it; null: unknown. */
  owner: string | null;
  alive: boolean;
  /** Incarnations that were replaced or have left, newest last. */
  pastLives: string[];
}

export interface Client {
  readonly clientId: number;
  readonly iterationId: number;
  readonly requestId: string;
  readonly consumerIndex: number | null;
  /** A digest of the secret that its requests must present. Null: none. */
  readonly secret: string | null;
  /** Null: not reported. */
  readonly process: string | null;
  /** The iteration whose task reads through it. Null: a program reads, or another cluster's task. */
  readonly readBy: number | null;
  /** Coordinated reads: the version of the schedule that the client starts with; null before. */
  firstVersion: number | null;
}

/** The readers of a stream of DETERMINISTIC jobs, or of one of its consumer indices. */
export interface StreamReaders {
  /** The client that joined last. */
  readonly newest: number;
  /** The last restore: clients with ids below `first` are refused. Null: there was none. */
  readonly restored: { readonly name: string; readonly first: number } | null;
  /** With a consumer index: the reading that it joined last; see `StreamPass`. */
  readonly begun?: string | number;
  /** The newest iterator of that reading that the consumer has left. */
  readonly left?: number;
}

/** The readers of a stream that were started together (a run). */
export interface StreamRun {
  readonly runId: string;
  /** Earlier runs, newest last. Their readers are refused. */
  readonly past: readonly string[];
  /** The client of the run that joined last. */
  readonly newest: number;
  /**
   * Per job of the stream, by consumer index, the last repetition that the consumer has finished.
   */
  readonly passed: {
    readonly jobName: string;
    readonly repetitions: Record<number, number>;
    /** Of which iterators these are passes, where it is not the first one (0). */
    iterators?: Record<number, number>;
  }[];
}

/** A released client, remembered so that it can still get the outcome. */
export interface ReleasedClient {
  readonly iterationId: number;
  readonly secret: string | null;
  /** Set if a save was over when the client was released: the client may not know the outcome. */
  readonly saveEnd?: SaveEnd;
}

/** How a save ended; null: it is complete. */
interface SaveEnd {
  readonly error: WireError | null;
}

export type Dataset = DatasetDefinition;

/** Whether clients can read the task. They can even if it is completed, as it may hold elements. */
export function isServing(task: Task | undefined): task is Task {
  return task !== undefined && task.source !== null;
}
