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
import { openHome } from "./platform/nodes/client_homes.ts";
import { DenoHost } from "./platform/deno_host.ts";

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
} from "./server/cluster/local_cluster.ts";
export {
  type DispatcherServer,
  type DispatcherServerConfig,
  serveDispatcher,
} from "./server/dispatcher_server.ts";
export {
  autoscale,
  type Scaler,
  type ScalerOptions,
  type ScalingStep,
  type WorkerFleet,
} from "./server/cluster/scaler.ts";
export type { SandboxOptions } from "./platform/sandbox/grants.ts";
export {
  serveWorker,
  type WorkerCloseOptions,
  type WorkerServer,
  type WorkerServerConfig,
} from "./server/worker_server.ts";
export { distributedSave } from "./server/distributed_save.ts";
export { registerDataset, type RegisterDatasetOptions } from "./server/register_dataset.ts";
export { DenoHost, type DenoHostOptions } from "./platform/deno_host.ts";
export type { ForeignLimits } from "./platform/sandbox/foreign/foreign_processes.ts";
export type { HttpOptions } from "./platform/storage/http_files.ts";
export type { RequestOptions } from "./platform/storage/http_client.ts";
export type { S3Options } from "./platform/storage/s3_settings.ts";
export type { StorageOptions } from "./platform/storage/storage.ts";

installHost(new DenoHost());

provideIterators(accessFrom(openHome));
