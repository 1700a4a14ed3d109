/** How many calls run at once, and how much is read ahead, where the engine decides. */
import type { Setting } from "./autotune/model.ts";
import { checkInteger } from "./check.ts";
import type { IteratorContext } from "./context.ts";

/**
 * Lets the engine choose a degree of parallelism or a buffer size. It adapts `numParallelCalls` and
 * the size of `prefetch` to the consumer while the pipeline runs (section 3.3.2 of the tf.data
 * paper); `stats()` and `explain()` show what it chose. What determines the order of elements
 * (`cycleLength`, `numParallelReads`) stays at 4.
 */
export const AUTOTUNE: number = -1;

/** `AUTOTUNE` for `numParallelCalls`: it begins with enough calls to overlap waiting. */
export const PARALLEL_CALLS_RANGE = { min: 1, max: 64, initial: 4 };

/** `AUTOTUNE` for the size of a buffer, in elements: consumers take several at once. */
export const BUFFER_RANGE = { min: 4, max: 64, initial: 16 };

/** The most calls that one operator may have in flight. */
const PARALLEL_CALLS_MAX = 1024;

/** Checks `numParallelCalls`: `AUTOTUNE`, or from 1 to `PARALLEL_CALLS_MAX`. */
export function checkParallelCalls(operator: string, value: unknown): number | undefined {
  if (value === undefined || value === AUTOTUNE) return value;
  return checkInteger(operator, "numParallelCalls", value, 1, PARALLEL_CALLS_MAX);
}

/** The number of calls to run at once, now. */
export function parallelCalls(setting: number, context: IteratorContext): Setting {
  return setting === AUTOTUNE
    ? context.knob("numParallelCalls", PARALLEL_CALLS_RANGE)
    : { value: setting };
}
