/**
 * Simulated clusters for a profiled pipeline: how fast each would be, for how long its trainers would
 * wait, and what a job would cost.
 *
 * @module
 */
import { costOf, type Prices } from "../../mod.ts";
import { modelledRate } from "./modelled_rate.ts";
import type { Profile } from "./profile.ts";

/** Costs and times are those of so many steps of every trainer. */
export const STEPS = 1_000;
const MS_PER_SECOND = 1_000;
const BYTES_PER_GB = 1e9;
/** Twice the workers that bring less than this share have reached another limit. */
const GAIN_MIN = 0.02;
/** A difference of cost that a model cannot tell. */
export const SAME_PRICE = 0.01;
/** Where so small a share of the workers is between enough and too few, it is not looked closer. */
const SEARCH_GAP = 0.05;
/** Of the time there and back a message takes so much each way, at least and at most. */
const WAY_SHARE_MIN = 1 / 6;
const WAY_SHARE_MAX = 5 / 6;
const BATCHES_PER_SPLIT_MAX = 10_000;
/** The standard deviation of what is drawn evenly from -s to s is s divided by this. */
const EVEN_DEVIATIONS = Math.sqrt(3);

/** The job, and the machines that it may have. */
export interface Machines {
  /** What an accelerator takes for a batch, in ms. */
  readonly stepMs: number;
  readonly trainers: number;
  readonly workersMax: number;
  readonly coresPerWorker: number;
  /** What the network card of each host carries in each direction. */
  readonly networkBytesPerSecond: number;
  /** What a short message takes from one host to another and back, in ms. */
  readonly roundTripMs: number;
  readonly workerMemoryGB: number;
  readonly trainerCores: number;
  readonly trainerMemoryGB: number;
  readonly acceleratorsPerTrainer: number;
  readonly prices: Prices;
  /** The share of their time that accelerators may be without work, 0 to 1. */
  readonly stallMax: number;
}

/** A number for the pipeline as it was on average, and for its fast and slow stretches. */
export interface Range {
  readonly expected: number;
  readonly low: number;
  readonly high: number;
}

/** What a number of workers would come to. */
export interface ClusterRun {
  /** 0: colocated, the pipeline on the trainer's own host. */
  readonly workers: number;
  /** Of all trainers together. */
  readonly batchesPerSecond: Range;
  /** Of the accelerators' time, that in which they do not step. */
  readonly stall: Range;
  /** Of the time of a worker's pipeline, that in which it makes batches. */
  readonly workerBusy: number;
  /** Cores that a worker uses on average. */
  readonly workerCores: number;
  /** What each trainer receives. */
  readonly trainerBytesPerSecond: number;
  /** Of {@linkcode STEPS} steps of every trainer. */
  readonly jobSeconds: number;
  readonly dollars: number;
}

/** What was simulated, and what is best. */
export interface Sweep {
  readonly colocated: ClusterRun;
  /** By number of workers. */
  readonly runs: readonly ClusterRun[];
  /**
   * The fewest workers with which accelerators wait no longer than they may, none among them; where
   * there are none such, the fewest that are about as fast as can be.
   */
  readonly recommended: ClusterRun;
  /** Whether it is the former. */
  readonly isMet: boolean;
  /** What costs least, colocated or not; of those that cost nearly the same the one with fewest workers. */
  readonly cheapest: ClusterRun;
}

/**
 * Simulates clusters of 1, 2, 4, … workers, and between them until the fewest that are enough are
 * known.
 *
 * @param onRun Told before each simulation.
 * @throws LeatError `failed_precondition` where no batch comes over such a network, naming its options.
 */
export async function sweepClusters(
  profile: Profile,
  machines: Machines,
  onRun: (workers: number) => void = () => {},
): Promise<Sweep> {
  const rates = new Map<number, number>();
  const rateOf = async (workers: number) => {
    const known = rates.get(workers);
    if (known !== undefined) return known;
    onRun(workers);
    const rate = await modelledRate(modelOptions(profile, machines, workers));
    rates.set(workers, rate);
    return rate;
  };
  const rateWanted = (1 - machines.stallMax) * machines.trainers * MS_PER_SECOND / machines.stepMs;
  const sizes = await doublings(rateOf, rateWanted, machines.workersMax);
  const best = await rateOf(sizes.at(-1)!);
  const rateEnough = best >= rateWanted ? rateWanted : (1 - GAIN_MIN) * best;
  const fewest = await fewestWorkers(
    sizes.at(-1)!,
    async (workers) => await rateOf(workers) >= rateEnough,
  );
  sizes.push(fewest, Math.min(2 * fewest, machines.workersMax));
  const runs: ClusterRun[] = [];
  for (const workers of [...new Set(sizes)].sort((a, b) => a - b)) {
    onRun(workers);
    runs.push(await withRange(profile, machines, workers, await rateOf(workers)));
  }
  const enough = runs.find(({ workers }) => workers === fewest)!;
  return choose(colocatedRun(profile, machines), runs, enough, machines.stallMax);
}

/** 1, 2, 4, … workers until they give what is wanted, more of them bring nothing, or there may be no more. */
async function doublings(
  rateOf: (workers: number) => Promise<number>,
  rateWanted: number,
  workersMax: number,
): Promise<number[]> {
  const sizes = [1];
  for (let workers = 1, rate = await rateOf(1); rate < rateWanted && workers < workersMax;) {
    workers = Math.min(2 * workers, workersMax);
    sizes.push(workers);
    const before = rate;
    rate = await rateOf(workers);
    if (rate < (1 + GAIN_MIN) * before) break;
  }
  return sizes;
}

/** What is best, where so many workers are `enough`, or as good as can be. */
function choose(
  colocated: ClusterRun,
  runs: readonly ClusterRun[],
  enough: ClusterRun,
  stallMax: number,
): Sweep {
  const dollarsMin = Math.min(...[colocated, ...runs].map(({ dollars }) => dollars));
  const cheapest = [colocated, ...runs]
    .find(({ dollars }) => dollars <= (1 + SAME_PRICE) * dollarsMin)!;
  const isColocatedBest = colocated.stall.expected <= Math.max(stallMax, enough.stall.expected);
  const recommended = isColocatedBest ? colocated : enough;
  return { colocated, runs, recommended, isMet: recommended.stall.expected <= stallMax, cheapest };
}

/** The fewest workers that are enough, or a few more where there are many; `most` are enough. */
async function fewestWorkers(
  most: number,
  areEnough: (workers: number) => Promise<boolean>,
): Promise<number> {
  let enough = most;
  let tooFew = 0;
  while (enough - tooFew > Math.max(1, SEARCH_GAP * enough)) {
    const between = Math.floor((tooFew + enough) / 2);
    if (await areEnough(between)) enough = between;
    else tooFew = between;
  }
  return enough;
}

/**
 * How long a worker is taken by a batch, in ms: it may have fewer cores than this host, and it waits for
 * each split that it asks for.
 */
export function workerBatchMs(
  { batchMs, cpuMs, splitMs, splitsPerBatch = 0 }: Pick<
    Profile,
    "batchMs" | "cpuMs" | "splitMs" | "splitsPerBatch"
  >,
  { coresPerWorker, roundTripMs }: Pick<Machines, "coresPerWorker" | "roundTripMs">,
): number {
  // The model asks for one split before a batch, and waits for the network itself.
  const moreSplits = Math.max(0, splitsPerBatch - 1);
  const askingMs = splitsPerBatch * splitMs + moreSplits * roundTripMs;
  return Math.max(batchMs, cpuMs / coresPerWorker) + askingMs;
}

/** What the model is told of a pipeline, a job and its machines. */
export function modelOptions(profile: Profile, machines: Machines, workers: number) {
  const { stepMs, trainers, networkBytesPerSecond, roundTripMs } = machines;
  const { splitsPerBatch = 0 } = profile;
  return {
    ...{ workers, trainers, networkBytesPerSecond, batchBytes: profile.batchBytes },
    ...{ delayMinMs: WAY_SHARE_MIN * roundTripMs, delayMaxMs: WAY_SHARE_MAX * roundTripMs },
    // A worker makes the batches of a job one after the other, on one thread.
    ...{ coresPerWorker: 1, parallelCalls: 1 },
    batchMs: workerBatchMs(profile, machines),
    batchSpread: Math.min(1, EVEN_DEVIATIONS * profile.variation),
    batchesPerSplit: Math.min(BATCHES_PER_SPLIT_MAX, Math.max(1, Math.round(1 / splitsPerBatch))),
    // A training loop decodes a batch before it steps.
    stepMs: stepMs + profile.decodeMs,
  };
}

/** Simulates the same with the pipeline as in its fast and in its slow stretches. */
async function withRange(
  profile: Profile,
  machines: Machines,
  workers: number,
  expected: number,
): Promise<ClusterRun> {
  const { batchMs, ...model } = modelOptions(profile, machines, workers);
  const rateAt = (stretchMs: number) =>
    modelledRate({ ...model, batchMs: batchMs * stretchMs / profile.batchMs });
  const batchesPerSecond = {
    expected,
    low: Math.min(expected, await rateAt(profile.batchHighMs)),
    high: Math.max(expected, await rateAt(profile.batchLowMs)),
  };
  return runOf({ workers, batchesPerSecond }, profile, machines);
}

/** The trainer's own thread makes a batch while the accelerator steps if the pipeline reads ahead. */
function colocatedRun(profile: Profile, machines: Machines): ClusterRun {
  const { stepMs, trainers } = machines;
  const rateAt = (workerMs: number) => {
    const makingMs = workerMs - profile.encodeMs;
    const turnMs = profile.readsAhead ? Math.max(makingMs, stepMs) : makingMs + stepMs;
    return trainers * MS_PER_SECOND / turnMs;
  };
  const rate = {
    expected: rateAt(profile.batchMs),
    low: rateAt(profile.batchHighMs),
    high: rateAt(profile.batchLowMs),
  };
  return runOf({ workers: 0, batchesPerSecond: rate }, profile, machines);
}

function runOf(
  run: Pick<ClusterRun, "workers" | "batchesPerSecond">,
  profile: Profile,
  machines: Machines,
): ClusterRun {
  const { stepMs, trainers, workerMemoryGB, trainerCores, trainerMemoryGB } = machines;
  const { workers } = run;
  const { expected, low, high } = run.batchesPerSecond;
  const stallAt = (rate: number) => Math.max(0, 1 - rate * stepMs / (MS_PER_SECOND * trainers));
  const jobSeconds = STEPS * trainers / expected;
  // What workers make is what trainers take, once there is no room to make more ahead.
  const batchesOfWorker = workers === 0 ? 0 : expected / (MS_PER_SECOND * workers);
  const workerCores = batchesOfWorker * profile.cpuMs;
  const workerMs = workerBatchMs(profile, machines);
  const cost = costOf({
    ...{ jobSeconds, workers, workerCores, workerMemoryGB },
    ...{ trainers, trainerCores, trainerMemoryGB },
    acceleratorsPerTrainer: machines.acceleratorsPerTrainer,
  }, machines.prices);
  return {
    ...run,
    ...{ workerCores, jobSeconds, workerBusy: Math.min(1, batchesOfWorker * workerMs) },
    stall: { expected: stallAt(expected), low: stallAt(high), high: stallAt(low) },
    trainerBytesPerSecond: workers === 0 ? 0 : profile.batchBytes * expected / trainers,
    dollars: cost.total,
  };
}

/** Memory in GB (10⁹ bytes), as costs are told it. */
export function inGB(bytes: number): number {
  return bytes / BYTES_PER_GB;
}
