/** A dispatcher with one DETERMINISTIC job, for tests. */
import { joinIteration } from "../../../../actors/client/first_answer.ts";
import type { DispatcherProtocol } from "../../../../actors/dispatcher/protocol.ts";
import type { RequestOf } from "../../../../actors/runtime/protocol.ts";
import { settle, tableOf, TestCluster } from "../lib.ts";
import type { TestWorker } from "../test_worker.ts";

export const ORDERED = {
  processingMode: "DETERMINISTIC",
  ordered: { seed: "0000000000000001", shuffled: false },
} as const;

export const WINDOW_SPLITS = 4;

/** So many that one may come to what two others have or want nothing of. */
export const CONSUMERS = 3;

/** A cluster with one iteration and a task on each of two workers. */
export async function orderedCluster(splits: number) {
  const cluster = await TestCluster.start({ windowSplits: WINDOW_SPLITS });
  const workers = ["a", "b"].map((name) => cluster.worker(name, tableOf(splits))) as [
    TestWorker,
    TestWorker,
  ];
  const datasetId = await cluster.dataset();
  const { clientId } = await cluster.open(datasetId, { ...ORDERED, jobName: "job" });
  const tasks: number[] = [];
  for (const worker of workers) tasks.push(...await worker.heartbeat());
  const numbers = new Map<string, number>();
  const take = async (taskId: number, spare = false, repeated = false) => {
    const key = `${taskId} ${spare}`;
    const number = (numbers.get(key) ?? 0) + (repeated ? 0 : 1);
    numbers.set(key, number);
    const request = { taskId, number, source: 0, repetition: 0, ...(spare ? { spare } : {}) };
    return (await cluster.ask("getSplit", request)).split?.sequence ?? null;
  };
  const received = (mark: number, ...done: number[]) =>
    cluster.ask("clientHeartbeat", { clientId, report: { kind: "ordered", mark, done } });
  await settle();
  return {
    cluster,
    workers,
    tasks: tasks as [number, number],
    clientId,
    datasetId,
    take,
    received,
  };
}

/** Joins as a client does, which takes over what it has to. */
export function joinAsClient(
  cluster: TestCluster,
  request: RequestOf<DispatcherProtocol, "openIteration">,
) {
  return joinIteration(request, (asked) => cluster.ask("openIteration", asked));
}

/** What a promise has come to by now. */
export async function now<T>(promise: Promise<T>): Promise<T | "waits"> {
  await settle();
  return await Promise.race([promise, Promise.resolve("waits" as const)]);
}
