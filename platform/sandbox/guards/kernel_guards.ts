/**
 * What the launcher tells the program that it becomes.
 *
 * @module
 */

/** What of the kernel's guards holds a program. */
export interface KernelGuards {
  /** The version of Landlock; 0: the system has none. */
  readonly landlock: number;
  /** Whether its system calls are filtered. */
  readonly callFilter: boolean;
}

/** Of a program that no launcher has started. */
const UNGUARDED: KernelGuards = { landlock: 0, callFilter: false };

/** What holds this program, from the last of its arguments. */
export function kernelGuards(argument: string | undefined): KernelGuards {
  return argument === undefined ? UNGUARDED : JSON.parse(argument);
}
