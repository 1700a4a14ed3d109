/** Statistics of a list of numbers; `NaN` if it is empty. */

/** The arithmetic mean. */
export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** A value that at least this share of the values does not exceed. @param share 0 to 1. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
}

/** The `share`-quantile, 0 to 1, by the nearest rank. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const rank = Math.min(Math.max(Math.ceil(share * sorted.length), 1), sorted.length);
  return sorted[rank - 1] ?? NaN;
}

/** The standard error of the mean; 0 for a single value. */
export function standardErrorOf(values: readonly number[]): number {
  const average = mean(values);
  const variance = mean(values.map((value) => (value - average) ** 2));
  return Math.sqrt(variance / Math.max(1, values.length - 1));
}
