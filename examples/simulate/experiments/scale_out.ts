/**
 * (a) Scale-out: preprocessing within the trainer, on 1, 2, 4… workers, and infinitely fast (section 4.2, Fig. 8 and 9).
 *
 * @module
 */

import { jobCost, PAPER_TRAINER_MACHINE } from "../cost.ts";
import { Deployment } from "../deployment.ts";
import type { ImagePipeline } from "../pipelines.ts";
import {
  measured,
  modelled,
  type ScaleOutCurve,
  type ScaleOutExperiment,
  type ScaleOutRun,
} from "../results.ts";
import { countOf, curveName } from "../summary.ts";
import { formatNumber } from "../table.ts";
import type { OpenRequest, TrainResult } from "../trainer_protocol.ts";
import { IMAGE_BATCH_SIZE, showProgress, type Simulation } from "./simulation.ts";

const SCALES = {
  quick: { localWorkers: [1, 2, 4], farWorkers: [1, 4, 8], warmupMs: 400, durationMs: 1_400 },
  full: {
    localWorkers: [1, 2, 4, 8],
    farWorkers: [1, 2, 4, 8, 16],
    warmupMs: 1_000,
    durationMs: 4_000,
  },
};

/** How long the rate of preprocessing is measured for the step times, in ms. */
const CALIBRATION_MS = 800;
/**
 * How many times faster than colocated preprocessing the accelerator is, per core of the host. With local files more than
 * all cores can feed, so that the job is input-bound and the cores end the curve; with far files half of what they can, so that
 * workers which mostly wait can reach it.
 */
const DEMAND_PER_CORE = { local: 1.5, far: 0.5 };
/** No faster than so many times, on hosts where the workers would not be enough to feed it. */
const DEMAND_MAX = { local: 6, far: 1.5 };
/** The host's cores count as used up when so large a share is busy while the trainer still waits. */
const CORES_BUSY_SHARE = 0.85;
const STALLED_SHARE = 0.05;
/** Requests in flight to one worker: one is served while the next is on its way. */
const OUTSTANDING_PER_WORKER = 2;
const BYTES_PER_GB = 1e9;

/** One measurement. */
interface Point {
  readonly workers: number;
  readonly open: OpenRequest;
  readonly stepMs: number;
  readonly storageLatencyMs: number;
  readonly warmupMs: number;
  readonly durationMs: number;
}

/** Runs the experiment. */
export async function scaleOut(simulation: Simulation): Promise<ScaleOutExperiment> {
  const scale = SCALES[simulation.quick ? "quick" : "full"];
  const { progress, storageLatencyMs: farMs, hostCores, workers } = simulation;
  const localWorkers = workers ?? scale.localWorkers;
  const farWorkers = farMs === 0 ? [] : workers ?? scale.farWorkers;
  const curvesOf = farMs === 0 ? 1 : 2;
  progress.beginExperiment(
    "scale-out",
    1 + localWorkers.length + farWorkers.length + 2 * curvesOf,
  );
  const alone = (await measure(simulation, "unhindered", {
    ...colocatedPoint(simulation, 0, 0),
    warmupMs: CALIBRATION_MS / 2,
    durationMs: CALIBRATION_MS,
  })).throughput.value;
  const stepMs = (place: "local" | "far") =>
    simulation.stepTimeMs ??
      1000 / (alone * Math.min(DEMAND_PER_CORE[place] * hostCores, DEMAND_MAX[place]));
  const curves = [await measureCurve(simulation, 0, localWorkers, stepMs("local"))];
  if (farMs > 0) curves.push(await measureCurve(simulation, farMs, farWorkers, stepMs("far")));
  return {
    kind: "scale_out",
    hostCores,
    curves,
    notes: notesOf(curves, alone, [stepMs("local"), stepMs("far")]),
  };
}

function notesOf(curves: ScaleOutCurve[], alone: number, stepsMs: number[]): string[] {
  return [
    `Batches are ${IMAGE_BATCH_SIZE} images, read from TFRecords, decoded, cropped, resized to 224×224 and mirrored. One decode ` +
    `is in flight per worker and in the colocated baseline, which prefetches while the accelerator is busy and, left ` +
    `alone, prepares ${formatNumber(alone)} batches/s.`,
    ...curves.map((curve, index) =>
      `With ${curveName(curve)}, a step of the accelerator takes ${
        formatNumber(stepsMs[index]!)
      } ms.`
    ),
    "Workers are threads of one process, so the CPU in use is that of the whole process, trainer and dispatcher " +
    "included, and the cost charges all of it, and all its memory, to the workers: it is an upper bound.",
  ];
}

async function measureCurve(
  simulation: Simulation,
  storageLatencyMs: number,
  workers: readonly number[],
  stepMs: number,
): Promise<ScaleOutCurve> {
  const point = colocatedPoint(simulation, storageLatencyMs, stepMs);
  const where = storageLatencyMs === 0 ? "local" : `${storageLatencyMs} ms`;
  const ideal = await measure(simulation, `${where}, ideal`, {
    ...point,
    open: { ...point.open, place: "ideal" },
  });
  const colocated = await measure(simulation, `${where}, colocated`, point);
  const runs: ScaleOutRun[] = [];
  for (const count of workers) {
    const name = `${where}, ${countOf(count, "worker")}`;
    runs.push(await measure(simulation, name, servicePoint(point, count)));
  }
  const end = runs.find(({ cpu, stallShare }) =>
    cpu.value >= CORES_BUSY_SHARE * simulation.hostCores && stallShare.value > STALLED_SHARE
  );
  return {
    storageLatencyMs,
    colocated,
    runs,
    ideal: ideal.throughput,
    ...(end === undefined ? {} : { coresEndAtWorkers: end.workers }),
  };
}

function colocatedPoint(
  { corpus, quick }: Simulation,
  storageLatencyMs: number,
  stepMs: number,
): Point {
  const { warmupMs, durationMs } = SCALES[quick ? "quick" : "full"];
  const pipeline: ImagePipeline = {
    kind: "images",
    files: corpus.images.files,
    batchSize: IMAGE_BATCH_SIZE,
  };
  return {
    workers: 0,
    open: { pipeline, place: "colocated", storageLatencyMs },
    stepMs,
    storageLatencyMs,
    warmupMs,
    durationMs,
  };
}

function servicePoint(point: Point, workers: number): Point {
  const maxOutstandingRequests = OUTSTANDING_PER_WORKER * workers;
  return {
    ...point,
    workers,
    open: {
      pipeline: point.open.pipeline,
      place: "service",
      distribute: { processingMode: "DYNAMIC", maxOutstandingRequests },
    },
  };
}

async function measure(simulation: Simulation, name: string, point: Point): Promise<ScaleOutRun> {
  const { workers, open, stepMs, storageLatencyMs, warmupMs, durationMs } = point;
  simulation.progress.beginRun(name, durationMs / 1000, "s");
  await using deployment = await Deployment.start(simulation.signal, {
    workers,
    storageLatencyMs,
  });
  const trainer = await deployment.trainer();
  await trainer.open(open);
  const show = showProgress(simulation);
  const monitor = deployment.monitor((of) => show({ ...of, batches: of.elapsedMs / 1000 }));
  const step = { constantMs: stepMs, perTokenMs: 0 };
  const result = await trainer.train({ step, warmupMs, durationMs, monitor });
  const run = toRun(workers, result);
  simulation.progress.endRun(`${formatNumber(run.throughput.value)} batches/s`);
  return run;
}

function toRun(workers: number, { batches, elapsedMs, waitedMs, cpuMs }: TrainResult): ScaleOutRun {
  const throughput = 1000 * batches / elapsedMs;
  const cores = cpuMs / elapsedMs;
  const { cores: trainerCores, memoryGB: trainerMemoryGB } = PAPER_TRAINER_MACHINE;
  const cost = jobCost({
    jobSeconds: 1000 / throughput,
    workers,
    workerCores: cores / Math.max(1, workers),
    workerMemoryGB: Deno.memoryUsage().rss / BYTES_PER_GB / Math.max(1, workers),
    trainers: 1,
    trainerCores,
    trainerMemoryGB,
    acceleratorsPerTrainer: 1,
  });
  return {
    workers,
    throughput: measured(throughput, "batches/s"),
    stallShare: measured(waitedMs / elapsedMs, "1"),
    cpu: measured(cores, "cores"),
    costPerThousandBatches: modelled(cost.total, "USD"),
  };
}
