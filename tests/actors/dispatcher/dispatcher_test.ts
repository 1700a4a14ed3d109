/** Datasets, jobs, workers and clients at the dispatcher, across restarts. */
import { SAME_PROCESS } from "../../../actors/runtime/identity.ts";
import { decodeRecords } from "../../../actors/dispatcher/journal/records.ts";
import { DispatcherState } from "../../../actors/dispatcher/state/state.ts";
import type { LeatError } from "../../../core/error.ts";
import { hashBytes } from "../../../core/hash.ts";
import { openSqliteLog } from "../../../platform/journal/sqlite_log.ts";
import { assert, assertEquals, assertNotEquals, assertStringIncludes } from "../../assert.ts";
import { settle, tableOf, TestCluster, workIn } from "./lib.ts";
import { isFinished, OFF } from "./off_jobs.ts";

Deno.test("hello says which cluster it is, and which of its dispatchers", async () => {
  await using cluster = await TestCluster.start();
  const first = await cluster.ask("hello", null);
  assertEquals(first.life, 1);
  await cluster.restart();
  assertEquals(await cluster.ask("hello", null), { ...first, life: 2 });
});

Deno.test("registerDataset gives equal fingerprints one id and keeps it over a restart", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset("a");
  assertNotEquals(await cluster.dataset("b"), datasetId);
  await cluster.restart();
  assertEquals(await cluster.dataset("a"), datasetId);
  const { graph, fingerprint, cardinality } = await cluster.ask("getDataset", { datasetId });
  assertEquals(
    [new TextDecoder().decode(graph), fingerprint, cardinality],
    ["a", hashBytes("a"), 100],
  );
});

Deno.test("registerDataset refuses an id that is taken, showing both fingerprints", async () => {
  await using cluster = await TestCluster.start();
  const registering = (graph: Uint8Array) => {
    return { graph, fingerprint: hashBytes(graph), cardinality: 1, datasetId: "mine" };
  };
  const request = registering(new Uint8Array(1));
  const other = registering(new Uint8Array(2));
  for (let i = 0; i < 2; i++) {
    assertEquals(await cluster.ask("registerDataset", request), { datasetId: "mine" });
  }
  const error = await cluster.refused("registerDataset", other);
  assertEquals(error.code, "already_exists");
  for (const part of ["mine", request.fingerprint, other.fingerprint]) {
    assertStringIncludes(error.message, part);
  }
  const unknown = await cluster.refused("getDataset", { datasetId: "other" });
  assertEquals(unknown.code, "not_found");
});

Deno.test("openIteration answers a repeated request alike, also after a restart or a crash", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const options = { jobName: "job", requestId: "r" };
  const first = await cluster.open(datasetId, options);
  assertEquals(await cluster.open(datasetId, options), first);
  await cluster.restart();
  assertEquals(await cluster.open(datasetId, options), first);
  await cluster.crash();
  assertEquals(await cluster.open(datasetId, options), first);
  const other = await cluster.open(datasetId, { jobName: "job" });
  assertEquals(other.iterationId, first.iterationId);
  assertNotEquals(other.clientId, first.clientId);
});

Deno.test("openIteration without a name makes a job of one's own, with one another job for each name", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const jobIds = [];
  for (const jobName of [undefined, undefined, "a", "b", "a"]) {
    const options = jobName === undefined ? {} : { jobName };
    jobIds.push((await cluster.open(datasetId, options)).jobId);
  }
  assertEquals(jobIds, [1, 2, 3, 4, 3]);
  const next = await cluster.open(datasetId, { jobName: "a", repetition: 1 });
  assertEquals(next.jobId, 3);
  assertEquals(next.iterationId, 5);
});

Deno.test("openIteration refuses a job's name with other parameters and shows both", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const other = await cluster.dataset("other");
  await cluster.open(datasetId, { jobName: "job" });
  await cluster.restart();
  for (const [id, options] of [[datasetId, OFF], [other, {}]] as const) {
    const request = cluster.openRequest(id, { jobName: "job", ...options });
    const error = await cluster.refused("openIteration", request);
    assertEquals(error.code, "invalid_argument");
    assertStringIncludes(error.message, `"${datasetId}", processingMode: "DYNAMIC"`);
    assertStringIncludes(
      error.message,
      `"${id}", processingMode: "${request.parameters.processingMode}"`,
    );
  }
});

Deno.test("openIteration takes the same tags in any order for the same job", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const open = (targetTags: string[]) => cluster.open(datasetId, { jobName: "job", targetTags });
  const { jobId } = await open(["a", "b"]);
  assertEquals((await open(["b", "a", "b"])).jobId, jobId);
});

Deno.test("openIteration refuses what cannot work, before anything is made", async () => {
  await using cluster = await TestCluster.start();
  const finite = await cluster.dataset("finite", 10);
  const endless = await cluster.dataset("endless", -1);
  const rounds = { jobName: "j", numConsumers: 2, consumerIndex: 0, ...OFF };
  const refusals: [string, Parameters<TestCluster["openRequest"]>[1], string][] = [
    ["no such", {}, "no such"],
    [finite, { repetition: -1 }, "repetition"],
    [finite, { repetition: 0.5 }, "repetition"],
    [finite, { jobName: "" }, "jobName"],
    [finite, { processingMode: "SIDEWAYS" as never }, "SIDEWAYS"],
    [finite, rounds, "10 elements"],
    [endless, { ...rounds, sharing: true }, "not both"],
    [endless, { ...OFF, numConsumers: 2, consumerIndex: 0 }, "jobName"],
    [endless, { ...OFF, jobName: "j", numConsumers: 2 }, "together"],
    [endless, { ...OFF, jobName: "j", consumerIndex: 0 }, "together"],
    [endless, { ...rounds, consumerIndex: 2 }, "from 0 to 1"],
    [endless, { ...rounds, numConsumers: 0 }, "numConsumers"],
    [finite, { ...OFF, jobName: "j", sharing: true }, "10 elements"],
    [endless, { ...OFF, sharing: true }, "jobName"],
    [endless, { ...OFF, jobName: "j", sharing: true, repetition: 1 }, "repetition 1"],
  ];
  for (const [datasetId, options, part] of refusals) {
    const error = await cluster.refused("openIteration", cluster.openRequest(datasetId, options));
    assertEquals(error.code, datasetId === "no such" ? "not_found" : "invalid_argument", part);
    assertStringIncludes(error.message, part);
  }
  assertEquals((await cluster.ask("describe", null)).jobs, []);
  const unknown = await cluster.dataset("of unknown length", -2);
  await cluster.open(unknown, rounds);
});

Deno.test("tasks carry the owner of their job, and a random state of their own only under OFF", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset("seeded");
  const seeds: Record<string, string[]> = { OFF: [], DYNAMIC: [] };
  for (const processingMode of ["OFF", "DYNAMIC"] as const) {
    await cluster.open(datasetId, { processingMode, jobName: processingMode, repetition: 3 });
  }
  for (const name of ["a", "b"]) {
    const { ref: worker } = cluster.worker(name);
    const request = { name, worker, tags: [], tasks: [] };
    const { newTasks } = workIn(await cluster.ask("workerHeartbeat", request));
    await cluster.restart();
    const again = workIn(await cluster.ask("workerHeartbeat", request));
    assertEquals(
      [again.newTasks, again.endedTasks],
      [newTasks, []],
      "a lost answer is given again",
    );
    for (const task of newTasks) {
      const { dataset, repetition, owner } = task;
      assertEquals([dataset.fingerprint, repetition, owner], [
        ...[hashBytes("seeded"), 3],
        SAME_PROCESS.name,
      ]);
      seeds[task.parameters.processingMode]!.push(task.seed);
    }
  }
  for (const seed of [...seeds["OFF"]!, ...seeds["DYNAMIC"]!]) assertEquals(seed.length, 16);
  assertNotEquals(seeds["OFF"]![0], seeds["OFF"]![1]);
  assertEquals(seeds["DYNAMIC"]![0], seeds["DYNAMIC"]![1]);
});

Deno.test("clients are told the sources of tasks as soon as workers have them, and keep them over a restart", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("w");
  const { clientId } = await cluster.open(await cluster.dataset(), OFF);
  const sources = async () => (await cluster.ask("clientHeartbeat", { clientId })).tasks;
  await cluster.ask("workerHeartbeat", { name: "w", worker: worker.ref, tags: [], tasks: [] });
  assertEquals(await sources(), []);
  await worker.heartbeat();
  await worker.heartbeat();
  const expected = [{ taskId: 1, worker: "w", source: worker.sourceOf(1) }];
  assertEquals(await sources(), expected);
  await cluster.restart();
  assertEquals(await sources(), expected);
});

Deno.test("an iteration finishes when all its tasks have completed, and new workers get none of it", async () => {
  await using cluster = await TestCluster.start();
  const [a, b] = [cluster.worker("a"), cluster.worker("b")];
  const { clientId } = await cluster.open(await cluster.dataset(), OFF);
  for (const worker of [a, b, a, b]) await worker.heartbeat();
  a.complete(1);
  await a.heartbeat();
  assertEquals(await isFinished(cluster, clientId), false);
  b.complete(2);
  await b.heartbeat();
  assertEquals(await isFinished(cluster, clientId), true);
  const { tasks } = await cluster.ask("clientHeartbeat", { clientId });
  assertEquals(tasks.length, 2, "what is buffered can still be read");
  assertEquals(await cluster.worker("late").heartbeat(), []);
  await cluster.restart();
  assertEquals(await isFinished(cluster, clientId), true);
});

Deno.test("a client without heartbeats for too long is released, one with heartbeats is not", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const silent = await cluster.open(datasetId, { jobName: "job" });
  const talking = await cluster.open(datasetId, { jobName: "job" });
  await cluster.world.advance(100_000);
  await cluster.ask("clientHeartbeat", { clientId: talking.clientId });
  await cluster.world.advance(30_000);
  const error = await cluster.refused("clientHeartbeat", { clientId: silent.clientId });
  assertEquals(error.code, "not_found");
  await cluster.ask("clientHeartbeat", { clientId: talking.clientId });
});

Deno.test("releaseClient may be repeated, and forgets the request that opened it", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const { clientId } = await cluster.open(datasetId, { jobName: "job", requestId: "r" });
  for (let i = 0; i < 2; i++) assertEquals(await cluster.ask("releaseClient", { clientId }), null);
  assertEquals(await cluster.ask("releaseClient", { clientId: 99 }), null);
  const again = await cluster.open(datasetId, { jobName: "job", requestId: "r" });
  assertEquals(again.clientId, clientId + 1);
});

Deno.test("an iteration without clients is forgotten after jobGcTimeoutMs and made anew when it is opened again", async () => {
  await using cluster = await TestCluster.start({ workerTimeoutMs: 1e9 });
  const datasetId = await cluster.dataset();
  const worker = cluster.worker("w");
  const old = await cluster.open(datasetId, { jobName: "job", ...OFF });
  await worker.heartbeat();
  await cluster.ask("releaseClient", { clientId: old.clientId });
  await cluster.world.advance(290_000);
  const back = await cluster.open(datasetId, { jobName: "job", ...OFF });
  assertEquals(back.iterationId, old.iterationId, "not yet");
  await cluster.ask("releaseClient", { clientId: back.clientId });
  const wakes = worker.wakes;
  await cluster.world.advance(310_000);
  assertEquals(worker.wakes, wakes + 1, "the worker can drop its task");
  assertEquals(await worker.heartbeat(), []);
  const error = await cluster.refused("clientHeartbeat", { clientId: back.clientId });
  assertEquals(error.code, "failed_precondition");
  const anew = await cluster.open(datasetId, { jobName: "job", ...OFF });
  assertNotEquals(anew.iterationId, old.iterationId);
  assertEquals((await worker.heartbeat()).length, 1);
});

Deno.test("jobGcTimeoutMs -1 keeps iterations of named jobs for ever", async () => {
  await using cluster = await TestCluster.start({ jobGcTimeoutMs: -1, clientTimeoutMs: 100_000 });
  const datasetId = await cluster.dataset();
  const { iterationId } = await cluster.open(datasetId, { jobName: "job" });
  await cluster.world.advance(1_000_000);
  assertEquals((await cluster.open(datasetId, { jobName: "job" })).iterationId, iterationId);
});

Deno.test("a job of one client ends with it", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("w");
  const { clientId } = await cluster.open(await cluster.dataset(), OFF);
  await worker.heartbeat();
  await cluster.ask("releaseClient", { clientId });
  assertEquals(await worker.heartbeat(), []);
  assertEquals((await cluster.ask("describe", null)).jobs, []);
});

Deno.test("describe tells workers, jobs, tasks and how far the splits are", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("w", tableOf(4));
  await cluster.open(await cluster.dataset(), { jobName: "job" });
  const [taskId = 0] = await worker.heartbeat();
  await cluster.ask("getSplit", { taskId, number: 1, source: 0, repetition: 0 });
  const { workers, jobs } = await cluster.ask("describe", null);
  assertEquals(workers, [{
    name: "w",
    ref: worker.ref,
    tags: [],
    alive: true,
    lastHeardMs: cluster.world.wallMs(),
    tasks: 1,
    activity: { state: "starting", reason: "It is starting its tasks." },
    figures: null,
  }]);
  assertEquals(jobs[0]?.name, "job");
  const { bottleneck, ...iteration } = jobs[0]!.iterations[0]!;
  assertEquals(bottleneck.kind, "unknown");
  assertEquals(iteration, {
    iterationId: 1,
    repetition: 0,
    clients: 1,
    readers: [{ clientId: 1, consumerIndex: null, figures: null }],
    tasks: [{ taskId, worker: "w", state: "running", figures: null }],
    optimalWorkers: null,
    finished: false,
    splits: [{ repetition: 0, handedOut: 1, total: 4 }],
  });
});

Deno.test("what a start has to replay does not grow with the splits ever handed out", async () => {
  await using cluster = await TestCluster.start({ journalRecordsMax: 100 });
  const worker = cluster.worker("w", tableOf(3_000));
  await cluster.open(await cluster.dataset());
  const [taskId = 0] = await worker.heartbeat();
  const take = (number: number) =>
    cluster.ask("getSplit", { taskId, number, source: 0, repetition: 0 });
  for (let number = 1; number <= 2_000; number += 50) {
    await Promise.all(Array.from({ length: 50 }, (_, i) => take(number + i)));
  }
  await cluster.system.stopActor("dispatcher");
  const log = await openSqliteLog(cluster.journalPath);
  const { snapshot, records } = await log.read();
  await log.close();
  assert(records.length <= 200, `${records.length} records`);
  assert(snapshot !== undefined && snapshot.byteLength < 100_000);
  await cluster.restart();
  assertEquals((await take(2_001)).split?.index, 2_000);
});

Deno.test("wherever the journal breaks off, each transaction is there as a whole or not at all", async () => {
  await using cluster = await TestCluster.start();
  const [a, b] = [cluster.worker("a", tableOf(9)), cluster.worker("b", tableOf(9))];
  for (const worker of [a, b]) await worker.heartbeat();
  const datasetId = await cluster.dataset();
  for (const jobName of ["one", "two"]) await cluster.open(datasetId, { jobName });
  for (const worker of [a, await b.reborn()]) await worker.heartbeat();
  const { clientId } = await cluster.open(datasetId);
  await cluster.ask("releaseClient", { clientId });
  await cluster.system.stopActor("dispatcher");
  const log = await openSqliteLog(cluster.journalPath);
  const { records } = await log.read();
  await log.close();
  for (let length = 0; length <= records.length; length++) {
    const state = new DispatcherState();
    for (const record of records.slice(0, length).flatMap(decodeRecords)) state.apply(record);
    const alive = [...state.workers.values()].filter((worker) => worker.alive).length;
    for (const { iterationId } of state.iterations.values()) {
      assertEquals(state.tasksOfIteration(iterationId).size, alive, `after ${length} records`);
      assert(state.clientsOfIteration(iterationId).size > 0, `no client after ${length} records`);
    }
  }
  assert(records.length > 8, `${records.length} records`);
});

Deno.test("a dispatcher whose journal fails answers nothing more, dies, and starts again from what was written", async () => {
  await using cluster = await TestCluster.start();
  await cluster.dataset("before");
  cluster.holdJournal();
  const lost = cluster.dataset("lost").catch((error: LeatError) => error.code);
  await settle();
  await cluster.crash();
  assertEquals(await lost, "unavailable");
  const ids = [await cluster.dataset("before"), await cluster.dataset("after")];
  assertEquals(ids, ["1", "2"]);
  assertEquals((await cluster.ask("hello", null)).life, 2);
});

Deno.test("a dispatcher does not start on a journal that another one holds", async () => {
  await using cluster = await TestCluster.start();
  await cluster.system.stopActor("dispatcher");
  const held = await openSqliteLog(cluster.journalPath);
  const started = cluster.restart().then(() => true, () => false);
  for (let i = 0; i < 30; i++) await cluster.world.advance(5_000);
  assertEquals(await started, false);
  assertStringIncludes((await cluster.system.failed).message, "dispatcher");
  await held.close();
});
