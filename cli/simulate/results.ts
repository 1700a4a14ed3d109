/**
 * The results of the main job as plain data. The experiments produce it; the tables, the findings and
 * the report read it. Every number has a unit and says whether it was measured or modelled.
 */

import type { Provenance, Quantity } from "../lib/quantity.ts";

/** The content of the report. */
export interface SimulationReport {
  run: RunDescription;
  /** In display order. An experiment that did not run is left out. */
  experiments: Experiment[];
}

/** Where, when and how the experiments ran. */
export interface RunDescription {
  /** Start, as an ISO 8601 time. */
  startedAt: string;
  /** Wall-clock time of all experiments, in seconds. */
  durationSeconds: number;
  /** The command that repeats the run. */
  commandLine: string;
  hostCores: number;
  /** Operating system and architecture, for example `linux x86_64`. */
  platform: string;
  /** Versions by name, for example `{ leat: "0.1.0", deno: "2.9.6" }`. */
  versions: Record<string, string>;
  /** Sentences about the data, one per corpus. */
  corpus: string[];
  /** Whether `--quick` shortened the runs. */
  quick: boolean;
}

export type Experiment =
  | ScaleOutExperiment
  | SharingExperiment
  | CoordinatedReadsExperiment
  | WorkerFailureExperiment;

interface ExperimentBase {
  /** Remarks about method and limits; one or two sentences each. */
  notes: string[];
}

/** (a) Preprocessing colocated, on 1, 2, 4… workers, and infinitely fast (Fig. 8, 9). */
export interface ScaleOutExperiment extends ExperimentBase {
  kind: "scale_out";
  hostCores: number;
  /** One per storage latency, the local files first. */
  curves: ScaleOutCurve[];
}

export interface ScaleOutCurve {
  /** Latency added to each read, in milliseconds; 0 for local files. */
  storageLatencyMs: number;
  /** Preprocessing within the trainer. */
  colocated: ScaleOutRun;
  /** Preprocessing by workers, in ascending order of their number. */
  runs: ScaleOutRun[];
  /** Throughput with an infinitely fast pipeline, in `batches/s`. */
  ideal: Quantity;
  /** From this number of workers on, the host's cores limit throughput. */
  coresEndAtWorkers?: number;
}

export interface ScaleOutRun {
  /** Number of workers; 0 for colocated preprocessing. */
  workers: number;
  /** In `batches/s`. */
  throughput: Quantity;
  /** Share of the trainer's time spent waiting for data, 0 to 1. */
  stallShare: Quantity;
  /** Cores that the whole process kept busy, in `cores`. */
  cpu: Quantity;
  /** Equation 1 for a thousand batches, in `USD`. */
  costPerThousandBatches: Quantity;
}

/** How a service serves several trainers with the same pipeline (Fig. 10). */
export type SharingMode = "A" | "B" | "C";

/** The names of the modes, for headings and legends. */
export const SHARING_MODES: Record<SharingMode, string> = {
  A: "one deployment, sharing on",
  B: "one deployment, sharing off",
  C: "a deployment each",
};

/** (b) `k` trainers on one pipeline (Fig. 10). */
export interface SharingExperiment extends ExperimentBase {
  kind: "sharing";
  /** Workers of one deployment. */
  workers: number;
  runs: SharingRun[];
}

export interface SharingRun {
  mode: SharingMode;
  /** Number of trainers, `k`. */
  trainers: number;
  /** Mean time of a trainer's job, in `s`. */
  jobTime: Quantity;
  /** Batches that workers produced for all trainers together, in `batches`. */
  batchesProduced: Quantity;
  /** Bytes read from storage, in `bytes`. */
  bytesRead: Quantity;
  /** CPU time of preprocessing, in `s`. */
  cpuTime: Quantity;
  /** Batches that trainers missed because the window had moved past them, in `batches`. */
  batchesSkipped: Quantity;
}

/** (c) Text on several trainers with and without coordinated reads (Fig. 11). */
export interface CoordinatedReadsExperiment extends ExperimentBase {
  kind: "coordinated_reads";
  trainers: number;
  workers: number;
  /** Upper ends of the buckets, in tokens. */
  bucketBoundaries: number[];
  /** Batches of any lengths. */
  uncoordinated: ReadsRun;
  /** Each batch is of one bucket, but in a step trainers may get batches of different buckets. */
  bucketed?: ReadsRun;
  /** In a step all trainers get batches of one bucket. */
  coordinated: ReadsRun;
}

export interface ReadsRun {
  /** Share of padding in the tokens that accelerators processed, 0 to 1. */
  paddingShare: Quantity;
  /** Share of accelerator time spent waiting for the slowest trainer of a step, 0 to 1. */
  idleShare: Quantity;
  /** Tokens of data, without padding, that all trainers together process, in `tokens/s`. */
  throughput: Quantity;
  /** Time of every synchronous step, in milliseconds. */
  stepTimesMs: number[];
  /** Whether the step times were measured or modelled. */
  stepTimesProvenance: Provenance;
}

/** (d) A worker killed mid-run. */
export interface WorkerFailureExperiment extends ExperimentBase {
  kind: "worker_failure";
  /** Sharding policy of the run, for example `DYNAMIC`. */
  processingMode: string;
  /** Width of one interval of the timeline, in milliseconds. */
  intervalMs: number;
  /** What each worker delivered. */
  timeline: WorkerTimeline[];
  killedWorker: string;
  /** When the worker was killed, in milliseconds since the run began. */
  killedAtMs: number;
  /**
   * When a replacement was registered, in milliseconds since the run began. Absent without a
   * replacement.
   */
  restartedAtMs?: number;
  /** Elements of one epoch, in `elements`. */
  elements: { expected: Quantity; delivered: Quantity; lost: Quantity; repeated: Quantity };
}

interface WorkerTimeline {
  worker: string;
  /** Batches delivered to the trainer in each interval, from the start of the run. */
  batches: number[];
  provenance: Provenance;
}
