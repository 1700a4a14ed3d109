/**
 * Saving datasets by the workers of a service.
 *
 * @module
 */
import { saveByService } from "../actors/client/saving.ts";
import type { Dataset } from "../data/dataset.ts";
import { checkBoolean, checkInteger, checkPath, invalidArgument } from "../data/check.ts";
import { LeatError } from "../core/error.ts";
import { checkOptions } from "../data/option_names.ts";
import { checkService, type DistributeOptions } from "../data/operators/distribute.ts";
import type { DistributedSaveOptions } from "../data/stored/joint/options.ts";
import { checkWritingCompression } from "../data/stored/save.ts";
import { openHome } from "./client_homes.ts";

/**
 * Has the workers of a service write a dataset's elements to files in a folder, for `Dataset.load()`
 * (tf.data's `distributed_save`). Resolves when all of it is saved.
 *
 * The folder is one that all workers see under this path: on a file system that they share, or on the
 * host that they run on. Name it by an absolute path. Workers that run user functions confined need
 * it among their `--allow-write` folders.
 *
 * What is saved is the stream of `distribute({ processingMode: "DETERMINISTIC" })`, in its order,
 * however many workers there are: the first epoch, with the seed of `withOptions`, or 0. Parts that
 * `DETERMINISTIC` leaves to its reader (`take`, `zip`, `concatenate`, …) cannot be cut into splits; a
 * dataset with one of them is produced whole by one worker, in the order it has in one process.
 *
 * Each element is in the result exactly once, whatever is killed meanwhile. A worker's unfinished
 * splits are made again by another; a dispatcher goes on from its journal, or, where that is lost, from
 * what the folder holds; the client only watches, and without it the save goes on. Where everything
 * has died, or the save has failed, calling this again with the same dataset, folder and options goes
 * on where it was. `Dataset.load(path, { wait: true })` reads what is written already.
 *
 * @throws LeatError `already_exists` where a saved dataset is (unless `overwrite`);
 * `failed_precondition` where the save of another dataset is under way or was not finished, and for
 * functions that cannot travel or differ from run to run; `invalid_argument` for an endless dataset and
 * wrong options; `unavailable` when no dispatcher answers within ten seconds; `aborted` when somebody
 * else takes the folder or ends the save. The first element that fails, a disk that is full, or a
 * folder that a worker may not write to ends the save with an error that names the worker; the others
 * stop, and what was written stays.
 *
 * @example
 * ```ts
 * import { Dataset, distributedSave, LocalCluster } from "../mod.ts";
 *
 * await using cluster = await LocalCluster.start({ workers: 2 });
 * const path = "./.cache/example-distributed-save";
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
    checkOptions(operator, options);
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
