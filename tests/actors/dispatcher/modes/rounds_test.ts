/**
 * Coordinated reads: which task serves which round, while tasks and consumers come and go, which
 * rounds of a lost task are kept, and what people are told of it.
 */
import type { RoundsPosition } from "../../../../actors/dispatcher/protocol_heartbeats.ts";
import { ROUNDS_AHEAD_MAX } from "../../../../actors/worker/protocol.ts";
import { assert, assertEquals, assertNotEquals } from "../../../assert.ts";
import { roundsNews, type TestCluster } from "../lib.ts";
import {
  type Consumer,
  COORDINATED,
  coordinatedCluster,
  positionAt,
  readUntil,
} from "./rounds_cluster.ts";

/** Whether a consumer's next life began beyond the rounds that it had requested. */
function assertBeganFrom({ read }: Consumer, had: number): void {
  const first = read.findIndex((taskId) => taskId !== undefined);
  assert(first >= had, `began at round ${first}, and ${had - 1} had been requested`);
}

/** A cluster of one worker with two consumers, which have both read ten rounds. */
async function twoAtRound10() {
  const { cluster, workers, join } = await coordinatedCluster(1);
  const [a, b] = [await join(0), await join(1)];
  for (const worker of workers) await worker.heartbeat();
  await readUntil([a, b], 10);
  return { cluster, workers, join, a, b };
}

Deno.test("rounds begin when all consumers are there and a task can be read, each round with one task", async () => {
  const { cluster, workers, join } = await coordinatedCluster(2);
  await using _ = cluster;
  const a = await join(0);
  await a.heartbeat();
  for (const worker of workers) await worker.heartbeat();
  await a.heartbeat();
  assertEquals(a.schedules, [], "one consumer is missing");
  const b = await join(1);
  await readUntil([a, b], 10);
  assertEquals(a.read, b.read);
  assertEquals(new Set(a.read).size, 2);
  assertEquals(a.schedules, [{ version: 1, fromRound: 0, taskIds: [1, 2] }]);
});

Deno.test("a new task serves from a round that no consumer had requested, whatever their heartbeats", async () => {
  for (const stepsPerHeartbeat of [1, 5, 40]) {
    const { cluster, workers, join } = await coordinatedCluster(1);
    await using _ = cluster;
    const consumers = [await join(0), await join(1)];
    await workers[0]!.heartbeat();
    await readUntil(consumers, 10, stepsPerHeartbeat);
    const late = cluster.worker("late");
    await late.heartbeat();
    await late.heartbeat();
    await readUntil(consumers, 100 + 20 * stepsPerHeartbeat, stepsPerHeartbeat);
    assertEquals(consumers[0]!.read, consumers[1]!.read);
    assertEquals(new Set(consumers[0]!.read.slice(-2)).size, 2);
  }
});

Deno.test("a consumer that accepted reads nothing of the proposed rounds before all have accepted", async () => {
  const { cluster, workers, join } = await coordinatedCluster(1);
  await using _ = cluster;
  const [a, b] = [await join(0), await join(1)];
  await workers[0]!.heartbeat();
  await readUntil([a, b], 10);
  const late = cluster.worker("late");
  await late.heartbeat();
  await late.heartbeat();
  for (let i = 0; i < 50; i++) {
    await a.heartbeat();
    a.step();
  }
  const held = a.nextRound!;
  assertEquals(held, a.proposed?.fromRound);
  await cluster.restart();
  await a.heartbeat();
  assertEquals([a.step(), a.nextRound], [false, held], "the promise outlives the dispatcher");
  await readUntil([a, b], 100);
  assertEquals(a.read, b.read);
});

Deno.test("of the rounds of a lost task those are kept that all consumers hold, and another task serves the others", async () => {
  const { cluster, dead, workers, join } = await coordinatedCluster(2);
  await using _ = cluster;
  const [a, b] = [await join(0), await join(1)];
  for (const worker of workers) await worker.heartbeat();
  await readUntil([a, b], 10);
  const lostTask = a.taskOf(10)!;
  // Both hold round 10 and one has given it on; round 12 is held by one of them, and 11 is another's.
  for (let round = 10; round < 13; round++) a.step();
  for (let round = 10; round < 12; round++) b.step();
  assertEquals([a.read[12], b.read[10]], [lostTask, lostTask]);
  Object.assign(a, { held: [11, 12] });
  Object.assign(b, { held: [10, 11] });
  dead.add(lostTask);
  await readUntil([a, b], 60);
  const agreed = a.schedules.at(-1)!;
  assertEquals(agreed.kept, [11, 10]);
  assertEquals(a.schedules, b.schedules);
  assertNotEquals(a.taskOf(12), lostTask);
  assertEquals(a.read.slice(13), b.read.slice(13));
  assert(!b.read.slice(12).includes(lostTask));
});

Deno.test("what a consumer holds when it accepts a schedule counts, and outlives the dispatcher", async () => {
  const { cluster, dead, workers, join } = await coordinatedCluster(2);
  await using _ = cluster;
  const [a, b] = [await join(0), await join(1)];
  for (const worker of workers) await worker.heartbeat();
  await readUntil([a, b], 10);
  dead.add(a.taskOf(10)!);
  Object.assign(a, { held: [8], lost: true });
  Object.assign(b, { held: [8], lost: true });
  for (const consumer of [a, b]) consumer.step();
  for (const consumer of [a, b, a]) await consumer.heartbeat();
  await cluster.restart();
  a.held = [];
  await a.heartbeat();
  await b.heartbeat();
  await b.heartbeat();
  assertEquals(b.schedules.at(-1)!.kept, [8]);
});

Deno.test("with the last task over and none to come, all consumers are given an empty schedule to end at", async () => {
  const { cluster, dead, workers: [one, two], join } = await coordinatedCluster(2);
  await using _ = cluster;
  const [a, b] = [await join(0), await join(1)];
  for (const worker of [one!, two!]) await worker.heartbeat();
  await readUntil([a, b], 10);
  for (const worker of [one!, two!]) {
    for (const taskId of worker.tasks.keys()) worker.complete(taskId);
    await worker.heartbeat();
  }
  await readUntil([a, b], 20);
  assertEquals(a.schedules.at(-1)!.taskIds.length, 2, "what has completed is still read");
  dead.add(a.schedules.at(-1)!.taskIds[0]!).add(a.schedules.at(-1)!.taskIds[1]!);
  for (const { name, ref: worker } of [one!, two!]) {
    await cluster.ask("workerHeartbeat", { name, worker, tags: [], tasks: [], leaving: true });
  }
  for (let i = 0; i < 4; i++) for (const consumer of [a, b]) await consumer.heartbeat();
  assertEquals([a.schedules.at(-1)!.taskIds, a.schedules], [[], b.schedules]);
});

Deno.test("a consumer is told who takes no part: those that are gone, and before their first round those that came later", async () => {
  const { cluster, workers, join } = await coordinatedCluster(1);
  await using _ = cluster;
  const [a, b] = [await join(0), await join(1)];
  await workers[0]!.heartbeat();
  await readUntil([a, b], 10);
  const absent = async () =>
    roundsNews(await cluster.ask("clientHeartbeat", { clientId: a.clientId })).absent;
  assertEquals(await absent(), []);
  await cluster.ask("releaseClient", { clientId: b.clientId });
  assertEquals(await absent(), [{ consumerIndex: 1, beforeRound: null }]);
  const again = await join(1);
  assertEquals(await absent(), [{ consumerIndex: 1, beforeRound: null }]);
  await readUntil([a, again], 30);
  const beforeRound = again.read.findIndex((taskId) => taskId !== undefined);
  assertEquals(await absent(), [{ consumerIndex: 1, beforeRound }]);
  assertEquals(
    roundsNews(await cluster.ask("clientHeartbeat", { clientId: again.clientId })).absent,
    [],
  );
});

Deno.test("describe shows the round of each consumer, and which consumers wait for which", async () => {
  const { cluster, workers, join } = await coordinatedCluster(1);
  await using _ = cluster;
  const [a, b] = [await join(0), await join(1)];
  await workers[0]!.heartbeat();
  await readUntil([a, b], 10);
  const said = async () => {
    const { jobs: [job] } = await cluster.ask("describe", null);
    const { rounds, readers } = job!.iterations[0]!;
    return { ...rounds!, places: readers.map(({ position }) => position) };
  };
  const say = (
    clientId: number,
    deliveredRound: number,
    waitsFor: "consumers" | "loop" | "worker",
  ) =>
    cluster.ask("clientHeartbeat", {
      clientId,
      report: {
        kind: "rounds",
        position: { kind: "reading", nextRound: 10, deliveredRound, waitsFor },
      },
    });
  await say(a.clientId, 9, "consumers");
  await say(b.clientId, 7, "loop");
  const { text, lowest, highest, places } = await said();
  assertEquals([lowest, highest], [7, 9]);
  assertEquals(places, [{ round: 9, waitsFor: "consumers" }, { round: 7, waitsFor: "loop" }]);
  assertEquals(text, "For round 9 consumer 0 waits for consumer 1, which is at round 7.");
  await say(b.clientId, 9, "worker");
  assertEquals(
    (await said()).text,
    'For round 9 consumer 1 waits for worker "worker-0". ' +
      "For round 9 consumer 0 waits for consumer 1, which is at round 9, too.",
  );
  const late = cluster.worker("late");
  await late.heartbeat();
  await late.heartbeat();
  await a.heartbeat();
  await a.heartbeat();
  const { agreeing, text: agreeingText } = await said();
  assertEquals(agreeing, { fromRound: 11, awaited: [1] });
  assert(
    agreeingText.startsWith("The schedule from round 11 on waits for consumer 1 to agree."),
  );
  await cluster.ask("releaseClient", { clientId: b.clientId });
  assertEquals((await said()).missing, [1]);
});

Deno.test("a task that one consumer cannot reach for long is replaced for all", async () => {
  const { cluster, dead, workers, join } = await coordinatedCluster(2);
  await using _ = cluster;
  const [a, b] = [await join(0), await join(1)];
  for (const worker of workers) await worker.heartbeat();
  await readUntil([a, b], 10);
  const lostTask = b.taskOf(10)!;
  b.lost = true;
  await b.heartbeat();
  await a.heartbeat();
  assertEquals((await cluster.ask("clientHeartbeat", { clientId: a.clientId })).tasks.length, 2);
  await cluster.world.advance(10_000);
  await b.heartbeat();
  const { tasks } = await cluster.ask("clientHeartbeat", { clientId: a.clientId });
  assertEquals(tasks.some(({ taskId }) => taskId === lostTask), false);
  dead.add(lostTask);
  await readUntil([a, b], 40);
  assertEquals(a.read.slice(10), b.read.slice(10));
});

Deno.test("consumers go on when a worker is lost, and wait for one when the last is lost", async () => {
  const { cluster, dead, workers: [worker], join } = await coordinatedCluster(1);
  await using _ = cluster;
  const [a, b] = [await join(0), await join(1)];
  await worker!.heartbeat();
  await readUntil([a, b], 10);
  dead.add(a.taskOf(10)!);
  for (let i = 0; i < 5; i++) {
    for (const consumer of [a, b]) consumer.step(), await consumer.heartbeat();
  }
  assertEquals([a.nextRound, b.nextRound], [10, 10]);
  const next = await worker!.reborn();
  await next.heartbeat();
  await next.heartbeat();
  await readUntil([a, b], 30);
  assertEquals(a.read, b.read);
});

Deno.test("a consumer index is held while its client lives; a restarted consumer begins where the others are", async () => {
  const { cluster, workers, join } = await coordinatedCluster(2);
  await using _ = cluster;
  const [a, b] = [await join(0), await join(1)];
  for (const worker of workers) await worker.heartbeat();
  await readUntil([a, b], 10);
  const request = cluster.openRequest("1", { ...COORDINATED, consumerIndex: 1 });
  assertEquals((await cluster.refused("openIteration", request)).code, "failed_precondition");
  await cluster.ask("releaseClient", { clientId: b.clientId });
  const again = await join(1);
  await readUntil([a, again], 40);
  const first = again.read.findIndex((taskId) => taskId !== undefined);
  assert(first >= 10, `began at round ${first}`);
  assertEquals(a.read.slice(first), again.read.slice(first));
});

Deno.test("a restarted consumer begins beyond all that its earlier life had requested since its last heartbeat", async () => {
  const { cluster, join, a, b } = await twoAtRound10();
  await using _ = cluster;
  const nextRound = b.nextRound! + 40;
  await cluster.ask("releaseClient", { clientId: b.clientId, nextRound });
  const again = await join(1);
  await readUntil([a, again], nextRound + 20);
  const first = again.read.findIndex((taskId) => taskId !== undefined);
  assert(first >= nextRound, `began at round ${first}, and ${nextRound - 1} had been requested`);
});

/** Lets all clients and workers time out but those that are given. */
async function timeOut(
  { world }: TestCluster,
  others: readonly { heartbeat(): Promise<unknown> }[],
): Promise<void> {
  for (let ms = 0; ms < 150_000; ms += 30_000) {
    await world.advance(30_000);
    for (const other of others) await other.heartbeat();
  }
}

Deno.test("a restarted consumer begins at no round that its earlier life may have had when it crashed", async () => {
  for (const restarts of [false, true]) {
    const { cluster, workers, join, a, b } = await twoAtRound10();
    await using _ = cluster;
    for (const consumer of [a, b]) await consumer.heartbeat();
    // It reads ahead of the other, and tells nobody.
    for (let round = 0; round < ROUNDS_AHEAD_MAX; round++) b.step();
    const had = b.nextRound!;
    if (restarts) await cluster.restart();
    await timeOut(cluster, [a, ...workers]);
    const again = await join(1);
    await readUntil([a, again], had + 100, 1);
    assertBeganFrom(again, had);
  }
});

Deno.test("a consumer that crashes before the others have come to its first round restarts beyond what it had", async () => {
  for (const restarts of [false, true]) {
    const { cluster, workers, join, a, b } = await twoAtRound10();
    await using _ = cluster;
    for (const consumer of [a, b]) await consumer.heartbeat();
    await timeOut(cluster, [a, ...workers]);
    /** A new life of the consumer, which the other waits for. */
    const rejoin = async () => {
      const consumer = await join(1);
      for (let i = 0; consumer.nextRound === undefined; i++) {
        assert(i < 10, "it got no first round");
        for (const each of [a, consumer]) await each.heartbeat();
      }
      return consumer;
    };
    const second = await rejoin();
    assert(second.nextRound! > a.nextRound!, "the other has come to its first round");
    // It reads ahead from its first round, and tells nobody.
    for (let round = 0; round < ROUNDS_AHEAD_MAX; round++) second.step();
    const had = second.nextRound!;
    if (restarts) await cluster.restart();
    await timeOut(cluster, [a, ...workers]);
    const { nextRound: first } = await rejoin();
    assert(first! >= had, `began at round ${first}, and ${had - 1} had been requested`);
  }
});

Deno.test("a proposal from before a consumer crashed is no beginning for its next life", async () => {
  const { cluster, workers, join, a, b } = await twoAtRound10();
  await using _ = cluster;
  for (const consumer of [a, b]) await consumer.heartbeat();
  const late = cluster.worker("late");
  for (let i = 0; i < 2; i++) await late.heartbeat();
  await a.heartbeat();
  await a.heartbeat();
  for (let round = 0; round < ROUNDS_AHEAD_MAX; round++) b.step();
  const had = b.nextRound!;
  assert(had > a.proposed!.fromRound, "it has not heard of the proposal that the other accepted");
  await timeOut(cluster, [a, late, ...workers]);
  const again = await join(1);
  await readUntil([a, again], had + 100, 1);
  assertBeganFrom(again, had);
});

Deno.test("a schedule that the others accepted after a consumer crashed is a bound for its next life", async () => {
  const { cluster, workers, join, a, b } = await twoAtRound10();
  await using _ = cluster;
  for (const consumer of [a, b]) await consumer.heartbeat();
  for (let round = 0; round < ROUNDS_AHEAD_MAX; round++) b.step();
  const had = b.nextRound!;
  await timeOut(cluster, [a, ...workers]);
  const late = cluster.worker("late");
  for (let i = 0; i < 4; i++) for (const each of [late, a]) await each.heartbeat();
  assert(a.proposed === undefined, "the other has accepted the schedule with the late worker");
  assert(a.nextRound! < had, "the other has not come to the rounds that it had");
  const again = await join(1);
  await readUntil([a, again], had + 100, 1);
  assertBeganFrom(again, had);
});

Deno.test("consumers that all come anew begin together beyond every earlier round", async () => {
  const { cluster, workers, join } = await coordinatedCluster(2);
  await using _ = cluster;
  const old = [await join(0), await join(1)];
  for (const worker of workers) await worker.heartbeat();
  await readUntil(old, 50);
  await cluster.restart();
  await cluster.world.advance(121_000);
  for (const worker of workers) await worker.heartbeat();
  for (const worker of workers) await worker.heartbeat();
  const [a, b] = [await join(1), await join(0)];
  await a.heartbeat();
  await b.heartbeat();
  const first = a.nextRound!;
  assert(first > 50 && first === b.nextRound, `${first} and ${b.nextRound}`);
  await readUntil([a, b], first + 20);
  assertEquals(a.read.slice(first), b.read.slice(first));
});

Deno.test("a consumer that joins after the others have ended gets the end, even after a restart", async () => {
  const { cluster, workers, join } = await coordinatedCluster(1);
  await using _ = cluster;
  const [a, b] = [await join(0), await join(1)];
  await workers[0]!.heartbeat();
  await readUntil([a, b], 10);
  const endOf = async ({ clientId }: Consumer, report: { position?: RoundsPosition }) =>
    roundsNews(
      await cluster.ask("clientHeartbeat", { clientId, report: { kind: "rounds", ...report } }),
    ).endRound;
  const reading = positionAt(12, 9);
  assertEquals(await endOf(b, { position: reading }), undefined);
  assertEquals(await endOf(a, { position: { ...reading, kind: "ended" } }), 9);
  assertEquals(await endOf(b, { position: reading }), 9, "to all, whoever has said it");
  await cluster.ask("releaseClient", { clientId: a.clientId });
  const again = await join(0);
  assertEquals(await endOf(again, {}), 9, "beside who has not left yet");
  for (const { clientId } of [again, b]) await cluster.ask("releaseClient", { clientId });
  await cluster.restart();
  assertEquals(await endOf(await join(1), {}), 9, "alone, told by a dispatcher that was restarted");
});

Deno.test("rounds beyond what can be counted are refused, and harm no other consumer", async () => {
  const { cluster, workers: [worker], join } = await coordinatedCluster(1);
  await using _ = cluster;
  const consumers = [await join(0), await join(1)] as const;
  await worker!.heartbeat();
  await readUntil(consumers, 5);
  const [{ clientId }] = consumers;
  const round = Number.MAX_SAFE_INTEGER;
  const wrong = [
    { position: positionAt(round, 0) },
    { position: positionAt(0, round) },
    { heldRounds: [3, round] },
  ];
  for (const report of wrong) {
    const { code, message } = await cluster.refused("clientHeartbeat", {
      clientId,
      report: { kind: "rounds", ...report },
    });
    assertEquals([code, message.includes(`round ${round}`)], ["invalid_argument", true]);
  }
  const release = await cluster.refused("releaseClient", { clientId, nextRound: round });
  assertEquals(release.code, "invalid_argument");
  await cluster.worker("late").heartbeat();
  await readUntil(consumers, 20);
});

Deno.test("a consumer that has left holds up no schedule", async () => {
  const { cluster, workers, join } = await coordinatedCluster(1);
  await using _ = cluster;
  const [a, b] = [await join(0), await join(1)];
  await workers[0]!.heartbeat();
  await readUntil([a, b], 10);
  const late = cluster.worker("late");
  await late.heartbeat();
  await late.heartbeat();
  for (let i = 0; i < 10; i++) {
    await a.heartbeat();
    a.step();
  }
  const held = a.nextRound!;
  await cluster.ask("releaseClient", { clientId: b.clientId });
  await readUntil([a], held + 10);
  assertEquals(new Set(a.read.slice(held)).size, 2);
});
