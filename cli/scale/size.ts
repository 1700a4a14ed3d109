/**
 * Measures a cluster of one size: its start, its load, and its recovery from a crash of its
 * dispatcher.
 */
import process from "node:process";
import { ModelledCluster } from "../../sim/model/modelled_cluster.ts";
import { measured, modelled } from "../lib/quantity.ts";
import { DispatcherWatch } from "./dispatcher_watch.ts";
import type { SizeRun } from "./measurements.ts";

/** Limit of the workers of a pool. A client reads from all workers of its pool. */
export const POOL_WORKERS = 100;
/** Default number of workers for each client. */
const WORKERS_PER_CLIENT = 5;
/** A worker of eight cores produces a batch of 32 MiB per second. Each batch is a split. */
const CORES = 8;
const WORKER_BATCH_MS = 1_000;
const BATCH_BYTES = 2 ** 25;
/**
 * A client's step is shorter than the time its workers need for a batch, so the workers are the limit.
 */
const STEP_MS = 50;
/** Virtual time of the measured run, in ms. */
export const RUN_MS = 5_000;
/** Virtual time of the dispatcher's downtime, in ms. */
const DOWN_MS = 1_000;

/** The phases in order, with their share of the work. */
const PHASES = { "first batches": 0.3, running: 0.4, "dispatcher is down": 0.05, recovering: 0.25 };
type Phase = keyof typeof PHASES;

/** Called with the phase and the total progress, from 0 to 1. */
type OnPhase = (phase: Phase, done: number) => void;

/** The default number of clients of a cluster. */
export function clientsFor(workers: number): number {
  return Math.max(1, Math.round(workers / WORKERS_PER_CLIENT));
}

/** Measures a cluster of one size. */
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
  const until = (phase: Phase, isOver: () => boolean, done: () => number) =>
    cluster.runUntil(withProgress(isOver, () => onPhase(phase, totalProgress(phase, done()))));
  const reportedShare = () => watch.reportedTasks.size / workers;
  const since = (startedMs: number, ms: number) => (cluster.nowMs - startedMs) / ms;
  const waiting = [...cluster.trainers];
  await until("first batches", () => {
    while (waiting.at(-1)?.firstBatchMs !== undefined) waiting.pop();
    return waiting.length === 0;
  }, () => (reportedShare() + 1 - waiting.length / clients) / 2);
  const firstBatchMs = Math.min(...cluster.trainers.map((trainer) => trainer.firstBatchMs!));
  const allBatchesMs = cluster.nowMs;

  const handled = watch.handled;
  const { batches } = cluster.counts;
  const ranShare = () => since(allBatchesMs, RUN_MS);
  await until("running", () => ranShare() >= 1, ranShare);
  const ran = { handled: watch.handled - handled, batches: cluster.counts.batches - batches };
  const heapPerNode = (heapBytes() - startHeap) / (1 + workers + clients);

  const crashedMs = cluster.nowMs;
  cluster.dispatcherNode.crash();
  const downShare = () => since(crashedMs, DOWN_MS);
  await until("dispatcher is down", () => downShare() >= 1, downShare);
  const restartCpuMs = cpuMs();
  const handledBefore = watch.handled;
  cluster.dispatcherNode.start();
  await until("recovering", () => watch.handled > handledBefore, reportedShare);
  const replayMs = cpuMs() - restartCpuMs;
  await until("recovering", () => watch.reportedTasks.size >= workers, reportedShare);
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

/** Returns the total progress, given the progress of a phase. */
function totalProgress(phase: Phase, share: number): number {
  let before = 0;
  for (const [other, part] of Object.entries(PHASES)) {
    if (other === phase) return before + part * Math.min(1, share);
    before += part;
  }
  return before;
}

/** How many checks are between two progress calls. */
const CHECKS_PER_REPORT = 2_048;

/** Returns the same condition, which also reports progress periodically. */
function withProgress(isOver: () => boolean, report: () => void): () => boolean {
  let checks = 0;
  return () => {
    if (checks++ % CHECKS_PER_REPORT === 0) report();
    return isOver();
  };
}

/** Returns the CPU time of this process so far, including the garbage collector's, in ms. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** Returns the used heap, after a garbage collection if one can be triggered. */
function heapBytes(): number {
  (globalThis as { gc?: () => void }).gc?.();
  return Deno.memoryUsage().heapUsed;
}
