/**
 * What the dispatcher can be asked, by clients and by workers (paper section 3.1). All of it is
 * control: small, idempotent, journaled where state changes. Batches never pass through here.
 *
 * Requests that change state carry a `requestId` chosen by the asker (a repeated one gets the same
 * answer, also from a dispatcher that was restarted in between) or are idempotent by nature.
 *
 * @module
 */
import type { WirePolicy } from "../../data/sharding/custom_policy.ts";
import type { ReaderId } from "../../data/service/last_readers.ts";
import type { ElementCompression } from "../../data/service/element_compression.ts";
import type { Shard, ShardingMode } from "../../data/sharding/sharding_policy.ts";
import type { TargetWorkers } from "../../data/service/target_workers.ts";
import type { Split } from "../../data/sharding/splits.ts";
import type { JointSaveSettings, SaveWork } from "../../data/saved/distributed/work.ts";
import type { WireError } from "../../core/error.ts";
import type {
  ElementSourceProtocol,
  ElementSourceStats,
  TaskStats,
  WorkerProtocol,
} from "../worker/protocol.ts";
import type { ActorAddress, FencedRef, Ref } from "../runtime/ref.ts";
import type {
  Bottleneck,
  ClientDescription,
  ClientFigures,
  JobUsage,
  RoundsDescription,
  RoundWait,
  TaskDescription,
  WorkerActivity,
  WorkerFigures,
  WorkerRates,
} from "./protocol_figures.ts";
import type { ScalingDescription } from "./protocol_scaling.ts";
import type { ScheduleNews } from "./protocol_schedules.ts";

/** Who is given up after a silence is heard this often in it, whatever pause it would make. */
const HEARTBEATS_PER_TIMEOUT = 3;

/** The pause after a heartbeat, in ms, by what its answer says of silence. */
export function pauseWithin(pauseMs: number, timeoutMs = Infinity): number {
  return Math.min(pauseMs, timeoutMs / HEARTBEATS_PER_TIMEOUT);
}

/** Identifies the dispatcher's incarnation and what it can do. */
export interface DispatcherInfo {
  readonly version: string;
  /** Drawn when the journal was created: tells one cluster from another. */
  readonly clusterId: string;
  /** Which dispatcher this is of all that have worked on the journal, from 1: grows with each restart. */
  readonly life: number;
}

/** A registered pipeline. */
export interface DatasetDefinition {
  readonly datasetId: string;
  /** `Dataset.serialize()`. */
  readonly graph: Uint8Array;
  readonly fingerprint: string;
  /** A count, or -1 for infinite, or -2 for unknown: messages hold no Infinity. */
  readonly cardinality: number;
  /** How its elements are compressed; left out: `"auto"`. */
  readonly compression?: Exclude<ElementCompression, "auto">;
}

/** What all clients of a job must agree on. */
export interface JobParameters {
  /** The registered dataset. */
  readonly datasetId: string;
  /** How workers share the dataset. */
  readonly processingMode: ShardingMode;
  /** CUSTOM: which. */
  readonly policy?: WirePolicy;
  /** Present for coordinated reads (section 3.6): batches of one round for this many consumers. */
  readonly numConsumers?: number;
  /** Ephemeral data sharing (section 3.5): all trainers read one stream through each task's window. */
  readonly sharing: boolean;
  /** Which workers its clients read, each those that it may; left out: `"auto"`. */
  readonly targetWorkers?: Exclude<TargetWorkers, "auto">;
  /** Workers serve it that carry all of these tags. */
  readonly targetTags?: readonly string[];
  /** DETERMINISTIC: what the order of the splits and all luck depend on. */
  readonly ordered?: {
    /** 16 hexadecimal digits. */
    readonly seed: string;
    /** Whether splits come in an order drawn from seed and repetition. */
    readonly shuffled: boolean;
  };
  /** DETERMINISTIC: its workers save what its splits come to in a folder, and nobody reads it. */
  readonly save?: JointSaveSettings;
}

/** One task of an iteration: the pipeline, on one worker. */
export interface TaskDefinition {
  readonly taskId: number;
  readonly iterationId: number;
  readonly jobId: number;
  readonly dataset: DatasetDefinition;
  readonly parameters: JobParameters;
  readonly repetition: number;
  /** Journaled luck: 16 hexadecimal digits; differs per task under OFF. */
  readonly seed: string;
  /** Static policies: the worker's place among those that share the dataset. */
  readonly shard?: Shard;
}

/** Where a client reads one task. */
export interface TaskSource {
  readonly taskId: number;
  /** The worker's stable name. */
  readonly worker: string;
  /** The task, or the cache or scheduler that stands before it. */
  readonly source: FencedRef<ElementSourceProtocol>;
}

/** What a worker says of a task at each heartbeat. */
export interface TaskStatus {
  readonly taskId: number;
  /** Present once clients can read. */
  readonly source?: FencedRef<ElementSourceProtocol>;
  /** Every element was produced (they may still be waiting for clients to fetch them). */
  readonly completed: boolean;
  /** It has died, with its place in the data: the worker is to be given another one. */
  readonly failed?: boolean;
  /** Its figures, and those of the cache or scheduler before it. */
  readonly stats?: TaskStats;
  readonly frontStats?: ElementSourceStats;
}

/** The dispatcher's protocol. */
export interface DispatcherProtocol {
  /**
   * Who is there.
   */
  hello(request: null): DispatcherInfo;

  /**
   * Registers a pipeline. Without `datasetId` equal fingerprints share one id, if they are compressed
   * alike.
   *
   * @throws `already_exists` when `datasetId` is taken by another fingerprint, or with another
   * `compression` (both are shown).
   */
  registerDataset(request: {
    readonly graph: Uint8Array;
    readonly fingerprint: string;
    readonly cardinality: number;
    readonly compression?: Exclude<ElementCompression, "auto">;
    readonly datasetId?: string;
    /** Nobody will ask for it later but the jobs that use it: it is forgotten after the last of them. */
    readonly transient?: true;
  }): { readonly datasetId: string };

  /** @throws `not_found`; `permission_denied` for one that another identity has registered for its jobs alone. */
  getDataset(request: { readonly datasetId: string }): DatasetDefinition;

  /**
   * Joins iteration `repetition` of a job as a new client, creating job and iteration if need be.
   * Without `jobName` the job is this client's own. A named one belongs to the identity that began it.
   *
   * @throws `permission_denied` for a job of another identity, unless this one is an admin;
   * `resource_exhausted` when this identity has too many jobs or clients.
   * @throws `invalid_argument` when the job exists with other parameters (both are shown), or when
   * coordinated reads or sharing are asked of a finite dataset, or both together;
   * `failed_precondition` when another client holds this consumer index, or reads the one stream there
   * is, or was restored in this one's place, or others go on without this consumer, or another run has followed its run, each with
   * `details.reason` {@linkcode READ_BY_ANOTHER};
   * when a static policy is asked for where no list of workers is set up; with `details.reason`
   * {@linkcode TO_FOLLOW} when the request has to say in `follows` what `details.follows` names.
   */
  openIteration(request: {
    readonly requestId: string;
    /**
     * Drawn by the client. Once it has given one, whatever is asked about this client presents it, or is
     * refused with `permission_denied`.
     */
    readonly secret?: string;
    readonly jobName?: string;
    readonly parameters: JobParameters;
    readonly repetition: number;
    readonly consumerIndex?: number;
    /** The client's process: workers of the same one are local to it. */
    readonly process?: string;
    /**
     * DETERMINISTIC: the place in the order of splits to begin with. The client takes the job over: its
     * iterations that are there are forgotten, in whichever repetition, and this one begins anew. A
     * consumer that was in none of them joins.
     */
    readonly startAt?: number;
    /**
     * With `startAt`, or of a run that follows another: the newest client of those that were this reader of the stream, or read what it takes
     * over, as a refusal named it. A request that was on its way when its sender died cannot name it: it
     * would take the stream from the life that has followed.
     */
    readonly follows?: number;
    /**
     * DETERMINISTIC: names what is read as a whole, of which the job may be one chain of several: readers
     * that give the same read the same. Default: the job's name.
     */
    readonly stream?: string;
    /** With `startAt`: names that restoring, the same for all chains of the stream. Default: `requestId`. */
    readonly restoration?: string;
    /**
     * DETERMINISTIC: names those that were started together with it. A run that comes first follows the
     * one before it, whose readers read no more: all that is there of the job is forgotten. Within a run
     * none takes over from another. Left out where readers name no runs.
     */
    readonly runId?: string;
    /**
     * DETERMINISTIC: which client this reader was last, in this repetition or another one, of any chain of
     * the stream. One that others were restored in the place of may have been between two repetitions, and
     * is told so here.
     */
    readonly lastReader?: ReaderId;
    /** DETERMINISTIC: splits before `startAt` of which it needs rows once more, ascending. */
    readonly behind?: readonly number[];
  }): {
    readonly jobId: number;
    readonly iterationId: number;
    readonly clientId: number;
    readonly clusterId: string;
  };

  /**
   * Keeps a client alive and tells it what to read. The actor that asks is sent `wake` (see
   * `ClientProtocol`) when another answer would be given.
   *
   * @throws `not_found` for a client that was released or timed out, `failed_precondition` when the
   * iteration was garbage collected.
   */
  clientHeartbeat(request: {
    readonly clientId: number;
    readonly secret?: string;
    /** Coordinated reads: the next round this consumer has not fetched anything of. */
    readonly nextRound?: number;
    /** Coordinated reads: the first round that its training loop was not given. */
    readonly deliveredRound?: number;
    /** Coordinated reads: whom its training loop waits for, if it is not the loop that takes its time. */
    readonly waitsFor?: RoundWait;
    /** Coordinated reads: the round that is the end, as all consumers hold it and it has no elements. */
    readonly endRound?: number;
    /**
     * Coordinated reads: the newest schedule it has accepted; it fetches no round beyond it, and takes
     * nothing more of tasks that are not in it.
     */
    readonly acceptedSchedule?: number;
    /** Coordinated reads: the newest schedule in force that it has, and the newest of which it has the tasks. */
    readonly scheduleInForce?: number;
    readonly knownSchedule?: number;
    /** Coordinated reads, with a schedule not yet in force: what it holds of tasks that are not in it. */
    readonly heldRounds?: readonly number[];
    /** DETERMINISTIC: it has all of the splits before this place in their order… */
    readonly mark?: number;
    /** …and these beyond it. */
    readonly done?: readonly number[];
    /** Tasks it could not reach, with the round it wanted. */
    readonly lostTasks?: readonly { readonly taskId: number; readonly round?: number }[];
    /** The name of the newest list of tasks that it was told. */
    readonly taskList?: string;
    /** How it is doing. */
    readonly figures?: ClientFigures;
  }): {
    /**
     * All tasks that the client can read; with `endedTasks`, those alone that the list which the request
     * names lacks, or has elsewhere.
     */
    readonly tasks: readonly TaskSource[];
    /** What the list is named by, for the next heartbeat. */
    readonly taskList?: string;
    /** Tasks of the list that the request names which cannot be read any more. */
    readonly endedTasks?: readonly number[];
    /** No task of the iteration will ever produce anything more. */
    readonly finished: boolean;
    /** Why the iteration cannot go on, if it cannot. */
    readonly error?: WireError;
    /**
     * A sentence about what the client waits for, where no worker there is may serve it, or consumers are
     * missing with which it begins, or without which it reads no further.
     */
    readonly unserved?: string;
    /**
     * Coordinated reads: the schedules in force, oldest first. Round r is served by the newest that
     * begins at or before it. A consumer that has just joined gets none before a schedule was put in
     * force for it too, and begins at that one's `fromRound`. In a new list, places of lost tasks are
     * taken by others in the older schedules also: a round that was requested of a lost task and not
     * kept is to be requested again of the task that now stands for it.
     */
    readonly schedules?: readonly ScheduleNews[];
    /** Coordinated reads: a schedule to accept, if `nextRound` is not beyond its `fromRound`. */
    readonly proposed?: ScheduleNews;
    /**
     * Coordinated reads: the round that all end at, whoever comes later included. All consumers hold
     * the rounds before it that they took part in.
     */
    readonly endRound?: number;
    /**
     * Coordinated reads: consumers that nothing need be waited for in rounds before some round, as they
     * came later, or in any (null), as they are gone. Left out: there is none.
     */
    readonly absent?: readonly {
      readonly consumerIndex: number;
      readonly beforeRound: number | null;
    }[];
    /** DETERMINISTIC: how many splits there are, once they are listed, and a digest of their table. */
    readonly ordered?: {
      readonly total: number;
      readonly digest: string;
      /** With consumers: those that have left, by index. What they had still to take nobody wants. */
      readonly left?: readonly number[];
    };
    /** DETERMINISTIC: how many splits are handed out beyond those that the reader has said it has. */
    readonly windowSplits?: number;
    /** A save: how far it is, once it has begun. */
    readonly saving?: SavingNews;
    /** After how much silence, in ms, the client may be released. */
    readonly timeoutMs?: number;
  };

  /** Releases a client; idempotent. `cancel`: a save ends with it, and can be gone on with later. */
  releaseClient(request: {
    readonly clientId: number;
    readonly secret?: string;
    readonly cancel?: boolean;
  }): null;

  /**
   * Registers a worker at its first call, keeps it alive after that, and gives it work. A worker
   * actor of a new life under a known name ends the tasks of the earlier life, once it has said that it
   * follows that one.
   *
   * @throws `failed_precondition` when a newer life of the same name is registered; `unavailable` while the
   * life that it follows answers: a worker keeps its name for as long as it lives.
   */
  workerHeartbeat(request: {
    /** Stable: the advertised address, or a name given by the operator. */
    readonly name: string;
    readonly worker: FencedRef<WorkerProtocol>;
    readonly tags: readonly string[];
    /** The worker's process: clients of the same one are local to it. */
    readonly process?: string;
    /** Nobody but the clients of its process reaches it. Default false. */
    readonly isPrivate?: boolean;
    /** All tasks it holds. */
    readonly tasks: readonly TaskStatus[];
    /** It is about to stop: its tasks end, and it gets no more. */
    readonly leaving?: boolean;
    /** The incarnation of the life that had its name before, as an answer told it. */
    readonly follows?: string;
    /** How it is doing. */
    readonly figures?: WorkerFigures;
  }): {
    /** Tasks it should hold and did not name. */
    readonly newTasks: readonly TaskDefinition[];
    /** Tasks it named that it should drop: ended, fenced or unknown. */
    readonly endedTasks: readonly number[];
    /**
     * It is not registered yet: the life with this incarnation has its name. It says that it follows
     * that one, at once. A word that was on its way when its sender died cannot: it would take the name
     * from the life that has followed already.
     */
    readonly follows?: string;
    /** After how much silence, in ms, the worker counts as dead. */
    readonly timeoutMs?: number;
  };

  /**
   * The next split of a source for a task (DYNAMIC, DETERMINISTIC). `number` counts the task's
   * requests for this source from 1: a repeated number gets the same split. Under DETERMINISTIC the
   * answer waits until there is a split to hand out, or none is wanted any more.
   *
   * @throws `failed_precondition` with `details.reason` {@linkcode TASK_ENDED} when the task has ended
   * or is unknown (the worker drops that task), and whatever listing the source's splits failed with.
   */
  getSplit(request: {
    readonly taskId: number;
    readonly number: number;
    readonly source: number;
    readonly repetition: number;
    /** DETERMINISTIC: only one that was lost and comes before all that the task is producing. */
    readonly spare?: boolean;
  }): {
    /** Null: the repetition has no more splits for anybody. `sequence`: its place in their order. */
    readonly split: (Split & { readonly index: number; readonly sequence?: number }) | null;
    /** How many splits the source has, per repetition. */
    readonly total: number;
  };

  /**
   * The next piece of work of a save for a task, which says what it has done of the one before, or why
   * it cannot. A task has one at a time: asked again, that is the answer. It waits until there is
   * something to do; null: there is nothing more.
   *
   * @throws as `getSplit` for a task that has ended.
   */
  getSaveWork(request: {
    readonly taskId: number;
    readonly done?: {
      readonly work: "run" | "entry";
      /** A run's first split, or an entry's number. */
      readonly place: number;
      /** Of a run: what its files are named by. */
      readonly attempt?: string;
      readonly elements: number;
      readonly sizeBytes: number;
    };
    readonly failed?: WireError;
    /** It takes no more. */
    readonly isLast?: boolean;
  }): { readonly work: SaveWork | "later" | null };

  /**
   * The process or thread that ran a task's pipeline has died. The task starts another one if it may:
   * the iteration fails when one piece of its work has killed too many. `number` counts the task's
   * runners that died, from 1: a repeated one is not counted again.
   *
   * @throws as `getSplit` for a task that has ended.
   */
  runnerDied(request: {
    readonly taskId: number;
    readonly number: number;
    /** DETERMINISTIC: the split that it ran. Of a save: the first split of the run, left out for an entry. */
    readonly place?: number;
    /** How it ended. */
    readonly error: WireError;
  }): { readonly mayStart: boolean };

  /**
   * A snapshot of everything for people. With `refresh`, workers whose figures are older than a second
   * are asked for new ones, which a later snapshot shows.
   */
  describe(request: { readonly refresh?: boolean } | null): DispatcherDescription;
}

/** How far a save is. */
export interface SavingNews {
  /** Splits that are written. */
  readonly splitsDone: number;
  /** All splits. */
  readonly splitsTotal: number;
  /** Elements written. */
  readonly elements: number;
  /** Written, compressed if they are. */
  readonly sizeBytes: number;
}

/** What {@linkcode DispatcherProtocol.describe} answers. */
export interface DispatcherDescription {
  /** Tells this cluster from others: drawn when the journal was created. */
  readonly clusterId: string;
  /** Only while the disk under its journal is full: what is to be done, and for how long answers have waited, in ms. */
  readonly journal?: { readonly waits: string; readonly forMs: number };
  /** How many workers there should be. */
  readonly scaling: ScalingDescription;
  /** The registered workers. */
  readonly workers: readonly {
    readonly name: string;
    readonly ref: ActorAddress;
    readonly tags: readonly string[];
    /** It serves the clients of its own process alone, if it does. */
    readonly isPrivate?: boolean;
    readonly alive: boolean;
    /** Why clients will not reach its address, if the dispatcher itself does not. */
    readonly unreachable?: string;
    /** In wall-clock ms since 1970; not before the dispatcher's start. */
    readonly lastHeardMs: number;
    readonly tasks: number;
    /** Why static policies give it nothing, if they do not. */
    readonly noShard?: string;
    readonly activity: WorkerActivity;
    /** Null until it has said something of itself. */
    readonly figures: WorkerRates | null;
  }[];
  /** The jobs, with their iterations, tasks and clients. */
  readonly jobs: readonly {
    readonly jobId: number;
    readonly name: string;
    readonly parameters: JobParameters;
    readonly usage: JobUsage;
    readonly iterations: readonly {
      readonly iterationId: number;
      readonly repetition: number;
      readonly clients: number;
      readonly readers: readonly ClientDescription[];
      readonly tasks: readonly TaskDescription[];
      readonly bottleneck: Bottleneck;
      /** Coordinated reads. */
      readonly rounds?: RoundsDescription;
      /**
       * How many workers of the mean throughput its clients could use: the sum of their rates (under
       * sharing the greatest) over what one worker makes. Null until both are known.
       */
      readonly optimalWorkers: number | null;
      readonly finished: boolean;
      /** Why it cannot go on, if it cannot. */
      readonly failure?: string;
      /** Static policies: listed workers that are not there, and whose shares are awaited. */
      readonly workersMissing?: readonly string[];
      /** Of a save: how far it is, once it has begun. */
      readonly saving?: SavingNews;
      /** Per source: how many splits of the current repetition were handed out, of how many. */
      readonly splits: readonly {
        readonly repetition: number;
        readonly handedOut: number;
        readonly total: number;
      }[];
    }[];
  }[];
}

/** DETERMINISTIC: requests for a spare split are numbered by themselves, as if of this source. */
export const SPARE_SERIES = 1;

/** The `details.reason` with which `getSplit` refuses a task that has ended. */
export const TASK_ENDED = "task_ended";

/** The `details.reason` with which `openIteration` has a client say which iteration it takes over. */
export const TO_FOLLOW = "to_follow";

/** The `details.reason` with which `openIteration` refuses a reader because of others that read. */
export const READ_BY_ANOTHER = "read_by_another";

/** Where a dispatcher lives on its node. */
export const DISPATCHER_PATH = "/dispatcher";

/** A reference to the dispatcher of a node. */
export function dispatcherAt(node: string): Ref<DispatcherProtocol> {
  return { node, path: DISPATCHER_PATH };
}
