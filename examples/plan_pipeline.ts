/**
 * How many workers a pipeline needs. This module exports a pipeline and starts the planner, which runs the pipeline
 * for a second and simulates clusters of workers with the measurements.
 *
 *     deno run -P --allow-run=deno examples/plan_pipeline.ts
 *     deno task plan examples/plan_pipeline.ts --step-ms 10    # the same, with costs and the next bottleneck
 */
import type { Plan } from "../cli/leat.ts";
import { AUTOTUNE, Dataset } from "../mod.ts";

/** What an accelerator takes for one batch, in ms. */
const STEP_MS = 10;

/** The pipeline, without `distribute()`. A batch of 64 rows is about 20 ms of work. */
export default Dataset.range(1_000_000)
  .map((x) => {
    let value = x;
    for (let i = 0; i < 10_000; i++) value = Math.sin(value) + x;
    return new Float32Array(256).fill(value);
  })
  .batch(64)
  .prefetch(AUTOTUNE);

if (import.meta.main) {
  const options = ["--step-ms", `${STEP_MS}`, "--seconds", "1", "--workers-max", "8", "--json"];
  const { success, stdout } = await new Deno.Command("deno", {
    args: ["task", "--quiet", "plan", import.meta.filename!, ...options],
    stderr: "inherit",
  }).output();
  if (!success) Deno.exit(1);
  const { measured, modelled } = JSON.parse(new TextDecoder().decode(stdout)) as Plan;
  console.log(`a batch takes ${measured.batchMs.toFixed(1)} ms here, a step ${STEP_MS} ms`);
  for (const { workers, stall } of modelled.runs) {
    console.log(`with ${workers}: accelerators wait ${(100 * stall.expected).toFixed(0)} %`);
  }
  const { recommended: { workers }, isMet } = modelled;
  const missed = isMet ? "" : ", with which accelerators still wait too long";
  console.log(`recommended number of workers: ${workers}${missed}`);
}
