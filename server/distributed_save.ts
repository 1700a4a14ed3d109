/** Saves datasets with the workers of a service. */
import { saveByService } from "../actors/client/save_client.ts";
import type { Dataset } from "../data/dataset.ts";
import { checkBoolean, checkInteger, checkPath, invalidArgument } from "../data/check.ts";
import { LeatError } from "../core/error.ts";
import { checkService, type DistributeOptions } from "../data/operators/distribute.ts";
import {
  type DistributedSaveOptions,
  distributedSaveOptions,
} from "../data/saved/distributed/options.ts";
import { checkWritingCompression } from "../data/saved/save.ts";
import { openHome } from "../platform/nodes/client_homes.ts";

/**
 * Lets the workers of a service write a dataset's elements to files in a folder, for
 * `Dataset.load()` (tf.data's `distributed_save`). Resolves when everything is saved.
 *
 * All workers must see the folder under the same absolute path: on a shared file system, or on one
 * host. Workers that confine user functions need it among their `--allow-write` folders.
 *
 * With any number of workers, this saves the first epoch of
 * `distribute({ processingMode: "DETERMINISTIC" })`, in its order, with the seed of `withOptions`,
 * or 0. `DETERMINISTIC` leaves some operators to the reader (`take`, `zip`, `concatenate`, …). A
 * dataset with such an operator cannot be cut into splits: one worker produces all of it, in the
 * order of a single process.
 *
 * Each element is saved exactly once, even if processes are killed. Another worker repeats a lost
 * worker's unfinished splits. A restarted dispatcher continues from its journal, or, if that is
 * lost, from the folder. The client only watches, and the save continues without it. If everything
 * has died, or the save has failed, call this again with the same dataset, folder and options to
 * continue. `Dataset.load(path, { wait: true })` reads what is already written.
 * @throws LeatError `already_exists` if the folder holds a saved dataset (unless `overwrite`);
 * `failed_precondition` if the save of another dataset there is in progress or unfinished, and for
 * functions that cannot be sent or that differ from run to run; `invalid_argument` for an endless
 * dataset and wrong options; `unavailable` when no dispatcher answers within ten seconds; `aborted`
 * when another client takes the folder or ends the save. The first element that fails, a full disk,
 * or a folder that a worker may not write to ends the save with an error that names the worker; the
 * other workers stop, and written files stay.
 *
 * @example
 * ```ts
 * import { Dataset, distributedSave, LocalCluster } from "../mod.ts";
 *
 * await using cluster = await LocalCluster.start({ workers: 2 });
 * const path = `${Deno.cwd()}/.cache/example-distributed-save`;
 * await distributedSave(Dataset.range(1000).batch(10), path, cluster, {
 *   overwrite: true,
 *   onProgress: ({ splitsDone, splitsTotal }) => console.log(`${splitsDone} of ${splitsTotal}`),
 * });
 * const batches = await Dataset.load(path);
 * console.log(batches.cardinality()); // 100
 * ```
 */
export async function distributedSave<T>(
  dataset: Dataset<T>,
  path: string,
  service: DistributeOptions["service"],
  options?: DistributedSaveOptions,
): Promise<void> {
  const operator = "distributedSave";
  const { compression, overwrite, chunkBytesMax, onProgress, signal, ...credentials } =
    distributedSaveOptions(options);
  const node = dataset?.node;
  if (node === undefined) throw invalidArgument(operator, "dataset", "a Dataset", dataset);
  checkService(operator, service);
  if (node.cardinality === Infinity) {
    throw new LeatError(
      "invalid_argument",
      `${operator}: an endless dataset cannot be saved; take(n) of it`,
    );
  }
  if (onProgress !== undefined && typeof onProgress !== "function") {
    throw invalidArgument(operator, "onProgress", "a function", onProgress);
  }
  const compressed = checkWritingCompression(operator, compression);
  const save = {
    folder: checkPath(operator, path).replace(/(?<=[^/])\/+$/, ""),
    overwrite: checkBoolean(operator, "overwrite", overwrite, false),
    ...(compressed === undefined ? {} : { compression: compressed }),
    ...(chunkBytesMax === undefined
      ? {}
      : { chunkBytesMax: checkInteger(operator, "chunkBytesMax", chunkBytesMax, 1) }),
  };
  await saveByService(node, service, { ...credentials, save, onProgress, signal }, openHome);
}
