/**
 * Scaling: how many workers there should be, as the dispatcher tells it to people and to whatever
 * starts and stops workers. None of it is journaled.
 *
 * @module
 */
import type { TargetWorkers } from "../../data/service/target_workers.ts";

/** How many workers a cluster should have, and why. */
export interface ScalingDescription {
  /** Workers that are alive and can be reached. */
  readonly workers: number;
  /** How many there should be: what the job wants that wants most, within the limits. */
  readonly wanted: number;
  /** The least that `wanted` may be. */
  readonly minWorkers: number;
  /** The most that it may be. */
  readonly maxWorkers: number;
  /** In a sentence. */
  readonly text: string;
  /** The jobs that somebody reads and that are not all produced. */
  readonly jobs: readonly JobScaling[];
  /** What is wanted of the workers that may serve some jobs and not others. Default: all serve all. */
  readonly pools?: readonly PoolScaling[];
}

/** Which workers a job may be served by, whoever its clients are. */
export interface WorkerPool {
  /** Default `"auto"`. */
  readonly targetWorkers?: Exclude<TargetWorkers, "auto">;
  /** They carry all of these. */
  readonly targetTags?: readonly string[];
  /** Static policies: they are among these, by name. */
  readonly names?: readonly string[];
  /** Coordinated reads: all consumers read the same workers, COLOCATED ones of other processes too. */
  readonly numConsumers?: number;
}

/** How many workers the jobs of one pool want. */
export interface PoolScaling extends WorkerPool {
  /** The most that one of them wanted of late. Not within the limits of the cluster. */
  readonly wanted: number;
}

/** How many workers one job wants. */
export interface JobScaling {
  /** The number of the job. */
  readonly jobId: number;
  /** Its name. */
  readonly name: string;
  /** Not within the limits of the cluster; and at once, where the cluster falls slowly. */
  readonly wanted: number;
  /**
   * `unknown`: too little was measured since its workers changed; `more`: its trainers wait and its
   * workers are busy; `enough`; `limited`: its trainers wait for something that more workers do not
   * mend; `fixed`: a static policy divides it among a list of workers.
   */
  readonly kind: "unknown" | "more" | "enough" | "limited" | "fixed";
  /** In a sentence. */
  readonly text: string;
}
