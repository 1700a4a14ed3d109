/** Formats counts with their nouns. */

import { formatNumber } from "./table.ts";

/**
 * Formats `1 seed` or `2 seeds`.
 * @param noun Singular.
 * @param plural Default: the noun with a trailing s.
 */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`;
}

/** Formats `1 seed` or `2,000 seeds`, with thousands separators. */
export function countOf(count: number, noun: string): string {
  return `${formatNumber(count, 0)} ${noun}${count === 1 ? "" : "s"}`;
}
