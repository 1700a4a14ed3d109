/** Which guards protect a process. The launcher passes this to the program that it executes. */

export interface KernelGuards {
  /** The version of Landlock, or 0 without Landlock. */
  readonly landlock: number;
  /** Whether the filter of system calls is active. */
  readonly callFilter: boolean;
}

const UNGUARDED: KernelGuards = { landlock: 0, callFilter: false };

export function kernelGuards(argument: string | undefined): KernelGuards {
  return argument === undefined ? UNGUARDED : JSON.parse(argument);
}
