/** Small pipelines, in which the framework takes almost all the time. */
import { Dataset } from "../../../mod.ts";
import { type Pipelines, type Running, taking } from "./step.ts";

const BATCH = 1_024;

function rows(dataset: Dataset<{ readonly shape: readonly number[] }>): Running {
  return taking(dataset, ({ shape }) => shape[0]!);
}

const numbers = () => Dataset.range(100_000_000).repeat();

export const overhead: Pipelines = {
  "range-batch": () => rows(numbers().batch(BATCH)),
  "range-map-batch": () => rows(numbers().map((x) => x * 2 + 1).batch(BATCH)),
  "range-map-filter-batch": () =>
    rows(numbers().map((x) => x * 2 + 1).filter((x) => x % 3 !== 0).batch(BATCH)),
  "shuffle-batch": () => rows(numbers().shuffle(10_000, { seed: 1 }).batch(BATCH)),
  "flat-map-batch": () =>
    rows(numbers().flatMap((x, { Dataset }) => Dataset.range(x, x + 100)).batch(BATCH)),
  "zip-batch": () =>
    taking(
      Dataset.zip({ a: numbers(), b: numbers() }).batch(BATCH),
      ({ a }) => (a as { shape: readonly number[] }).shape[0]!,
    ),
  "padded-batch": () => rows(numbers().map((x) => new Int32Array(1 + x % 16)).paddedBatch(BATCH)),
  "map-prefetch": () => rows(numbers().map((x) => x + 1).batch(BATCH).prefetch(4)),
};
