/** Opens the dataset that a Python program reads. */
import { Dataset, LeatError } from "../../mod.ts";
import type { DistributeOptions } from "../../data/operators/distribute.ts";
import { seedOf } from "../../data/operators/options.ts";
import { installHost } from "../../data/host.ts";
import { DenoHost } from "../../platform/deno_host.ts";
import { exportedDataset } from "../pipeline/exported_dataset.ts";
import { UsageError } from "../lib/args.ts";
import { sameOnRanks } from "./order.ts";

/** Which dataset to read, and from where. */
export interface OpenRequest {
  /** The path of a module that exports the dataset. */
  readonly pipeline?: string;
  /** Which export of the module. */
  readonly export?: string;
  /** The argument of an exported function. */
  readonly args?: unknown;
  /** The id of a dataset that a service has, instead of a module. */
  readonly datasetId?: string;
  readonly seed?: number | bigint;
  /** The interpreter of Python functions. */
  readonly python?: string;
  /** The service to read from. Default: the pipeline runs in this process. */
  readonly service?: DistributeOptions;
  /** The share of a pipeline that runs here: every `count`-th element from `index` on. */
  readonly shard?: {
    readonly index: number;
    readonly count: number;
    /** The seed if the pipeline has none: all processes must draw the same random numbers. Default 0. */
    readonly seed?: number | bigint;
  };
}

/** @throws {LeatError} as `exportedDataset`, the operators' checks and `sameOnRanks` do. */
export async function openDataset(request: OpenRequest): Promise<Dataset<unknown>> {
  const { service, shard, python } = request;
  // Elements leave this process only as bytes. No buffer is transferred to another thread, so batches
  // may be in shared memory.
  installHost(new DenoHost({ sharesBatches: true, ...(python === undefined ? {} : { python }) }));
  if (request.datasetId !== undefined && service !== undefined) {
    const { service: address, ...options } = service;
    return Dataset.fromId(address, request.datasetId, options);
  }
  let dataset = await fromModule(request);
  if (request.seed !== undefined) dataset = dataset.withOptions({ seed: request.seed });
  if (service !== undefined) return dataset.distribute(service);
  if (shard === undefined) return dataset;
  if (seedOf(dataset.node) === undefined) dataset = dataset.withOptions({ seed: shard.seed ?? 0 });
  if (shard.count > 1) dataset = new Dataset(sameOnRanks(dataset.node));
  return dataset.shard(shard.count, shard.index);
}

async function fromModule(
  { pipeline, export: name, args }: OpenRequest,
): Promise<Dataset<unknown>> {
  if (pipeline === undefined) throw new LeatError("invalid_argument", "No pipeline is named");
  try {
    return await exportedDataset(pipeline, name, args);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new LeatError("invalid_argument", error.message, { cause: error });
  }
}
