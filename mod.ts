/**
 * Leat: a dataset engine and a service that feeds accelerators.
 *
 * @example
 * ```ts
 * import { Dataset } from "./mod.ts";
 *
 * for await (const batch of Dataset.range(10).shuffle(10).batch(5)) console.log(batch.toArray());
 * ```
 *
 * @module
 */
import { accessFrom } from "./actors/client/access.ts";
import { provideIterators } from "./actors/client/distributed_iterator.ts";
import { installHost } from "./data/host.ts";
import { openHome } from "./world/client_homes.ts";
import { DenoHost } from "./world/deno_host.ts";

export type { ScalingOptions } from "./actors/dispatcher/scaling/autoscaler.ts";
export type { Quotas } from "./actors/dispatcher/jobs/quotas.ts";
export type { DispatcherDescription } from "./actors/dispatcher/protocol.ts";
export {
  costOf,
  type JobCost,
  type JobResources,
  type Machine,
  PAPER_PRICES,
  PAPER_TRAINER_MACHINE,
  PAPER_WORKER_MACHINE,
  type Prices,
  type SharedCost,
  sharedCost,
  type SharedProcessing,
} from "./core/cost.ts";
export { LeatError, type LeatErrorCode } from "./core/error.ts";
export { RaggedTensor, Tensor, tensor } from "./core/tensor.ts";
export * from "./data/mod.ts";
export {
  LocalCluster,
  type LocalClusterOptions,
  type LocalWorkerOptions,
} from "./world/local_cluster.ts";
export {
  type DispatcherServer,
  type DispatcherServerConfig,
  serveDispatcher,
} from "./world/dispatcher_server.ts";
export {
  autoscale,
  type Scaler,
  type ScalerOptions,
  type ScalingStep,
  type WorkerFleet,
} from "./world/scaler.ts";
export type { SandboxOptions } from "./world/sandbox/grants.ts";
export {
  serveWorker,
  type WorkerCloseOptions,
  type WorkerServer,
  type WorkerServerConfig,
} from "./world/worker_server.ts";
export { distributedSave } from "./world/distributed_save.ts";
export { registerDataset, type RegisterDatasetOptions } from "./world/register_dataset.ts";
export { DenoHost, type DenoHostOptions } from "./world/deno_host.ts";
export type { ForeignLimits } from "./world/foreign_processes.ts";
export type { HttpOptions } from "./world/http_files.ts";
export type { RequestOptions } from "./world/http_client.ts";
export type { S3Options } from "./world/s3_settings.ts";
export type { StorageOptions } from "./world/storage.ts";

installHost(new DenoHost());

provideIterators(accessFrom(openHome));
