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
import { installHost } from "./data/host.ts";
import { DenoHost } from "./world/deno_host.ts";

export { LeatError, type LeatErrorCode } from "./core/error.ts";
export { RaggedTensor, Tensor, tensor } from "./core/tensor.ts";
export * from "./data/mod.ts";

installHost(new DenoHost());
