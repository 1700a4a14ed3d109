/**
 * Offloading where it pays: training waits for data, so a worker prepares a share of the batches.
 *
 *     deno run -P=cluster examples/offload.ts
 */
import { Dataset, fit, LocalCluster, type Tensor } from "../mod.ts";

const STEPS = 80;
const BATCH = 4;
const STEP_MS = 2;

// The worker's pipelines run in a process of their own, as on another host.
await using service = await LocalCluster.start({ workers: 1, confine: true });

/** A costly pipeline: some milliseconds of arithmetic per element. */
const dataset = Dataset.range(STEPS * BATCH)
  .map((x) => {
    const wave = new Float32Array(2_000);
    for (let round = 0; round < 25; round++) {
      for (let i = 0; i < wave.length; i++) wave[i]! += Math.sin(i * (x + 1) / 1_000);
    }
    return { x, wave };
  })
  .batch(BATCH)
  .prefetch(2) as Dataset<{ x: Tensor; wave: Tensor }>;

const seen = new Set<number>();
const report = await fit({
  dataset,
  state: { energy: 0 },
  trainStep: async ({ x, wave }, state) => {
    for (const y of wave.data as Float32Array) state.energy += y * y / STEPS;
    for (const id of x.data as Float64Array) seen.add(id);
    await new Promise((resolve) => setTimeout(resolve, STEP_MS)); // what an accelerator would take
  },
  service,
  profileSteps: 6,
  onPlan: (plan) => console.log(plan.explain()),
});

const { local, remote } = report.offload ??
  { local: { elements: report.steps }, remote: { elements: 0 } };
console.log(`\n${report.steps} steps, ${seen.size} different elements`);
console.log(`prepared here: ${local.elements}, by the worker: ${remote.elements}`);
