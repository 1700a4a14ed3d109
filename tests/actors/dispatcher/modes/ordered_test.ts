/**
 * Handing out splits in an order (DETERMINISTIC): each until its reader has it, within a window, again
 * where its task has ended, and alike after restarts.
 */
import { decodeRecords } from "../../../../actors/dispatcher/journal/records.ts";
import { decodeSnapshot, encodeSnapshot } from "../../../../actors/dispatcher/journal/snapshot.ts";
import {
  join,
  orderedFrom,
} from "../../../../actors/dispatcher/modes/deterministic/ordered_state.ts";
import { READ_BY_ANOTHER } from "../../../../actors/dispatcher/protocol.ts";
import { DispatcherState } from "../../../../actors/dispatcher/state/state.ts";
import { LeatError } from "../../../../core/error.ts";
import { assert, assertEquals, assertRejects } from "../../../assert.ts";
import { settle, tableOf, TestCluster } from "../lib.ts";
import { joinAsClient, now, ORDERED, orderedCluster, WINDOW_SPLITS } from "./ordered_cluster.ts";
import { COMMANDS, Decider } from "./ordered_commands.ts";
import fc from "../../../lib/properties.ts";

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

Deno.test("getSplit answers a repeated request as before, even if it would now give no split", async () => {
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

Deno.test("a reader of several chains is one reader, and a reader of another stream by the same name is another", async () => {
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

Deno.test("positions beyond the end are refused, and their reader continues", async () => {
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
  assertEquals(ordered.lost, [[1, far]]);
});

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
    { numRuns: 60 },
  );
  for (const kind of ["sequence_assigned", "sequences_received", "task_ended", "task_completed"]) {
    assert(kinds.has(kind), `no run made a record "${kind}"`);
  }
});

Deno.test("a reader is refused that reports splits which nobody was handed", async () => {
  const { cluster, tasks: [a], take, clientId, datasetId } = await orderedCluster(10);
  await using _ = cluster;
  for (const sequence of [0, 1, 2]) assertEquals(await take(a), sequence);
  const report = async (reader: number, ...done: number[]) => {
    const request = { clientId: reader, report: { kind: "ordered", mark: 0, done } } as const;
    const answer = await cluster.ask("clientHeartbeat", request).catch(LeatError.from);
    return answer instanceof LeatError ? answer.code : "taken";
  };
  assertEquals(await report(clientId, 1, 2), "taken");
  assertEquals(await report(clientId, 3), "invalid_argument");
  assertEquals(await report(clientId, 1, 2, 9), "invalid_argument");
  // A restored reader begins far on, and needs only one split before.
  const request = cluster.openRequest(datasetId, { ...ORDERED, jobName: "job" });
  const restored = await joinAsClient(cluster, { ...request, startAt: 8, behind: [0] });
  for (const at of [1, 7, 8]) assertEquals(await report(restored.clientId, at), "invalid_argument");
});

Deno.test("a consumer is refused that reports splits which nobody was handed", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("a", tableOf(10));
  const job = { ...ORDERED, jobName: "job", numConsumers: 2, consumerIndex: 0 };
  const { clientId } = await cluster.open(await cluster.dataset(), job);
  const [taskId] = await worker.heartbeat();
  for (const number of [1, 2]) {
    await cluster.ask("getSplit", { taskId: taskId!, number, source: 0, repetition: 0 });
  }
  const request = (...done: number[]) =>
    ({ clientId, report: { kind: "ordered", mark: 0, done } }) as const;
  await cluster.ask("clientHeartbeat", request(1));
  assertEquals((await cluster.refused("clientHeartbeat", request(1, 2))).code, "invalid_argument");
});

Deno.test("a reader refused for a former one is told that it may have died, and until when it counts", async () => {
  await using cluster = await TestCluster.start();
  const dataset = await cluster.dataset();
  await cluster.open(dataset, { ...ORDERED, jobName: "job" });
  const error = await assertRejects(
    () => cluster.open(dataset, { ...ORDERED, jobName: "job" }),
    LeatError,
  );
  for (const word of ["has died", "clientGraceMs", "clientTimeoutMs", "runId", "jobName"]) {
    assertEquals(error.message.includes(word), true, word);
  }
});
