/**
 * The requests that clients and workers send to the dispatcher (paper section 3.1): small,
 * idempotent control messages. Those that change state are journaled. Batches never pass through
 * here.
 *
 * A request that changes state is idempotent by nature or carries a `requestId` chosen by the
 * sender. A repeated `requestId` gets the same answer, even from a restarted dispatcher.
 */
import type { WirePolicy } from "../../data/sharding/custom_policy.ts";
import type { KnownReader } from "../../data/service/last_readers.ts";
import type { ReadingTask } from "../../data/service/reading_task.ts";
import type { ElementCompression, TargetWorkers } from "../../data/service/reading_choices.ts";
import type { Shard, ShardingMode } from "../../data/sharding/sharding_policy.ts";
import type { Split } from "../../data/sharding/splits.ts";
import type { DistributedSaveSettings, SaveWork } from "../../data/saved/distributed/work.ts";
import { LeatError, type WireError } from "../../core/error.ts";
import type { ElementSourceProtocol, TaskStats, WorkerProtocol } from "../worker/protocol.ts";
import type { FencedRef, Ref } from "../runtime/ref.ts";
import type { ClientFigures, DispatcherDescription, WorkerFigures } from "./protocol_figures.ts";
import type { ReaderNews, ReaderReport, TaskListNews, WorkerNews } from "./protocol_heartbeats.ts";
import type { Reported } from "./protocol_metrics.ts";

/** At least this many heartbeats are sent per timeout, however long the usual pause is. */
const HEARTBEATS_PER_TIMEOUT = 3;
/** A timeout that is shorter than any useful one must not keep its receiver busy. */
const PAUSE_MIN_MS = 5;

/** The pause after a heartbeat, in ms, limited by the timeout that its answer gave. */
export function pauseWithin(pauseMs: number, timeoutMs = Infinity): number {
  return Math.min(pauseMs, Math.max(PAUSE_MIN_MS, timeoutMs / HEARTBEATS_PER_TIMEOUT));
}

/** Identifies the dispatcher's incarnation and version. */
export interface DispatcherInfo {
  readonly version: string;
  /** Drawn when the journal was created; identifies the cluster. */
  readonly clusterId: string;
  /** Counts the dispatchers that have used this journal, from 1; grows with each restart. */
  readonly life: number;
}

/** A registered pipeline. */
export interface DatasetDefinition {
  readonly datasetId: string;
  /** `Dataset.serialize()`. */
  readonly graph: Uint8Array;
  readonly fingerprint: string;
  /** Number of elements; -1: infinite, -2: unknown (messages hold no Infinity). */
  readonly cardinality: number;
  /** Compression of its elements. Default `"auto"`. */
  readonly compression?: Exclude<ElementCompression, "auto">;
}

/** Parameters that all clients of a job must agree on. */
export interface JobParameters {
  /** The registered dataset. */
  readonly datasetId: string;
  /** How workers share the dataset. */
  readonly processingMode: ShardingMode;
  /** CUSTOM: the policy. */
  readonly policy?: WirePolicy;
  /** Coordinated reads (section 3.6): number of consumers that read one batch each per round. */
  readonly numConsumers?: number;
  /** Ephemeral data sharing (section 3.5): all trainers read one stream through a task's window. */
  readonly sharing: boolean;
  /** Which workers the job's clients read. Default `"auto"`. */
  readonly targetWorkers?: Exclude<TargetWorkers, "auto">;
  /** Only workers with all of these tags serve the job. */
  readonly targetTags?: readonly string[];
  /** DETERMINISTIC: the inputs of the split order and of all random numbers. */
  readonly ordered?: {
    /** 16 hexadecimal digits. */
    readonly seed: string;
    /** Whether the split order is drawn from seed and repetition. */
    readonly shuffled: boolean;
  };
  /** DETERMINISTIC: the workers save the elements to a folder, and no client reads them. */
  readonly save?: DistributedSaveSettings;
}

/** A task: the pipeline of an iteration on one worker. */
export interface TaskDefinition {
  readonly clusterId: string;
  readonly taskId: number;
  readonly iterationId: number;
  readonly jobId: number;
  /** The identity that owns the job. */
  readonly owner: string;
  readonly dataset: DatasetDefinition;
  readonly parameters: JobParameters;
  readonly repetition: number;
  /** Journaled seed: 16 hexadecimal digits; differs per task under OFF. */
  readonly seed: string;
  /** Static policies: the worker's share of the dataset. */
  readonly shard?: Shard;
}

/** The address where a client reads one task. */
export interface TaskSource {
  readonly taskId: number;
  /** The worker's stable name. */
  readonly worker: string;
  /** The task, or the cache or scheduler in front of it. */
  readonly source: FencedRef<ElementSourceProtocol>;
}

/**
 * A worker's report about a task in each heartbeat. For a completed task, `source`, `stats` and
 * `sharing` are left out while they are as before. They are sent again after a heartbeat that failed,
 * and after an answer with `lacksFigures`.
 */
export interface TaskStatus {
  readonly taskId: number;
  /** Present once clients can read it. */
  readonly source?: FencedRef<ElementSourceProtocol>;
  /** All elements were produced; clients may still have to fetch some. */
  readonly completed: boolean;
  /** The task has died and lost its position in the data; the worker needs a new task. */
  readonly failed?: boolean;
  readonly stats?: TaskStats;
  /** Sharing: the figures of the window in front of the task. */
  readonly sharing?: Reported<"sharing">;
}

export interface DispatcherProtocol {
  hello(request: null): DispatcherInfo;

  /**
   * Registers a pipeline. Without `datasetId`, an identity's pipelines with the same fingerprint and
   * compression share one id. An admin's shares an id with those of all identities.
   * @throws `already_exists` when `datasetId` is registered with another fingerprint or
   *   `compression`; the error shows both.
   */
  registerDataset(request: {
    readonly graph: Uint8Array;
    readonly fingerprint: string;
    readonly cardinality: number;
    readonly compression?: Exclude<ElementCompression, "auto">;
    readonly datasetId?: string;
    /** The dataset is garbage-collected after the last job that uses it. */
    readonly transient?: true;
    /** See `openIteration`. */
    readonly forTask?: ReadingTask;
  }): { readonly datasetId: string };

  /** @throws `not_found`; `permission_denied` for a transient dataset of another identity. */
  getDataset(request: {
    readonly datasetId: string;
    /** See `openIteration`. */
    readonly forTask?: ReadingTask;
  }): DatasetDefinition;

  /**
   * Joins iteration `repetition` of a job as a new client. Creates job and iteration if they do not
   * exist. Without `jobName` the job is private. A named job belongs to the identity that created
   * it.
   * @throws `permission_denied` for a job of another identity, unless the sender is an admin;
   *   `resource_exhausted` when this identity has too many jobs or clients.
   * @throws `invalid_argument` when the job exists with other parameters (the error shows both), or
   *   when coordinated reads or sharing are requested for a finite dataset, or both at once.
   * @throws `failed_precondition` with `details.reason` {@linkcode READ_BY_ANOTHER} when another
   *   client holds this consumer index or reads the only stream, when a client was restored in its
   *   place, when the others continue without this consumer, or when a newer run has replaced its
   *   run; with {@linkcode TO_FOLLOW} when `follows` must name the client in `details.follows`;
   *   without a reason for a static policy when no list of workers is configured; with
   *   {@linkcode TASK_ENDED} when the task in `forTask` has ended.
   */
  openIteration(request: {
    readonly requestId: string;
    /**
     * Drawn by the client. If given, later requests about this client must carry it; otherwise they
     * are refused (`permission_denied`).
     */
    readonly secret?: string;
    readonly jobName?: string;
    readonly parameters: JobParameters;
    readonly repetition: number;
    readonly consumerIndex?: number;
    /** The client's process; workers of the same process are local to it. */
    readonly process?: string;
    /**
     * The task whose pipeline reads through this client, set by its worker. If it is a task of this
     * cluster, the client keeps the iteration in use only while the task's own iteration is in use.
     * If the sender's own worker runs it, the owner of its job counts as the sender.
     */
    readonly forTask?: ReadingTask;
    /**
     * DETERMINISTIC: the position in the split order to start at. The client takes the job over:
     * all iterations of the job are dropped, of any repetition, and this one restarts. A consumer
     * that was in none of them only joins.
     */
    readonly startAt?: number;
    /**
     * With `startAt`, or for the first reader of a run: the newest client that this one replaces,
     * taken from `details.follows` of the refusal. This fences late requests: a request of a dead
     * sender cannot name the client that has replaced it.
     */
    readonly follows?: number;
    /**
     * DETERMINISTIC: names the whole stream, of which the job may be one of several chains. Readers
     * of one stream give the same name. Default: the job's name.
     */
    readonly stream?: string;
    /** With `startAt`: names the restore, the same for all chains. Default: `requestId`. */
    readonly restoration?: string;
    /**
     * DETERMINISTIC: names the readers that were started together (a run). The first reader of a
     * new run replaces the run before it and drops all iterations of the job. Within a run no
     * consumer takes over from another.
     */
    readonly runId?: string;
    /**
     * With `runId` or consumers: the number of the dataset's iterator of which the repetition is a
     * pass. Default 0. All passes of an iterator come before those of the next one.
     */
    readonly iterator?: number;
    /**
     * DETERMINISTIC: this reader's last client id, in any repetition and chain of the stream. A
     * reader that was replaced between two repetitions is detected, and refused, by this id.
     */
    readonly lastReader?: KnownReader;
    /**
     * DETERMINISTIC: splits before `startAt`, ascending, of which the reader needs the last rows
     * again: they wait for the rest of their batch.
     */
    readonly behind?: readonly number[];
  }): {
    readonly jobId: number;
    readonly iterationId: number;
    readonly clientId: number;
    readonly clusterId: string;
    /**
     * Whether clients that have left, or whose connection is closed, began the iteration. In most
     * modes the new client then gets only the rest of the elements.
     */
    readonly isContinued?: boolean;
  };

  /**
   * Keeps a client alive and tells it what to read. The sender receives `wake` (see
   * `ClientProtocol`) when the answer would change.
   * @throws `not_found` for a client that was released or timed out, `failed_precondition` when the
   *   iteration was garbage-collected.
   */
  clientHeartbeat(request: {
    readonly clientId: number;
    readonly secret?: string;
    /** The client's progress; missing in modes whose clients report none. */
    readonly report?: ReaderReport;
    /** The name of the newest task list it has received. */
    readonly taskList?: string;
    readonly figures?: ClientFigures;
  }): TaskListNews & {
    /** The name of this list of tasks; the next heartbeat sends it as `taskList`. */
    readonly taskList?: string;
    /** No task of the iteration will produce anything more. */
    readonly finished: boolean;
    /** Why the iteration cannot continue. */
    readonly error?: WireError;
    /** A sentence about what the client waits for: a worker to serve it, or missing consumers. */
    readonly starvation?: string;
    /** What the client's mode adds to the answer; missing in modes that add nothing. */
    readonly news?: ReaderNews;
    /** Time without a heartbeat, in ms, after which the client may be released. */
    readonly timeoutMs?: number;
  };

  /** Releases a client; idempotent. `cancel` also ends a save, which can be resumed later. */
  releaseClient(request: {
    readonly clientId: number;
    readonly secret?: string;
    readonly cancel?: boolean;
    /**
     * Coordinated reads: the client has requested every round before this one, and no later one.
     */
    readonly nextRound?: number;
    /**
     * DETERMINISTIC with consumers: the consumer reads nothing more of its iterator, so the others
     * do not wait for it in other passes and chains. Default: it may read on.
     */
    readonly leaves?: true;
    /** Its last figures: a short epoch may end between two heartbeats. */
    readonly figures?: ClientFigures;
  }): null;

  /**
   * Registers a worker at its first call; later calls keep it alive and give it work. A new
   * incarnation with a known name must name the earlier one in `follows`; then the tasks of the
   * earlier one end.
   * @throws `failed_precondition` when a newer incarnation has this name; `unavailable` while the
   *   earlier incarnation still answers, because a live worker keeps its name; `permission_denied`
   *   for another sender than the worker, with `details.reason` {@linkcode NAME_TAKEN} while a live
   *   worker of another identity has the name.
   */
  workerHeartbeat(request: {
    /** Stable: the advertised address, or a name given by the operator. */
    readonly name: string;
    readonly worker: FencedRef<WorkerProtocol>;
    readonly tags: readonly string[];
    /** The worker's process; clients of the same process are local to it. */
    readonly process?: string;
    /** Only clients of its own process can reach it. Default false. */
    readonly isPrivate?: boolean;
    readonly tasks: readonly TaskStatus[];
    /** The worker is stopping: its tasks end, and it gets no more. */
    readonly leaving?: boolean;
    /** The earlier incarnation with this name, taken from an answer. */
    readonly follows?: string;
    readonly figures?: WorkerFigures;
  }): WorkerNews;

  /**
   * The next split of a source for a task (DYNAMIC, DETERMINISTIC). `number` counts the splits
   * that the task has requested of this source from 1; a repeated number gets the same split. Under
   * DETERMINISTIC the answer waits until a split can be assigned or none is left.
   * @throws `failed_precondition` with `details.reason` {@linkcode TASK_ENDED} when the task has
   *   ended or is unknown (the worker drops it); the error of the split listing, if it failed.
   */
  getSplit(request: {
    readonly taskId: number;
    readonly number: number;
    readonly source: number;
    readonly repetition: number;
    /**
     * DETERMINISTIC: wants only a lost split that comes before all splits in production at the
     * task.
     */
    readonly spare?: boolean;
    /**
     * DYNAMIC: how many splits are wanted, at most {@linkcode SPLITS_AT_ONCE_MAX}. Default 1. The
     * request stands for this many numbers, from `number` on, even if it gets fewer splits.
     */
    readonly count?: number;
  }): {
    /** Null: the task gets no more splits. `sequence`: the split's position in the order. */
    readonly split: (Split & { readonly index: number; readonly sequence?: number }) | null;
    /**
     * If `count` is above 1: the splits after `split`. They may be fewer than wanted, so that other
     * tasks get their share.
     */
    readonly more?: readonly (Split & { readonly index: number })[];
    /** Number of splits of the source per repetition. */
    readonly total: number;
  };

  /**
   * The next piece of a save's work for a task. The request reports the result or failure of the
   * piece before. A task has one piece at a time; a repeated request gets the same piece. The
   * answer waits until there is work; a request with a report gets `"later"` instead. Null: the
   * save is over. If it has failed, one task gets the work `"failure"`, which is its last.
   * @throws as `getSplit` for a task that has ended.
   */
  getSaveWork(request: {
    readonly taskId: number;
    readonly done?: {
      readonly work: "run" | "entry";
      /** A run's first split, or an entry's number. */
      readonly place: number;
      /** Runs only: the name of its files. */
      readonly attempt?: string;
      readonly elements: number;
      readonly sizeBytes: number;
      /** Runs only: see `RunReport`. */
      readonly restBytes?: number;
    };
    readonly failed?: WireError;
    /** The task takes no more work. */
    readonly isLast?: boolean;
  }): { readonly work: SaveWork | "later" | null };

  /**
   * Reports that a task's runner has died. The answer says whether the task may start another. The
   * iteration fails when too many runners died at one piece of work. `number` counts the task's
   * dead runners from 1; a repeated number is not counted again.
   * @throws as `getSplit` for a task that has ended.
   */
  runnerDied(request: {
    readonly taskId: number;
    readonly number: number;
    /** DETERMINISTIC: the split it ran. Save: the first split of the run; missing for an entry. */
    readonly place?: number;
    readonly error: WireError;
  }): { readonly mayStart: boolean };

  /**
   * Describes everything for people. With `refresh`, workers whose figures are older than a second
   * are asked for new ones, which a later answer shows.
   */
  describe(request: { readonly refresh?: boolean } | null): DispatcherDescription;
}

/**
 * DETERMINISTIC: requests for spare splits are numbered in a series of their own, like a second
 * source.
 */
export const SPARE_SERIES = 1;

/** One request may ask for at most this many splits. */
export const SPLITS_AT_ONCE_MAX = 32;

/** The `details.reason` of a refusal because a task has ended. */
export const TASK_ENDED = "task_ended";

/** In the `details` of an error: it fails the whole iteration, and is not one of the request. */
export const OF_ITERATION = "ofIteration";

/** The `details.reason` with which `openIteration` asks for a client's id in `follows`. */
export const TO_FOLLOW = "to_follow";

/** The `details.reason` with which `openIteration` refuses a reader because of other readers. */
export const READ_BY_ANOTHER = "read_by_another";

/** The `details.reason` of a refusal because a live worker of another identity has the name. */
export const NAME_TAKEN = "name_taken";

const DISPATCHER_PATH = "/dispatcher";

export function dispatcherAt(node: string): Ref<DispatcherProtocol> {
  return { node, path: DISPATCHER_PATH };
}

/** The error of a request to a dispatcher. If another program answers, it says what to do. */
export function dispatcherError(dispatcher: Ref<DispatcherProtocol>, error: unknown): LeatError {
  const failure = LeatError.from(error);
  const { code, details } = failure;
  if (code !== "not_found" || details?.["reason"] !== "no_such_actor") return failure;
  return new LeatError(
    code,
    `No dispatcher runs at ${dispatcher.node}, though Leat answers there: a worker may listen ` +
      "there; give the dispatcher's address",
    { cause: failure, details },
  );
}
