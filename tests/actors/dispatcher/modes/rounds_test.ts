/**
 * Coordinated reads: which task serves which round, while tasks and consumers come and go, which
 * rounds of a lost task are kept, and what people are told of it.
 *
 * @module
 */
import { RoundSchedules } from "../../../../actors/client/readers/round_schedules.ts";
import type { Journal } from "../../../../actors/dispatcher/journal/journal.ts";
import type { RoundsPosition } from "../../../../actors/dispatcher/protocol_heartbeats.ts";
import type { RoundSchedule } from "../../../../actors/dispatcher/protocol_schedules.ts";
import { encodeMessage } from "../../../../transport/codec.ts";
import { assert, assertEquals, assertNotEquals } from "../../../assert.ts";
import { roundsNews, TestCluster, type TestWorker } from "../lib.ts";
import { Looks } from "../looks.ts";

const COORDINATED = { jobName: "rounds", processingMode: "OFF", numConsumers: 2 } as const;

/** A consumer that keeps to the protocol and reads a task by noting which it was. */
class Consumer {
  readonly read: number[] = [];
  /** Rounds that it has read and its training loop was not given. */
  held: number[] = [];
  readonly clientId: number;
  readonly #cluster: TestCluster;
  readonly #dead: ReadonlySet<number>;
  schedules: readonly RoundSchedule[] = [];
  nextRound: number | undefined;
  proposed: RoundSchedule | undefined;
  lost = false;
  /** Tasks that schedules named. */
  tasksTold = 0;
  readonly #known = new RoundSchedules();

  constructor(cluster: TestCluster, clientId: number, dead: ReadonlySet<number>) {
    this.#cluster = cluster;
    this.clientId = clientId;
    this.#dead = dead;
  }

  async heartbeat(): Promise<void> {
    const lostTask = this.lost ? this.taskOf(this.nextRound!) : undefined;
    const report = {
      kind: "rounds" as const,
      ...(this.nextRound === undefined ? {} : {
        position: {
          kind: "reading" as const,
          nextRound: this.nextRound,
          deliveredRound: this.held[0] ?? this.nextRound,
        },
      }),
      ...(this.proposed === undefined ? {} : { acceptedSchedule: this.proposed.version }),
      ...this.#known.known,
      heldRounds: this.held,
      ...(lostTask === undefined ? {} : { lostTasks: [{ taskId: lostTask }] }),
    };
    const news = roundsNews(
      await this.#cluster.ask("clientHeartbeat", { clientId: this.clientId, report }),
    );
    const { schedules, proposed } = this.#known.read(news.schedules, news.proposed);
    for (
      const { taskIds = [], added = [], removed = [] } of [
        ...news.schedules,
        ...news.proposed === undefined ? [] : [news.proposed],
      ]
    ) this.tasksTold += taskIds.length + added.length + removed.length;
    this.#known.learn(schedules);
    this.schedules = schedules;
    this.nextRound ??= schedules[0]?.fromRound;
    const acceptable = proposed !== undefined && (this.nextRound ?? 0) <= proposed.fromRound;
    this.proposed = acceptable ? proposed : undefined;
  }

  taskOf(round: number): number | undefined {
    const schedule = this.schedules.findLast(({ fromRound }) => fromRound <= round);
    return schedule?.taskIds[round % schedule.taskIds.length];
  }

  /** Reads the next round if it may and can. */
  step(): boolean {
    if (this.nextRound === undefined) return false;
    if (this.proposed !== undefined && this.nextRound >= this.proposed.fromRound) return false;
    const taskId = this.taskOf(this.nextRound);
    this.lost = taskId !== undefined && this.#dead.has(taskId);
    if (taskId === undefined || this.lost) return false;
    this.read[this.nextRound++] = taskId;
    return true;
  }
}

async function coordinatedCluster(
  workerCount: number,
  wrapJournal = (journal: Journal) => journal,
) {
  const cluster = await TestCluster.start({ clientTimeoutMs: 120_000, wrapJournal });
  const dead = new Set<number>();
  const workers: TestWorker[] = [];
  for (let i = 0; i < workerCount; i++) {
    workers.push(cluster.worker(`worker-${i}`));
    await workers[i]!.heartbeat();
  }
  const datasetId = await cluster.dataset("endless", -1);
  const join = async (consumerIndex: number) => {
    const { clientId } = await cluster.open(datasetId, { ...COORDINATED, consumerIndex });
    return new Consumer(cluster, clientId, dead);
  };
  return { cluster, dead, workers, join };
}

/** Lets all consumers read until each has got to that round, with a heartbeat every few steps. */
async function readUntil(consumers: readonly Consumer[], round: number, stepsPerHeartbeat = 3) {
  for (let heartbeats = 0; heartbeats < 1_000; heartbeats++) {
    for (let step = 0; step < stepsPerHeartbeat; step++) {
      for (const consumer of consumers) if ((consumer.nextRound ?? 0) < round) consumer.step();
    }
    if (consumers.every(({ nextRound = 0 }) => nextRound >= round)) return;
    for (const consumer of consumers) await consumer.heartbeat();
  }
  throw new Error(`stuck at rounds ${consumers.map(({ nextRound }) => nextRound)}`);
}

function positionAt(nextRound: number, deliveredRound: number): RoundsPosition {
  return { kind: "reading", nextRound, deliveredRound };
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

Deno.test("describe says at which round each consumer is, and who waits for whom", async () => {
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

Deno.test("who comes when the others have ended is told the end, whatever was restarted meanwhile", async () => {
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

/** Bytes of schedules that are journaled for each of so many workers that join one by one. */
async function journaledPerWorker(workerCount: number): Promise<number> {
  let bytes = 0;
  const { cluster, workers, join } = await coordinatedCluster(1, (journal) => ({
    append: (record) => {
      if (record.type.startsWith("schedule_")) bytes += encodeMessage(record).byteLength;
      journal.append(record);
    },
    committed: () => journal.committed(),
    close: () => journal.close(),
  }));
  await using _ = cluster;
  const consumers = [await join(0), await join(1)];
  await workers[0]!.heartbeat();
  await readUntil(consumers, 10);
  bytes = 0;
  for (let i = 0; i < workerCount; i++) {
    await cluster.worker(`late-${i}`).heartbeat();
    for (const consumer of consumers) await consumer.heartbeat();
  }
  const perWorker = bytes / workerCount;
  await readUntil(consumers, consumers[0]!.nextRound! + 2 * workerCount + 10);
  const { schedules } = consumers[0]!;
  assertEquals(schedules.at(-1)!.taskIds.length, 1 + workerCount, "all workers serve");
  await cluster.restart();
  for (const consumer of consumers) await consumer.heartbeat();
  assertEquals(consumers[0]!.schedules, schedules, "what was journaled gives the same schedules");
  return perWorker;
}

Deno.test("rounds: a worker that joins a coordinated read takes as many bytes of the journal whether few or many are there", async () => {
  const few = await journaledPerWorker(20);
  const many = await journaledPerWorker(120);
  assert(many < 1.05 * few, `${few} bytes with 20 workers, ${many} with 120`);
});

Deno.test("rounds: a consumer that says which schedules it knows is told each change of their tasks once, and knows what others are told whole", async () => {
  const { cluster, dead, workers, join } = await coordinatedCluster(20);
  await using _ = cluster;
  for (const worker of workers) await worker.heartbeat();
  const consumers = [await join(0), await join(1)];
  for (const worker of workers) await worker.heartbeat();
  await readUntil(consumers, 10);
  const whole = async (clientId: number) =>
    roundsNews(await cluster.ask("clientHeartbeat", { clientId }))
      .schedules as typeof consumers[0]["schedules"];
  const same = async (when: string) => {
    for (const { clientId, schedules } of consumers) {
      assertEquals(schedules, await whole(clientId), when);
    }
  };
  for (const consumer of consumers) consumer.tasksTold = 0;
  const JOINING = 10;
  for (let i = 0; i < JOINING; i++) {
    await cluster.worker(`late-${i}`).heartbeat();
    // Some are proposed and never in force, as more come first.
    for (const consumer of i % 3 === 0 ? consumers : [consumers[0]!]) await consumer.heartbeat();
  }
  await readUntil(consumers, consumers[0]!.nextRound! + 60);
  assertEquals(consumers.map(({ tasksTold }) => tasksTold), [JOINING, JOINING]);
  await same("workers have joined");
  dead.add(consumers[0]!.taskOf(consumers[0]!.nextRound! + 1)!);
  await readUntil(consumers, consumers[0]!.nextRound! + 10);
  await same("one was lost, and its place is taken by others");
  await cluster.restart();
  await cluster.worker("later").heartbeat();
  await readUntil(consumers, consumers[0]!.nextRound! + 60);
  await same("the dispatcher was restarted");
});

Deno.test("rounds: schedules that serve no round are dropped, so that workers which join in one round take no place in all that is kept", async () => {
  const { cluster, workers, join } = await coordinatedCluster(1);
  await using _ = cluster;
  const consumers = [await join(0), await join(1)];
  await workers[0]!.heartbeat();
  await readUntil(consumers, 10);
  const version = () => consumers[1]!.schedules.at(-1)!.version;
  const before = version();
  const JOINING = 10;
  for (let i = 0; i < JOINING; i++) {
    await cluster.worker(`late-${i}`).heartbeat();
    // Nobody reads: what is proposed is accepted, and in force.
    for (let heartbeats = 0; heartbeats < 2; heartbeats++) {
      for (const consumer of consumers) await consumer.heartbeat();
    }
  }
  assertEquals(version(), before + JOINING, "each worker was agreed on by itself");
  const { schedules } = consumers[1]!;
  assertEquals(schedules.at(-1)!.taskIds.length, 1 + JOINING);
  assert(schedules.length < 4, `${schedules.length} schedules are kept`);
  const { nextRound } = consumers[0]!;
  await readUntil(consumers, nextRound! + 40);
  assertEquals(consumers[0]!.read, consumers[1]!.read);
  assertEquals(new Set(consumers[0]!.read.slice(nextRound! + 1)).size, 1 + JOINING);
});

Deno.test("rounds: a heartbeat that brings nothing new is answered without a look at all tasks and consumers", async () => {
  const looksAmong = async (workerCount: number, numConsumers: number) => {
    const { cluster, dead, workers } = await coordinatedCluster(workerCount);
    await using _ = cluster;
    const datasetId = await cluster.dataset("endless", -1);
    const consumers: Consumer[] = [];
    for (let consumerIndex = 0; consumerIndex < numConsumers; consumerIndex++) {
      const options = { ...COORDINATED, jobName: "many", numConsumers, consumerIndex };
      consumers.push(
        new Consumer(cluster, (await cluster.open(datasetId, options)).clientId, dead),
      );
    }
    for (const worker of workers) await worker.heartbeat();
    await readUntil(consumers, 5);
    const { clientId, nextRound } = consumers[0]!;
    const answer = await cluster.ask("clientHeartbeat", { clientId });
    const { taskList = "" } = answer;
    const scheduleInForce = roundsNews(answer).schedules.at(-1)!.version;
    using looks = new Looks();
    await cluster.ask("clientHeartbeat", {
      clientId,
      taskList,
      report: {
        kind: "rounds",
        position: positionAt(nextRound!, nextRound!),
        scheduleInForce,
        knownSchedule: scheduleInForce,
      },
    });
    return looks.count;
  };
  const few = await looksAmong(4, 3);
  assertEquals(await looksAmong(20, 12), few);
});
