/**
 * (c) Coordinated reads: text of uneven length on trainers that train one model synchronously
 * (section 4.4, Fig. 11).
 */

import { type StepModel, SynchronousTraining } from "../accelerator.ts";
import { Deployment } from "../deployment.ts";
import type { TextPipeline } from "../pipelines.ts";
import { measured, modelled } from "../../lib/quantity.ts";
import type { CoordinatedReadsExperiment, ReadsRun } from "../results.ts";
import { mean } from "../../lib/statistics.ts";
import { formatNumber } from "../../lib/table.ts";
import { TOKENS_MAX } from "../text_corpus.ts";
import type { OpenRequest, TrainResult } from "../trainer_protocol.ts";
import { showProgress, type Simulation } from "./simulation.ts";

const STEPS = { quick: 50, full: 300 };

const TRAINERS = 4;
const WORKERS = 2;
const BATCH_SIZE = 16;
/** Buckets end at every multiple of 64 tokens, as for most of the paper's models. */
const BUCKET_TOKENS = 64;
const BOUNDARIES = Array.from(
  { length: TOKENS_MAX / BUCKET_TOKENS - 1 },
  (_, index) => (index + 1) * BUCKET_TOKENS,
);
const STEP: StepModel = { constantMs: 4, perTokenMs: 0.004 };
/**
 * How late a round may be before all trainers skip it, in ms. It is long, because no trainer is ever
 * far behind.
 */
const SKIP_AFTER_MS = 5_000;

/** How text is batched and read. */
type Reading = "padded" | "bucketed" | "coordinated";

/** Runs the experiment. */
export async function coordinatedReads(
  simulation: Simulation,
): Promise<CoordinatedReadsExperiment> {
  simulation.progress.beginExperiment("coordinated reads", 3);
  await using deployment = await Deployment.start(simulation.signal, {
    workers: WORKERS,
    skipAfterMs: SKIP_AFTER_MS,
  });
  const uncoordinated = await read(simulation, deployment, "padded");
  const bucketed = await read(simulation, deployment, "bucketed");
  const coordinated = await read(simulation, deployment, "coordinated");
  return {
    kind: "coordinated_reads",
    trainers: TRAINERS,
    workers: WORKERS,
    bucketBoundaries: BOUNDARIES,
    uncoordinated,
    bucketed,
    coordinated,
    notes: [
      `Batches are ${BATCH_SIZE} texts, padded to the longest among them. A step takes ${STEP.constantMs} ms and ` +
      `${
        formatNumber(STEP.perTokenMs * 1000, 0)
      } ms for a thousand tokens, padding included; every trainer waits for the ` +
      "slowest. Step times are simulated. The times shown are measured, and include waiting for data.",
      `Buckets end at every multiple of ${BUCKET_TOKENS} tokens. “Bucketed” batches are of one bucket each, but every trainer ` +
      "takes the next batch of any bucket; “uncoordinated” batches are of any lengths.",
    ],
  };
}

function openRequest({ corpus }: Simulation, reading: Reading, consumerIndex: number): OpenRequest {
  const { files } = corpus.text;
  const padded: TextPipeline = { kind: "text", files, batchSize: BATCH_SIZE };
  const bucketed: TextPipeline = { ...padded, boundaries: BOUNDARIES };
  const distribute = { jobName: reading };
  switch (reading) {
    case "padded":
      return { pipeline: padded, place: "service", distribute };
    case "bucketed":
      return { pipeline: bucketed, place: "service", distribute };
    case "coordinated":
      return {
        pipeline: { ...bucketed, batchesPerRound: TRAINERS },
        place: "service",
        distribute: { ...distribute, consumerIndex, numConsumers: TRAINERS },
      };
  }
}

async function read(
  simulation: Simulation,
  deployment: Deployment,
  reading: Reading,
): Promise<ReadsRun> {
  const steps = STEPS[simulation.quick ? "quick" : "full"];
  simulation.progress.beginRun(reading, steps * TRAINERS);
  await deployment.clear();
  const trainers = await deployment.trainers(TRAINERS);
  await Promise.all(trainers.map((it, index) => it.open(openRequest(simulation, reading, index))));
  const barrier = deployment.barrier(new SynchronousTraining(TRAINERS));
  const monitor = deployment.monitor(showProgress(simulation));
  const results = await Promise.all(
    trainers.map((it) => it.train({ step: STEP, batches: steps, barrier, monitor })),
  );
  const run = toRun(results);
  simulation.progress.endRun(`${formatNumber(run.throughput.value, 0)} tokens/s`);
  return run;
}

function toRun(results: readonly TrainResult[]): ReadsRun {
  const sum = (value: (result: TrainResult) => number) =>
    results.reduce((total, result) => total + value(result), 0);
  const [first] = results;
  const seconds = mean(results.map(({ elapsedMs }) => elapsedMs)) / 1000;
  const real = sum(({ tokens }) => tokens.real);
  return {
    paddingShare: measured(1 - real / sum(({ tokens }) => tokens.padded), "1"),
    idleShare: modelled(
      1 - sum(({ ownStepsMs }) => ownStepsMs) / sum(({ stepsMs }) => stepsMs),
      "1",
    ),
    throughput: measured(real / seconds, "tokens/s"),
    stepTimesMs: [...first!.stepTimesMs],
    stepTimesProvenance: "measured",
  };
}
