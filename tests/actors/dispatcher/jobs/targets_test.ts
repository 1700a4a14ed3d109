/** Which workers serve which clients. */
import { LOCAL_ONLY_TAG } from "../../../../data/service/reading_choices.ts";
import { assertEquals } from "../../../assert.ts";
import { TestCluster } from "../lib.ts";
import type { TestWorker } from "../test_worker.ts";

/** Two hosts, each with a trainer's process and a worker in it, and a worker of no trainer. */
async function hosts(cluster: TestCluster, isPrivate = false): Promise<TestWorker[]> {
  const workers = ["a", "b", "common"].map((name) => {
    const worker = cluster.worker(name);
    if (name !== "common") worker.place = { process: `process ${name}`, isPrivate };
    return worker;
  });
  for (const worker of workers) await worker.heartbeat();
  return workers;
}

/** Whom the client may read, when every worker has heard of its tasks. */
async function readable(
  cluster: TestCluster,
  workers: readonly TestWorker[],
  clientId: number,
): Promise<string[]> {
  for (const worker of workers) await worker.heartbeat();
  const { tasks } = await cluster.ask("clientHeartbeat", { clientId });
  return tasks.map(({ worker }) => worker).sort();
}

Deno.test('clients of one "local" job read each the worker of their own process, also after a crash', async () => {
  await using cluster = await TestCluster.start();
  const workers = await hosts(cluster);
  const datasetId = await cluster.dataset();
  const job = { jobName: "j", targetWorkers: "local" } as const;
  const one = await cluster.open(datasetId, { ...job, process: "process a" });
  assertEquals(await readable(cluster, workers, one.clientId), ["a"]);
  const two = await cluster.open(datasetId, { ...job, process: "process b" });
  assertEquals(one.iterationId, two.iterationId);
  await cluster.crash();
  assertEquals(await readable(cluster, workers, two.clientId), ["b"]);
  assertEquals(await readable(cluster, workers, one.clientId), ["a"]);
});

Deno.test("a private worker serves the clients of its own process and no others, whatever they ask for", async () => {
  await using cluster = await TestCluster.start();
  const workers = await hosts(cluster, true);
  const datasetId = await cluster.dataset();
  for (const targetWorkers of [undefined, "any"] as const) {
    const target = targetWorkers === undefined ? {} : { targetWorkers };
    const job = { jobName: `j ${targetWorkers}`, ...target };
    const one = await cluster.open(datasetId, { ...job, process: "process a" });
    assertEquals(await readable(cluster, workers, one.clientId), ["a", "common"]);
    const two = await cluster.open(datasetId, job);
    assertEquals(await readable(cluster, workers, two.clientId), ["common"]);
  }
});

Deno.test("consumers use COLOCATED workers, but no private ones, in rounds and in one order", async () => {
  await using cluster = await TestCluster.start();
  const colocated = cluster.worker("colocated");
  colocated.place = { process: "process c", tags: [LOCAL_ONLY_TAG] };
  const workers = [...await hosts(cluster, true), colocated];
  await colocated.heartbeat();
  const datasetId = await cluster.dataset("endless", -1);
  const ordered = { seed: "0123456789abcdef", shuffled: true };
  const modes = [{ processingMode: "OFF" }, { processingMode: "DETERMINISTIC", ordered }] as const;
  for (const mode of modes) {
    const job = { jobName: mode.processingMode, numConsumers: 2, ...mode };
    for (const [consumerIndex, name] of ["a", "b"].entries()) {
      const options = { ...job, consumerIndex, process: `process ${name}` };
      const { clientId } = await cluster.open(datasetId, options);
      assertEquals(await readable(cluster, workers, clientId), ["colocated", "common"]);
    }
  }
});

Deno.test("tasks that only a client who has left could read end, so that the others can finish", async () => {
  await using cluster = await TestCluster.start();
  const workers = await hosts(cluster, true);
  const [a, b, common] = workers as [TestWorker, TestWorker, TestWorker];
  const datasetId = await cluster.dataset();
  const one = await cluster.open(datasetId, { jobName: "j", process: "process a" });
  const two = await cluster.open(datasetId, { jobName: "j", process: "process b" });
  for (const worker of workers) await worker.heartbeat();
  await cluster.ask("releaseClient", { clientId: one.clientId });
  assertEquals(await a.heartbeat(), []);
  for (const worker of [b, common]) {
    for (const taskId of worker.tasks.keys()) worker.complete(taskId);
    await worker.heartbeat();
  }
  assertEquals((await cluster.ask("clientHeartbeat", { clientId: two.clientId })).finished, true);
});

Deno.test("a worker that nobody of the job reads does not list its splits", async () => {
  await using cluster = await TestCluster.start();
  const workers = await hosts(cluster);
  const datasetId = await cluster.dataset();
  const job = { targetWorkers: "local", process: "process b" } as const;
  await cluster.open(datasetId, job);
  const [, b] = workers as [TestWorker, TestWorker, TestWorker];
  const [taskId] = await b.heartbeat();
  await cluster.ask("getSplit", { taskId: taskId!, number: 1, source: 0, repetition: 0 });
  assertEquals(workers.map(({ listings }) => listings), [0, 1, 0]);
});
