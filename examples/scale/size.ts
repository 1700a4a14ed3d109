/**
 * Measures a cluster of one size: how it begins, how it runs, how it gets over a crash of its dispatcher.
 *
 * @module
 */
import process from "node:process";
import { ModelledCluster } from "../../sim/modelled_cluster.ts";
import { measured, modelled } from "../lib/quantity.ts";
import { DispatcherWatch } from "./dispatcher_watch.ts";
import type { SizeRun } from "./measurements.ts";

/** Workers of a pool, at most: what one client reads. */
export const POOL_WORKERS = 100;
/** Workers for each client, unless told otherwise. */
const WORKERS_PER_CLIENT = 5;
/** A worker of eight cores makes a batch of 32 MiB in a second, and each is a split. */
const CORES = 8;
const WORKER_BATCH_MS = 1_000;
const BATCH_BYTES = 2 ** 25;
/** A client takes a step in less time than its workers make a batch for it: the workers are the limit. */
const STEP_MS = 50;
/** Virtual time of the run that is measured, in ms, and for which the dispatcher is away. */
const RUN_MS = 5_000;
const DOWN_MS = 1_000;

/** Called as it goes on, with what it does. */
export type OnPhase = (phase: string, events: number) => void;

/** How many clients a cluster has unless told otherwise. */
export function clientsFor(workers: number): number {
  return Math.max(1, Math.round(workers / WORKERS_PER_CLIENT));
}

/** See the module. */
export async function measureSize(
  workers: number,
  clients: number,
  onPhase: OnPhase,
): Promise<SizeRun> {
  const startCpuMs = cpuMs();
  const startHeap = heapBytes();
  const pools = Math.min(Math.ceil(workers / POOL_WORKERS), clients);
  const watch = new DispatcherWatch();
  const cluster = new ModelledCluster({
    workers,
    trainers: clients,
    jobs: pools,
    pools,
    coresPerWorker: CORES,
    batchMs: CORES * WORKER_BATCH_MS,
    batchBytes: BATCH_BYTES,
    batchesPerSplit: 1,
    stepMs: STEP_MS,
    dispatcher: { wrapJournal: watch.wrapJournal },
    wrapDispatcher: watch.wrapActor,
  });
  const phase = (name: string) => onPhase(name, cluster.cluster.scheduler.steps);
  const until = (holds: () => boolean, name: string) =>
    cluster.runUntil(watched(holds, () => phase(name)));
  const waiting = [...cluster.trainers];
  await until(() => waiting.some(({ firstBatchMs }) => firstBatchMs !== undefined), "beginning");
  const firstBatchMs = cluster.nowMs;
  await until(() => {
    while (waiting.at(-1)?.firstBatchMs !== undefined) waiting.pop();
    return waiting.length === 0;
  }, "first batches");
  const allBatchesMs = cluster.nowMs;

  const handled = watch.handled;
  const { batches } = cluster.counts;
  const endMs = cluster.nowMs + RUN_MS;
  await until(() => cluster.nowMs >= endMs, "running");
  const ran = { handled: watch.handled - handled, batches: cluster.counts.batches - batches };
  const heapPerNode = (heapBytes() - startHeap) / (1 + workers + clients);

  const crashedMs = cluster.nowMs;
  cluster.dispatcherNode.crash();
  await until(() => cluster.nowMs >= crashedMs + DOWN_MS, "dispatcher is away");
  const restartCpuMs = cpuMs();
  const handledBefore = watch.handled;
  cluster.dispatcherNode.start();
  await until(() => watch.handled > handledBefore, "replaying");
  const replayMs = cpuMs() - restartCpuMs;
  await until(() => watch.tasksHeard.size >= workers, "recovering");
  const recoveryMs = cluster.nowMs - crashedMs;

  const usedCpuMs = cpuMs() - startCpuMs;
  return {
    workers,
    clients,
    pools,
    dispatcherMessages: modelled(1_000 * ran.handled / RUN_MS, "messages/s"),
    workerHeartbeat: measured(watch.medianUs("workerHeartbeat"), "µs"),
    clientHeartbeat: measured(watch.medianUs("clientHeartbeat"), "µs"),
    split: measured(watch.medianUs("getSplit"), "µs"),
    firstBatch: modelled(firstBatchMs, "ms"),
    allBatches: modelled(allBatchesMs, "ms"),
    recovery: modelled(recoveryMs, "ms"),
    replay: measured(replayMs, "ms"),
    heapPerNode: measured(heapPerNode, "bytes"),
    statePerWorker: measured(watch.stateBytes() / workers, "bytes"),
    batches: modelled(1_000 * ran.batches / RUN_MS, "batches/s"),
    eventsPerCpuMs: measured(cluster.cluster.scheduler.steps / usedCpuMs, "1"),
    cpuSeconds: measured(usedCpuMs / 1_000, "s"),
    memory: measured(Deno.memoryUsage().rss, "bytes"),
  };
}

/** How often progress is told: each so many events. */
const TELL_EVENTS = 2_048;

/** Asks the same, and tells now and then that it goes on. */
function watched(holds: () => boolean, tell: () => void): () => boolean {
  let asked = 0;
  return () => {
    if (asked++ % TELL_EVENTS === 0) tell();
    return holds();
  };
}

/** CPU time of this process so far, the collector's included. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** What is in use, where the collector can be called; with what it has not collected otherwise. */
function heapBytes(): number {
  (globalThis as { gc?: () => void }).gc?.();
  return Deno.memoryUsage().heapUsed;
}
