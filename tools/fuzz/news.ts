/** The messages between a process that runs inputs and the process that watches it. */
import type { Verdict } from "./cases.ts";

/** The task of a child. */
export interface Task {
  /** The module of the targets. */
  readonly module: string;
  readonly target: string;
  readonly seed: string;
  /** The number of the first input. */
  readonly first: number;
  /** The number after the last input. */
  readonly end: number;
  /** Time limit, in ms. Default: none. */
  readonly ms?: number;
  /** Whether each input is announced before it runs. */
  readonly isCareful: boolean;
  readonly memoryBytesMax: number;
  /** The only input to run, in base64. */
  readonly input?: string;
}

/**
 * A child's exit code after an input exceeded the memory limit. The child ends, because its peak never
 * falls again.
 */
export const EXIT_MEMORY = 3;

/** Why an input is a failure. */
export type Reason = "error" | "memory" | "hang" | "crash";

/** An input that the code neither reads nor refuses. */
export interface Failure {
  readonly kind: "failure";
  readonly index: number;
  readonly reason: Reason;
  readonly message: string;
  /** Equal for inputs that fail alike. */
  readonly signature: string;
  /** The input, in base64. */
  readonly input: string;
}

/** A line that a child prints. */
export type News =
  /**
   * The input that is about to run, its bytes if the task is careful, and how many inputs were valid.
   */
  | { readonly kind: "at"; readonly index: number; readonly valid: number; readonly input?: string }
  | Failure
  | { readonly kind: "done"; readonly runs: number; readonly valid: number };

/** Makes the failure of an input that threw an unexpected error. */
export function inProcessFailure(
  index: number,
  input: Uint8Array,
  { message, signature }: Extract<Verdict, { kind: "failed" }>,
): Failure {
  return { kind: "failure", index, reason: "error", message, signature, input: input.toBase64() };
}
