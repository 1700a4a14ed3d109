/** Registers datasets from a program. */
import { registerGraph, type RegisterOptions } from "../actors/client/access.ts";
import { invalidArgument, optionsOf } from "../data/check.ts";
import { Dataset } from "../data/dataset.ts";
import type { Rewrite } from "../data/dataset_types.ts";
import { checkService, type DistributeOptions, rewritten } from "../data/operators/distribute.ts";
import { openHome } from "../platform/nodes/client_homes.ts";

/** Options of a registration. */
export interface RegisterDatasetOptions<T> extends RegisterOptions {
  /** Changes the pipeline before it is registered. */
  readonly rewrite?: Rewrite<T, unknown>;
}

const registerOptions = optionsOf<RegisterDatasetOptions<unknown>>("registerDataset", {
  datasetId: true,
  compression: true,
  rewrite: true,
  token: true,
  ca: true,
});

/**
 * Registers a dataset with a service, so that other clients can read it by its id with
 * `Dataset.fromId()`. Nothing runs yet. Equal pipelines of one identity get the same id.
 * @throws LeatError `already_exists` when the id belongs to another pipeline, showing both;
 * `invalid_argument` for wrong arguments; `unavailable` when no dispatcher answers within ten
 * seconds; the errors of `Dataset.serialize()` for a function that cannot be sent.
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
  options?: RegisterDatasetOptions<T>,
): Promise<string> {
  const operator = "registerDataset";
  const { rewrite, ...registration } = registerOptions(options);
  if (!(dataset instanceof Dataset)) {
    throw invalidArgument(operator, "dataset", "a Dataset", dataset);
  }
  checkService(operator, service);
  const { datasetId } = registration;
  if (datasetId !== undefined && (typeof datasetId !== "string" || datasetId === "")) {
    throw invalidArgument(operator, "datasetId", "a non-empty string", datasetId);
  }
  const node = rewritten(operator, dataset, rewrite);
  return await registerGraph(node, service, registration, openHome);
}
