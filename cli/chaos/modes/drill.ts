/**
 * A drill: one job of some kind that is read, or written, while processes are killed, paused and cut
 * off, and what was promised of it.
 *
 * @module
 */
import type { RandomStream } from "../../../core/philox.ts";
import type { Findings } from "../../../sim/checkers/checker.ts";
import type { ReaderOptions } from "../readers.ts";

/** The kinds of jobs. */
export const MODES = ["DETERMINISTIC", "DYNAMIC", "OFF", "sharing", "coordinated", "save"] as const;
export type Mode = (typeof MODES)[number];

/** How much there is to do. */
export interface JobSize {
  readonly elements: number;
  /** Steps of computation per element, about a nanosecond each. */
  readonly work: number;
}

/** What a drill has around it. */
export interface Around {
  /** What its jobs are called: no other run has them. */
  readonly name: string;
  readonly size: JobSize;
  readonly luck: RandomStream;
  /** What workers may write to. */
  readonly folder: string;
  readonly workers: number;
  /** Where a checker puts down what was promised and is not so. */
  findings(checker: string): Findings;
  /** An address at which a reader finds the cluster, by connections of its own. */
  openReader(name: string, options?: ReaderOptions): { readonly address: string } & Disposable;
  /** A loop has taken something, and is so far, 0 to 1. Resolves when it may go on. */
  step(share: number): Promise<void>;
  /** Ends the faults of this run. Resolves when every process that was in trouble is well again. */
  calm(): Promise<void>;
  /** Whether all faults have come that are to come. */
  readonly areFaultsOver: boolean;
  /**
   * Whether since the run began a worker was killed, or given up by the dispatcher: what it had is
   * lost then, where the mode says so.
   */
  hasLostWorker(): Promise<boolean>;
  /** Whether since then a worker was stopped in order: a stream of its own ended there. */
  readonly hasWorkerLeft: boolean;
}

/** What came of a drill. */
export interface DrillFigures {
  /** Batches or elements that loops were given. */
  readonly delivered: number;
  /** What there is to say of it. */
  readonly remark: string;
}
