/** A dataset whose order shows, and its distribution under DETERMINISTIC. */
import { Dataset, type LocalCluster } from "../../../mod.ts";

/** A pipeline with everything that could go out of order: random values, a filter, remainders, a map after. */
export function makeDataset(): Dataset<unknown> {
  return Dataset.range(400)
    .shuffle(20)
    .map((x, { random }) => x + random.next() / 2)
    .filter((x) => Math.floor(x) % 7 !== 0)
    .batch(5)
    .map((batch) => ({ batch }));
}

export function distributed(dataset: Dataset<unknown>, service: LocalCluster): Dataset<unknown> {
  return dataset.distribute({ service, processingMode: "DETERMINISTIC" });
}
