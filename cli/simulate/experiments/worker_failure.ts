/**
 * (d) A worker is killed mid-run under DYNAMIC sharding: what is lost, and what continues (section
 * 3.4).
 */

import { setTimeout as sleep } from "node:timers/promises";
import { READ_BYTES } from "../../../data/formats/byte_reader.ts";
import { Deployment } from "../deployment.ts";
import type { ImagePipeline } from "../pipelines.ts";
import { measured } from "../../lib/quantity.ts";
import type { WorkerFailureExperiment } from "../results.ts";
import { formatNumber } from "../../lib/table.ts";
import { epochMs, type TrainResult } from "../trainer_protocol.ts";
import { showProgress, type Simulation } from "./simulation.ts";

const EPOCH_MS = { quick: 3_500, full: 8_000 };

const WORKERS = 3;
const VICTIM = 1;
const BATCH_SIZE = 2;
const INTERVAL_MS = 100;
/**
 * The worker is killed when this share of the epoch has arrived. With 16 files, the workers are then
 * in the middle of a file.
 */
const KILLED_AT_SHARE = 0.45;
/** Downtime after the dispatcher has noticed the failure, in ms. */
const DOWN_MS = 500;
const HEARTBEAT_MS = 100;
const WORKER_TIMEOUT_MS = 500;
const POLL_MS = 20;
/** Time limit for the dispatcher to notice the failure, in ms. */
const NOTICE_TIMEOUT_MS = 10_000;

/** The times of the events, in ms since 1970. */
interface Failure {
  readonly killedMs: number;
  readonly noticedMs: number | undefined;
  readonly restartedMs: number;
}

export async function workerFailure(simulation: Simulation): Promise<WorkerFailureExperiment> {
  const { corpus, progress, signal, quick } = simulation;
  progress.beginExperiment("worker failure", 1);
  const { files, statistics } = corpus.images;
  const batches = Math.ceil(statistics.count / BATCH_SIZE);
  progress.beginRun("one epoch", batches);
  const storageLatencyMs = await latencyFor(files, EPOCH_MS[quick ? "quick" : "full"]);
  await using deployment = await Deployment.start(signal, {
    workers: WORKERS,
    storageLatencyMs,
    heartbeatMs: HEARTBEAT_MS,
    workerTimeoutMs: WORKER_TIMEOUT_MS,
    logLevel: "off",
  });
  const trainer = await deployment.trainer();
  const pipeline: ImagePipeline = { kind: "images", files, batchSize: BATCH_SIZE, epochs: 1 };
  await trainer.open({ pipeline, place: "service", distribute: { processingMode: "DYNAMIC" } });
  const reached = Promise.withResolvers<void>();
  const show = showProgress(simulation);
  const monitor = deployment.monitor((report) => {
    show(report);
    if (report.batches >= KILLED_AT_SHARE * batches) reached.resolve();
  });
  const training = trainer.train({ step: { constantMs: 0, perTokenMs: 0 }, monitor, record: true })
    .finally(() => reached.resolve());
  const failing = reached.promise.then(() => killAndRestart(deployment, signal));
  const [result, failure] = await Promise.all([training, failing]);
  progress.endRun(`${result.ids.length} of ${statistics.count} elements`);
  return toExperiment(result, failure, statistics.count, storageLatencyMs);
}

/**
 * Returns the storage latency with which an epoch takes about `durationMs`, because local files would
 * be read too fast.
 */
async function latencyFor(files: readonly string[], durationMs: number): Promise<number> {
  const sizes = await Promise.all(files.map(async (file) => (await Deno.stat(file)).size));
  const requests = sizes.reduce((total, size) => total + 1 + Math.ceil(size / READ_BYTES), 0);
  return Math.round(WORKERS * durationMs / requests);
}

async function killAndRestart({ cluster }: Deployment, signal: AbortSignal): Promise<Failure> {
  signal.throwIfAborted();
  await cluster.stopWorker(VICTIM);
  const killedMs = epochMs();
  const name = `${cluster.address}-worker-${VICTIM}`;
  let noticedMs: number | undefined;
  while (noticedMs === undefined && epochMs() < killedMs + NOTICE_TIMEOUT_MS) {
    const { workers } = await cluster.describe();
    const alive = workers.find((worker) => worker.name === name)?.alive ?? false;
    if (!alive) noticedMs = epochMs();
    else await sleep(POLL_MS);
  }
  await sleep(DOWN_MS);
  await cluster.restartWorker(VICTIM);
  return { killedMs, noticedMs, restartedMs: epochMs() };
}

function toExperiment(
  { ids, arrivals }: TrainResult,
  { killedMs, noticedMs, restartedMs }: Failure,
  expected: number,
  storageLatencyMs: number,
): WorkerFailureExperiment {
  const delivered = new Set(ids).size;
  const startedMs = Math.min(...Object.values(arrivals).flat());
  return {
    kind: "worker_failure",
    processingMode: "DYNAMIC",
    intervalMs: INTERVAL_MS,
    timeline: timelineOf(arrivals, startedMs),
    killedWorker: nameOf(VICTIM),
    killedAtMs: killedMs - startedMs,
    restartedAtMs: restartedMs - startedMs,
    elements: {
      expected: measured(expected, "elements"),
      delivered: measured(delivered, "elements"),
      lost: measured(expected - delivered, "elements"),
      repeated: measured(ids.length - delivered, "elements"),
    },
    notes: [
      noticedMs === undefined
        ? "The dispatcher did not notice in time."
        : `The dispatcher noticed ${
          formatNumber((noticedMs - killedMs) / 1000, 2)
        } s after the kill; a worker counts as dead ` +
          `after ${
            formatNumber(WORKER_TIMEOUT_MS / 1000, 1)
          } s without heartbeats here, 60 s by default.`,
      `Batches are ${BATCH_SIZE} images, and a split is a file. Each read of storage takes ${storageLatencyMs} ms longer, so that an epoch takes ` +
      "long enough to observe.",
    ],
  };
}

function timelineOf(
  arrivals: TrainResult["arrivals"],
  startedMs: number,
): WorkerFailureExperiment["timeline"] {
  const endMs = Math.max(...Object.values(arrivals).flat()) - startedMs;
  const intervals = Math.floor(endMs / INTERVAL_MS) + 1;
  return Array.from({ length: WORKERS }, (_, index) => {
    const batches = Array.from({ length: intervals }, () => 0);
    const node = Object.keys(arrivals).find((name) => name.endsWith(`-worker-${index}`));
    for (const arrivedMs of node === undefined ? [] : arrivals[node]!) {
      const interval = Math.floor((arrivedMs - startedMs) / INTERVAL_MS);
      batches[interval] = (batches[interval] ?? 0) + 1;
    }
    return { worker: nameOf(index), batches, provenance: "measured" };
  });
}

function nameOf(worker: number): string {
  return `worker ${worker + 1}`;
}
