/** `AUTOTUNE`: the degrees of parallelism and the buffer sizes that the engine chooses. */
import type { Setting } from "./autotune/model.ts";
import { checkInteger } from "./check.ts";
import type { IteratorContext } from "./context.ts";

/**
 * Lets the engine choose a degree of parallelism or a buffer size. It adapts `numParallelCalls` and
 * the size of `prefetch` to the consumer while the pipeline runs (section 3.3.2 of the tf.data
 * paper); `stats()` and `explain()` show what it chose. `cycleLength` and `numParallelReads`, which
 * determine the order of elements, are always 4.
 */
export const AUTOTUNE: number = -1;

/** The range of `AUTOTUNE` for `numParallelCalls`. The initial calls are enough to overlap waiting. */
export const PARALLEL_CALLS_RANGE = { min: 1, max: 64, initial: 4 };

/** The range of `AUTOTUNE` for buffers, in elements. Consumers take several elements at a time. */
export const BUFFER_RANGE = { min: 4, max: 64, initial: 16 };

/** Maximum number of calls that one operator may have in flight. */
const PARALLEL_CALLS_MAX = 1024;

/** Checks `numParallelCalls`: `AUTOTUNE`, or from 1 to `PARALLEL_CALLS_MAX`. */
export function checkParallelCalls(operator: string, value: unknown): number | undefined {
  if (value === undefined || value === AUTOTUNE) return value;
  return checkInteger(operator, "numParallelCalls", value, 1, PARALLEL_CALLS_MAX);
}

/** The number of calls to run at the same time, which the tuner may change. */
export function parallelCalls(setting: number, context: IteratorContext): Setting {
  return setting === AUTOTUNE
    ? context.knob("numParallelCalls", PARALLEL_CALLS_RANGE)
    : { value: setting };
}
