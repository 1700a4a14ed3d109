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
import { distributedIterator } from "./actors/client/distributed_iterator.ts";
import { installHost } from "./data/host.ts";
import { registerIterator } from "./data/node.ts";
import { DistributeNode } from "./data/operators/distribute.ts";
import { LeatError } from "./core/error.ts";
import { openHome } from "./world/client_homes.ts";
import { DenoHost } from "./world/deno_host.ts";

export type { DispatcherDescription } from "./actors/dispatcher/protocol.ts";
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
  serveWorker,
  type WorkerCloseOptions,
  type WorkerServer,
  type WorkerServerConfig,
} from "./world/worker_server.ts";

installHost(new DenoHost());

registerIterator("distribute", (node, context) => {
  if (!(node instanceof DistributeNode)) {
    throw new LeatError("internal", `${node.kind} is not distribute`);
  }
  return distributedIterator(node.inputs[0]!, node.options, context, openHome);
});
