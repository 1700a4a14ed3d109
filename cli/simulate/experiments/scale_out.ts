/**
 * (a) Scale-out: preprocessing within the trainer, on 1, 2, 4… workers, and infinitely fast (section
 * 4.2, Fig. 8 and 9).
 */

import { costOf, PAPER_TRAINER_MACHINE } from "../../../mod.ts";
import { Deployment, type TrainerHandle } from "../deployment.ts";
import { IMAGE_SIDE_PX, type ImagePipeline } from "../pipelines.ts";
import { measured, modelled } from "../../lib/quantity.ts";
import type { ScaleOutCurve, ScaleOutExperiment, ScaleOutRun } from "../results.ts";
import { curveName } from "../summary.ts";
import { countOf } from "../../lib/counted.ts";
import { formatNumber } from "../../lib/table.ts";
import type { OpenRequest, TrainResult } from "../trainer_protocol.ts";
import { IMAGE_BATCH_SIZE, type Simulation } from "./simulation.ts";

const SCALES = {
  quick: { localWorkers: [1, 2], farWorkers: [2, 8], warmupMs: 300, durationMs: 1_000 },
  full: {
    localWorkers: [1, 2, 4, 8],
    farWorkers: [1, 2, 4, 8, 16],
    warmupMs: 1_000,
    durationMs: 4_000,
  },
};

/**
 * The accelerator's speed as a multiple of colocated preprocessing, per core of the host. With local
 * files it takes more than all cores can prepare, so the cores limit the curve. With far files it
 * takes half of what they can prepare, so workers, which mostly wait for storage, can keep up.
 */
const DEMAND_PER_CORE = { local: 1.5, far: 0.5 };
/** Limit of the accelerator's speed, for hosts with more cores than the workers can use. */
const DEMAND_MAX = { local: 6, far: 1.5 };
/**
 * The host's cores count as exhausted if at least this share of them is busy, the trainer waits for
 * more than `STALLED_SHARE` of its time, and this process uses `OWN_SHARE_MIN` of the busy cores.
 */
const CORES_BUSY_SHARE = 0.85;
const STALLED_SHARE = 0.05;
const OWN_SHARE_MIN = 0.5;
/** A curve is flat after a run if no later run is faster by this factor. */
const FLAT_FACTOR = 1.2;
/** The notes mention other programs only if they keep this many cores busy. */
const OTHERS_CORES_MIN = 0.2;
/** Requests in flight to one worker: one is being served while the next is on its way. */
const OUTSTANDING_PER_WORKER = 2;
const BYTES_PER_GB = 1e9;

export async function scaleOut(simulation: Simulation): Promise<ScaleOutExperiment> {
  const scale = SCALES[simulation.quick ? "quick" : "full"];
  const { progress, storageLatencyMs: farMs, hostCores, workers } = simulation;
  const localWorkers = workers ?? scale.localWorkers;
  const farWorkers = farMs === 0 ? [] : workers ?? scale.farWorkers;
  const otherRuns = farMs === 0 ? 3 : 5;
  progress.beginExperiment("scale-out", otherRuns + localWorkers.length + farWorkers.length);

  await using local = await Bench.start(simulation, 0);
  const alone = (await local.measure("unhindered", local.colocated, 0)).run.throughput.value;
  const stepMs = (place: "local" | "far") =>
    simulation.stepTimeMs ??
      1000 / (alone * Math.min(DEMAND_PER_CORE[place] * hostCores, DEMAND_MAX[place]));
  const curves = [await local.measureCurve(localWorkers, stepMs("local"))];
  await local[Symbol.asyncDispose]();
  if (farMs > 0) {
    await using far = await Bench.start(simulation, farMs);
    curves.push(await far.measureCurve(farWorkers, stepMs("far")));
  }
  return {
    kind: "scale_out",
    hostCores,
    curves: curves.map(({ curve }) => curve),
    notes: notesOf(curves, alone),
  };
}

/** A curve, and remarks about it. */
interface MeasuredCurve {
  readonly curve: ScaleOutCurve;
  readonly stepMs: number;
  /** The greatest number of cores that other programs kept busy during a run. */
  readonly othersCores: number;
}

interface MeasuredRun {
  readonly run: ScaleOutRun;
  readonly hostBusyCores: number;
}

function notesOf(curves: readonly MeasuredCurve[], alone: number): string[] {
  const othersCores = Math.max(...curves.map((it) => it.othersCores));
  return [
    `Batches are ${IMAGE_BATCH_SIZE} images, read from TFRecords, decoded, cropped, resized to ${IMAGE_SIDE_PX}×${IMAGE_SIDE_PX} ` +
    "and mirrored. One decode is in flight per worker and in the colocated baseline, which prefetches while the " +
    `accelerator is busy. Without waiting for the accelerator it prepares ${
      formatNumber(alone)
    } batches/s.`,
    ...curves.map(({ curve, stepMs }) =>
      `With ${curveName(curve)}, a step of the accelerator takes ${formatNumber(stepMs)} ms.`
    ),
    "Workers are threads of one process, so the CPU in use is that of the whole process, trainer and dispatcher " +
    "included. The cost charges all of that CPU and memory to the workers, so it is an upper bound.",
    ...(othersCores < OTHERS_CORES_MIN ? [] : [
      `Other programs kept up to ${
        formatNumber(othersCores, 1)
      } of the host's cores busy meanwhile: on an idle host the ` +
      "curves are higher.",
    ]),
  ];
}

/**
 * Measures pipelines one after the other, with one deployment that grows and one trainer.
 */
class Bench implements AsyncDisposable {
  /** Preprocessing within the trainer. */
  readonly colocated: OpenRequest;
  readonly #simulation: Simulation;
  readonly #storageLatencyMs: number;
  readonly #deployment: Deployment;
  readonly #trainer: TrainerHandle;

  private constructor(
    simulation: Simulation,
    storageLatencyMs: number,
    deployment: Deployment,
    trainer: TrainerHandle,
  ) {
    this.#simulation = simulation;
    this.#storageLatencyMs = storageLatencyMs;
    this.#deployment = deployment;
    this.#trainer = trainer;
    const { files } = simulation.corpus.images;
    const pipeline: ImagePipeline = { kind: "images", files, batchSize: IMAGE_BATCH_SIZE };
    this.colocated = { pipeline, place: "colocated", storageLatencyMs };
  }

  static async start(simulation: Simulation, storageLatencyMs: number): Promise<Bench> {
    const deployment = await Deployment.start(simulation.signal, { workers: 0, storageLatencyMs });
    return new Bench(simulation, storageLatencyMs, deployment, await deployment.trainer());
  }

  async measureCurve(counts: readonly number[], stepMs: number): Promise<MeasuredCurve> {
    const ideal = await this.measure("ideal", { ...this.colocated, place: "ideal" }, stepMs);
    const colocated = await this.measure("colocated", this.colocated, stepMs);
    const runs: MeasuredRun[] = [];
    for (const count of counts) {
      const { cluster } = this.#deployment;
      while (cluster.workers < count) await cluster.addWorker();
      runs.push(await this.measure(countOf(count, "worker"), this.#distributed(), stepMs));
    }
    const exhausted = runs.find((it, index) =>
      this.#areCoresExhausted(it) &&
      runs.slice(index + 1).every(({ run }) =>
        run.throughput.value < FLAT_FACTOR * it.run.throughput.value
      )
    );
    return {
      curve: {
        storageLatencyMs: this.#storageLatencyMs,
        colocated: colocated.run,
        runs: runs.map(({ run }) => run),
        ideal: ideal.run.throughput,
        ...(exhausted === undefined ? {} : { coresEndAtWorkers: exhausted.run.workers }),
      },
      stepMs,
      othersCores: Math.max(
        ...[ideal, colocated, ...runs].map(({ run, hostBusyCores }) =>
          hostBusyCores - run.cpu.value
        ),
      ),
    };
  }

  async measure(name: string, open: OpenRequest, stepMs: number): Promise<MeasuredRun> {
    const { progress, quick } = this.#simulation;
    const { warmupMs, durationMs } = SCALES[quick ? "quick" : "full"];
    const where = this.#storageLatencyMs === 0 ? "local" : `${this.#storageLatencyMs} ms`;
    progress.beginRun(`${where}, ${name}`, durationMs, "ms");
    await this.#trainer.open(open);
    const monitor = this.#deployment.monitor(({ batches, elapsedMs, waitedMs }) =>
      progress.update({
        done: Math.min(Math.round(elapsedMs), durationMs),
        stallShare: waitedMs / elapsedMs,
        throughput: 1000 * batches / elapsedMs,
      })
    );
    const step = { constantMs: stepMs, perTokenMs: 0 };
    const workers = open.place === "service" ? this.#deployment.cluster.workers : 0;
    const warmupNodes = workers;
    const result = await this.#trainer.train({ step, warmupMs, warmupNodes, durationMs, monitor });
    const run = toRun(workers, result);
    progress.endRun(`${formatNumber(run.throughput.value)} batches/s`);
    return { run, hostBusyCores: result.hostBusyCores };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#deployment[Symbol.asyncDispose]();
  }

  #areCoresExhausted({ run, hostBusyCores }: MeasuredRun): boolean {
    return run.stallShare.value > STALLED_SHARE &&
      hostBusyCores >= CORES_BUSY_SHARE * this.#simulation.hostCores &&
      run.cpu.value >= OWN_SHARE_MIN * hostBusyCores;
  }

  #distributed(): OpenRequest {
    const maxOutstandingRequests = OUTSTANDING_PER_WORKER * this.#deployment.cluster.workers;
    return {
      pipeline: this.colocated.pipeline,
      place: "service",
      distribute: { processingMode: "DYNAMIC", maxOutstandingRequests },
    };
  }
}

function toRun(workers: number, { batches, elapsedMs, waitedMs, cpuMs }: TrainResult): ScaleOutRun {
  const throughput = 1000 * batches / elapsedMs;
  const cores = cpuMs / elapsedMs;
  const { cores: trainerCores, memoryGB: trainerMemoryGB } = PAPER_TRAINER_MACHINE;
  const cost = costOf({
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
