/** A request of every method, each of which fits the cluster that it is made for. */
import { noReport } from "../../lib/no_figures.ts";
import { hashBytes } from "../../../core/hash.ts";
import type { DispatcherProtocol, JobParameters } from "../../../actors/dispatcher/protocol.ts";
import type { MethodOf, RequestOf } from "../../../actors/runtime/protocol.ts";
import { tableOf, type TestCluster } from "./lib.ts";

/** A method of the dispatcher. */
export type Method = MethodOf<DispatcherProtocol>;
/** A request of every method. */
export type Requests = { readonly [M in Method]: RequestOf<DispatcherProtocol, M> };

const SEED = "0123456789abcdef";

/** A cluster with jobs of several kinds, a worker and clients; a request for each method that fits them. */
export async function fill(cluster: TestCluster): Promise<Requests> {
  const datasetId = await cluster.dataset();
  const endless = await cluster.dataset("endless", -1);
  const ordered = {
    processingMode: "DETERMINISTIC",
    ordered: { seed: SEED, shuffled: true },
  } as const;
  const worker = cluster.worker("w", tableOf(4));
  await worker.heartbeat();
  const jobs: Partial<JobParameters>[] = [{}, ordered, { processingMode: "OFF", targetTags: [] }];
  for (const [i, parameters] of jobs.entries()) {
    await cluster.open(datasetId, { jobName: `job ${i}`, ...parameters });
  }
  const rounds = { processingMode: "OFF", numConsumers: 1, consumerIndex: 0 } as const;
  const { clientId } = await cluster.open(endless, { jobName: "rounds", ...rounds });
  const tasks = await worker.heartbeat();
  await cluster.world.advance(100);
  const source = { node: "test", path: "/w/task", incarnation: "1" };
  return {
    hello: null,
    runnerDied: {
      taskId: tasks[0]!,
      number: 1,
      place: 1,
      error: { code: "unavailable", message: "It died" },
    },
    registerDataset: {
      graph: new Uint8Array(3),
      fingerprint: hashBytes(new Uint8Array(3)),
      cardinality: 3,
      compression: "gzip",
      datasetId: "named",
      transient: true,
    },
    getDataset: { datasetId },
    openIteration: {
      requestId: "r",
      jobName: "saved by name",
      parameters: {
        datasetId,
        sharing: false,
        targetWorkers: "any",
        targetTags: [],
        ...ordered,
        numConsumers: 2,
      },
      repetition: 0,
      consumerIndex: 1,
      process: "p",
      startAt: 2,
      follows: 1,
      behind: [0, 1],
    },
    clientHeartbeat: {
      clientId,
      report: {
        kind: "rounds",
        position: { kind: "reading", nextRound: 3, deliveredRound: 1, waitsFor: "worker" },
        acceptedSchedule: 1,
        scheduleInForce: 1,
        knownSchedule: 1,
        heldRounds: [1, 2],
        lostTasks: [{ taskId: tasks.at(-1)!, round: 3 }],
      },
      taskList: "none",
      figures: {
        atMs: 1,
        ...noReport("client"),
        headOfLineMs: 1,
        reads: [{
          worker: "w",
          taskId: tasks[0]!,
          ...noReport("read"),
          roundTripMs: 1,
        }],
      },
    },
    releaseClient: { clientId: 1, cancel: true },
    workerHeartbeat: {
      name: "w",
      worker: worker.ref,
      tags: ["a"],
      process: "p",
      isPrivate: false,
      tasks: [{
        taskId: tasks[0]!,
        source,
        completed: false,
        stats: {
          ...noReport("task"),
          compression: {
            setting: "auto",
            active: "none",
            reason: "it is near",
            ...noReport("compression"),
          },
        },
        sharing: noReport("sharing"),
      }],
      leaving: false,
      follows: "1",
      figures: { atMs: 1, process: { cpuSeconds: 1, memoryBytes: 1, shared: true } },
    },
    getSplit: { taskId: tasks[0]!, number: 1, source: 0, repetition: 0, spare: false },
    getSaveWork: {
      taskId: tasks[1]!,
      done: { work: "run", place: 0, attempt: "a", elements: 1, sizeBytes: 1 },
      failed: { code: "data_loss", message: "it is torn" },
    },
    describe: { refresh: true },
  };
}
