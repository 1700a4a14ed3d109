/**
 * What a cluster of some size would do: how fast, what holds it up, what stands idle. See
 * {@linkcode ModelledCluster} for what is real in it.
 *
 * @module
 */
import { LeatError } from "../core/error.ts";
import { ModelledCluster, type ModelledOptions } from "./modelled_cluster.ts";

/** How long is waited and measured unless told otherwise, in times of what takes longest. */
const WARM_UP_TURNS = 20;
const MEASURE_TURNS = 40;
const MEASURE_MIN_MS = 1_000;

/** How long to look. */
export interface ModelledSpan {
  /** Virtual time from when all trainers have had a batch until measuring begins. Default: twenty turns. */
  readonly warmUpMs?: number;
  /** Virtual time that is measured. Default: 40 turns of the longest of batch, step and transfer. */
  readonly measureMs?: number;
}

/** What most of the cluster waits for. */
export type ModelledBottleneck = "workers" | "network" | "trainers";

/** What came of it. Shares are from 0 to 1, and those of the time that was measured. */
export interface ModelledOutcome {
  /** Of all trainers together. */
  readonly batchesPerSecond: number;
  /** Of the trainers' time, what they waited for batches. */
  readonly stallFraction: number;
  /** Of the workers' core time, what they used. */
  readonly workerBusyFraction: number;
  /** Of the time, for how long the cards of workers sent batches, and those of trainers received them. */
  readonly workerNetworkFraction: number;
  readonly trainerNetworkFraction: number;
  /** Trainers, where they do not wait; else what is nearest to its limit. */
  readonly bottleneck: ModelledBottleneck;
  /** Virtual time from the start until the first trainer had a batch, and until all had. */
  readonly timeToFirstBatchMs: number;
  readonly timeToAllBatchesMs: number;
  /** Virtual time measured, in ms. */
  readonly measuredMs: number;
  /** Events simulated in all. */
  readonly events: number;
}

/** Trainers that wait less of their time are not held up by anything else. */
const STALLED_FRACTION_MIN = 0.02;

/**
 * Runs a modelled cluster until it is warm, and measures it. The same options have the same outcome.
 *
 * @throws LeatError `invalid_argument` for options that are none.
 *
 * @example
 * ```ts
 * import { simulateCluster } from "./modelled.ts";
 *
 * // A trainer that takes a batch each 100 ms, and workers that make one in 250 ms each.
 * const { batchesPerSecond, bottleneck } = await simulateCluster({
 *   workers: 2,
 *   trainers: 1,
 *   coresPerWorker: 4,
 *   batchMs: 1_000,
 *   stepMs: 100,
 * });
 * console.log(Math.round(batchesPerSecond), bottleneck); // 8 workers
 * ```
 */
export async function simulateCluster(
  options: ModelledOptions & ModelledSpan,
): Promise<ModelledOutcome> {
  const cluster = new ModelledCluster(options);
  const { trainers } = cluster;
  const { warmUpMs, measureMs } = spanOf(cluster, options);
  await cluster.runUntil(() => trainers.some(({ firstBatchMs }) => firstBatchMs !== undefined));
  const timeToFirstBatchMs = cluster.nowMs;
  await untilAllHaveBatches(cluster);
  const timeToAllBatchesMs = cluster.nowMs;
  await cluster.runFor(warmUpMs);
  const before = usageOf(cluster);
  await cluster.runFor(measureMs);
  const after = usageOf(cluster);
  const { workers, coresPerWorker } = cluster.settings;
  const per = (what: keyof Usage, of: number) => (after[what] - before[what]) / (of * measureMs);
  const shares = {
    stallFraction: per("waitedMs", trainers.length),
    workerBusyFraction: per("busyMs", workers * coresPerWorker),
    workerNetworkFraction: per("sendingMs", workers),
    trainerNetworkFraction: per("receivingMs", trainers.length),
  };
  return {
    batchesPerSecond: 1_000 * per("batches", 1),
    ...shares,
    bottleneck: bottleneckOf(shares),
    timeToFirstBatchMs,
    timeToAllBatchesMs,
    measuredMs: measureMs,
    events: cluster.cluster.scheduler.steps,
  };
}

/** Lets time pass until every trainer has had a batch. */
async function untilAllHaveBatches(cluster: ModelledCluster): Promise<void> {
  // Those that have one are not looked at again: this is asked before every event.
  const left = [...cluster.trainers];
  await cluster.runUntil(() => {
    while (left.at(-1)?.firstBatchMs !== undefined) left.pop();
    return left.length === 0;
  });
}

type Usage = Record<"batches" | "waitedMs" | "busyMs" | "sendingMs" | "receivingMs", number>;

function usageOf(cluster: ModelledCluster): Usage {
  return {
    ...cluster.counts,
    busyMs: cluster.workersBusyMs,
    sendingMs: cluster.workersSendingMs,
    receivingMs: cluster.trainersReceivingMs,
  };
}

/** What takes longest is a turn: what goes on in a cluster is seen when there were many. */
function spanOf(
  { settings }: ModelledCluster,
  { warmUpMs, measureMs }: ModelledSpan,
): Required<ModelledSpan> {
  const { batchMs, parallelCalls, coresPerWorker, stepMs, batchBytes } = settings;
  const makingMs = batchMs / Math.min(parallelCalls, coresPerWorker);
  const sendingMs = 1_000 * batchBytes / settings.networkBytesPerSecond;
  const turnMs = Math.max(makingMs, stepMs, sendingMs);
  const span = {
    warmUpMs: warmUpMs ?? WARM_UP_TURNS * turnMs,
    measureMs: measureMs ?? Math.max(MEASURE_TURNS * turnMs, MEASURE_MIN_MS),
  };
  if (span.warmUpMs >= 0 && span.measureMs > 0) return span;
  throw new LeatError(
    "invalid_argument",
    `A modelled cluster: warmUpMs is ${warmUpMs} and measureMs ${measureMs}; they must be 0 or more, ` +
      "and above 0",
  );
}

function bottleneckOf(
  { stallFraction, workerBusyFraction, workerNetworkFraction, trainerNetworkFraction }: Pick<
    ModelledOutcome,
    "stallFraction" | "workerBusyFraction" | "workerNetworkFraction" | "trainerNetworkFraction"
  >,
): ModelledBottleneck {
  if (stallFraction < STALLED_FRACTION_MIN) return "trainers";
  const network = Math.max(workerNetworkFraction, trainerNetworkFraction);
  return network > workerBusyFraction ? "network" : "workers";
}
