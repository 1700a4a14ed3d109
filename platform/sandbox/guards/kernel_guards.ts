/** The launcher's message to the program that it becomes. */

export interface KernelGuards {
  /** The version of Landlock; 0 if the system has none. */
  readonly landlock: number;
  readonly callFilter: boolean;
}

/** The guards of a program that was not launched. */
const UNGUARDED: KernelGuards = { landlock: 0, callFilter: false };

/** The guards of this program, from its last argument. */
export function kernelGuards(argument: string | undefined): KernelGuards {
  return argument === undefined ? UNGUARDED : JSON.parse(argument);
}
