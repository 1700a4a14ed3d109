/**
 * (b) Sharing: several trainers on one pipeline, as in hyperparameter tuning (section 4.3, Fig.
 * 10).
 */

import process from "node:process";
import { Deployment, type TrainerHandle } from "../deployment.ts";
import type { ImagePipeline } from "../pipelines.ts";
import { measured } from "../../lib/quantity.ts";
import {
  SHARING_MODES,
  type SharingExperiment,
  type SharingMode,
  type SharingRun,
} from "../results.ts";
import { mean } from "../../lib/statistics.ts";
import { countOf } from "../../lib/counted.ts";
import { formatNumber } from "../../lib/table.ts";
import type { OpenRequest, TrainResult } from "../trainer_protocol.ts";
import { IMAGE_BATCH_SIZE, showProgress, type Simulation } from "./simulation.ts";

const SCALES = {
  quick: { trainers: [1, 4], batches: 8, batchSize: 8 },
  full: { trainers: [1, 2, 4, 8, 16], batches: 24, batchSize: IMAGE_BATCH_SIZE },
};

/** Workers of each deployment. With one, the rate of a deployment does not depend on the host's cores. */
const WORKERS = 1;
/**
 * A step takes as long as a deployment needs for this many batches, so a deployment feeds this many
 * trainers, as in the paper.
 */
const TRAINERS_FED = 4;
/** How many batches are timed to find the step time. */
const CALIBRATION_BATCHES = 24;
/** Small, so that at a job's end few batches are buffered, compared with those that the job read. */
const OUTSTANDING_REQUESTS = 2;
/** About 50 batches of 16 images. */
const WINDOW_BYTES_MAX = 128 * 2 ** 20;

export async function sharing(simulation: Simulation): Promise<SharingExperiment> {
  const scale = SCALES[simulation.quick ? "quick" : "full"];
  const counts = simulation.trainers ?? scale.trainers;
  const modes = Object.keys(SHARING_MODES) as SharingMode[];
  simulation.progress.beginExperiment("sharing", 1 + modes.length * counts.length);
  await using stack = new AsyncDisposableStack();
  const started: Deployment[] = [];
  const deployments = async (count: number): Promise<Deployment[]> => {
    const missing = Array.from({ length: count - started.length }, () => start(simulation, stack));
    started.push(...await Promise.all(missing));
    return started.slice(0, count);
  };
  const stepMs = simulation.stepTimeMs ?? await calibrate(simulation, (await deployments(1))[0]!);
  const runs: SharingRun[] = [];
  for (const mode of modes) {
    for (const trainers of counts) {
      const used = await deployments(mode === "C" ? trainers : 1);
      for (const deployment of started) await deployment.clear();
      runs.push(await new Round(simulation, mode, trainers, stepMs, scale.batches).run(used));
    }
  }
  return {
    kind: "sharing",
    workers: WORKERS,
    runs,
    notes: [
      `A job is ${countOf(scale.batches, "step")} of ${
        formatNumber(stepMs)
      } ms, on ${scale.batchSize} images each. A deployment has one worker, which prepares ` +
      `${TRAINERS_FED} batches during a step: without sharing it can feed ${TRAINERS_FED} trainers.`,
      "All deployments share this host's cores. A deployment each (C) therefore slows down once all cores are busy; " +
      "in a cluster it would not.",
      "CPU time is that of the whole process from the first request on, including trainers and dispatchers. Batches " +
      "produced include those that were buffered or in flight when a job ended.",
    ],
  };
}

async function start({ signal }: Simulation, stack: AsyncDisposableStack): Promise<Deployment> {
  const options = { workers: WORKERS, windowBytesMax: WINDOW_BYTES_MAX };
  return stack.use(await Deployment.start(signal, options));
}

/** Measures the step time with which a deployment feeds {@linkcode TRAINERS_FED} trainers, in ms. */
async function calibrate(simulation: Simulation, deployment: Deployment): Promise<number> {
  simulation.progress.beginRun("one worker, no steps", CALIBRATION_BATCHES);
  const trainer = await deployment.trainer();
  await trainer.open(openRequest(simulation, "C", 0));
  const { batches, elapsedMs } = await trainer.train({
    step: { constantMs: 0, perTokenMs: 0 },
    batches: CALIBRATION_BATCHES,
    monitor: deployment.monitor(showProgress(simulation)),
  });
  simulation.progress.endRun();
  return TRAINERS_FED * elapsedMs / batches;
}

function openRequest({ corpus, quick }: Simulation, mode: SharingMode, index: number): OpenRequest {
  const pipeline: ImagePipeline = {
    kind: "images",
    files: corpus.images.files,
    batchSize: SCALES[quick ? "quick" : "full"].batchSize,
  };
  const shared = { jobName: "tuning", sharing: { trainerId: `trainer ${index}` } };
  return {
    pipeline,
    place: "service",
    distribute: {
      maxOutstandingRequests: OUTSTANDING_REQUESTS,
      ...(mode === "A" ? shared : {}),
    },
  };
}

/** A run of one mode with one number of trainers. */
class Round {
  readonly #simulation: Simulation;
  readonly #mode: SharingMode;
  readonly #trainers: number;
  readonly #stepMs: number;
  readonly #batches: number;

  constructor(
    simulation: Simulation,
    mode: SharingMode,
    trainers: number,
    stepMs: number,
    batches: number,
  ) {
    this.#simulation = simulation;
    this.#mode = mode;
    this.#trainers = trainers;
    this.#stepMs = stepMs;
    this.#batches = batches;
  }

  async run(deployments: Deployment[]): Promise<SharingRun> {
    const { progress } = this.#simulation;
    const name = `${this.#mode}, ${countOf(this.#trainers, "trainer")}`;
    progress.beginRun(name, this.#trainers * this.#batches);
    const run = await this.#train(deployments);
    progress.endRun(`${formatNumber(run.batchesProduced.value, 0)} batches produced`);
    return run;
  }

  async #train(deployments: Deployment[]): Promise<SharingRun> {
    const trainers = (await Promise.all(
      deployments.map((it) => it.trainers(this.#trainers / deployments.length)),
    )).flat();
    const before = process.cpuUsage();
    const results = await this.#trainAll(deployments, trainers);
    const { user, system } = process.cpuUsage(before);
    const sources = (await Promise.all(deployments.map(({ cluster }) => cluster.sources()))).flat();
    const tasks = sources.filter(({ role }) => role === "task");
    const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
    return {
      mode: this.#mode,
      trainers: this.#trainers,
      jobTime: measured(mean(results.map(({ elapsedMs }) => elapsedMs)) / 1000, "s"),
      batchesProduced: measured(sum(tasks.map(({ produced }) => produced)), "batches"),
      bytesRead: measured(sum(tasks.map(({ bytesRead }) => bytesRead)), "bytes"),
      cpuTime: measured((user + system) / 1e6, "s"),
      batchesSkipped: measured(sum(sources.map(({ skipped }) => skipped)), "batches"),
    };
  }

  /** Starts all trainers at the same time, when each has its first batch. */
  async #trainAll(deployments: Deployment[], trainers: TrainerHandle[]): Promise<TrainResult[]> {
    await Promise.all(
      trainers.map((it, index) => it.open(openRequest(this.#simulation, this.#mode, index))),
    );
    const show = showProgress(this.#simulation);
    const monitors = deployments.map((it) => it.monitor(show));
    return await Promise.all(trainers.map((it, index) =>
      it.train({
        step: { constantMs: this.#stepMs, perTokenMs: 0 },
        batches: this.#batches,
        monitor: monitors[index] ?? monitors[0]!,
      })
    ));
  }
}
