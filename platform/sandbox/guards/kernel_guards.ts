/** The launcher's message to the program that replaces it (`exec`): which guards the kernel set. */

export interface KernelGuards {
  /** The version of Landlock; 0 if the system has none. */
  readonly landlock: number;
  readonly callFilter: boolean;
}

const UNGUARDED: KernelGuards = { landlock: 0, callFilter: false };

export function kernelGuards(argument: string | undefined): KernelGuards {
  return argument === undefined ? UNGUARDED : JSON.parse(argument);
}
