/** Numbers with nouns. */

import { formatNumber } from "./table.ts";

/**
 * Formats `1 seed` or `2 seeds`.
 * @param noun Singular.
 * @param plural Default: the noun with a trailing s.
 *
 * @example
 * ```ts
 * import { counted } from "./counted.ts";
 *
 * console.log(counted(1, "seed"), counted(0, "crash point")); // 1 seed 0 crash points
 * ```
 */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`;
}

/** A count with its noun, in words. */
export function countOf(count: number, noun: string): string {
  return `${formatNumber(count, 0)} ${noun}${count === 1 ? "" : "s"}`;
}
