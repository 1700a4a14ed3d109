/** How many calls run at once, and how much is read ahead, where the engine decides. */
import { checkInteger } from "./check.ts";

/** Lets the engine choose a degree of parallelism or a buffer size. */
export const AUTOTUNE: number = -1;

/** The value of AUTOTUNE for `numParallelCalls`: enough to overlap waiting on one thread. */
export const AUTOTUNE_PARALLEL_CALLS = 4;

/** The most calls that one operator may have in flight. */
export const PARALLEL_CALLS_MAX = 1024;

/** Checks `numParallelCalls`: `AUTOTUNE`, or from 1 to `PARALLEL_CALLS_MAX`. */
export function checkParallelCalls(operator: string, value: unknown): number | undefined {
  if (value === undefined || value === AUTOTUNE) return value;
  return checkInteger(operator, "numParallelCalls", value, 1, PARALLEL_CALLS_MAX);
}

/** The number of calls to run at once. */
export function parallelCalls(setting: number): number {
  return setting === AUTOTUNE ? AUTOTUNE_PARALLEL_CALLS : setting;
}
