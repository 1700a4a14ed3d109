/** A drill: reads or writes one job of some kind under faults, and checks the job's guarantees. */
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
export interface DrillContext {
  /** The unique name of the drill's job. */
  readonly name: string;
  readonly size: JobSize;
  readonly rng: RandomStream;
  /** The folder that workers may write to. */
  readonly folder: string;
  readonly workers: number;
  /** Records broken guarantees for a checker. */
  findings(checker: string): Findings;
  /** An address at which one reader reaches the cluster, over connections of its own. */
  openReader(name: string, options?: ReaderOptions): { readonly address: string } & Disposable;
  /** Reports a step of a reader, and its progress from 0 to 1. Resolves when the reader may continue. */
  step(share: number): Promise<void>;
  /** Begins no more faults in this run. Resolves when those in progress have ended. */
  endFaults(): Promise<void>;
  /** Whether all faults have begun. */
  readonly areFaultsOver: boolean;
  /**
   * Whether a worker was killed, timed out, or was stopped before it had drained. In some modes its
   * splits are then lost. Waits some seconds for the dispatcher to say so.
   */
  hasLostWorker(): Promise<boolean>;
  /** Whether the scaler stopped a worker in this run. Under OFF this ends the worker's stream. */
  readonly hasWorkerLeft: boolean;
}

/** The result of a drill. */
export interface DrillFigures {
  /** How many batches or elements readers received. */
  readonly delivered: number;
  /** A remark for the table. */
  readonly remark: string;
}
