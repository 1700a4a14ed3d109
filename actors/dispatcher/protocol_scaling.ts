/**
 * Scaling: how many workers there should be, for people and for programs that start and stop
 * workers. None of it is journaled.
 */
import type { TargetWorkers } from "../../data/service/reading_choices.ts";

/** How many workers a cluster should have, and why. */
export interface ScalingDescription {
  /** Workers that are alive and can be reached. */
  readonly workers: number;
  /** How many there should be: the recent maximum over jobs, within the limits. */
  readonly wanted: number;
  /** The lower limit of `wanted`. */
  readonly minWorkers: number;
  /** The upper limit of `wanted`. */
  readonly maxWorkers: number;
  /** One sentence. */
  readonly text: string;
  /** The jobs with readers and something left to produce. */
  readonly jobs: readonly JobScaling[];
  /** How many workers each group of jobs wants that the same workers may serve. */
  readonly pools?: readonly PoolScaling[];
}

/** Which workers may serve a job, for any client. */
export interface WorkerPool {
  /** Default `"auto"`. */
  readonly targetWorkers?: Exclude<TargetWorkers, "auto">;
  /** The workers have all of these tags. */
  readonly targetTags?: readonly string[];
  /** Static policies: the workers are among these, by name. */
  readonly names?: readonly string[];
  /**
   * Coordinated reads: all consumers read the same workers, even COLOCATED ones of other processes.
   */
  readonly numConsumers?: number;
}

/** How many workers the jobs of one pool want. */
export interface PoolScaling extends WorkerPool {
  /** The recent maximum over its jobs, without the cluster's limits. */
  readonly wanted: number;
}

/** How many workers one job wants. */
export interface JobScaling {
  /** The job's id. */
  readonly jobId: number;
  /** Its name. */
  readonly name: string;
  /** What the job wants now, without the cluster's limits and without its slow decrease. */
  readonly wanted: number;
  /**
   * `unknown`: too little was measured since its workers changed; `more`: its trainers wait and its
   * workers are busy; `enough`: its trainers hardly wait; `limited`: its trainers wait for
   * something that more workers cannot speed up; `fixed`: a static policy divides it among a list
   * of workers.
   */
  readonly kind: "unknown" | "more" | "enough" | "limited" | "fixed";
  /** One sentence. */
  readonly text: string;
}
