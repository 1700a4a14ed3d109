/**
 * Predicts the throughput, bottleneck and utilisation of a cluster. See {@linkcode ModelledCluster}
 * for what is real in the model.
 */
import { LeatError } from "../../core/error.ts";
import { ModelledCluster, type ModelledOptions } from "./modelled_cluster.ts";

/** Default times to warm up and to measure, in multiples of the longest operation. */
const WARM_UP_TURNS = 20;
const MEASURE_TURNS = 40;
const MEASURE_MIN_MS = 1_000;

/** How long to warm up and to measure. */
interface ModelledSpan {
  /**
   * Virtual time between every trainer's first batch and the measurement. Default: 20 times the
   * longest of batch, step and transfer.
   */
  readonly warmUpMs?: number;
  /** Virtual time of the measurement. Default: 40 times the longest of batch, step and transfer. */
  readonly measureMs?: number;
}

/** What limits the cluster. */
type ModelledBottleneck = "workers" | "network" | "trainers";

/** The result of a measurement. Shares are from 0 to 1, of the measured time. */
interface ModelledOutcome {
  /** Throughput of all trainers together. */
  readonly batchesPerSecond: number;
  /** Share of the trainers' time spent waiting for batches. */
  readonly stallFraction: number;
  /** Share of the workers' core time in use. */
  readonly workerBusyFraction: number;
  /** Share of the time in which the workers' network cards sent batches. */
  readonly workerNetworkFraction: number;
  /** Share of the time in which the trainers' network cards received batches. */
  readonly trainerNetworkFraction: number;
  /** `trainers` if they do not wait; otherwise the part that is nearest to its limit. */
  readonly bottleneck: ModelledBottleneck;
  /** Virtual time from the start until the first trainer had a batch. */
  readonly timeToFirstBatchMs: number;
  /** Virtual time from the start until all trainers had a batch. */
  readonly timeToAllBatchesMs: number;
  /** Virtual time measured, in ms. */
  readonly measuredMs: number;
  /** Number of simulated events. */
  readonly events: number;
}

/** If trainers wait for a smaller share of their time, they are the bottleneck. */
const STALLED_FRACTION_MIN = 0.02;

/**
 * Runs a modelled cluster until it is warm, and measures it. Equal options give equal results.
 * @throws LeatError `invalid_argument` for invalid options.
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

/** Runs until every trainer has had a batch. */
async function untilAllHaveBatches(cluster: ModelledCluster): Promise<void> {
  // Trainers with a batch are not checked again, because this check runs before every event.
  const unchecked = [...cluster.trainers];
  await cluster.runUntil(() => {
    while (unchecked.at(-1)?.firstBatchMs !== undefined) unchecked.pop();
    return unchecked.length === 0;
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

/** Returns times that are many times the longest operation, so that the steady state is measured. */
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
