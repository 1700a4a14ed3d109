/**
 * Figures: what workers and clients say in their heartbeats of how they are doing, and what the
 * dispatcher makes of it for people. None of it is journaled: a dispatcher that starts again has
 * none until the next heartbeats.
 *
 * Heartbeats carry counts that only grow, with the time of the sender's own monotonic clock. Rates
 * are taken by the dispatcher between two of them, so that no delay on the way changes them.
 *
 * @module
 */
import type { ServiceRead } from "../../data/iterators/stats.ts";
import type { CompressionFigures } from "../worker/protocol.ts";

/** What a process uses, as the operating system counts it. */
export interface ProcessUsage {
  /** CPU time since the process began, of all its threads, in seconds. */
  readonly cpuSeconds: number;
  /** Resident memory now, in bytes. */
  readonly memoryBytes: number;
  /**
   * Others work in the process beside this worker, as on the threads of a local cluster: the numbers
   * are the process's, and nobody can say which part is the worker's.
   */
  readonly shared: boolean;
  /**
   * Threads of this worker that were told to end and run on, because a function on them never gives
   * way; left out: none. Each keeps a core until the process ends.
   */
  readonly runawayThreads?: number;
}

/** What a worker says of itself. What it says of its tasks stands with each of them. */
export interface WorkerFigures {
  /** The worker's monotonic clock, in ms. */
  readonly atMs: number;
  /** Left out where the world does not tell. */
  readonly process?: ProcessUsage;
  /** It takes no more work, and ends once clients have what it holds. Default false. */
  readonly draining?: boolean;
}

/** DETERMINISTIC: what keeping the order costs a reader. */
export interface OrderFigures {
  /** How much of the waiting was for one split while elements of others were there, in ms. */
  readonly headOfLineMs: number;
  /** The most bytes that have waited here so far, those for the training loop included. */
  readonly bufferedBytesMax: number;
  /**
   * The most splits that were open at once so far: from the first that was not here whole to the last
   * of which something was. At most the dispatcher's `windowSplits`.
   */
  readonly openSplitsMax: number;
}

/** What a client says of itself: where its training loop's time goes, and what is under way. */
export interface ClientFigures extends Partial<OrderFigures> {
  /** The client's monotonic clock, in ms. */
  readonly atMs: number;
  /** Elements that the training loop has taken, failed ones included. */
  readonly elements: number;
  /** Their encoded size, in bytes. */
  readonly bytes: number;
  /** How long the loop has waited for elements, in ms. */
  readonly waitingMs: number;
  /** How long it was busy between having one and asking for the next, in ms. */
  readonly trainingMs: number;
  /** Requests to workers that are open now. */
  readonly inFlight: number;
  /** What has arrived and was not taken yet, in bytes. */
  readonly bufferedBytes: number;
  /** Sharing: elements that it has missed because they had left the window; left out: none. */
  readonly skipped?: number;
  /** What decoding elements took, in ms: between waiting for one and being busy with it. */
  readonly decodingMs?: number;
  /** What unpacking compressed elements took, in ms: as they came, while the loop waited or was busy. */
  readonly unpackingMs?: number;
  /** What has come over the wire, in bytes. */
  readonly wireBytes?: number;
  /** How it goes with each task; those beyond the first few are left out. */
  readonly reads?: readonly ReadFigures[];
}

/**
 * Coordinated reads: whom a consumer's training loop waits for. `loop`: nobody, there is a batch for it;
 * `worker`: the one that serves the round; `consumers`: others, which do not hold the round yet;
 * `schedule`: the consumers' agreement on who serves it, or a worker to agree on.
 */
export type RoundWait = "loop" | "worker" | "consumers" | "schedule";

/** Where a consumer of a coordinated read is. */
export interface ConsumerPlace {
  /** The round that its training loop gets next. */
  readonly round: number;
  /** What its training loop waits for. */
  readonly waitsFor: RoundWait;
}

/** Coordinated reads: how far the consumers are, and who waits for whom. */
export interface RoundsDescription {
  /** The lowest round that a training loop gets next; null before the first. */
  readonly lowest: number | null;
  /** The highest one; null before the first. */
  readonly highest: number | null;
  /** Consumers that are not there. */
  readonly missing: readonly number[];
  /** A change of who serves the rounds from this one on, and the consumers that have yet to agree to it. */
  readonly agreeing: { readonly fromRound: number; readonly awaited: readonly number[] } | null;
  /** In a sentence or two. */
  readonly text: string;
}

/** How it goes with reading one task, as its client counts it. */
export type ReadFigures = ServiceRead;

/** How a client reads one task. Rates are those of the newest ten seconds or so. */
export interface ReadDescription {
  /** The task. */
  readonly taskId: number;
  /** The worker's stable name. */
  readonly worker: string;
  /** Requests that are open now. */
  readonly outstanding: number;
  /** Elements received. */
  readonly elementsPerSecond: number;
  /** Their encoded size. */
  readonly bytesPerSecond: number;
  /** Bytes received, compressed as they were. */
  readonly wireBytesPerSecond: number;
  /** Mean time from request to element, in ms; null before the first. */
  readonly answerMs: number | null;
  /** How much of it the request waited at the task, in ms; null before the first. */
  readonly heldMs: number | null;
  /** The round trip of an empty message, in ms; null where no network lies between. */
  readonly roundTripMs: number | null;
}

/** What is known of a task's work. Rates and shares are those of the newest ten seconds or so. */
export interface TaskDescription {
  /** Its number. */
  readonly taskId: number;
  /** The worker's stable name. */
  readonly worker: string;
  /** `starting`, `running`, `completed`, or `failed`: it cannot read on, or was ended as its runners died. */
  readonly state: string;
  /** Null until the worker has said something of it. */
  readonly figures: TaskRates | null;
  /** How its runners ended that died, oldest first; left out: none did. */
  readonly runnerDeaths?: readonly string[];
}

/** Figures of a task's work. */
export interface TaskRates {
  /** Elements that its pipeline has produced. */
  readonly produced: number;
  /** Elements handed to clients, or to what stands before it. */
  readonly served: number;
  /** Their encoded size, in bytes. */
  readonly servedBytes: number;
  /** Bytes its pipeline has read from files. */
  readonly bytesRead: number;
  /** Produced and not fetched yet, in bytes. */
  readonly bufferedBytes: number;
  /** Requests that wait for an element now. */
  readonly waiting: number;
  /** How often its runner died and was started again. */
  readonly runnerRestarts: number;
  /** How long its pipeline worked, in ms. */
  readonly busyMs: number;
  /** Elements given to clients. */
  readonly elementsPerSecond: number;
  /** Bytes of elements given to clients. */
  readonly bytesPerSecond: number;
  /** Bytes that its pipeline reads from files. */
  readonly bytesReadPerSecond: number;
  /** The share of the time, 0 to 1, in which its pipeline was at work. */
  readonly busyShare: number;
  /** What an element takes to produce, in ms of the pipeline's work; null before the first one. */
  readonly processingMs: number | null;
  /** Whether its elements are compressed; null where it sends none. */
  readonly compression: CompressionFigures | null;
  /** The window before it, of a job that shares its data. */
  readonly sharing: SharingDescription | null;
  /** Why its pipeline cannot be run, or read on; null: it can. */
  readonly failure: string | null;
}

/** A sliding window (ephemeral data sharing). */
export interface SharingDescription {
  /** Bytes of the elements in it now. */
  readonly windowBytes: number;
  /** What it may grow to: its part of the worker's `windowBytesMax`. */
  readonly windowBytesMax: number;
  /** Elements in it now. */
  readonly elements: number;
  /** Trainers that it has pointers of. */
  readonly trainers: number;
  /** Elements it has taken from the task. */
  readonly produced: number;
  /** Elements it has given to trainers. */
  readonly served: number;
  /** Elements that trainers have missed because the window had moved on. */
  readonly skipped: number;
  /** Elements served that were in the window when a trainer asked. */
  readonly hits: number;
  /** Elements served that a trainer had to wait for. */
  readonly misses: number;
  /** The share of hits, 0 to 1; null before the first element. */
  readonly hitRate: number | null;
}

/** A client of an iteration. Rates and shares are those of the newest ten seconds or so. */
export interface ClientDescription {
  /** Its number. */
  readonly clientId: number;
  /** Coordinated reads. */
  readonly consumerIndex: number | null;
  /** Coordinated reads: where it is; left out until it has said so. */
  readonly place?: ConsumerPlace;
  /** Null until it has said something of itself. */
  readonly figures: ClientRates | null;
}

/** Figures of a client. */
export interface ClientRates extends Partial<OrderFigures> {
  /** Elements that the training loop has taken, failed ones included. */
  readonly elements: number;
  /** Their encoded size, in bytes. */
  readonly bytes: number;
  /** How long the loop has waited for elements, in ms. */
  readonly waitingMs: number;
  /** How long it was busy between having one and asking for the next, in ms. */
  readonly trainingMs: number;
  /** Requests to workers that are open now. */
  readonly inFlight: number;
  /** Bytes that have arrived and were not taken yet. */
  readonly bufferedBytes: number;
  /** Sharing: elements missed because they had left the window; left out: none. */
  readonly skipped?: number;
  /** Elements taken. */
  readonly elementsPerSecond: number;
  /** Their encoded size. */
  readonly bytesPerSecond: number;
  /** The share of its time, 0 to 1, in which the training loop waited for an element. */
  readonly waitingShare: number;
  /**
   * What the loop takes for an element by itself, in ms: how often it would ask if it never waited.
   * Null before the first one.
   */
  readonly targetProcessingMs: number | null;
  /** How long decoding took, in ms. */
  readonly decodingMs?: number;
  /** How long decompression took, in ms. */
  readonly unpackingMs?: number;
  /** Bytes received, compressed as they were. */
  readonly wireBytes?: number;
  /** The share of its time, 0 to 1, that decoding took on the loop's thread. */
  readonly decodingShare: number;
  /** The share of its time, 0 to 1, that decompression took on the loop's thread. */
  readonly unpackingShare: number;
  /** Bytes received, compressed as they were. */
  readonly wireBytesPerSecond: number;
  /** Each task that it reads; those beyond the first few are left out. */
  readonly reads: readonly ReadDescription[];
}

/** Who waits for whom. */
export interface Bottleneck {
  /** `trainers_wait`: more workers help; `workers_wait`: the trainers are slower; `stuck`: nothing moves. */
  readonly kind: "trainers_wait" | "workers_wait" | "balanced" | "stuck" | "unknown";
  /** In a sentence. */
  readonly text: string;
}

/** What a worker is doing, in a word, and why it does nothing. */
export interface WorkerActivity {
  /** `idle`: it has nothing to do; `gone`: its heartbeats have stopped. */
  readonly state: "working" | "idle" | "starting" | "gone";
  /** Why it does not work, and what helps; null while it does. */
  readonly reason: string | null;
}

/** A worker's process and its work in all, over its tasks. */
export interface WorkerRates {
  /** How old the newest figures are, in ms. */
  readonly ageMs: number;
  /** Null where the world does not tell. */
  readonly process: (ProcessUsage & { readonly cpuCores: number }) | null;
  /** Elements given to clients. */
  readonly elementsPerSecond: number;
  /** Their encoded size. */
  readonly bytesPerSecond: number;
  /** The greatest of its tasks' shares: 1 when a pipeline never rests. */
  readonly busyShare: number;
  /** It takes no more work, if so, and will be gone. */
  readonly draining?: boolean;
}

/**
 * What a job has used of the service since this dispatcher began: the quantities of equation 1 of the
 * tf.data service paper, before prices.
 */
export interface JobUsage {
  /**
   * CPU time of workers, in core hours, divided between a worker's jobs by what their pipelines worked.
   * Null when no worker has a process of its own: then nobody can tell.
   */
  readonly workerCpuHours: number | null;
  /** Memory of workers, in GB (10⁹ bytes) times hours, divided evenly between a worker's tasks. */
  readonly workerMemoryGBHours: number | null;
  /** How long pipelines worked, in hours, summed over tasks. */
  readonly workerBusyHours: number;
  /** How long clients were there, in hours, summed over clients. */
  readonly clientHours: number;
  /** What the workers cost by the paper's prices, in US dollars. */
  readonly workersDollars: number | null;
}
