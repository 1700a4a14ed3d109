/** What coordinated reads cost as clusters grow. */
import { assert, assertEquals } from "../../../assert.ts";
import { roundsNews, TestCluster } from "../lib.ts";
import { Looks } from "../looks.ts";
import {
  Consumer,
  COORDINATED,
  coordinatedCluster,
  journaledPerWorker,
  positionAt,
  readUntil,
} from "./rounds_cluster.ts";

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

Deno.test("rounds: a description counts the consumers that a job is declared to have, and names the first", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset("endless", -1);
  const numConsumers = 65_536;
  const job = { ...COORDINATED, jobName: "job", numConsumers, consumerIndex: 1 };
  await cluster.open(datasetId, job);
  const { jobs } = await cluster.ask("describe", null);
  const { missing, missingCount, text } = jobs[0]!.iterations[0]!.rounds!;
  assertEquals([missing.slice(0, 3), missingCount], [[0, 2, 3], numConsumers - 1]);
  assertEquals(text, "Missing: consumers 0, 2, 3, 4, 5 and 65530 more of 65536.");
  assert(JSON.stringify(jobs).length < 4_096, "it lists them all");
});
