/**
 * Handing out splits in an order (DETERMINISTIC): each until its reader has it, within a window, again
 * where its task has ended, and alike after restarts.
 *
 * @module
 */
import { SAME_PROCESS } from "../../../../actors/runtime/identity.ts";
import fc from "fast-check";
import { joinIteration } from "../../../../actors/client/first_answer.ts";
import { endClient } from "../../../../actors/dispatcher/members/clients.ts";
import { openIteration } from "../../../../actors/dispatcher/jobs/join_iteration.ts";
import type { OrderedConsumer } from "../../../../actors/dispatcher/modes/mode_state.ts";
import { noteReceived } from "../../../../actors/dispatcher/modes/deterministic/ordered.ts";
import {
  join,
  orderedFrom,
} from "../../../../actors/dispatcher/modes/deterministic/ordered_state.ts";
import {
  type DispatcherProtocol,
  READ_BY_ANOTHER,
  TO_FOLLOW,
} from "../../../../actors/dispatcher/protocol.ts";
import {
  decodeRecords,
  type JournalRecord,
  RecordBatch,
} from "../../../../actors/dispatcher/journal/records.ts";
import { Consumers } from "../../../../actors/dispatcher/modes/consumers.ts";
import { digestOfSplits, packSplits } from "../../../../data/sharding/split_table.ts";
import { assignSplit } from "../../../../actors/dispatcher/modes/splits.ts";
import { decodeSnapshot, encodeSnapshot } from "../../../../actors/dispatcher/journal/snapshot.ts";
import { DispatcherState } from "../../../../actors/dispatcher/state/state.ts";
import type { Transaction } from "../../../../actors/dispatcher/transaction.ts";
import { loseWorker, workerHeartbeat } from "../../../../actors/dispatcher/members/workers.ts";
import { ANYONE } from "../../../../actors/runtime/identity.ts";
import type { RequestOf } from "../../../../actors/runtime/protocol.ts";
import { LeatError } from "../../../../core/error.ts";
import type { ReaderId } from "../../../../data/service/last_readers.ts";
import { SplitOwners } from "../../../../sim/checkers/split_owners.ts";
import { DenoWorld } from "../../../../platform/deno_world.ts";
import { assert, assertEquals, assertRejects } from "../../../assert.ts";
import { settle, tableOf, TestCluster, type TestWorker } from "../lib.ts";

const ORDERED = {
  processingMode: "DETERMINISTIC",
  ordered: { seed: "0000000000000001", shuffled: false },
} as const;
const WINDOW_SPLITS = 4;
/** So many that one may come to what two others have or want nothing of. */
const CONSUMERS = 3;

/** A cluster with one iteration and a task on each of two workers. */
async function orderedCluster(splits: number) {
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
function joinAsClient(
  cluster: TestCluster,
  request: RequestOf<DispatcherProtocol, "openIteration">,
) {
  return joinIteration(request, (asked) => cluster.ask("openIteration", asked));
}

/** What a promise has come to by now. */
async function now<T>(promise: Promise<T>): Promise<T | "waits"> {
  await settle();
  return await Promise.race([promise, Promise.resolve("waits" as const)]);
}

Deno.test("getSplit hands out no split beyond the window until the reader has more", async () => {
  const { cluster, tasks: [a, b], take, received } = await orderedCluster(10);
  await using _ = cluster;
  assertEquals([await take(a), await take(b), await take(a), await take(b)], [0, 1, 2, 3]);
  const next = take(a);
  assertEquals(await now(next), "waits");
  await received(0, 1, 2);
  assertEquals(await now(next), "waits");
  await received(1, 2);
  assertEquals(await next, 4);
});

Deno.test("getSplit answers a repeated request as before, also where nobody would be given anything now", async () => {
  const { cluster, tasks: [a, b], take } = await orderedCluster(10);
  await using _ = cluster;
  assertEquals([await take(a), await take(b), await take(b), await take(a)], [0, 1, 2, 3]);
  await cluster.restart();
  assertEquals(await now(take(a, false, true)), 3);
  assertEquals(await now(take(b, false, true)), 2);
});

Deno.test("getSplit hands out again what a lost worker had, the lowest first, before anything new", async () => {
  const { cluster, workers: [, worker], tasks: [a, b], take, received } = await orderedCluster(10);
  await using _ = cluster;
  assertEquals([await take(b), await take(a), await take(b)], [0, 1, 2]);
  const spare = take(a, true);
  assertEquals(await now(spare), "waits");
  await cluster.ask("workerHeartbeat", {
    name: worker.name,
    worker: worker.ref,
    tags: [],
    tasks: [],
    leaving: true,
  });
  assertEquals(await now(spare), 0);
  // A spare one comes before all that the task holds, of which 0 is the first now.
  const other = take(a, true);
  assertEquals(await now(other), "waits");
  assertEquals([await take(a), await take(a)], [2, 3]);
  await received(2);
  assertEquals(await now(other), "waits");
});

Deno.test("getSplit does not hand out again what the reader had whole when its task ended", async () => {
  const { cluster, workers: [, worker], tasks: [a, b], take, received } = await orderedCluster(10);
  await using _ = cluster;
  assertEquals([await take(b), await take(b), await take(b)], [0, 1, 2]);
  await received(1, 2);
  await worker.reborn().then((again) => again.heartbeat());
  assertEquals([await take(a), await take(a)], [1, 3]);
});

Deno.test("a task that completed early gives its splits back and gets no more", async () => {
  const { cluster, workers: [worker], tasks: [a, b], take } = await orderedCluster(10);
  await using _ = cluster;
  assertEquals([await take(a), await take(b)], [0, 1]);
  const pending = take(b, true);
  worker.complete(a);
  await worker.heartbeat();
  assertEquals(await now(pending), 0);
  assertEquals(await now(take(a)), null);
});

Deno.test("an iteration whose only worker has drained goes on with the next worker", async () => {
  const { cluster, workers, tasks, take, clientId } = await orderedCluster(10);
  await using _ = cluster;
  assertEquals(await take(tasks[0]), 0);
  for (const [i, worker] of workers.entries()) {
    worker.complete(tasks[i]!);
    await worker.heartbeat();
  }
  assertEquals(
    (await cluster.ask("clientHeartbeat", {
      clientId,
      report: { kind: "ordered", mark: 0, done: [] },
    })).finished,
    false,
  );
  const fresh = cluster.worker("c", tableOf(10));
  const [task = 0] = await fresh.heartbeat();
  assertEquals(await take(task), 0);
});

Deno.test("an iteration finishes when its reader has everything", async () => {
  const { cluster, workers, tasks: [a, b], take, received } = await orderedCluster(2);
  await using _ = cluster;
  assertEquals([await take(a), await take(b)], [0, 1]);
  const last = [take(a), take(b)];
  await received(2);
  assertEquals(await Promise.all(last), [null, null]);
  for (const [i, worker] of workers.entries()) {
    worker.complete([a, b][i]!);
    await worker.heartbeat();
  }
  assertEquals((await received(2)).finished, true);
});

Deno.test("nothing is kept of an iteration that its reader has left", async () => {
  const { cluster, workers: [worker], clientId } = await orderedCluster(10);
  await using _ = cluster;
  await cluster.ask("releaseClient", { clientId });
  assertEquals((await cluster.ask("describe", null)).jobs, []);
  assertEquals(await worker.heartbeat(), []);
});

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
  assert(old.message.includes("restored reader has replaced it"), old.message);
  const [task = 0] = await worker.heartbeat();
  assertEquals([await take(task), await take(task)], [6, 7]);
});

Deno.test("a restored reader takes the job over from whoever reads it in any repetition", async () => {
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
    assert(told.message.includes("restored reader has replaced it"), told.message);
  }
  await cluster.open(datasetId, inRepetition(1));
  const { clientId } = restored;
  assertEquals((await cluster.ask("clientHeartbeat", { clientId })).finished, false);
});

Deno.test("a reader in whose place another one was restored opens no repetition any more, and whoever else comes does", async () => {
  for (const consumer of [{}, { numConsumers: 2, consumerIndex: 1 }]) {
    await using cluster = await TestCluster.start();
    const datasetId = await cluster.dataset();
    const request = (repetition: number, lastReader?: ReaderId) => ({
      ...cluster.openRequest(datasetId, { ...ORDERED, jobName: "job", ...consumer, repetition }),
      ...(lastReader === undefined ? {} : { lastReader }),
    });
    const leave = async ({ clientId, clusterId }: ReaderId): Promise<ReaderId> => {
      await cluster.ask("releaseClient", { clientId });
      return { clientId, clusterId };
    };
    const read = async (repetition: number, lastReader?: ReaderId) =>
      leave(await cluster.ask("openIteration", request(repetition, lastReader)));
    const restore = async (repetition: number) =>
      leave(await joinAsClient(cluster, { ...request(repetition), startAt: 3 }));
    const isRefused = async (repetition: number, lastReader: ReaderId) => {
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

Deno.test("a consumer that was restored elsewhere opens no repetition any more, and all that were restored do, in whichever order and number", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const open = async (consumerIndex: number, repetition: number, more: object = {}) => {
    const job = { jobName: "job", numConsumers: 2, consumerIndex, repetition };
    const request = { ...cluster.openRequest(datasetId, { ...ORDERED, ...job }), ...more };
    const { clientId, clusterId } = await joinAsClient(cluster, request);
    return { clientId, clusterId };
  };
  const leave = async (...readers: readonly ReaderId[]) => {
    for (const { clientId } of readers) await cluster.ask("releaseClient", { clientId });
  };
  const isRefused = async (consumerIndex: number, repetition: number, lastReader: ReaderId) => {
    const opening = () => open(consumerIndex, repetition, { lastReader });
    const error = await assertRejects(opening, LeatError);
    assertEquals(error.details, { reason: READ_BY_ANOTHER });
  };
  const old = [await open(0, 0), await open(1, 0)] as const;
  await leave(...old);
  // On both sides of an epoch's end; with the other one, alone, and once more with the other one.
  for (const order of [[[1, 1], [0, 0]], [[0, 0]], [[1, 0], [0, 1]]] as [number, number][][]) {
    const restored: [number, number, ReaderId][] = [];
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

Deno.test("a reader of several chains is one reader, and whoever reads another stream by the same name is another", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const open = async (chain: number, repetition: number, more: object = {}) => {
    const job = { ...ORDERED, jobName: `job/${chain}`, repetition };
    const asked = { ...cluster.openRequest(datasetId, job), stream: "s", ...more };
    const { clientId, clusterId } = await joinAsClient(cluster, asked);
    await cluster.ask("releaseClient", { clientId });
    return { clientId, clusterId };
  };
  const lastReader = await open(0, 0);
  // Its chains may be opened before the answer to the first of them has come.
  const first = await open(1, 0, { startAt: 3, restoration: "r" });
  await open(0, 1, { startAt: 0, restoration: "r" });
  await open(1, 1, { lastReader: first });
  for (const chain of [0, 1]) {
    const error = await assertRejects(() => open(chain, 1, { lastReader }), LeatError);
    assertEquals(error.details, { reason: READ_BY_ANOTHER });
  }
  await open(0, 1, { lastReader, stream: "another" });
});

Deno.test("a restored reader's request that is late takes the stream from nobody who is between two repetitions", async () => {
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

Deno.test("a restored consumer's request that is late puts out no consumers of the next life, whichever has come", async () => {
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

Deno.test("the first consumer that is restored begins anew what is read, in whichever repetition", async () => {
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

Deno.test("a request to join that is late takes the stream from nobody who has taken it over since", async () => {
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

Deno.test("a consumer is handed what lies before the others' places, also where one of them wants nothing of it", async () => {
  await using cluster = await TestCluster.start({ windowSplits: WINDOW_SPLITS });
  const worker = cluster.worker("a", tableOf(16));
  const datasetId = await cluster.dataset();
  const open = async (consumerIndex: number, startAt: number, ...behind: number[]) => {
    const options = { ...ORDERED, jobName: "job", numConsumers: 3, consumerIndex };
    const request = cluster.openRequest(datasetId, options);
    await cluster.ask("openIteration", { ...request, startAt, behind });
  };
  const assigned = async (spare: boolean, number: number) => {
    const [taskId = 0] = await worker.heartbeat();
    const request = { taskId, number, source: 0, repetition: 0, spare };
    return (await cluster.ask("getSplit", request)).split?.sequence ?? null;
  };
  await open(0, 6);
  await settle();
  assertEquals(await assigned(false, 1), 6);
  // Of what is before the first one's place it wants rows of one split, and nothing of those between.
  await open(1, 5, 2);
  await open(2, 3, 2);
  assertEquals([await assigned(true, 1), await assigned(false, 2)], [2, 3]);
  assertEquals([await assigned(false, 3), await assigned(false, 4)], [4, 5]);
});

Deno.test("places beyond what there is are refused, and their reader goes on", async () => {
  const { cluster, tasks: [a], take, clientId, received, datasetId } = await orderedCluster(10);
  await using _ = cluster;
  const last = Number.MAX_SAFE_INTEGER;
  for (const [startAt, behind] of [[last, [0]], [last, []], [2 ** 24 + 1, [3]]] as const) {
    for (const consumer of [{}, { numConsumers: 2, consumerIndex: 0 }]) {
      const options = { ...ORDERED, jobName: `from ${startAt}`, ...consumer };
      const request = { ...cluster.openRequest(datasetId, options), startAt, behind };
      const { code, message } = await cluster.refused("openIteration", request);
      assertEquals([code, message.includes(`got ${startAt}`)], ["invalid_argument", true]);
    }
  }
  const wrong = [[last], [11], [0, last], [0, 10], [0, 2, 2], [0, 3, 2], [2, 1]] as const;
  for (const [mark, ...done] of wrong) {
    const { code, message } = await cluster.refused("clientHeartbeat", {
      clientId,
      report: { kind: "ordered", mark, done },
    });
    const shown = `got ${[mark, ...done].join(", ")}`;
    assertEquals([code, message.includes(shown)], ["invalid_argument", true], message);
  }
  assertEquals([await take(a), await take(a)], [0, 1]);
  await received(0, 1);
  assertEquals((await received(10)).finished, false);
});

Deno.test("a consumer that begins far before another is handed all that lies between, and that one only its rows", () => {
  const far = 2 ** 17;
  const ordered = orderedFrom({ startAt: far, behind: [1, 3] }, 2);
  join(ordered, 0, { startAt: far, behind: [1, 3] });
  assertEquals(ordered.lost, [1, 3]);
  join(ordered, 1, { startAt: 2 });
  assertEquals(ordered.lost, Array.from({ length: far - 1 }, (_, i) => i + 1));
});

Deno.test("a reader that was restored to a place in a table that is shorter now is handed nothing of it", async () => {
  const { cluster, workers: [worker], datasetId, take } = await orderedCluster(10);
  await using _ = cluster;
  const request = cluster.openRequest(datasetId, { ...ORDERED, jobName: "longer" });
  await cluster.ask("openIteration", { ...request, startAt: 50, behind: [45] });
  const tasks = await worker.heartbeat();
  assertEquals(await take(tasks.at(-1)!), null);
});

/** Decides without an actor; numbers choose among what there is. */
class Decider implements Transaction {
  readonly random = new DenoWorld({ seed: 7n }).random;
  readonly journal: Uint8Array[] = [];
  state = new DispatcherState();
  nowMs = 0;
  readonly wallMs = 0;
  readonly listedWorkers = [];
  #requests = 0;
  #numbers = new Map<string, number>();
  readonly #owners = new SplitOwners();

  constructor() {
    this.commit({
      type: "dataset_registered",
      owner: "anyone",
      datasetId: "1",
      graph: new Uint8Array(4),
      fingerprint: "f",
      cardinality: 100,
    });
  }

  commit(record: JournalRecord): void {
    const batch = new RecordBatch();
    batch.add(record);
    this.journal.push(batch.encode());
    this.state.apply(record);
    assertEquals(this.#owners.note(record), undefined);
  }

  run([kind, a, b]: Command): void {
    try {
      this.#decide(kind, a, b);
    } catch (error) {
      const refused = error instanceof LeatError && error.code !== "internal" &&
        error.code !== "data_loss";
      if (!refused) throw error;
    }
    for (const { ordered } of this.state.iterations.values()) {
      const { mark, next, assigned, done, lost, consumers } = ordered!;
      const kept = [...assigned.map(({ sequence }) => sequence), ...lost];
      assertEquals(new Set(kept).size, kept.length, "a split is in two places");
      assert([...kept, ...done].every((at) => at >= mark), "something below the mark is kept");
      if (consumers !== null) {
        this.#checkConsumers(consumers, kept, next);
        continue;
      }
      assert(next <= Math.max(mark + WINDOW_SPLITS, mark), "the window is exceeded");
      assert(kept.length <= WINDOW_SPLITS);
    }
  }

  /** What a consumer that reads has yet to get, up to where splits were handed out, is being produced. */
  #checkConsumers(consumers: readonly OrderedConsumer[], kept: number[], next: number): void {
    for (const { state, mark, done } of consumers) {
      if (state !== "reading") continue;
      for (let at = mark; at < next; at++) {
        assert(done.includes(at) || kept.includes(at), `split ${at} is lost for a consumer`);
      }
    }
  }

  #decide(kind: Command[0], a: number, b: number): void {
    const { state } = this;
    const iteration = pick(state.iterations, a);
    switch (kind) {
      case "open": {
        const jobName = `job ${a % 3}`;
        const job = state.jobNamed(jobName);
        const found = job === undefined ? undefined : state.iterationOf(job.jobId, 0);
        openIteration(
          this,
          {
            requestId: `r${++this.#requests}`,
            jobName,
            ...(found === undefined ? {} : { follows: found.iterationId }),
            parameters: {
              datasetId: "1",
              sharing: false,
              ...ORDERED,
              ...(a % 3 === 2 ? { numConsumers: CONSUMERS } : {}),
            },
            repetition: 0,
            ...(a % 3 === 2 ? { consumerIndex: b % CONSUMERS } : {}),
            ...(b % 3 === 0 ? { startAt: b % 7 } : {}),
            ...(b % 3 === 0 && b % 7 > 1 ? { behind: [b % 7 - 2] } : {}),
          },
          ANYONE,
          { positionOf: () => undefined, isUnreadable: () => false },
        );
        return;
      }
      case "release":
        return endClient(this, pick(state.clients, a)?.clientId ?? 0, "released", new Consumers());
      case "worker": {
        const name = `w${a % 3}`;
        const worker = {
          node: "n",
          path: `/${name}`,
          incarnation: `${1 + (b % 20 === 0 ? 1 : 0)}`,
        };
        const tasks = [...state.tasksOfWorker(name)].map(({ taskId }) => {
          return { taskId, completed: b % 10 === 1 };
        });
        workerHeartbeat(this, { name, worker, tags: [], tasks }, {
          source: worker,
          sender: SAME_PROCESS,
        });
        return;
      }
      case "lose":
        if (state.workers.get(`w${a % 3}`)?.alive) loseWorker(this, `w${a % 3}`);
        return;
      case "list": {
        if (iteration === undefined || iteration.splits !== null) return;
        const bounds = packSplits(tableOf(12));
        const { iterationId } = iteration;
        this.commit({ type: "splits_listed", iterationId, bounds, digest: digestOfSplits(bounds) });
        return;
      }
      case "split": {
        const taskId = pick(state.tasks, a)?.taskId ?? 0;
        const spare = b % 3 === 0;
        const key = `${taskId} ${spare}`;
        const number = (this.#numbers.get(key) ?? 0) + 1;
        this.#numbers.set(key, number);
        const request = { taskId, number, source: 0, repetition: 0, spare };
        assignSplit(this, request, WINDOW_SPLITS);
        return;
      }
      case "received": {
        if (iteration?.splits == null) return;
        const client = pick(
          new Map([...state.clientsOfIteration(iteration.iterationId)].entries()),
          b,
        );
        if (client === undefined) return;
        const { mark, next, consumers } = iteration.ordered!;
        const own = consumers?.[client.consumerIndex ?? 0]?.mark ?? mark;
        const to = Math.max(own, Math.min(next, own + a % 3));
        noteReceived(this, iteration, client, {
          mark: to,
          done: b % 2 === 0 ? [] : [to + 1].filter((at) => at < next),
        });
      }
    }
  }
}

type Command = readonly [typeof KINDS[number], number, number];
const KINDS = [
  "open",
  "release",
  "worker",
  "worker",
  "lose",
  "list",
  "list",
  "split",
  "split",
  "split",
  "received",
  "received",
] as const;
const COMMANDS = fc.array(fc.tuple(fc.constantFrom(...KINDS), fc.nat(50), fc.nat(50)), {
  minLength: 40,
  maxLength: 200,
  size: "max",
});

function pick<K, V>(map: ReadonlyMap<K, V>, number: number): V | undefined {
  return [...map.values()][number % Math.max(1, map.size)];
}

Deno.test("the order of splits replayed from the journal, or from a snapshot and the rest, is the one that was lived", () => {
  const kinds = new Set<string>();
  fc.assert(
    fc.property(COMMANDS, fc.nat(), (commands, at) => {
      const decider = new Decider();
      const cut = at % commands.length;
      for (const command of commands.slice(0, cut)) decider.run(command);
      const restored = DispatcherState.restore(
        decodeSnapshot(encodeSnapshot(decider.state.snapshot())),
      );
      const tail = decider.journal.length;
      for (const command of commands.slice(cut)) decider.run(command);
      const records = decider.journal.flatMap(decodeRecords);
      for (const { type } of records) kinds.add(type);
      const replayed = new DispatcherState();
      for (const record of records) replayed.apply(record);
      for (const record of decider.journal.slice(tail).flatMap(decodeRecords)) {
        restored.apply(record);
      }
      assertEquals(replayed.snapshot(), decider.state.snapshot());
      assertEquals(restored.snapshot(), decider.state.snapshot());
    }),
    { numRuns: 60, seed: 1 },
  );
  for (const kind of ["sequence_assigned", "sequences_received", "task_ended", "task_completed"]) {
    assert(kinds.has(kind), `no run made a record "${kind}"`);
  }
});
