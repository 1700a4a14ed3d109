/** Learning an iteration's splits from a worker: who is asked, and for how long. */
import { SAME_PROCESS } from "../../../../actors/runtime/identity.ts";
import { unknownNode } from "../../../../actors/runtime/link.ts";
import { LeatError } from "../../../../core/error.ts";
import { hashBytes } from "../../../../core/hash.ts";
import { assertEquals } from "../../../assert.ts";
import { settle, tableOf, TestCluster } from "../lib.ts";
import type { TestWorker } from "../test_worker.ts";

const WORKER_TIMEOUT_MS = 4_000;

/** An iteration whose splits one of its workers is asked for, which does not answer. */
async function listingCluster() {
  const cluster = await TestCluster.start({ workerTimeoutMs: WORKER_TIMEOUT_MS });
  const workers = ["a", "b"].map((name) => cluster.worker(name, tableOf(3)));
  for (const worker of workers) {
    worker.listing = new Promise(() => {});
    await worker.heartbeat();
  }
  await cluster.open(await cluster.dataset());
  for (const worker of workers) await worker.heartbeat();
  await settle();
  const [silent, other] = workers.toSorted((a, b) => b.listings - a.listings) as [
    TestWorker,
    TestWorker,
  ];
  assertEquals([silent.listings, other.listings], [1, 0]);
  other.listing = undefined;
  const [taskId = 0] = other.tasks.keys();
  const split = cluster.ask("getSplit", { taskId, number: 1, source: 0, repetition: 0 });
  return { cluster, silent, other, split };
}

Deno.test("a worker that leaves while it lists splits is waited for no more: the next is asked at once", async () => {
  const { cluster, silent, other, split } = await listingCluster();
  await using _ = cluster;
  await silent.leave();
  await settle();
  assertEquals([silent.listings, other.listings], [1, 1]);
  assertEquals((await split).split?.index, 0);
});

Deno.test("a worker that came while another was listing is asked when that one leaves", async () => {
  const { cluster, silent, other, split } = await listingCluster();
  await using _ = cluster;
  await other.leave();
  await split.catch(() => {});
  const third = cluster.worker("c", tableOf(3));
  await third.heartbeat();
  await silent.leave();
  await settle();
  assertEquals([other.listings, third.listings], [0, 1]);
});

Deno.test("a worker that is lost while it lists splits is waited for no more", async () => {
  const { cluster, other, split } = await listingCluster();
  await using _ = cluster;
  for (let waitedMs = 0; other.listings === 0; waitedMs += WORKER_TIMEOUT_MS / 4) {
    assertEquals(waitedMs <= 2 * WORKER_TIMEOUT_MS, true, "nobody else was asked");
    await cluster.world.advance(WORKER_TIMEOUT_MS / 4);
    await other.heartbeat();
  }
  assertEquals((await split).split?.index, 0);
});

Deno.test("a worker that begins anew while it lists splits is asked again in its new life", async () => {
  const { cluster, silent, other, split } = await listingCluster();
  await using _ = cluster;
  await other.leave();
  await split.catch(() => {});
  // The former life answers nothing, and is not known to be over before the new one says so.
  const again = await silent.reborn();
  await again.heartbeat();
  await settle();
  assertEquals(again.listings, 1);
});

Deno.test("a worker to which no way leads before it has come back is no listing that failed", async () => {
  await using cluster = await TestCluster.start({ workerTimeoutMs: WORKER_TIMEOUT_MS });
  const worker = cluster.worker("a", tableOf(3));
  await worker.heartbeat();
  // As a dispatcher that was restarted finds one that only dials out.
  worker.table = unknownNode('No way leads to "a"');
  await cluster.open(await cluster.dataset());
  const [taskId = 0] = await worker.heartbeat();
  await settle();
  assertEquals(worker.listings, 1);
  worker.table = tableOf(3);
  await cluster.world.advance(1_000);
  const { split } = await cluster.ask("getSplit", { taskId, number: 1, source: 0, repetition: 0 });
  assertEquals([worker.listings, split?.index], [2, 0]);
});

Deno.test("a worker is told the identity whose job it lists splits for", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("a", tableOf(3));
  await worker.heartbeat();
  await cluster.open(await cluster.dataset());
  await settle();
  assertEquals(worker.listedFor, [SAME_PROCESS.name]);
});

Deno.test("a listing that takes longer than the first time limit is not retried on every worker with that limit", async () => {
  await using cluster = await TestCluster.start();
  const { world } = cluster;
  const workers = Array.from({ length: 10 }, (_, i) => cluster.worker(`w${i}`, tableOf(3)));
  for (const worker of workers) {
    worker.takesMs = 15_000;
    await worker.heartbeat();
  }
  await cluster.open(await cluster.dataset());
  const [taskId = 0] = await workers[0]!.heartbeat();
  const openedMs = world.nowMs();
  let tookMs = Infinity;
  cluster.ask("getSplit", { taskId, number: 1, source: 0, repetition: 0 })
    .then(() => tookMs = world.nowMs() - openedMs, () => {});
  await world.advance(50_000);
  assertEquals(tookMs < 3 * 15_000, true, `the first split came after ${tookMs} ms`);
});

Deno.test("a listing that exceeds its time limit after its link was lost has a longer one at the next worker", async () => {
  await using cluster = await TestCluster.start();
  const { world } = cluster;
  const workers = ["a", "b", "c"].map((name) => cluster.worker(name, tableOf(3)));
  for (const worker of workers) {
    worker.table = new LeatError("unavailable", "The link is lost");
    await worker.heartbeat();
  }
  await cluster.open(await cluster.dataset());
  const [taskId = 0] = await workers[0]!.heartbeat();
  await settle();
  assertEquals(workers.map(({ listings }) => listings).toSorted(), [0, 0, 1]);
  for (const worker of workers) [worker.table, worker.takesMs] = [tableOf(3), 15_000];
  const openedMs = world.nowMs();
  let tookMs = Infinity;
  cluster.ask("getSplit", { taskId, number: 1, source: 0, repetition: 0 })
    .then(() => tookMs = world.nowMs() - openedMs, () => {});
  await world.advance(50_000);
  // The rest of the first limit, and all that the second worker needs.
  assertEquals(tookMs < 10_000 + 15_100, true, `the first split came after ${tookMs} ms`);
  assertEquals(workers.map(({ listings }) => listings).toSorted(), [0, 1, 2]);
});

Deno.test("a worker that answered no listing in time is asked last, until it has answered one", async () => {
  const { cluster, silent, other } = await listingCluster();
  await using _ = cluster;
  const datasetId = await cluster.dataset();
  const wait = async (ms: number) => {
    for (let waitedMs = 0; waitedMs < ms; waitedMs += WORKER_TIMEOUT_MS / 4) {
      await cluster.world.advance(WORKER_TIMEOUT_MS / 4);
      for (const worker of [silent, other]) await worker.heartbeat();
    }
  };
  const listings = () => [silent.listings, other.listings];
  await wait(11_000);
  assertEquals(listings(), [1, 1]);
  // Of two successive iterations, one would ask the silent worker first.
  for (const jobName of ["one", "two"]) await cluster.open(datasetId, { jobName });
  await settle();
  assertEquals(listings(), [1, 3]);
  // The other one fails, so that the silent one is asked, and answers.
  silent.listing = undefined;
  other.table = new LeatError("unavailable", "its disk does not answer");
  await cluster.open(datasetId, { jobName: "three" });
  await wait(3_000);
  other.table = tableOf(3);
  const before = silent.listings;
  for (const jobName of ["four", "five"]) await cluster.open(datasetId, { jobName });
  await settle();
  assertEquals(silent.listings, before + 1);
});

Deno.test("after a restart, workers that were not heard are asked last", async () => {
  await using cluster = await TestCluster.start();
  const [gone, live] = ["a", "b"].map((name) => cluster.worker(name, tableOf(3)));
  for (const worker of [gone!, live!]) await worker.heartbeat();
  const datasetId = await cluster.dataset();
  await cluster.restart();
  await live!.heartbeat();
  // Of two successive iterations, one would ask the other worker first.
  for (const jobName of ["one", "two"]) await cluster.open(datasetId, { jobName });
  await settle();
  assertEquals([gone!.listings, live!.listings], [0, 2]);
});

Deno.test("a worker that cannot be reached is given up for the next one", async () => {
  await using cluster = await TestCluster.start();
  const unreachable = { node: "nowhere", path: "/a", incarnation: "1" };
  await cluster.ask("workerHeartbeat", { name: "a", worker: unreachable, tags: [], tasks: [] });
  const b = cluster.worker("b", tableOf(3));
  await b.heartbeat();
  const datasetId = await cluster.dataset();
  // Of two successive iterations, one asks "a" first.
  for (const jobName of ["one", "two"]) await cluster.open(datasetId, { jobName });
  await cluster.world.advance(3_000);
  assertEquals(b.listings, 2);
  for (const taskId of await b.heartbeat()) {
    const request = { taskId, number: 1, source: 0, repetition: 0 };
    assertEquals((await cluster.ask("getSplit", request)).split?.index, 0);
  }
});

Deno.test("a worker that has the incarnation of another does not keep the other from listing splits", async () => {
  await using cluster = await TestCluster.start();
  const b = cluster.worker("b", tableOf(3));
  await b.heartbeat();
  const thief = { node: "nowhere", path: "/a", incarnation: b.ref.incarnation };
  await cluster.ask("workerHeartbeat", { name: "a", worker: thief, tags: [], tasks: [] });
  const datasetId = await cluster.dataset();
  // Of two successive iterations, one asks "a" first.
  for (const jobName of ["one", "two"]) await cluster.open(datasetId, { jobName });
  await cluster.world.advance(3_000);
  assertEquals(b.listings, 2);
});

Deno.test("workers that were all unavailable are asked again", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("a");
  worker.table = new LeatError("unavailable", "its disk does not answer");
  await worker.heartbeat();
  await cluster.open(await cluster.dataset());
  const [taskId = 0] = await worker.heartbeat();
  await cluster.world.advance(5_000);
  worker.table = tableOf(3);
  await cluster.world.advance(2_000);
  const { split } = await cluster.ask("getSplit", { taskId, number: 1, source: 0, repetition: 0 });
  assertEquals(split?.index, 0);
});

Deno.test("a worker is sent only so many bytes of pipelines to list at a time, however many jobs come and go", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("a", tableOf(3));
  const listing = Promise.withResolvers<void>();
  worker.listing = listing.promise;
  await worker.heartbeat();
  const graph = new Uint8Array(30 * 2 ** 20);
  const dataset = { graph, fingerprint: hashBytes(graph), cardinality: 10 };
  const { datasetId } = await cluster.ask("registerDataset", dataset);
  for (let gone = 0; gone < 8; gone++) {
    const { clientId } = await cluster.open(datasetId);
    await settle();
    await cluster.ask("releaseClient", { clientId });
  }
  await cluster.open(datasetId);
  await settle();
  assertEquals(worker.listings, 4);
  // The jobs that are gone need no splits any more.
  listing.resolve();
  await settle();
  assertEquals(worker.listings, 5);
});

Deno.test("splits that are listed after their job has failed are not kept", async () => {
  await using cluster = await TestCluster.start({ runnerDeathsMax: 1 });
  const worker = cluster.worker("a", tableOf(3));
  const { promise, resolve: list } = Promise.withResolvers<void>();
  worker.listing = promise;
  await worker.heartbeat();
  await cluster.open(await cluster.dataset());
  const [taskId = 0] = await worker.heartbeat();
  cluster.ask("getSplit", { taskId, number: 1, source: 0, repetition: 0 }).catch(() => {});
  await settle();
  assertEquals(worker.listings, 1);
  const error = { code: "unavailable", message: "out of memory" } as const;
  await cluster.ask("runnerDied", { taskId, number: 1, error });
  list();
  await settle();
  const [iteration] = (await cluster.ask("describe", null)).jobs[0]!.iterations;
  assertEquals(iteration!.failure?.includes("killed 1 runners"), true);
  assertEquals(iteration!.splits, []);
});
