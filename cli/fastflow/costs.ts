/** What one batch of a pipeline costs, measured on the real pipeline, service and workers. */
import { byteSize } from "../../core/tree.ts";
import { installedHost } from "../../data/host.ts";
import { type LocalCluster, planOffload } from "../../mod.ts";
import { plan } from "../../offload/planner.ts";
import type { ExampleData } from "./data.ts";
import { BATCH, type Workload } from "./workloads.ts";

/** Per batch. Times are CPU time of one core, in ms. */
export interface Costs {
  /** To prepare a batch (the paper's Pcycle). Workers are assumed to take as long. */
  readonly prepareMs: number;
  /** To receive a batch that workers prepared, by candidate (the paper's Ocycle). */
  readonly receiveMs: Readonly<Record<string, number>>;
  /** Size of a batch, which is also what the network carries. */
  readonly bytes: number;
  /** What is read from files. */
  readonly readBytes: number;
  /** Time of a step of the simulated accelerator. */
  readonly stepMs: number;
  /** How long planning took with metrics from the store. */
  readonly planFromStoreMs: number;
}

/**
 * Measures with everything that `planOffload()` measures with. The elements are wanted as fast as
 * they come, so that each candidate is measured even if the accelerator will not wait.
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
