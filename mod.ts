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
import { serviceIterator } from "./actors/client/distributed_iterator.ts";
import { installHost } from "./data/host.ts";
import { lazyFactory } from "./data/iterators/lazy_iterator.ts";
import { registerServed } from "./data/node.ts";
import { OffloadNode } from "./data/operators/offload.ts";
import { installOffload } from "./offload/dependencies.ts";
import { openHome } from "./platform/nodes/client_homes.ts";
import { DenoHost } from "./platform/deno_host.ts";
import { machineForOffload } from "./platform/offload/machine.ts";

// Datasets: pipelines, their options, iterators, elements and formats.
export * from "./data/mod.ts";

// Tensors and errors.
export {
  type DType,
  type DTypeArrays,
  type DTypeOf,
  DTYPES,
  type FixedDType,
  type TypedArray,
} from "./core/dtype.ts";
export {
  LEAT_ERROR_CODES,
  LeatError,
  type LeatErrorCode,
  type LeatErrorOptions,
  type WireError,
} from "./core/error.ts";
export { RandomStream } from "./core/philox.ts";
export {
  cast,
  gather,
  oneHot,
  type OneHotOptions,
  pad,
  stack,
  type TensorOperations,
} from "./core/tensor_operations.ts";
export { RaggedTensor, Tensor, tensor } from "./core/tensor.ts";
export type { NestedArray, TensorLike, TensorOptions, TensorScalar } from "./core/tensor_values.ts";

// A service: a local cluster, or servers of a cluster of hosts.
export type { Credentials } from "./actors/client/starting.ts";
export type { DispatcherOptions } from "./actors/dispatcher/config.ts";
export type { WorkerLimits } from "./actors/worker/worker_options.ts";
export type { Quotas } from "./actors/dispatcher/jobs/quotas.ts";
export type { ScalingOptions } from "./actors/dispatcher/scaling/autoscaler.ts";
export type { AccessRole } from "./actors/runtime/identity.ts";
export type { LogLevel } from "./actors/runtime/world.ts";
export type { RegisterOptions } from "./actors/client/access.ts";
export type { ServiceCredentials } from "./platform/nodes/client_homes.ts";
export type { TokenConfig } from "./platform/nodes/node_tokens.ts";
export type { ServiceNodeConfig } from "./platform/nodes/service_node.ts";
export type { TokenEntry } from "./platform/nodes/tokens_file.ts";
export type { SandboxOptions } from "./platform/sandbox/grants.ts";
export type { Carrier } from "./server/cluster/fleet.ts";
export { LocalCluster } from "./server/cluster/local_cluster.ts";
export type {
  LocalClusterOptions,
  LocalWorkerOptions,
} from "./server/cluster/local_cluster_options.ts";
export {
  autoscale,
  type Scaler,
  type ScalerOptions,
  type ScalingStep,
  type WorkerFleet,
} from "./server/cluster/scaler.ts";
export {
  type DispatcherServer,
  type DispatcherServerConfig,
  serveDispatcher,
} from "./server/dispatcher_server.ts";
export { distributedSave } from "./server/distributed_save.ts";
export { registerDataset, type RegisterDatasetOptions } from "./server/register_dataset.ts";
export {
  serveWorker,
  type WorkerCloseOptions,
  type WorkerServer,
  type WorkerServerConfig,
} from "./server/worker_server.ts";

// What a service says of itself: `describe()`, `actors()` and `sources()`.
export type { JobParameters } from "./actors/dispatcher/protocol.ts";
export type { DispatcherDescription } from "./actors/dispatcher/protocol_figures.ts";
export type { SavingNews } from "./actors/dispatcher/protocol_heartbeats.ts";
export type {
  Bottleneck,
  ClientDescription,
  ClientRates,
  ConsumerPosition,
  JobUsage,
  ProcessUsage,
  ReadDescription,
  RoundsDescription,
  RoundWait,
  TaskDescription,
  TaskRates,
  WorkerActivity,
  WorkerRates,
} from "./actors/dispatcher/protocol_figures.ts";
export type {
  KnownOrigin,
  MetricOrigin,
  MetricRow,
  MetricUnit,
} from "./actors/dispatcher/metric.ts";
export {
  type Described,
  type MetricGroup,
  type MetricKey,
  METRICS,
  type Reported,
} from "./actors/dispatcher/protocol_metrics.ts";
export type {
  JobScaling,
  PoolScaling,
  ScalingDescription,
  WorkerPool,
} from "./actors/dispatcher/protocol_scaling.ts";
export type { ActorInfo } from "./actors/runtime/inspection.ts";
export type { ActorAddress } from "./actors/runtime/ref.ts";
export type { CompressionFigures, ElementSourceStats } from "./actors/worker/protocol.ts";
export type { DistributedSaveSettings } from "./data/saved/distributed/work.ts";
export type { WirePolicy } from "./data/sharding/custom_policy.ts";
export type { ShardingMode } from "./data/sharding/sharding_policy.ts";

// Offloading: training with part of the pipeline on workers, where that pays.
export type { CandidateMetrics, OffloadDecision, OffloadMetrics } from "./offload/decide.ts";
export type { OffloadProgress, SideFigures } from "./offload/figures.ts";
export { fit, type FitOptions, type FitProgress, type FitReport } from "./offload/fit.ts";
export { type MetricSource, OffloadPlan, type OffloadPlanParts } from "./offload/plan.ts";
export type { PlanningProgress } from "./offload/planner.ts";
export {
  offloadProgress,
  type PlanningOptions,
  planOffload,
  type PlanOffloadOptions,
} from "./offload/plan_offload.ts";

// Costs.
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

// The machine: files, storage and images.
export { DenoHost, type DenoHostOptions } from "./platform/deno_host.ts";
export {
  type BytesDecodeOptions,
  type DecodedTensor,
  type ImageLimits,
  Images,
  type JpegEncodeOptions,
} from "./platform/media/images.ts";
export type { ForeignLimits } from "./platform/sandbox/foreign/foreign_processes.ts";
export type { RequestOptions } from "./platform/storage/http_client.ts";
export type { HttpOptions } from "./platform/storage/http_files.ts";
export type { RetryOptions } from "./platform/storage/retries.ts";
export type { S3Options } from "./platform/storage/s3_settings.ts";
export type { StorageOptions, WorkerStorage } from "./platform/storage/storage.ts";

installHost(new DenoHost());

installOffload(machineForOffload);

const access = accessFrom(openHome);
// Loaded lazily: most programs never offload.
const offloaded = lazyFactory(async () => {
  const { offloadedIterator } = await import("./offload/offloaded_iterator.ts");
  return (node, context) => offloadedIterator(node as OffloadNode, context, access);
});
registerServed((node, context) =>
  node instanceof OffloadNode ? offloaded(node, context) : serviceIterator(node, context, access)
);
