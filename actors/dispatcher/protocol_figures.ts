/**
 * Figures: what workers and clients report in heartbeats, and what the dispatcher derives for
 * people. None of it is journaled: a restarted dispatcher has none until the next heartbeats.
 *
 * Heartbeats carry counters that only grow, with the sender's monotonic time. The dispatcher
 * computes rates from two of them, so network delays do not distort the rates.
 */
import type { ActorAddress } from "../runtime/ref.ts";
import type { CompressionFigures } from "../worker/protocol.ts";
import type { JobParameters } from "./protocol.ts";
import type { SavingNews } from "./protocol_heartbeats.ts";
import type { Described, Reported } from "./protocol_metrics.ts";
import type { ScalingDescription } from "./protocol_scaling.ts";

/** What a process uses, as the operating system counts it. */
export interface ProcessUsage extends Reported<"process"> {
  /**
   * Whether others share the process with this worker, as in a local cluster. The numbers are then
   * those of the whole process; the worker's part is unknown.
   */
  readonly shared: boolean;
}

/** A worker's figures. Those of its tasks are in {@linkcode TaskStatus}. */
export interface WorkerFigures {
  /** The worker's monotonic clock, in ms. */
  readonly atMs: number;
  /** Missing if the platform does not measure it. */
  readonly process?: ProcessUsage;
  /**
   * The worker starts no task and takes no more splits, and stops once clients have its elements.
   * Unfinished tasks that it does not report end. Default false.
   */
  readonly draining?: boolean;
}

/** A client's figures: how its training loop spends its time, and what is in flight. */
export interface ClientFigures extends Reported<"client">, Reported<"order"> {
  /** The client's monotonic clock, in ms. */
  readonly atMs: number;
  /** Figures per task, for the first few tasks. */
  readonly reads?: readonly ReadFigures[];
  /** A sentence about the workers that it cannot read from now, if there are any. */
  readonly unread?: string;
}

/**
 * Coordinated reads: what a consumer's training loop waits for. `loop`: nothing, a batch is ready;
 * `worker`: the worker that serves the round; `consumers`: other consumers, which do not hold the
 * round yet; `schedule`: a schedule that all consumers accept, or a worker to put in it.
 */
export type RoundWait = "loop" | "worker" | "consumers" | "schedule";

/** The position of a consumer in a coordinated read. */
export interface ConsumerPosition {
  /** The round that its training loop gets next. */
  readonly round: number;
  /** What its training loop waits for. */
  readonly waitsFor: RoundWait;
}

/** Coordinated reads: the consumers' positions, and what they wait for. */
export interface RoundsDescription {
  /** The lowest round that a training loop gets next; null before the first. */
  readonly lowest: number | null;
  /** The highest such round; null before the first. */
  readonly highest: number | null;
  /** Consumers that have not joined or have left; only the first few. */
  readonly missing: readonly number[];
  /** How many consumers are missing. */
  readonly missingCount: number;
  /** A schedule change from this round on, and the consumers that have not accepted it yet. */
  readonly agreeing: { readonly fromRound: number; readonly awaited: readonly number[] } | null;
  /** One or two sentences. */
  readonly text: string;
}

/** A client's figures for one task. */
export interface ReadFigures extends Reported<"read"> {
  readonly taskId: number;
  /** The worker's stable name. */
  readonly worker: string;
}

/** A client's reads of one task. */
export interface ReadDescription extends Described<"read"> {
  /** The task. */
  readonly taskId: number;
  /** The worker's stable name. */
  readonly worker: string;
}

/** A task's state and figures. Rates and shares cover about the last ten seconds. */
export interface TaskDescription {
  /** The task's id. */
  readonly taskId: number;
  /** The worker's stable name. */
  readonly worker: string;
  /** `starting`, `running`, `completed`, or `failed` (it cannot continue, or its runners died). */
  readonly state: string;
  /** Null until the worker's first report about it, and while the worker does not report. */
  readonly figures: TaskRates | null;
  /** How its dead runners ended, oldest first. Default: none. */
  readonly runnerDeaths?: readonly string[];
}

/** Figures of a task's work. */
export interface TaskRates extends Described<"task"> {
  /** Whether its elements are compressed; null if it sends none. */
  readonly compression: CompressionFigures | null;
  /** The window in front of it, for a job that shares its data. */
  readonly sharing: Described<"sharing"> | null;
  /** Why its pipeline cannot run or continue; null if it can. */
  readonly failure: string | null;
}

/** A client of an iteration. Rates and shares cover about the last ten seconds. */
export interface ClientDescription {
  /** The client's id. */
  readonly clientId: number;
  /** Coordinated reads: its index. */
  readonly consumerIndex: number | null;
  /** Coordinated reads: its position; missing before its first report. */
  readonly position?: ConsumerPosition;
  /** Null until its first report, and while it does not report. */
  readonly figures: ClientRates | null;
}

/** Figures of a client. */
export interface ClientRates extends Described<"client">, Reported<"order"> {
  /** Figures per task, for the first few tasks. */
  readonly reads: readonly ReadDescription[];
  /** A sentence about the workers that it cannot read from now, if there are any. */
  readonly unread?: string;
}

/** The bottleneck of an iteration. */
export interface Bottleneck {
  /**
   * `trainers_wait`: for workers or the network; `workers_wait`: for trainers; `stuck`: no
   * progress.
   */
  readonly kind: "trainers_wait" | "workers_wait" | "balanced" | "stuck" | "unknown";
  /** One sentence. */
  readonly text: string;
}

/** A worker's activity, and why it is idle. */
export interface WorkerActivity {
  /**
   * `idle`: it has no work; `silent`: it has not reported for seconds; `gone`: it has left, or
   * counts as lost.
   */
  readonly state: "working" | "idle" | "starting" | "silent" | "gone";
  /** Why it does not work, and the remedy; null while it works. */
  readonly reason: string | null;
}

/** A worker's process, and the totals of its tasks. */
export interface WorkerRates extends Described<"task"> {
  /** Age of the newest figures, in ms. */
  readonly ageMs: number;
  /** Null if the platform does not measure it. */
  readonly process: (Described<"process"> & Pick<ProcessUsage, "shared">) | null;
  /** The worker takes no more work and stops soon. */
  readonly draining?: boolean;
}

/**
 * What a job has used since this dispatcher started: the quantities of equation 1 of the tf.data
 * service paper, before prices.
 */
export interface JobUsage extends Described<"job"> {
  /** The workers' cost at the paper's prices, in US dollars. */
  readonly workersDollars: number | null;
}

/** The answer of `DispatcherProtocol.describe`. */
export interface DispatcherDescription {
  /** Identifies the cluster: drawn when the journal was created. */
  readonly clusterId: string;
  /** Only while the journal's disk is full: the remedy, and how long answers have waited, in ms. */
  readonly journal?: { readonly waits: string; readonly forMs: number };
  /** How many workers there should be. */
  readonly scaling: ScalingDescription;
  /** The registered workers. */
  readonly workers: readonly {
    readonly name: string;
    readonly ref: ActorAddress;
    readonly tags: readonly string[];
    /** It serves only clients of its own process. */
    readonly isPrivate?: boolean;
    readonly alive: boolean;
    /** Why the dispatcher cannot reach its address. Clients probably cannot either. */
    readonly unreachable?: string;
    /**
     * The last heartbeat in wall-clock ms since 1970, not before the dispatcher's start. A lost worker
     * has none.
     */
    readonly lastHeardMs?: number;
    readonly tasks: number;
    /** Why a job with a static policy gives it no shard. */
    readonly noShard?: string;
    readonly activity: WorkerActivity;
    /** Null until its first report, and while it does not report. */
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
       * How many workers of mean throughput its clients could use: the sum of their rates (with
       * sharing, the maximum) divided by one worker's rate. Null until both are known.
       */
      readonly optimalWorkers: number | null;
      readonly finished: boolean;
      /** Why it cannot continue. */
      readonly failure?: string;
      /**
       * Static policies: listed workers that have no task and whose shares are not produced yet.
       */
      readonly workersMissing?: readonly string[];
      /** A save's progress, once it has started. */
      readonly saving?: SavingNews;
      /** By source: how many of the splits of the current repetition were assigned. */
      readonly splits: readonly {
        readonly repetition: number;
        readonly handedOut: number;
        readonly total: number;
      }[];
    }[];
  }[];
}
