/**
 * Runners: where a task's pipeline runs, apart from the actor that serves its elements. A user
 * function that spins keeps a runner busy, never a worker's mailbox or a socket.
 *
 * @module
 */
import type { WireError } from "../../core/error.ts";
import type { Split, SplitTable } from "../../data/splits.ts";

/** What to run. Plain data: it travels to a runner's thread. */
export interface RunnerSettings {
  /** `Dataset.serialize()`. */
  readonly graph: Uint8Array;
  /** The seed of the iteration, 16 hexadecimal digits; it gives way to a seed the pipeline names. */
  readonly seed: string;
  /** Sets this task apart from others that run the same pipeline, 16 hexadecimal digits. */
  readonly salt: string;
  /** Counts the iterations of the job. */
  readonly epoch: number;
  /** Whether sources read only the splits they are handed. */
  readonly splits: boolean;
  /** Whether elements are to lie in memory that several threads may read. */
  readonly shared: boolean;
}

/** One step of a pipeline. */
export type RunnerOutcome =
  | { readonly kind: "element"; readonly frame: Uint8Array }
  | { readonly kind: "error"; readonly error: WireError }
  | { readonly kind: "end" };

/** Hands splits to a runner. */
export interface RunnerSplits {
  /** The next split of a source, or null when the repetition has no more for anybody. */
  next(source: number, repetition: number): Promise<Split | null>;
  /** How many splits the source has in all. */
  total(source: number): Promise<number>;
}

/** A pipeline that runs. */
export interface Runner {
  /**
   * The next element, encoded. Calls may overlap and are answered in order. An element that fails is
   * an outcome, not a rejection.
   *
   * @throws LeatError `unavailable` when the runner itself died: its place in the data is lost.
   */
  next(): Promise<RunnerOutcome>;
  /** Bytes its pipeline has read from files so far. */
  readonly bytesRead: number;
  /** Stops the pipeline, at once and whatever it is doing. Idempotent. */
  dispose(): void;
}

/** Makes runners. */
export interface RunnerFactory {
  /** Starts a pipeline; it begins to work at the first `next()`. */
  start(settings: RunnerSettings, splits: RunnerSplits): Runner;
  /** Lists the splits of a pipeline's sources. @throws LeatError what the listing failed with. */
  listSplits(graph: Uint8Array): Promise<SplitTable>;
  /** Disposes all runners and lets go of their threads. */
  close(): Promise<void>;
}
