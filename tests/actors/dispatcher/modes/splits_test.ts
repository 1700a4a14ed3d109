/** Handing out splits: to one task each, once, across restarts. */
import { hashBytes } from "../../../../core/hash.ts";
import {
  isNew,
  knownAnswer,
  noteRequest,
} from "../../../../actors/dispatcher/modes/split_requests.ts";
import { SPLITS_AT_ONCE_MAX, TASK_ENDED } from "../../../../actors/dispatcher/protocol.ts";
import { SPLIT_REQUESTS_KEPT, type Task } from "../../../../actors/dispatcher/state/entities.ts";
import { LeatError } from "../../../../core/error.ts";
import { decodeMessage, encodeMessage } from "../../../../transport/codec.ts";
import { assert, assertEquals, assertStringIncludes } from "../../../assert.ts";
import { settle, tableOf, TestCluster } from "../lib.ts";

/** A cluster with one DYNAMIC iteration and a task on each of so many workers. */
async function dynamicCluster(splits: number, workerCount = 1) {
  const cluster = await TestCluster.start();
  const workers = Array.from(
    { length: workerCount },
    (_, i) => cluster.worker(`worker-${i}`, tableOf(splits)),
  );
  const { clientId, iterationId } = await cluster.open(await cluster.dataset());
  const tasks: number[] = [];
  for (const worker of workers) tasks.push(...await worker.heartbeat());
  const take = async (taskId: number, number: number, repetition = 0) =>
    (await cluster.ask("getSplit", { taskId, number, source: 0, repetition })).split?.index ?? null;
  return { cluster, workers, tasks, clientId, iterationId, take };
}

/** Requests up to `count` splits at once. Resolves to their positions. */
async function askFor(cluster: TestCluster, taskId: number, number: number, count: number) {
  const request = { taskId, number, count, source: 0, repetition: 0 };
  const { split, more = [] } = await cluster.ask("getSplit", request);
  return split === null ? [] : [split, ...more].map(({ index }) => index);
}

Deno.test("getSplit hands each split to one task, in order, and then says there are no more", async () => {
  const { cluster, tasks, take } = await dynamicCluster(5, 2);
  await using _ = cluster;
  const [a = 0, b = 0] = tasks;
  assertEquals(
    [await take(a, 1), await take(b, 1), await take(b, 2), await take(a, 2), await take(b, 3)],
    [0, 1, 2, 3, 4],
  );
  assertEquals([await take(a, 3), await take(b, 4)], [null, null]);
  const { split, total } = await cluster.ask("getSplit", {
    taskId: a,
    number: 2,
    source: 0,
    repetition: 0,
  });
  assertEquals({ split, total }, { split: { start: 30, stop: 40, index: 3 }, total: 5 });
});

Deno.test("getSplit answers a repeated number with the same split, also after a restart", async () => {
  const { cluster, tasks: [task = 0], take } = await dynamicCluster(10);
  await using _ = cluster;
  assertEquals([await take(task, 1), await take(task, 1), await take(task, 2)], [0, 0, 1]);
  await cluster.restart();
  assertEquals([await take(task, 2), await take(task, 1), await take(task, 3)], [1, 0, 2]);
});

Deno.test("getSplit gives several splits at once, and a repeated request the same ones", async () => {
  const { cluster, tasks: [taskId = 0] } = await dynamicCluster(20, 2);
  await using _ = cluster;
  const ask = (number: number, count: number) => askFor(cluster, taskId, number, count);
  const both = async () => [await ask(1, 2), await ask(3, 10)];
  assertEquals(await both(), [[0, 1], [2, 3, 4]], "at most a fourth of half of the rest");
  assertEquals(await both(), [[0, 1], [2, 3, 4]]);
  await cluster.restart();
  assertEquals(await both(), [[0, 1], [2, 3, 4]]);
  const rest: number[] = [];
  let number = 13;
  for (let got; (got = await ask(number, 8)).length > 0; number += 8) rest.push(...got);
  assertEquals(rest, [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
  assertEquals(await ask(number, 8), []);
  const request = { taskId, number: 99, count: SPLITS_AT_ONCE_MAX + 1, source: 0, repetition: 0 };
  assertEquals((await cluster.refused("getSplit", request)).code, "invalid_argument");
});

Deno.test("getSplit gives no task more at once than a fourth of its even share of the rest", async () => {
  const { cluster, tasks: [first = 0, second = 0] } = await dynamicCluster(48, 4);
  await using _ = cluster;
  assertEquals(await askFor(cluster, first, 1, SPLITS_AT_ONCE_MAX), [0, 1, 2]);
  assertEquals(await askFor(cluster, second, 1, SPLITS_AT_ONCE_MAX), [3, 4, 5]);
  const { cluster: other, tasks: [task = 0] } = await dynamicCluster(1_000, 4);
  await using __ = other;
  const many = await askFor(other, task, 1, SPLITS_AT_ONCE_MAX);
  assertEquals(many.length, SPLITS_AT_ONCE_MAX);
  const { cluster: lone, tasks: [only = 0] } = await dynamicCluster(20);
  await using ___ = lone;
  assertEquals((await askFor(lone, only, 1, SPLITS_AT_ONCE_MAX)).length, 20, "an only task");
});

Deno.test("getSplit refuses numbers whose followers cannot be told apart", async () => {
  const { cluster, tasks: [taskId = 0], take } = await dynamicCluster(8);
  await using _ = cluster;
  const number = Number.MAX_SAFE_INTEGER;
  const request = { taskId, number, count: SPLITS_AT_ONCE_MAX, source: 0, repetition: 0 };
  assertEquals((await cluster.refused("getSplit", request)).code, "invalid_argument");
  assertEquals(await take(taskId, 1), 0);
});

Deno.test("getSplit gives requests that overtake each other a split each", async () => {
  const { cluster, tasks: [task = 0], take } = await dynamicCluster(10);
  await using _ = cluster;
  assertEquals([await take(task, 3), await take(task, 1), await take(task, 2)], [0, 1, 2]);
  assertEquals([await take(task, 1), await take(task, 3)], [1, 0]);
});

Deno.test("getSplit refuses a number far behind those it remembers instead of giving it a new split", async () => {
  const { cluster, tasks: [task = 0], take } = await dynamicCluster(100);
  await using _ = cluster;
  for (let number = 1; number <= 90; number++) await take(task, number);
  const request = { taskId: task, number: 2, source: 0, repetition: 0 };
  assertEquals((await cluster.refused("getSplit", request)).code, "failed_precondition");
  assertEquals(await take(task, 90), 89);
});

Deno.test("getSplit hands out no split twice when the dispatcher dies between append and answer", async () => {
  const { cluster, tasks, take } = await dynamicCluster(20, 2);
  await using _ = cluster;
  const [a = 0, b = 0] = tasks;
  assertEquals(await take(a, 1), 0);
  cluster.holdJournal();
  let answered = false;
  const lost = take(a, 2).then(() => answered = true, () => {});
  await settle();
  assertEquals(answered, false, "an answer left before its record was durable");
  await cluster.crash();
  await lost;
  assertEquals(answered, false, "an answer of the life that died");
  // The other task is given what task a was never told it had; task a asks again and gets the next.
  assertEquals([await take(b, 1), await take(a, 2), await take(a, 2)], [1, 2, 2]);
});

Deno.test("getSplit repeats an answer that was durable but never sent", async () => {
  const { cluster, tasks: [task = 0], take } = await dynamicCluster(20);
  await using _ = cluster;
  cluster.holdJournal();
  const lost = take(task, 1).catch(() => {});
  await settle();
  // In order: what was appended is committed on the way out.
  await cluster.restart();
  await lost;
  assertEquals([await take(task, 1), await take(task, 2)], [0, 1]);
});

Deno.test("an answer that only reads waits for the records it rests on", async () => {
  const { cluster } = await dynamicCluster(1);
  await using _ = cluster;
  cluster.holdJournal();
  const registered = cluster.dataset("another").catch(() => "lost");
  let read: string | undefined;
  const reading = cluster.ask("getDataset", { datasetId: "2" })
    .then(({ fingerprint }) => read = fingerprint, () => {});
  await settle();
  assertEquals(read, undefined);
  cluster.releaseJournal();
  assertEquals(await registered, "2");
  await reading;
  assertEquals(read, hashBytes("another"));
});

Deno.test("a journal that answers before it is durable hands out a split twice", async () => {
  // The wrong order, on purpose: this is what the right one prevents.
  const cluster = await TestCluster.start({
    wrapJournal: (journal) => ({
      append: (record) => journal.append(record),
      committed: () => {
        journal.committed()?.catch(() => {});
        return undefined;
      },
      close: () => journal.close(),
    }),
  });
  await using _ = cluster;
  const workers = [cluster.worker("a", tableOf(5)), cluster.worker("b", tableOf(5))];
  await cluster.open(await cluster.dataset());
  const tasks = [await workers[0]!.heartbeat(), await workers[1]!.heartbeat()].flat();
  const take = async (taskId = 0) =>
    (await cluster.ask("getSplit", { taskId, number: 1, source: 0, repetition: 0 })).split?.index;
  await settle();
  cluster.holdJournal();
  assertEquals(await take(tasks[0]), 0);
  await cluster.crash();
  assertEquals(await take(tasks[1]), 0);
});

Deno.test("getSplit ends an earlier repetition for everybody once a later one has begun", async () => {
  const { cluster, tasks, take } = await dynamicCluster(3, 2);
  await using _ = cluster;
  const [a = 0, b = 0] = tasks;
  assertEquals([await take(a, 1), await take(a, 2)], [0, 1]);
  assertEquals(await take(a, 3, 1), 0);
  assertEquals(await take(b, 1, 0), null);
  assertEquals([await take(b, 2, 1), await take(b, 3, 1), await take(b, 4, 1)], [1, 2, null]);
  assertEquals(await take(a, 2, 0), 1, "a repeated request of an earlier repetition");
  await cluster.restart();
  assertEquals([await take(a, 4, 1), await take(a, 5, 2)], [null, 0]);
});

Deno.test("getSplit keeps the sources of a dataset apart", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("w", tableOf(2, 3));
  await cluster.open(await cluster.dataset());
  const [taskId = 0] = await worker.heartbeat();
  const take = async (source: number, number: number) =>
    (await cluster.ask("getSplit", { taskId, number, source, repetition: 0 })).split?.index;
  assertEquals([await take(0, 1), await take(1, 1), await take(1, 2), await take(0, 2)], [
    0,
    0,
    1,
    1,
  ]);
  const outside = { taskId, number: 1, source: 2, repetition: 0 };
  assertEquals((await cluster.refused("getSplit", outside)).code, "invalid_argument");
});

Deno.test("getSplit refuses a task that has ended or never was, and says why", async () => {
  const { cluster, workers: [worker], tasks: [task = 0] } = await dynamicCluster(3);
  await using _ = cluster;
  const next = await worker!.reborn();
  await next.heartbeat();
  for (const taskId of [task, 999]) {
    const error = await cluster.refused("getSplit", {
      taskId,
      number: 1,
      source: 0,
      repetition: 0,
    });
    assertEquals([error.code, error.details?.["reason"]], ["failed_precondition", TASK_ENDED]);
  }
});

Deno.test("getSplit is refused for a job that is not sharded by splits", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("w");
  await cluster.open(await cluster.dataset(), { processingMode: "OFF" });
  const [taskId = 0] = await worker.heartbeat();
  const error = await cluster.refused("getSplit", { taskId, number: 1, source: 0, repetition: 0 });
  assertEquals(error.code, "invalid_argument");
  assertEquals(worker.listings, 0);
});

Deno.test("getSplit assigns nothing if a later number of a request is too old", async () => {
  const { cluster, tasks: [taskId = 0], take } = await dynamicCluster(8);
  await using _ = cluster;
  assertEquals(await take(taskId, 3 + SPLIT_REQUESTS_KEPT), 0);
  const request = { taskId, number: 1, count: 4, source: 0, repetition: 0 };
  const error = await cluster.refused("getSplit", request);
  assertEquals(error.code, "failed_precondition");
  assertEquals(await take(taskId, 4 + SPLIT_REQUESTS_KEPT), 1);
});

Deno.test("a dead worker's splits are lost, the rest is handed to its next life", async () => {
  const { cluster, workers: [worker], tasks: [task = 0], take } = await dynamicCluster(3);
  await using _ = cluster;
  assertEquals(await take(task, 1), 0);
  const [next = 0] = await (await worker!.reborn()).heartbeat();
  assert(next !== task);
  assertEquals([await take(next, 1), await take(next, 2), await take(next, 3)], [1, 2, null]);
});

Deno.test("splits are listed by another worker when the first fails, and getSplit waits for it", async () => {
  await using cluster = await TestCluster.start();
  const workers = [1, 2, 3].map((i) => cluster.worker(`w${i}`, tableOf(4)));
  workers[1]!.table = new LeatError("unavailable", "no thread left");
  for (const worker of workers) await worker.heartbeat();
  await cluster.system.stopActor("w3");
  await cluster.open(await cluster.dataset());
  const [taskId = 0] = await workers[0]!.heartbeat();
  const asked = cluster.ask("getSplit", { taskId, number: 1, source: 0, repetition: 0 });
  await cluster.world.advance(60_000);
  assertEquals((await asked).split?.index, 0);
  assertEquals(workers[0]!.listings, 1);
});

Deno.test("a listing that fails is what getSplit fails with and what clients are told", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("w");
  worker.table = new LeatError("not_found", "no file matches /data/*.txt");
  const { clientId } = await cluster.open(await cluster.dataset());
  const [taskId = 0] = await worker.heartbeat();
  const request = { taskId, number: 1, source: 0, repetition: 0 };
  for (const restart of [false, true]) {
    if (restart) await cluster.restart();
    const error = await cluster.refused("getSplit", request);
    assertEquals(error.code, "not_found");
    assertStringIncludes(error.message, "/data/*.txt");
    const news = await cluster.ask("clientHeartbeat", { clientId });
    assertEquals(news.error?.code, "not_found");
  }
  assertEquals(worker.listings, 1);
});

Deno.test("a table of many splits survives a restart and a compaction", async () => {
  const table = tableOf(10_000);
  await using cluster = await TestCluster.start({ journalRecordsMax: 50 });
  const worker = cluster.worker("w", table);
  await cluster.open(await cluster.dataset());
  const [taskId = 0] = await worker.heartbeat();
  const take = (number: number) =>
    cluster.ask("getSplit", { taskId, number, source: 0, repetition: 0 });
  for (let number = 1; number <= 200; number++) {
    if (number % 60 === 0) await cluster.restart();
    assertEquals((await take(number)).split, {
      start: 10 * number - 10,
      stop: 10 * number,
      index: number - 1,
    });
  }
  assertEquals(worker.listings, 1);
});

Deno.test("a request for one of very many sources keeps nothing for the others, also through a snapshot", () => {
  const newTask = (requests: number[][]): Task => ({
    ...{ taskId: 1, iterationId: 1, worker: "w", seed: "", source: null },
    ...{ completed: false, runnerDeaths: 0, requests },
  });
  const [far, between] = [100_000, 50_000];
  const first = newTask([]);
  noteRequest(first, far, 1, 7);
  const other = newTask([]);
  noteRequest(other, far, 1, 8);
  assertEquals(new Set([...first.requests, ...other.requests]).size, 3);
  const loaded = newTask(decodeMessage(encodeMessage(first.requests)) as number[][]);
  for (const task of [first, loaded]) {
    assertEquals(knownAnswer(task, 1, far), 7);
    assertEquals([knownAnswer(task, 1, between), isNew(task, 1, between)], [undefined, true]);
    noteRequest(task, between, 1, 3);
    assertEquals([knownAnswer(task, 1, between), isNew(task, 1, between)], [3, false]);
    assertEquals([knownAnswer(task, 1, 0), knownAnswer(task, 1, between + 1)], [
      undefined,
      undefined,
    ]);
  }
  assertEquals(knownAnswer(other, 1, between), undefined);
});
