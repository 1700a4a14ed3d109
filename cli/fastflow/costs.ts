/** Measures what a batch of a pipeline costs, with the real pipeline, service and workers. */
import { byteSize } from "../../core/tree.ts";
import { installedHost } from "../../data/host.ts";
import { type LocalCluster, planOffload } from "../../mod.ts";
import { plan } from "../../offload/planner.ts";
import type { ExampleData } from "./data.ts";
import { BATCH, type Workload } from "./workloads.ts";

/** Costs per batch. Times are CPU time of one core, in ms. */
export interface Costs {
  /** Time to prepare a batch (the paper's Pcycle). Workers are assumed to take as long. */
  readonly prepareMs: number;
  /** Time to receive a batch that workers prepared, by candidate (the paper's Ocycle). */
  readonly receiveMs: Readonly<Record<string, number>>;
  /** Size of a batch. The network carries it uncompressed. */
  readonly bytes: number;
  /** Bytes that are read from files for a batch. */
  readonly readBytes: number;
  /** Time of a step of the simulated accelerator. */
  readonly stepMs: number;
  /** Time of planning with metrics from the store. */
  readonly planFromStoreMs: number;
}

/**
 * Measures the costs as `planOffload()` does, but for all candidates. Training steps take no time, so
 * the pipeline is always the bottleneck.
 */
export async function measureCosts(
  workload: Workload,
  data: ExampleData,
  { service, metricsStore, profileSteps }: {
    readonly service: LocalCluster;
    readonly metricsStore: string;
    readonly profileSteps: number;
  },
): Promise<Costs> {
  const files = workload.files(data);
  const dataset = workload.dataset(files);
  const options = { service, profileSteps, metricsStore, model: workload.name };
  const { metrics } = await plan({
    ...{ ...options, service: { service }, pipeline: dataset.node, host: installedHost() },
    measuresAll: true,
  });
  const fromMs = performance.now();
  await planOffload(dataset, options);
  const planFromStoreMs = performance.now() - fromMs;
  let bytes = 0;
  for await (const batch of dataset.take(1)) bytes = byteSize(batch);
  return {
    prepareMs: metrics.Pcycle,
    receiveMs: Object.fromEntries(metrics.candidates.map(({ name, Ocycle }) => [name, Ocycle])),
    bytes,
    readBytes: BATCH * files.bytesMean,
    stepMs: metrics.Pcycle / workload.coresWanted,
    planFromStoreMs,
  };
}
