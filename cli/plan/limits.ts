/** Finds the next bottleneck of a cluster from the highest batch rate of each of its parts. */
import { ModelledCluster } from "../../sim/model/modelled_cluster.ts";
import { DispatcherWatch } from "../scale/dispatcher_watch.ts";
import { type Machines, modelOptions, workerBatchMs } from "./clusters.ts";
import type { Profile } from "./profile.ts";

const MS_PER_SECOND = 1_000;
const US_PER_SECOND = 1e6;
/** The dispatcher is watched for at least this time, and at least this many batches of a worker. */
const WATCH_MS = 2_000;
const WATCH_BATCHES = 20;
/** If decoding takes a smaller share of a training loop's time, it does not count as a limit. */
const INGEST_MIN = 0.02;

/** The parts that can limit a cluster. */
export type Part = "workers" | "accelerators" | "ingest" | "trainer network" | "dispatcher";

/** The highest rate of a part, if no other part limits it. */
export interface Limit {
  readonly part: Part;
  readonly batchesPerSecond: number;
}

/** Returns the highest rate of each part of a cluster, in ascending order. */
export async function limitsOf(
  profile: Profile,
  machines: Machines,
  workers: number,
): Promise<Limit[]> {
  const { stepMs, trainers, networkBytesPerSecond } = machines;
  const loopMs = stepMs + profile.decodeMs;
  const limits: Limit[] = [
    {
      part: "workers",
      batchesPerSecond: workers * MS_PER_SECOND / workerBatchMs(profile, machines),
    },
    {
      part: profile.decodeMs < INGEST_MIN * loopMs ? "accelerators" : "ingest",
      batchesPerSecond: trainers * MS_PER_SECOND / loopMs,
    },
    {
      part: "trainer network",
      batchesPerSecond: trainers * networkBytesPerSecond / profile.batchBytes,
    },
    { part: "dispatcher", batchesPerSecond: await dispatcherLimit(profile, machines, workers) },
  ];
  return limits.sort((a, b) => a.batchesPerSecond - b.batchesPerSecond);
}

/** Returns what limits the cluster next if workers are added. */
export function nextLimit(limits: readonly Limit[]): Limit {
  return limits.find(({ part }) => part !== "workers")!;
}

/** The batch rate whose messages keep the dispatcher busy, if it has a core of this host to itself. */
async function dispatcherLimit(
  profile: Profile,
  machines: Machines,
  workers: number,
): Promise<number> {
  const watch = new DispatcherWatch();
  const options = modelOptions(profile, machines, workers);
  const cluster = new ModelledCluster({ ...options, wrapDispatcher: watch.wrapActor });
  const watchMs = Math.max(WATCH_MS, WATCH_BATCHES * options.batchMs);
  await cluster.runUntil(() => cluster.counts.batches > 0);
  const handled = watch.handled;
  const { batches } = cluster.counts;
  await cluster.runFor(watchMs);
  const perBatch = (watch.handled - handled) / Math.max(1, cluster.counts.batches - batches);
  return US_PER_SECOND / (perBatch * watch.medianUs("getSplit"));
}
