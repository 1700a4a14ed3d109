/** The measurements of a cluster size, as plain data. */
import type { Quantity } from "../lib/quantity.ts";

/** One cluster. */
export interface SizeRun {
  readonly workers: number;
  readonly clients: number;
  /** Pools of workers, each with a job of its own that some of the clients read. */
  readonly pools: number;
  /** Messages that the dispatcher handles, per second. */
  readonly dispatcherMessages: Quantity;
  /** Median time of the dispatcher for a message of this kind on this machine, in µs. */
  readonly workerHeartbeat: Quantity;
  readonly clientHeartbeat: Quantity;
  readonly split: Quantity;
  /** From the start until the first client has a batch, and until all have. */
  readonly firstBatch: Quantity;
  readonly allBatches: Quantity;
  /** From the dispatcher's crash until it has restarted and every worker has reported its task. */
  readonly recovery: Quantity;
  /** CPU time of this machine to restart from the journal. */
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
  /** The number in the paper's text, if any. */
  readonly paperSpeedup?: Quantity;
  readonly paperCostSaving?: Quantity;
}

/** A size that could not be measured. */
export interface Gap {
  readonly series: Series;
  readonly workers: number;
  readonly reason: string;
}

/** The series of sizes. */
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
