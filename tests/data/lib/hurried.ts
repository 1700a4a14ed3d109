/** Datasets that functions make, and whose elements come out of order where they may. */
import type { Dataset } from "../../../mod.ts";

/** Makes of each number x a dataset of 2x and 2x + 1, which gives 2x + 1 first unless it keeps order. */
export function hurried(numbers: Dataset<number>): Dataset<number> {
  return numbers.flatMap((x, { Dataset }) =>
    // A call without a promise ends before any that has one.
    Dataset.from([2 * x, 2 * x + 1]).map((y) => y % 2 === 0 ? Promise.resolve(y) : y, {
      numParallelCalls: 2,
      deterministic: false,
    })
  );
}
