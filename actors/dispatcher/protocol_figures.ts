/**
 * Figures: what workers and clients report in heartbeats, and what the dispatcher derives for
 * people. None of it is journaled: a restarted dispatcher has none until the next heartbeats.
 *
 * Heartbeats carry counters that only grow, with the sender's monotonic time. The dispatcher takes
 * rates between two of them, so network delays do not distort rates.
 */
import type { ServiceRead } from "../../data/iterators/stats.ts";
import type { CompressionFigures } from "../worker/protocol.ts";

/** What a process uses, as the operating system counts it. */
export interface ProcessUsage {
  /** CPU time of all threads since the process started, in seconds. */
  readonly cpuSeconds: number;
  /** Resident memory now, in bytes. */
  readonly memoryBytes: number;
  /**
   * Others share the process with this worker, as in a local cluster. The numbers are the whole
   * process's; the worker's part is unknown.
   */
  readonly shared: boolean;
  /**
   * Threads of this worker that were asked to stop and still run, because a user function never
   * yields. Each uses a core until the process ends. Default 0.
   */
  readonly runawayThreads?: number;
}

/** A worker's figures. {@linkcode TaskStatus} has those of its tasks. */
export interface WorkerFigures {
  /** The worker's monotonic clock, in ms. */
  readonly atMs: number;
  /** Missing if the platform does not measure it. */
  readonly process?: ProcessUsage;
  /** It takes no more work and stops once clients have what it holds. Default false. */
  readonly draining?: boolean;
}

/** DETERMINISTIC: a reader's cost of keeping the order. */
export interface OrderFigures {
  /** Time spent waiting for one split while elements of others were buffered, in ms. */
  readonly headOfLineMs: number;
  /** The most bytes buffered at the client so far, those for the training loop included. */
  readonly bufferedBytesMax: number;
  /**
   * The most splits open at once so far: from the first incomplete one to the last with data. At
   * most the dispatcher's `windowSplits`.
   */
  readonly openSplitsMax: number;
}

/** A client's figures: how its training loop spends its time, and what is in flight. */
export interface ClientFigures extends Partial<OrderFigures> {
  /** The client's monotonic clock, in ms. */
  readonly atMs: number;
  /** Elements taken by the training loop, failed ones included. */
  readonly elements: number;
  /** Their encoded size, in bytes. */
  readonly bytes: number;
  /** Time the loop has waited for elements, in ms. */
  readonly waitingMs: number;
  /** Time the loop was busy between an element and the next request, in ms. */
  readonly trainingMs: number;
  /** Requests to workers in flight. */
  readonly inFlight: number;
  /** Bytes received and not taken yet. */
  readonly bufferedBytes: number;
  /** Sharing: elements missed because they had left the window. Default 0. */
  readonly skipped?: number;
  /** Time spent decoding elements, in ms; part of neither `waitingMs` nor `trainingMs`. */
  readonly decodingMs?: number;
  /** Time spent decompressing elements on arrival, in ms; overlaps waiting and training. */
  readonly unpackingMs?: number;
  /** Bytes received over the network. */
  readonly wireBytes?: number;
  /** Figures per task, for the first few tasks. */
  readonly reads?: readonly ReadFigures[];
}

/**
 * Coordinated reads: what a consumer's training loop waits for. `loop`: nothing, a batch is ready;
 * `worker`: the worker that serves the round; `consumers`: other consumers, which do not hold the
 * round yet; `schedule`: a schedule that all consumers accept, or a worker to put in it.
 */
export type RoundWait = "loop" | "worker" | "consumers" | "schedule";

/** The position of a consumer in a coordinated read. */
export interface ConsumerPlace {
  /** The round that its training loop gets next. */
  readonly round: number;
  /** What its training loop waits for. */
  readonly waitsFor: RoundWait;
}

/** Coordinated reads: the consumers' positions, and what they wait for. */
export interface RoundsDescription {
  /** The lowest round that a training loop gets next; null before the first. */
  readonly lowest: number | null;
  /** The highest one; null before the first. */
  readonly highest: number | null;
  /** Consumers that have not joined or have left. */
  readonly missing: readonly number[];
  /** A schedule change from this round on, and the consumers that have not accepted it yet. */
  readonly agreeing: { readonly fromRound: number; readonly awaited: readonly number[] } | null;
  /** One or two sentences. */
  readonly text: string;
}

/** A client's figures for one task. */
export type ReadFigures = ServiceRead;

/** A client's reads of one task. Rates cover about the last ten seconds. */
export interface ReadDescription {
  /** The task. */
  readonly taskId: number;
  /** The worker's stable name. */
  readonly worker: string;
  /** Requests in flight. */
  readonly outstanding: number;
  /** Elements received. */
  readonly elementsPerSecond: number;
  /** Their encoded size. */
  readonly bytesPerSecond: number;
  /** Bytes received, before decompression. */
  readonly wireBytesPerSecond: number;
  /** Mean time from request to element, in ms; null before the first. */
  readonly answerMs: number | null;
  /** The part of it that the request waited at the task, in ms; null before the first. */
  readonly heldMs: number | null;
  /** The round trip of an empty message, in ms; null without a network in between. */
  readonly roundTripMs: number | null;
}

/** A task's state and figures. Rates and shares cover about the last ten seconds. */
export interface TaskDescription {
  /** The task's id. */
  readonly taskId: number;
  /** The worker's stable name. */
  readonly worker: string;
  /** `starting`, `running`, `completed`, or `failed`: cannot read on, or its runners died. */
  readonly state: string;
  /** Null until the worker's first report about it. */
  readonly figures: TaskRates | null;
  /** How its dead runners ended, oldest first. Default: none. */
  readonly runnerDeaths?: readonly string[];
}

/** Figures of a task's work. */
export interface TaskRates {
  /** Elements produced by its pipeline. */
  readonly produced: number;
  /** Elements given to clients, or to the cache or scheduler in front of it. */
  readonly served: number;
  /** Their encoded size, in bytes. */
  readonly servedBytes: number;
  /** Bytes its pipeline has read from files. */
  readonly bytesRead: number;
  /** Bytes produced and not fetched yet. */
  readonly bufferedBytes: number;
  /** Requests that wait for an element now. */
  readonly waiting: number;
  /** Number of restarts after a runner died. */
  readonly runnerRestarts: number;
  /** Time its pipeline has worked, in ms. */
  readonly busyMs: number;
  /** Elements given to clients. */
  readonly elementsPerSecond: number;
  /** Bytes of elements given to clients. */
  readonly bytesPerSecond: number;
  /** Bytes read from files by its pipeline. */
  readonly bytesReadPerSecond: number;
  /** The share of time, 0 to 1, in which its pipeline worked. */
  readonly busyShare: number;
  /** Pipeline time per element, in ms; null before the first one. */
  readonly processingMs: number | null;
  /** Whether its elements are compressed; null if it sends none. */
  readonly compression: CompressionFigures | null;
  /** The window in front of it, for a job that shares its data. */
  readonly sharing: SharingDescription | null;
  /** Why its pipeline cannot run or read on; null if it can. */
  readonly failure: string | null;
}

/** A sliding window (ephemeral data sharing). */
export interface SharingDescription {
  /** Bytes of the elements in it now. */
  readonly windowBytes: number;
  /** Its maximum size: its part of the worker's `windowBytesMax`. */
  readonly windowBytesMax: number;
  /** Elements in it now. */
  readonly elements: number;
  /** Trainers with a pointer in it. */
  readonly trainers: number;
  /** Elements taken from the task. */
  readonly produced: number;
  /** Elements given to trainers. */
  readonly served: number;
  /** Elements that trainers missed because the window had moved on. */
  readonly skipped: number;
  /** Elements served that were in the window when a trainer asked. */
  readonly hits: number;
  /** Elements served that a trainer had to wait for. */
  readonly misses: number;
  /** The share of hits, 0 to 1; null before the first element. */
  readonly hitRate: number | null;
}

/** A client of an iteration. Rates and shares cover about the last ten seconds. */
export interface ClientDescription {
  /** The client's id. */
  readonly clientId: number;
  /** Coordinated reads: its index. */
  readonly consumerIndex: number | null;
  /** Coordinated reads: its position; missing before its first report. */
  readonly place?: ConsumerPlace;
  /** Null until its first report. */
  readonly figures: ClientRates | null;
}

/** Figures of a client. */
export interface ClientRates extends Partial<OrderFigures> {
  /** Elements taken by the training loop, failed ones included. */
  readonly elements: number;
  /** Their encoded size, in bytes. */
  readonly bytes: number;
  /** Time the loop has waited for elements, in ms. */
  readonly waitingMs: number;
  /** Time the loop was busy between an element and the next request, in ms. */
  readonly trainingMs: number;
  /** Requests to workers in flight. */
  readonly inFlight: number;
  /** Bytes received and not taken yet. */
  readonly bufferedBytes: number;
  /** Sharing: elements missed because they had left the window. Default 0. */
  readonly skipped?: number;
  /** Elements taken. */
  readonly elementsPerSecond: number;
  /** Their encoded size. */
  readonly bytesPerSecond: number;
  /** The share of time, 0 to 1, in which the training loop waited for an element. */
  readonly waitingShare: number;
  /** The loop's own time per element, in ms, without waiting. Null before the first one. */
  readonly targetProcessingMs: number | null;
  /** Time spent decoding, in ms. */
  readonly decodingMs?: number;
  /** Time spent decompressing, in ms. */
  readonly unpackingMs?: number;
  /** Bytes received, before decompression. */
  readonly wireBytes?: number;
  /** The share of time, 0 to 1, that decoding took on the loop's thread. */
  readonly decodingShare: number;
  /** The share of time, 0 to 1, that decompression took on the loop's thread. */
  readonly unpackingShare: number;
  /** Bytes received, before decompression. */
  readonly wireBytesPerSecond: number;
  /** Figures per task, for the first few tasks. */
  readonly reads: readonly ReadDescription[];
}

/** The bottleneck of an iteration. */
export interface Bottleneck {
  /** `trainers_wait`: more workers help; `workers_wait`: slow trainers; `stuck`: no progress. */
  readonly kind: "trainers_wait" | "workers_wait" | "balanced" | "stuck" | "unknown";
  /** One sentence. */
  readonly text: string;
}

/** A worker's activity, and why it is idle. */
export interface WorkerActivity {
  /** `idle`: it has no work; `gone`: its heartbeats have stopped. */
  readonly state: "working" | "idle" | "starting" | "gone";
  /** Why it does not work, and the remedy; null while it works. */
  readonly reason: string | null;
}

/** A worker's process and its total rates over all tasks. */
export interface WorkerRates {
  /** Age of the newest figures, in ms. */
  readonly ageMs: number;
  /** Null if the platform does not measure it. */
  readonly process: (ProcessUsage & { readonly cpuCores: number }) | null;
  /** Elements given to clients. */
  readonly elementsPerSecond: number;
  /** Their encoded size. */
  readonly bytesPerSecond: number;
  /** The maximum of its tasks' shares; 1: a pipeline works all the time. */
  readonly busyShare: number;
  /** The worker takes no more work and stops soon. */
  readonly draining?: boolean;
}

/**
 * What a job has used since this dispatcher started: the quantities of equation 1 of the tf.data
 * service paper, before prices.
 */
export interface JobUsage {
  /**
   * CPU time of workers, in core hours, divided between a worker's jobs in proportion to their
   * pipelines' work. Null if no worker has its own process, as it cannot be measured then.
   */
  readonly workerCpuHours: number | null;
  /** Memory of workers, in GB (10⁹ bytes) times hours, divided evenly between a worker's tasks. */
  readonly workerMemoryGBHours: number | null;
  /** Time pipelines have worked, in hours, summed over tasks. */
  readonly workerBusyHours: number;
  /** Time clients were connected, in hours, summed over clients. */
  readonly clientHours: number;
  /** The workers' cost at the paper's prices, in US dollars. */
  readonly workersDollars: number | null;
}
