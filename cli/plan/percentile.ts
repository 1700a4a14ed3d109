/** Percentiles of a list of numbers. */

/**
 * The value that a share of the values does not exceed; `NaN` without values. @param share 0 to 1.
 */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
}
