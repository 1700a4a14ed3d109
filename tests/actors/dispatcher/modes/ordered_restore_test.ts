/** Readers of a DETERMINISTIC job that are restored, or replaced by a restored one. */
import { joinIteration } from "../../../../actors/client/first_answer.ts";
import { READ_BY_ANOTHER, TO_FOLLOW } from "../../../../actors/dispatcher/protocol.ts";
import { LeatError } from "../../../../core/error.ts";
import type { KnownReader } from "../../../../data/service/last_readers.ts";
import { assert, assertEquals, assertRejects } from "../../../assert.ts";
import { TestCluster } from "../lib.ts";
import { joinAsClient, now, ORDERED, orderedCluster } from "./ordered_cluster.ts";

Deno.test("a restored reader takes an iteration over, and is handed nothing before its place", async () => {
  const { cluster, workers: [worker], tasks: [a], take, clientId, datasetId } =
    await orderedCluster(10);
  await using _ = cluster;
  assertEquals(await take(a), 0);
  const request = cluster.openRequest(datasetId, { ...ORDERED, jobName: "job" });
  const second = await cluster.refused("openIteration", request);
  assertEquals(second.code, "failed_precondition");
  await joinAsClient(cluster, { ...request, requestId: "restored", startAt: 6 });
  const old = await cluster.refused("clientHeartbeat", { clientId });
  assertEquals(old.code, "failed_precondition");
  assert(old.message.includes("restored reader has replaced this client"), old.message);
  const [task = 0] = await worker.heartbeat();
  assertEquals([await take(task), await take(task)], [6, 7]);
});

Deno.test("a restored reader takes over the job from any reader, in any repetition", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const inRepetition = (repetition: number) => ({ ...ORDERED, jobName: "job", repetition });
  const first = await cluster.open(datasetId, inRepetition(1));
  const second = await cluster.open(datasetId, inRepetition(2));
  assertEquals(
    (await cluster.ask("clientHeartbeat", first)).finished,
    false,
    "it goes on as it was",
  );
  const plain = await cluster.refused(
    "openIteration",
    cluster.openRequest(datasetId, inRepetition(2)),
  );
  assertEquals(plain.details, { reason: READ_BY_ANOTHER });
  const request = { ...cluster.openRequest(datasetId, inRepetition(0)), startAt: 3 };
  for (const follows of [{}, { follows: first.clientId }]) {
    const { details } = await cluster.refused("openIteration", { ...request, ...follows });
    assertEquals(details, { reason: TO_FOLLOW, follows: second.clientId });
  }
  const restored = await joinAsClient(cluster, request);
  for (const { clientId } of [first, second]) {
    const told = await cluster.refused("clientHeartbeat", { clientId });
    assert(told.message.includes("restored reader has replaced this client"), told.message);
  }
  await cluster.open(datasetId, inRepetition(1));
  const { clientId } = restored;
  assertEquals((await cluster.ask("clientHeartbeat", { clientId })).finished, false);
});

Deno.test("a reader that was replaced by a restored one opens no repetition any more, and other readers do", async () => {
  for (const consumer of [{}, { numConsumers: 2, consumerIndex: 1 }]) {
    await using cluster = await TestCluster.start();
    const datasetId = await cluster.dataset();
    const request = (repetition: number, lastReader?: KnownReader) => ({
      ...cluster.openRequest(datasetId, { ...ORDERED, jobName: "job", ...consumer, repetition }),
      ...(lastReader === undefined ? {} : { lastReader }),
    });
    const leave = async ({ clientId, clusterId }: KnownReader): Promise<KnownReader> => {
      await cluster.ask("releaseClient", { clientId });
      return { clientId, clusterId };
    };
    const read = async (repetition: number, lastReader?: KnownReader) =>
      leave(await cluster.ask("openIteration", request(repetition, lastReader)));
    const restore = async (repetition: number) =>
      leave(await joinAsClient(cluster, { ...request(repetition), startAt: 3 }));
    const isRefused = async (repetition: number, lastReader: KnownReader) => {
      const { details } = await cluster.refused("openIteration", request(repetition, lastReader));
      assertEquals(details, { reason: READ_BY_ANOTHER });
    };
    const a = await read(0);
    const b = await restore(0);
    await isRefused(1, a);
    // Also when nobody reads, the dispatcher has begun anew, and its journal is but a snapshot.
    await cluster.restart({ journalRecordsMax: 1 });
    await isRefused(1, a);
    await cluster.restart();
    await isRefused(1, a);
    const later = await read(1, b);
    const c = await restore(1);
    for (const old of [a, b, later]) await isRefused(2, old);
    await read(2, c);
    // One that was restored at an epoch's end has announced itself nowhere, nor has one that begins anew.
    const d = await read(3);
    await read(0, await read(4, d));
    await read(1, { ...a, clusterId: "another" });
  }
});

Deno.test("a consumer that was restored elsewhere opens no repetition any more, and all restored ones do, in any order and number", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const open = async (consumerIndex: number, repetition: number, more: object = {}) => {
    const job = { jobName: "job", numConsumers: 2, consumerIndex, repetition };
    const request = { ...cluster.openRequest(datasetId, { ...ORDERED, ...job }), ...more };
    const { clientId, clusterId } = await joinAsClient(cluster, request);
    return { clientId, clusterId };
  };
  const leave = async (...readers: readonly KnownReader[]) => {
    for (const { clientId } of readers) await cluster.ask("releaseClient", { clientId });
  };
  const isRefused = async (consumerIndex: number, repetition: number, lastReader: KnownReader) => {
    const opening = () => open(consumerIndex, repetition, { lastReader });
    const error = await assertRejects(opening, LeatError);
    assertEquals(error.details, { reason: READ_BY_ANOTHER });
  };
  const old = [await open(0, 0), await open(1, 0)] as const;
  await leave(...old);
  // On both sides of an epoch's end; with the other one, alone, and once more with the other one.
  for (const order of [[[1, 1], [0, 0]], [[0, 0]], [[1, 0], [0, 1]]] as [number, number][][]) {
    const restored: [number, number, KnownReader][] = [];
    for (const [index, repetition] of order) {
      restored.push([index, repetition, await open(index, repetition, { startAt: 1 })]);
    }
    await leave(...restored.map(([, , reader]) => reader));
    for (const [index, repetition, lastReader] of restored) {
      await isRefused(index, repetition + 1, old[index]!);
      await leave(await open(index, repetition + 1, { lastReader }));
    }
  }
});

Deno.test("a late request of a restored reader replaces no reader that is between two repetitions", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const request = (repetition: number) =>
    cluster.openRequest(datasetId, { ...ORDERED, jobName: "job", repetition });
  const open = async (asked: ReturnType<typeof request>) => {
    const { clientId, clusterId } = await cluster.ask("openIteration", asked);
    await cluster.ask("releaseClient", { clientId });
    return { clientId, clusterId };
  };
  const dead = await open(request(0));
  const late = { ...request(0), startAt: 3, follows: dead.clientId };
  await open(late);
  // The next life was restored at an epoch's end, and has read the next epoch.
  const lastReader = await open(request(1));
  const { details } = await cluster.refused("openIteration", late);
  assertEquals(details, { reason: TO_FOLLOW, follows: lastReader.clientId });
  await open({ ...request(2), ...{ lastReader } });
});

Deno.test("a late request of a restored consumer replaces no consumers of the next life", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const request = (consumerIndex: number, repetition: number) => {
    const job = { jobName: "job", numConsumers: 2, consumerIndex, repetition };
    return cluster.openRequest(datasetId, { ...ORDERED, ...job });
  };
  await cluster.ask("openIteration", request(0, 0));
  const { clientId: dead } = await cluster.ask("openIteration", request(1, 0));
  const { clientId } = await cluster.ask("openIteration", request(0, 1));
  const late = { ...request(1, 0), startAt: 3, follows: dead };
  const { details } = await cluster.refused("openIteration", late);
  assertEquals(details, { reason: TO_FOLLOW, follows: clientId });
  assertEquals((await cluster.ask("clientHeartbeat", { clientId })).finished, false);
});

Deno.test("the first consumer that is restored restarts the stream, in any repetition", async () => {
  const isThere = async (cluster: TestCluster, clientId: number) => {
    const [answer] = await Promise.allSettled([cluster.ask("clientHeartbeat", { clientId })]);
    return answer.status === "fulfilled";
  };
  // Consumer 1 has gone on to repetition 1; one of the two is restored in one of the two repetitions.
  for (const [index, repetition] of [[0, 0], [0, 1], [1, 0], [1, 1]] as [number, number][]) {
    await using cluster = await TestCluster.start();
    const datasetId = await cluster.dataset();
    const request = (consumerIndex: number, repetition: number) => {
      const job = { jobName: "job", numConsumers: 2, consumerIndex, repetition };
      return cluster.openRequest(datasetId, { ...ORDERED, ...job });
    };
    const stays = await cluster.ask("openIteration", request(0, 0));
    const { clientId } = await cluster.ask("openIteration", request(1, 0));
    await cluster.ask("releaseClient", { clientId });
    const ahead = await cluster.ask("openIteration", request(1, 1));
    const restored = await joinAsClient(cluster, { ...request(index, repetition), startAt: 1 });
    assertEquals([
      await isThere(cluster, stays.clientId),
      await isThere(cluster, ahead.clientId),
    ], [false, false]);
    if (repetition > 0) continue;
    const other = await joinAsClient(cluster, { ...request(1 - index, 0), startAt: 2 });
    assertEquals(other.iterationId, restored.iterationId, "the other one comes to it");
    assertEquals(await isThere(cluster, restored.clientId), true);
  }
});

Deno.test("a late request to join replaces no reader that has taken over the stream since", async () => {
  for (const consumer of [{}, { numConsumers: 2, consumerIndex: 1 }]) {
    await using cluster = await TestCluster.start();
    const datasetId = await cluster.dataset();
    const options = { ...ORDERED, jobName: "job", ...consumer };
    const { clientId: before } = await cluster.open(datasetId, options);
    // Its trainer asks, and dies while it asks once more; the life after it is there first.
    const late = { ...cluster.openRequest(datasetId, options), startAt: 3 };
    const { details } = await cluster.refused("openIteration", late);
    assertEquals(details, { reason: TO_FOLLOW, follows: before });
    const request = { ...cluster.openRequest(datasetId, options), startAt: 6 };
    const { clientId } = await joinAsClient(cluster, request);
    for (const follows of [{}, { follows: before }]) {
      const refused = await cluster.refused("openIteration", { ...late, ...follows });
      assertEquals(refused.details, { reason: TO_FOLLOW, follows: clientId });
    }
    assertEquals((await cluster.ask("clientHeartbeat", { clientId })).finished, false);
  }
});

Deno.test("joining goes on where others take the stream over meanwhile, and ends with any other refusal", async () => {
  const refusal = (details: Record<string, unknown>) =>
    new LeatError("failed_precondition", "refused", { details });
  const toFollow = (follows: number) => refusal({ reason: TO_FOLLOW, follows });
  const request = {
    requestId: "r",
    parameters: { datasetId: "d", ...ORDERED, sharing: false },
    repetition: 0,
    startAt: 1,
  };
  const joined = { jobId: 1, iterationId: 3, clientId: 5, clusterId: "c" };
  for (const last of [joined, refusal({}), toFollow(2)]) {
    const said: unknown[] = [];
    const answers = [toFollow(1), toFollow(2), last];
    const ask = ({ follows }: { readonly follows?: number }) => {
      said.push(follows);
      const answer = answers.shift()!;
      return answer instanceof LeatError ? Promise.reject(answer) : Promise.resolve(answer);
    };
    const outcome = await joinIteration(request, ask).catch((error) => error);
    assertEquals([outcome, said], [last, [undefined, 1, 2]]);
  }
});

Deno.test("a restored reader is handed splits behind its place that it needs rows of, and none between", async () => {
  const { cluster, workers: [worker], datasetId, take } = await orderedCluster(100);
  await using _ = cluster;
  const request = cluster.openRequest(datasetId, { ...ORDERED, jobName: "job" });
  const wrong = { ...request, startAt: 50, behind: [7, 3] };
  assertEquals((await cluster.refused("openIteration", wrong)).code, "invalid_argument");
  const many = { ...wrong, behind: Array.from({ length: 2_000 }, (_, i) => i) };
  const { message } = await cluster.refused("openIteration", many);
  assertEquals(
    message,
    "behind must be ascending positions before startAt (50), got 0, 1, 2, 3, 4, 5, 6, 7, 8, 9",
  );
  const { clientId } = await joinAsClient(cluster, {
    ...request,
    requestId: "behind",
    startAt: 50,
    behind: [3, 7],
  });
  await cluster.restart();
  const [task = 0] = await worker.heartbeat();
  assertEquals([await take(task), await take(task)], [3, 7]);
  // Its window begins with them: nothing beyond is wanted before it has them.
  const next = take(task);
  assertEquals(await now(next), "waits");
  await cluster.ask("clientHeartbeat", {
    clientId,
    report: { kind: "ordered", mark: 50, done: [] },
  });
  assertEquals(await next, 50);
});

Deno.test("a reader that was restored to a place in a table that is shorter now is handed nothing of it", async () => {
  const { cluster, workers: [worker], datasetId, take } = await orderedCluster(10);
  await using _ = cluster;
  const request = cluster.openRequest(datasetId, { ...ORDERED, jobName: "longer" });
  await cluster.ask("openIteration", { ...request, startAt: 50, behind: [45] });
  const tasks = await worker.heartbeat();
  assertEquals(await take(tasks.at(-1)!), null);
});
