/** The measurements of a cluster size, as plain data. */
import type { Quantity } from "../lib/quantity.ts";

/** The measurements of one cluster. */
export interface SizeRun {
  readonly workers: number;
  readonly clients: number;
  /** The number of pools of workers. Each pool has its own job, which some of the clients read. */
  readonly pools: number;
  /** Messages that the dispatcher handles, per second. */
  readonly dispatcherMessages: Quantity;
  /** The dispatcher's median time for a message of this kind on this machine, in µs. */
  readonly workerHeartbeat: Quantity;
  readonly clientHeartbeat: Quantity;
  readonly split: Quantity;
  /** Time from the start until the first client has a batch, and until all clients have one. */
  readonly firstBatch: Quantity;
  readonly allBatches: Quantity;
  /** Time from the dispatcher's crash until it has restarted and every worker has reported its task. */
  readonly recovery: Quantity;
  /** CPU time on this machine to restart from the journal. */
  readonly replay: Quantity;
  /** Memory of this process per simulated node. */
  readonly heapPerNode: Quantity;
  /** The dispatcher's state in a snapshot, per worker. */
  readonly statePerWorker: Quantity;
  readonly batches: Quantity;
  /** Simulated events per ms of this machine's CPU time. */
  readonly eventsPerCpuMs: Quantity;
  readonly cpuSeconds: Quantity;
  /** Memory of this process at the end. */
  readonly memory: Quantity;
}

/** One point of the worker sweep. */
export interface SweepRun {
  readonly workers: number;
  readonly throughput: Quantity;
  readonly speedup: Quantity;
  readonly costSaving: Quantity;
  readonly workerBusy: Quantity;
  readonly stalled: Quantity;
  /** The number in the paper's text, if it gives one. */
  readonly paperSpeedup?: Quantity;
  readonly paperCostSaving?: Quantity;
}

/** A size that could not be measured. */
export interface Gap {
  readonly series: Series;
  readonly workers: number;
  readonly reason: string;
}

/** The series of cluster sizes. */
export type Series = "cluster sizes" | "worker sweep of the paper";

export interface ScaleResults {
  readonly sizes: readonly SizeRun[];
  readonly sweep: readonly SweepRun[];
  readonly gaps: readonly Gap[];
}

/** The content of the page. */
export interface ScaleReport extends ScaleResults {
  readonly startedAt: string;
  readonly durationSeconds: number;
  readonly commandLine: string;
  readonly host: string;
}
