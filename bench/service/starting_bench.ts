/**
 * Compares the start of a node, the first batch of a new job, and the first batch of an added worker
 * with the start of a bare thread.
 */

import { Dataset, LocalCluster } from "../../mod.ts";
import { type Load, sequentialLoad } from "../bare/load.ts";
import * as thread from "../bare/thread_start.ts";
import { LocalFleet } from "../../server/cluster/local_fleet.ts";
import type { Bench } from "../lib/bench.ts";

export const benches: Bench[] = [
  {
    name: "start: a node on a thread of its own",
    unit: "ms",
    isDuration: true,
    floor: 0.1,
    bare: thread.open,
    leat: openNodes,
  },
  {
    name: "start: first batch of a new job",
    unit: "ms",
    isDuration: true,
    floor: 0.15,
    bare: thread.open,
    leat: openNewJobs,
  },
  {
    name: "start: first batch of an added worker",
    unit: "ms",
    isDuration: true,
    floor: 0.02,
    bare: thread.open,
    leat: openAddedWorkers,
  },
];

/** Starts dispatchers one after the other, each on a thread, until it answers. The unit is a node. */
function openNodes(): Load {
  return sequentialLoad(async () => {
    const fleet = new LocalFleet("bench", "off");
    const startedMs = performance.now();
    await fleet.start("thread", "dispatcher", { role: "dispatcher" });
    const tookMs = performance.now() - startedMs;
    await fleet.close();
    return tookMs;
  });
}

/** Starts a job of the cluster, with batches of ten numbers. */
function batchesOf(service: LocalCluster) {
  return Dataset.range(100).batch(10).distribute({ service, processingMode: "DYNAMIC" }).iterator();
}

/** Starts jobs one after the other on a running cluster. The unit is a job. */
async function openNewJobs(): Promise<Load> {
  const cluster = await LocalCluster.start({ workers: 2, carrier: "thread" });
  const step = async () => {
    const startedMs = performance.now();
    await using batches = batchesOf(cluster);
    await batches.next();
    return performance.now() - startedMs;
  };
  return sequentialLoad(step, () => cluster.close());
}

/** Adds a worker to a cluster without workers in which a job waits. The unit is a worker. */
function openAddedWorkers(): Load {
  return sequentialLoad(async () => {
    await using cluster = await LocalCluster.start({ workers: 0, carrier: "thread" });
    await using batches = batchesOf(cluster);
    const first = batches.next();
    await clientJoined(cluster);
    const startedMs = performance.now();
    await cluster.addWorker();
    await first;
    return performance.now() - startedMs;
  });
}

/** Resolves when the job's client has joined it. */
async function clientJoined(cluster: LocalCluster): Promise<void> {
  while ((await cluster.describe()).jobs[0]?.iterations[0]?.clients !== 1);
}
