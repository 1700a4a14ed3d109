/**
 * Simulates clusters for a profiled pipeline: how fast they are, how long trainers wait, and what a
 * job costs.
 */
import { costOf, type Prices } from "../../mod.ts";
import { modelledRate } from "./modelled_rate.ts";
import type { Profile } from "./profile.ts";

/** Costs and times are for this many steps of every trainer. */
export const STEPS = 1_000;
const MS_PER_SECOND = 1_000;
const BYTES_PER_GB = 1e9;
/** If doubling the workers gains less than this share, something else limits the cluster. */
const GAIN_MIN = 0.02;
/** Costs that differ by less than this share count as equal: the model is not more accurate. */
export const SAME_PRICE = 0.01;
/**
 * The search ends when a number of workers that suffices, and one that does not, differ by no more
 * than this share.
 */
const SEARCH_GAP = 0.05;
/** The least and the largest share of a round trip that one direction takes. */
const ONE_WAY_SHARE_MIN = 1 / 6;
const ONE_WAY_SHARE_MAX = 5 / 6;
const BATCHES_PER_SPLIT_MAX = 10_000;
/** The standard deviation of a uniform distribution from -s to s is s divided by this. */
const SPREAD_PER_DEVIATION = Math.sqrt(3);

/** The job, and the machines it may use. */
export interface Machines {
  /** Time of a training step, in ms. */
  readonly stepMs: number;
  readonly trainers: number;
  readonly workersMax: number;
  readonly coresPerWorker: number;
  /** Bandwidth of each host's network card, in each direction. */
  readonly networkBytesPerSecond: number;
  /** Round trip of a short message between two hosts, in ms. */
  readonly roundTripMs: number;
  readonly workerMemoryGB: number;
  readonly trainerCores: number;
  readonly trainerMemoryGB: number;
  readonly acceleratorsPerTrainer: number;
  readonly prices: Prices;
  /** The share of time, 0 to 1, that accelerators may idle. */
  readonly stallMax: number;
}

/**
 * A figure at the pipeline's mean speed (`expected`), and in its slow and fast stretches. `low` is
 * the lower one of these, whichever stretch it belongs to.
 */
export interface Range {
  readonly expected: number;
  readonly low: number;
  readonly high: number;
}

/** The simulation of a cluster with some number of workers. */
export interface ClusterRun {
  /** 0: colocated, the pipeline on the trainer's own host. */
  readonly workers: number;
  /** The rate of all trainers together. */
  readonly batchesPerSecond: Range;
  /** The share of the accelerators' time without a step. */
  readonly stall: Range;
  /** The share of time in which a worker's pipeline produces batches. */
  readonly workerBusy: number;
  /** Cores that a worker uses on average. */
  readonly workerCores: number;
  /** What each trainer receives. */
  readonly trainerBytesPerSecond: number;
  /** For {@linkcode STEPS} steps of every trainer. */
  readonly jobSeconds: number;
  readonly dollars: number;
}

/** All simulations, and the best of them. */
export interface Sweep {
  readonly colocated: ClusterRun;
  /** In ascending order of workers. */
  readonly runs: readonly ClusterRun[];
  /**
   * The fewest workers with which accelerators wait no longer than allowed. If that is impossible:
   * the fewest that are about as fast as possible. Colocated if accelerators then wait no longer
   * than with these workers, or than allowed.
   */
  readonly recommended: ClusterRun;
  /** Whether accelerators wait no longer than allowed with the recommended run. */
  readonly isMet: boolean;
  /** The cheapest run, colocated or not. Of nearly equal runs, the one with the fewest workers. */
  readonly cheapest: ClusterRun;
}

/**
 * Simulates clusters of 1, 2, 4, … workers, then searches between them for the fewest that are
 * enough.
 * @param onRun Called before each simulation.
 * @throws LeatError `failed_precondition` if the network is so slow that no batch arrives. The message
 * names the options of the network.
 */
export async function sweepClusters(
  profile: Profile,
  machines: Machines,
  onRun: (workers: number) => void = () => {},
): Promise<Sweep> {
  const rates = new Map<number, number>();
  const rateOf = async (workers: number) => {
    const cached = rates.get(workers);
    if (cached !== undefined) return cached;
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

/** Returns 1, 2, 4, … until the workers suffice, more of them gain nothing, or the maximum is reached. */
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

/** Chooses the best runs. `enough` is the smallest cluster that suffices, or comes closest. */
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

/** Returns the fewest workers that suffice, approximately. `upperBound` workers must suffice. */
async function fewestWorkers(
  upperBound: number,
  areEnough: (workers: number) => Promise<boolean>,
): Promise<number> {
  let enough = upperBound;
  let tooFew = 0;
  while (enough - tooFew > Math.max(1, SEARCH_GAP * enough)) {
    const between = Math.floor((tooFew + enough) / 2);
    if (await areEnough(between)) enough = between;
    else tooFew = between;
  }
  return enough;
}

/**
 * The time that a batch takes on a worker, in ms. A worker may have fewer cores than this host, and
 * waits for each split that it requests.
 */
export function workerBatchMs(
  { batchMs, cpuMs, splitMs, splitsPerBatch = 0 }: Pick<
    Profile,
    "batchMs" | "cpuMs" | "splitMs" | "splitsPerBatch"
  >,
  { coresPerWorker, roundTripMs }: Pick<Machines, "coresPerWorker" | "roundTripMs">,
): number {
  // The model itself adds the round trip of one split per batch. This adds those of further splits.
  const moreSplits = Math.max(0, splitsPerBatch - 1);
  const splitWaitMs = splitsPerBatch * splitMs + moreSplits * roundTripMs;
  return Math.max(batchMs, cpuMs / coresPerWorker) + splitWaitMs;
}

/** The model's parameters for a pipeline, a job and its machines. */
export function modelOptions(profile: Profile, machines: Machines, workers: number) {
  const { stepMs, trainers, networkBytesPerSecond, roundTripMs } = machines;
  const { splitsPerBatch = 0 } = profile;
  return {
    ...{ workers, trainers, networkBytesPerSecond, batchBytes: profile.batchBytes },
    ...{ delayMinMs: ONE_WAY_SHARE_MIN * roundTripMs, delayMaxMs: ONE_WAY_SHARE_MAX * roundTripMs },
    // A worker produces the batches of a job sequentially, on one thread.
    ...{ coresPerWorker: 1, parallelCalls: 1 },
    batchMs: workerBatchMs(profile, machines),
    batchSpread: Math.min(1, SPREAD_PER_DEVIATION * profile.variation),
    batchesPerSplit: Math.min(BATCHES_PER_SPLIT_MAX, Math.max(1, Math.round(1 / splitsPerBatch))),
    // A training loop decodes a batch before it steps.
    stepMs: stepMs + profile.decodeMs,
  };
}

/** Simulates also the pipeline's fast and slow stretches. `expected` is the rate at mean speed. */
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

/**
 * Models a pipeline on the trainer's own thread. The next batch is prepared during a step only if the
 * pipeline prefetches.
 */
function colocatedRun(profile: Profile, machines: Machines): ClusterRun {
  const { stepMs, trainers } = machines;
  const rateAt = (batchMs: number) => {
    const prepareMs = batchMs - profile.encodeMs;
    const loopMs = profile.readsAhead ? Math.max(prepareMs, stepMs) : prepareMs + stepMs;
    return trainers * MS_PER_SECOND / loopMs;
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
  // Once buffers are full, workers produce only as much as trainers consume.
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

/** Converts bytes to GB (10⁹ bytes), the unit of prices. */
export function inGB(bytes: number): number {
  return bytes / BYTES_PER_GB;
}
