/**
 * Simulates the worker sweep of the tf.data service paper (Audibert et al., SoCC 2023, section 4.2, "Sweeping
 * Worker Count", Fig. 9), and gives the numbers of its text.
 */
import { costOf, type JobResources, PAPER_PRICES, PAPER_WORKER_MACHINE } from "../../mod.ts";
import { simulateCluster } from "../../sim/model/modelled.ts";
import { measured, modelled } from "../lib/quantity.ts";
import type { SweepRun } from "./measurements.ts";

/** "We train M1 using a varying data preprocessing worker pool size of 8, 16, 32, 64, 128, 256, 512, and 640 workers." */
export const PAPER_WORKERS: readonly number[] = [8, 16, 32, 64, 128, 256, 512, 640];

/** Batches per second with colocated preprocessing: "0.3 batches/s versus 0.55 batches/s". */
const COLOCATED = 0.55;
/** "With 512 workers, tf.data service reaches the ideal training time, achieving […] 12.3× and […] 11.4×". */
const IDEAL_SPEEDUP = 12.3;
const IDEAL_WORKERS = 512;
const IDEAL_COST_SAVING = 11.4;
/** "We use 32, 8, 16, and 1 accelerators to train the models": M1 has 32. */
const ACCELERATORS = 32;
/** The number for a host with TPU v4 accelerators; the paper does not state it. */
const ACCELERATORS_PER_TRAINER = 4;
/** "Two 240 core AMD EPYC 7B12 processors", and "400 GB of DRAM". */
const TRAINER_CORES = 480;
const TRAINER_MEMORY_GB = 400;

/** Batches per second at sizes limited by workers, according to the text. */
const PAPER_THROUGHPUT: Readonly<Record<number, number>> = { 8: 0.3, 16: 0.64, 64: 2.3, 128: 4.77 };
/** Speedups according to the text; with 640 "the job time remains unaffected". */
const PAPER_SPEEDUP: Readonly<Record<number, number>> = {
  8: 0.3 / COLOCATED,
  16: 1.14,
  64: 4.1,
  128: 8.6,
  512: IDEAL_SPEEDUP,
  640: IDEAL_SPEEDUP,
};
/** With 8 workers "training time and cost is 83% higher". */
const PAPER_COST_SAVING: Readonly<Record<number, number>> = {
  8: 1 / 1.83,
  [IDEAL_WORKERS]: IDEAL_COST_SAVING,
};

const TRAINERS = ACCELERATORS / ACCELERATORS_PER_TRAINER;
const MS_PER_SECOND = 1_000;
/** Size of a batch; the paper does not state it. A trainer buffers 256 MiB of batches. */
const BATCH_BYTES = 4 * 2 ** 20;
/** How long to warm up and to measure, in batches of a worker. A batch takes about half a minute. */
const WARM_UP_BATCHES = 12;
const MEASURE_BATCHES = 8;

/**
 * Time that a worker takes for a batch, in ms. It follows from the worker's share of the total rate at
 * sizes limited by workers.
 */
const WORKER_BATCH_MS = (() => {
  const shares = Object.entries(PAPER_THROUGHPUT).map(([workers, rate]) => rate / Number(workers));
  return MS_PER_SECOND * shares.length / shares.reduce((sum, share) => sum + share, 0);
})();
/** Step time at which all trainers together consume the ideal throughput. */
const STEP_MS = MS_PER_SECOND * TRAINERS / (IDEAL_SPEEDUP * COLOCATED);

/** Describes the parameters of {@linkcode sweepSize}. */
export const SWEEP_NOTES: readonly string[] = [
  `A worker takes ${(WORKER_BATCH_MS / MS_PER_SECOND).toFixed(1)} s for a batch: the mean over ` +
  "8, 16, 64 and 128 workers, where the workers were the limit. It has the 8 cores of the machine " +
  "that the paper prices, and all of them work on one batch.",
  `${TRAINERS} trainers with ${ACCELERATORS_PER_TRAINER} accelerators each (the paper says 32 accelerators, ` +
  `not how many a host has) take a step in ${
    (STEP_MS / MS_PER_SECOND).toFixed(2)
  } s, so that all of them ` +
  `take ${
    (IDEAL_SPEEDUP * COLOCATED).toFixed(2)
  } batches/s at best: 12.3 times the colocated 0.55.`,
  `The network is no limit, as in the paper. A cluster runs for ${WARM_UP_BATCHES} batches of a worker, and is ` +
  `then measured for ${MEASURE_BATCHES}.`,
  "Cost is equation 1 with the paper's price of a worker machine. The paper does not disclose the price of an " +
  "accelerator: here it is chosen so that 512 workers save the 11.4 times that the text gives. What the other " +
  "sizes save follows from it and from the simulated busy share of the workers.",
];

/** Simulates one size of the sweep. */
export async function sweepSize(workers: number): Promise<SweepRun> {
  const { batchesPerSecond, workerBusyFraction, stallFraction } = await simulateCluster({
    workers,
    trainers: TRAINERS,
    coresPerWorker: PAPER_WORKER_MACHINE.cores,
    batchMs: WORKER_BATCH_MS * PAPER_WORKER_MACHINE.cores,
    batchBytes: BATCH_BYTES,
    stepMs: STEP_MS,
    warmUpMs: WARM_UP_BATCHES * WORKER_BATCH_MS,
    measureMs: MEASURE_BATCHES * WORKER_BATCH_MS,
  });
  const speedup = batchesPerSecond / COLOCATED;
  const paperSpeedup = PAPER_SPEEDUP[workers];
  const paperCostSaving = PAPER_COST_SAVING[workers];
  return {
    workers,
    throughput: modelled(batchesPerSecond, "batches/s"),
    speedup: modelled(speedup, "1"),
    costSaving: modelled(savingOf(workers, workerBusyFraction, speedup), "1"),
    workerBusy: modelled(workerBusyFraction, "1"),
    stalled: modelled(stallFraction, "1"),
    ...(paperSpeedup === undefined ? {} : { paperSpeedup: measured(paperSpeedup, "1") }),
    ...(paperCostSaving === undefined ? {} : { paperCostSaving: measured(paperCostSaving, "1") }),
  };
}

/** Returns the cost of a colocated job divided by the cost of a job with workers, by equation 1. */
function savingOf(workers: number, busy: number, speedup: number): number {
  const prices = { ...PAPER_PRICES, acceleratorPerHour: acceleratorPerHour() };
  const colocated = costOf(jobOf(0, 0, 1), prices).total;
  return colocated / costOf(jobOf(workers, busy, speedup), prices).total;
}

/**
 * The resources of a job that takes an hour colocated. A worker's used memory is assumed proportional
 * to its used cores.
 */
function jobOf(workers: number, busy: number, speedup: number): JobResources {
  return {
    jobSeconds: 3_600 / speedup,
    workers,
    workerCores: busy * PAPER_WORKER_MACHINE.cores,
    workerMemoryGB: busy * PAPER_WORKER_MACHINE.memoryGB,
    trainers: TRAINERS,
    trainerCores: TRAINER_CORES,
    trainerMemoryGB: TRAINER_MEMORY_GB,
    acceleratorsPerTrainer: ACCELERATORS_PER_TRAINER,
  };
}

/**
 * The price of an accelerator at which 512 workers, as busy as the trainers keep them, make a job
 * 11.4 times cheaper.
 */
function acceleratorPerHour(): number {
  const busy = IDEAL_SPEEDUP * COLOCATED * WORKER_BATCH_MS / MS_PER_SECOND / IDEAL_WORKERS;
  const free = { ...PAPER_PRICES, acceleratorPerHour: 0 };
  const { workers, trainers } = costOf(jobOf(IDEAL_WORKERS, busy, 1), free);
  const trainersWanted = workers / (IDEAL_SPEEDUP / IDEAL_COST_SAVING - 1);
  return (trainersWanted - trainers) / ACCELERATORS;
}
