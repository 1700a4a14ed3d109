/** The messages between the fuzzing process and the one that watches it. */
import type { Verdict } from "./cases.ts";

/** The task of a child. */
export interface Task {
  /** The module of the targets. */
  readonly module: string;
  readonly target: string;
  readonly seed: string;
  /** The first input, … */
  readonly first: number;
  /** … and the one after the last. */
  readonly end: number;
  /** How long to run, in ms. Default: to the last input. */
  readonly ms?: number;
  /** Announces each input before it runs. */
  readonly isCareful: boolean;
  readonly memoryBytesMax: number;
  /** This input alone, in base64. */
  readonly input?: string;
}

/**
 * A child's exit code after an input that exceeded the memory limit: the peak never falls again.
 */
export const EXIT_MEMORY = 3;

/** Why an input is a failure. */
export type Reason = "error" | "memory" | "hang" | "crash";

/** An input that the code did not withstand. */
export interface Failure {
  readonly kind: "failure";
  readonly index: number;
  readonly reason: Reason;
  readonly message: string;
  /** The same for inputs that fail alike. */
  readonly signature: string;
  /** In base64. */
  readonly input: string;
}

/** A line of a child. */
export type News =
  /**
   * The input that is about to run; its bytes if the task is careful; how many were valid so far.
   */
  | { readonly kind: "at"; readonly index: number; readonly valid: number; readonly input?: string }
  | Failure
  | { readonly kind: "done"; readonly runs: number; readonly valid: number };

/** A failure with an error outside the allowed codes. */
export function inProcessFailure(
  index: number,
  input: Uint8Array,
  { message, signature }: Extract<Verdict, { kind: "failed" }>,
): Failure {
  return { kind: "failure", index, reason: "error", message, signature, input: input.toBase64() };
}
