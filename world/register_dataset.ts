/**
 * Registering datasets from a program.
 *
 * @module
 */
import { registerGraph, type RegisterOptions } from "../actors/client/registering.ts";
import { type Dataset, type Rewrite, rewritten } from "../data/dataset.ts";
import type { DistributeOptions } from "../data/operators/distribute.ts";
import { openHome } from "./client_homes.ts";

/** How a dataset is registered. */
export interface RegisterDatasetOptions<T> extends RegisterOptions {
  /** Changes the pipeline before it is registered. */
  readonly rewrite?: Rewrite<T, unknown>;
}

/**
 * Registers a dataset with a service, so that others can read it by its id with `Dataset.fromId()`.
 * Nothing runs yet. Equal pipelines, wherever they were made, get one id.
 *
 * @throws LeatError `already_exists` when the id is taken by another pipeline, showing both;
 * `unavailable` when no dispatcher answers within ten seconds; as `Dataset.serialize()` where a
 * function cannot travel.
 *
 * @example
 * ```ts
 * import { Dataset, LocalCluster, registerDataset } from "../mod.ts";
 *
 * await using cluster = await LocalCluster.start({ workers: 2 });
 * const datasetId = await registerDataset(cluster, Dataset.range(100).batch(10));
 *
 * // In another program, which knows the address and the id:
 * const batches = Dataset.fromId(cluster, datasetId, { processingMode: "DYNAMIC" });
 * console.log((await Array.fromAsync(batches)).length); // 10
 * ```
 */
export async function registerDataset<T>(
  service: DistributeOptions["service"],
  dataset: Dataset<T>,
  { rewrite, ...options }: RegisterDatasetOptions<T> = {},
): Promise<string> {
  const { node } = rewritten("registerDataset", dataset, rewrite);
  return await registerGraph(node, service, options, openHome);
}
