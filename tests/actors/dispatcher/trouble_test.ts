/**
 * A dispatcher in trouble: its disk is full, its clock jumps, strangers talk to it, its journal is long
 * or gone.
 */
import { hashBytes } from "../../../core/hash.ts";
import { openSqliteLog } from "../../../platform/journal/sqlite_log.ts";
import { encodeSnapshot } from "../../../actors/dispatcher/journal/snapshot.ts";
import { DispatcherState } from "../../../actors/dispatcher/state/state.ts";
import { decodeRecords } from "../../../actors/dispatcher/journal/records.ts";
import { assert, assertEquals, assertStringIncludes } from "../../assert.ts";
import { settle, tableOf, TestCluster } from "./lib.ts";
import type { TestWorker } from "./test_worker.ts";

const HOUR_MS = 3_600_000;

const take = (cluster: TestCluster, taskId: number, number: number) =>
  cluster.ask("getSplit", { taskId, number, source: 0, repetition: 0 });

Deno.test("with a full disk under its journal a dispatcher waits with its answers, says so, and goes on once there is room", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("w", tableOf(10_000));
  await cluster.open(await cluster.dataset());
  const [taskId = 0] = await worker.heartbeat();
  const first = (await take(cluster, taskId, 1)).split!.index;
  const { life } = await cluster.ask("hello", null);
  cluster.diskBytes = 1;
  const answers: unknown[] = [];
  const pending = [
    cluster.dataset("x".repeat(100_000)),
    take(cluster, taskId, 2),
    worker.heartbeat(),
  ];
  for (const answer of pending) answer.then((answered) => answers.push(answered));
  await settle();
  await cluster.world.advance(50_000);
  assertEquals(answers, []);
  assertEquals(cluster.world.errors.length, 1, cluster.world.errors.join("\n"));
  assertStringIncludes(cluster.world.errors[0]!, "the disk is full; make room");
  assertStringIncludes(cluster.world.errors[0]!, cluster.journalPath);
  const { journal } = await cluster.ask("describe", null);
  assertStringIncludes(journal!.waits, "make room");
  assert(journal!.forMs >= 50_000, `${journal!.forMs}`);
  cluster.diskBytes = Infinity;
  await cluster.world.advance(5_000);
  const [, second] = await Promise.all(pending) as [unknown, { split: { index: number } }, unknown];
  assert(second.split.index !== first);
  assertEquals((await cluster.ask("describe", null)).journal, undefined);
  assertEquals((await cluster.ask("hello", null)).life, life, "no life was spent");
  await cluster.restart();
  assertEquals((await take(cluster, taskId, 2)).split!.index, second.split.index, "as before");
});

Deno.test("a dispatcher that is stopped while its disk is full stops, and forgets what nobody was told", async () => {
  await using cluster = await TestCluster.start();
  const known = await cluster.dataset("known");
  cluster.diskBytes = 1;
  const asked = cluster.dataset("x".repeat(100_000)).then(() => "answered", () => "refused");
  await settle();
  await cluster.system.stopActor("dispatcher");
  assertEquals(await asked, "refused");
  assertEquals(cluster.world.warnings, [], "the disk has no space");
  cluster.diskBytes = Infinity;
  await cluster.restart();
  await cluster.ask("getDataset", { datasetId: known });
});

Deno.test("a state that is too large for a snapshot is kept as records, and the dispatcher goes on and says so", async () => {
  await using cluster = await TestCluster.start({
    journalRecordsMax: 2,
    journalSnapshotBytesMax: 100_000,
  });
  const worker = cluster.worker("w", tableOf(10_000));
  const large = await cluster.dataset("x".repeat(150_000));
  await cluster.open(await cluster.dataset());
  const [taskId = 0] = await worker.heartbeat();
  const splits: number[] = [];
  for (let number = 1; number <= 20; number++) {
    splits.push((await take(cluster, taskId, number)).split!.index);
  }
  assertEquals(new Set(splits).size, 20);
  assertEquals((await cluster.ask("describe", null)).journal, undefined, "it waits for no disk");
  assertStringIncludes(cluster.world.errors[0]!, "SNAPSHOT_BYTES_MAX");
  await cluster.restart();
  await cluster.ask("getDataset", { datasetId: large });
  assertEquals((await take(cluster, taskId, 20)).split!.index, splits.at(-1), "as before");
});

Deno.test("a wall clock that jumps by hours, forwards and backwards, ends nobody and keeps nobody", async () => {
  await using cluster = await TestCluster.start({ jobGcTimeoutMs: 60_000 });
  const worker = cluster.worker("w", tableOf(10));
  const { clientId } = await cluster.open(await cluster.dataset(), { jobName: "job" });
  const tasks = await worker.heartbeat();
  for (const hours of [1, -2, 24 * 365, -24 * 365 * 60]) {
    cluster.world.stepWallClock(hours * HOUR_MS);
    await cluster.world.advance(20_000);
    assertEquals(await worker.heartbeat(), tasks, `after ${hours} hours`);
    await cluster.ask("clientHeartbeat", { clientId });
  }
  await cluster.restart();
  await cluster.ask("clientHeartbeat", { clientId });
  assertEquals((await cluster.ask("describe", null)).workers.map(({ alive }) => alive), [true]);
  // Whoever is silent is missed by the time that passes, whatever the wall clock says.
  await cluster.world.advance(70_000);
  assertEquals((await cluster.ask("describe", null)).workers.map(({ alive }) => alive), [false]);
});

Deno.test("a dispatcher that stood still for hours expires nobody at once, and later whoever stays silent", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("w", tableOf(10));
  const { clientId } = await cluster.open(await cluster.dataset());
  const tasks = await worker.heartbeat();
  cluster.world.stall(10 * HOUR_MS);
  await cluster.world.advance(10_000);
  assertEquals(await worker.heartbeat(), tasks);
  await cluster.ask("clientHeartbeat", { clientId });
  await cluster.world.advance(130_000);
  const { message } = await cluster.refused("clientHeartbeat", { clientId });
  assertStringIncludes(message, "make a new iterator");
});

Deno.test("a dispatcher that has lost its journal tells workers to drop their tasks, and clients and tasks that they are unknown", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("w", tableOf(10));
  const { clientId } = await cluster.open(await cluster.dataset());
  const [taskId = 0] = await worker.heartbeat();
  await using other = await TestCluster.start();
  const stranger = other.worker("w", tableOf(10));
  stranger.tasks.set(taskId, worker.tasks.get(taskId)!);
  assertEquals(await stranger.heartbeat(), []);
  const unknown = await other.refused("clientHeartbeat", { clientId });
  assertEquals(unknown.code, "not_found");
  assertStringIncludes(unknown.message, "make a new iterator");
  const split = await other.refused("getSplit", { taskId, number: 1, source: 0, repetition: 0 });
  assertStringIncludes(split.message, `${taskId}`);
  assertEquals(await other.ask("releaseClient", { clientId }), null);
  // It serves those who come now, the same worker among them.
  const again = await other.open(await other.dataset());
  assertEquals((await stranger.heartbeat()).length, 1);
  await other.ask("clientHeartbeat", { clientId: again.clientId });
});

/** The state that a journal holds, as a start would find it. */
async function stateOf(cluster: TestCluster): Promise<{ bytes: number; records: number }> {
  await cluster.system.stopActor("dispatcher");
  const log = await openSqliteLog(cluster.journalPath);
  const { snapshot, records } = await log.read();
  await log.close();
  const state = new DispatcherState();
  assertEquals(snapshot, undefined);
  let count = 0;
  for (const record of records.flatMap(decodeRecords)) {
    state.apply(record);
    count++;
  }
  await cluster.restart();
  return { bytes: encodeSnapshot(state.snapshot()).byteLength, records: count };
}

async function openAndLeave(cluster: TestCluster, datasetId: string, names: readonly string[]) {
  const opened = await Promise.all(names.map((jobName) => cluster.open(datasetId, { jobName })));
  await Promise.all(opened.map(({ clientId }) => cluster.ask("releaseClient", { clientId })));
}

Deno.test("a dataset that was registered for jobs alone is forgotten after the last of them, and its id is not given again", async () => {
  await using cluster = await TestCluster.start({ jobGcTimeoutMs: 60_000 });
  const register = async (name: string, transient: boolean) => {
    const graph = new TextEncoder().encode(name);
    const request = { graph, fingerprint: hashBytes(graph), cardinality: 1 };
    const { datasetId } = await cluster.ask("registerDataset", {
      ...request,
      ...(transient ? { transient: true } : {}),
    });
    return datasetId;
  };
  const isKnown = (datasetId: string) =>
    cluster.ask("getDataset", { datasetId }).then(() => true, () => false);
  const datasets = [
    await register("used", true),
    await register("unused", true),
    await register("asked for", false),
    await register("asked for later", true),
  ];
  assertEquals(datasets, ["1", "2", "3", "4"]);
  assertEquals(await register("asked for later", false), "4");
  const { clientId } = await cluster.open("1");
  const beat = async () => {
    for (let i = 0; i < 3; i++) {
      await cluster.world.advance(30_000);
      await cluster.ask("clientHeartbeat", { clientId });
    }
  };
  await beat();
  assertEquals(await Promise.all(datasets.map(isKnown)), [true, false, true, true]);
  await cluster.restart();
  assertEquals(await Promise.all(datasets.map(isKnown)), [true, false, true, true]);
  assertEquals(await register("unused", true), "5");
  await cluster.restart({ journalRecordsMax: 1 });
  assertEquals(await register("another", true), "6", "also after a compaction");
  await cluster.restart();
  await cluster.ask("releaseClient", { clientId });
  await cluster.world.advance(600_000);
  await cluster.restart();
  assertEquals(await Promise.all([...datasets, "5", "6"].map(isKnown)), [
    false,
    false,
    true,
    true,
    false,
    false,
  ]);
  assertEquals(await register("used", true), "7");
});

Deno.test("a dataset that is registered again is not forgotten before its job is opened", async () => {
  await using cluster = await TestCluster.start({ jobGcTimeoutMs: 1_000 });
  const request = {
    graph: new Uint8Array(1),
    fingerprint: hashBytes(new Uint8Array(1)),
    cardinality: 1,
    transient: true,
  } as const;
  for (let i = 0; i < 5; i++) {
    const { datasetId } = await cluster.ask("registerDataset", request);
    await cluster.world.advance(50_000);
    assertEquals(datasetId, "1");
  }
  await cluster.open("1");
});

Deno.test("names and graphs that are too long are refused, with their length and the limit", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const long = "x".repeat(1_000_000);
  const refusals = [
    ...await Promise.all(
      ["jobName", "requestId", "stream", "restoration"].map((what) =>
        cluster.refused("openIteration", { ...cluster.openRequest(datasetId), [what]: long })
      ),
    ),
    await cluster.refused("registerDataset", {
      graph: new Uint8Array(1),
      fingerprint: hashBytes(new Uint8Array(1)),
      cardinality: 1,
      datasetId: long,
    }),
    await cluster.refused("workerHeartbeat", {
      name: long,
      worker: cluster.worker("w").ref,
      tags: [],
      tasks: [],
    }),
  ];
  for (const { code, message } of refusals) {
    assertEquals(code, "invalid_argument");
    assert(message.length < 400, message);
  }
  assertStringIncludes(refusals[0]!.message, "at most 1024 characters, got 1000000 characters");
});

Deno.test("a graph of many megabytes is kept over a restart", async () => {
  await using cluster = await TestCluster.start();
  const graph = new Uint8Array(30 * 2 ** 20).fill(7);
  const request = { graph, fingerprint: hashBytes(graph), cardinality: 1 };
  const { datasetId } = await cluster.ask("registerDataset", request);
  await cluster.restart();
  const kept = (await cluster.ask("getDataset", { datasetId })).graph;
  assertEquals([kept.byteLength, kept[0], kept.at(-1)], [graph.byteLength, 7, 7]);
});

Deno.test("thousands of clients that open jobs and leave are forgotten", async () => {
  await using cluster = await TestCluster.start({ jobGcTimeoutMs: 1_000, journalRecordsMax: 1e9 });
  const worker: TestWorker = cluster.worker("w", tableOf(1));
  const datasetId = await cluster.dataset();
  const names = Array.from({ length: 2_000 }, (_, i) => `job ${i}`);
  await openAndLeave(cluster, datasetId, names);
  await cluster.world.advance(5_000);
  await worker.heartbeat();
  const before = await stateOf(cluster);
  for (let round = 0; round < 2; round++) {
    await openAndLeave(cluster, datasetId, names);
    await cluster.world.advance(5_000);
    assertEquals(await worker.heartbeat(), []);
  }
  const { jobs } = await cluster.ask("describe", null);
  assertEquals(jobs, []);
  const after = await stateOf(cluster);
  assert(after.records > 15_000, `${after.records} records`);
  assert(after.bytes < 1.05 * before.bytes, `${after.bytes} bytes, ${before.bytes} before`);
});
