/**
 * A drill: one job of some kind that is read, or written, under faults, and the checks of its
 * guarantees.
 */
import type { RandomStream } from "../../../core/philox.ts";
import type { Findings } from "../../../sim/checkers/checker.ts";
import type { ReaderOptions } from "../readers.ts";

/** The kinds of jobs. */
export const MODES = ["DETERMINISTIC", "DYNAMIC", "OFF", "sharing", "coordinated", "save"] as const;
export type Mode = (typeof MODES)[number];

export interface JobSize {
  readonly elements: number;
  /** Steps of computation per element, about a nanosecond each. */
  readonly work: number;
}

/** The environment of a drill. */
export interface Around {
  /** The unique name of its jobs. */
  readonly name: string;
  readonly size: JobSize;
  readonly rng: RandomStream;
  /** The folder that workers may write to. */
  readonly folder: string;
  readonly workers: number;
  /** Records broken guarantees for a checker. */
  findings(checker: string): Findings;
  /** An address at which a reader reaches the cluster, over connections of its own. */
  openReader(name: string, options?: ReaderOptions): { readonly address: string } & Disposable;
  /** A loop has taken something, and has this progress, 0 to 1. Resolves when it may continue. */
  step(share: number): Promise<void>;
  /** Ends the faults of this run. Resolves when every process has recovered. */
  calm(): Promise<void>;
  /** Whether all faults have begun. */
  readonly areFaultsOver: boolean;
  /**
   * Whether since the run began a worker was killed, or timed out: in some modes its splits are
   * lost then.
   */
  hasLostWorker(): Promise<boolean>;
  /** Whether since then a worker was stopped in order: its own stream ended there. */
  readonly hasWorkerLeft: boolean;
}

/** The result of a drill. */
export interface DrillFigures {
  /** Batches or elements that loops received. */
  readonly delivered: number;
  /** A remark for the table. */
  readonly remark: string;
}
