/**
 * What a job waits for that no worker may serve: said to its clients, and in what describes the
 * cluster.
 */
import { WaitLog } from "../../../../actors/client/wait_log.ts";
import { assert, assertEquals } from "../../../assert.ts";
import { settle, tableOf, TestCluster } from "../lib.ts";
import { Looks } from "../looks.ts";

/** What the client is told, and what is described; both are the same. */
async function waitingOf(cluster: TestCluster, clientId: number): Promise<string | undefined> {
  const { starvation } = await cluster.ask("clientHeartbeat", { clientId });
  const { jobs } = await cluster.ask("describe", null);
  const bottleneck = jobs[0]?.iterations[0]?.bottleneck;
  if (starvation !== undefined) assertEquals(bottleneck, { kind: "stuck", text: starvation });
  return starvation;
}

Deno.test("a job whose tags nobody carries says what it waits for and who is there, until one comes", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const { clientId } = await cluster.open(datasetId, { targetTags: ["gpu", "big"] });
  const wanted = 'It waits for a worker with the tags "gpu" and "big" that its trainers may read';
  const remedy = "Start one (leat worker --tag gpu --tag big).";
  assertEquals(
    await waitingOf(cluster, clientId),
    `${wanted}; there is no worker at all. ${remedy}`,
  );
  await cluster.worker("w1").heartbeat();
  const named = cluster.worker("w2");
  named.place = { tags: ["gpu"] };
  await named.heartbeat();
  assertEquals(
    await waitingOf(cluster, clientId),
    `${wanted}; there are "w1" (no tags), "w2" (tags gpu). ${remedy}`,
  );
  const fitting = cluster.worker("w3");
  fitting.place = { tags: ["big", "gpu"] };
  await fitting.heartbeat();
  assertEquals(await waitingOf(cluster, clientId), undefined);
});

Deno.test("a job whose only worker drains says so, until another one comes", async () => {
  await using cluster = await TestCluster.start();
  const { name, ref } = cluster.worker("w1");
  const figures = { atMs: 1, draining: true };
  await cluster.ask("workerHeartbeat", { name, worker: ref, tags: [], tasks: [], figures });
  const { clientId } = await cluster.open(await cluster.dataset());
  await cluster.ask("workerHeartbeat", { name, worker: ref, tags: [], tasks: [], figures });
  assertEquals(
    await waitingOf(cluster, clientId),
    'It waits for a worker that its trainers may read; there are "w1" (draining, no tags). ' +
      "Start one (leat worker).",
  );
  await cluster.worker("w2").heartbeat();
  assertEquals(await waitingOf(cluster, clientId), undefined);
});

Deno.test("a long tag or policy is shortened between characters", async () => {
  const long = `${"x".repeat(59)}\u{1f600}${"x".repeat(300)}`;
  await using cluster = await TestCluster.start({ workers: ["a"] });
  const datasetId = await cluster.dataset();
  const { clientId } = await cluster.open(datasetId, { targetTags: [long.slice(0, 100)] });
  const { starvation } = await cluster.ask("clientHeartbeat", { clientId });
  assert(starvation?.isWellFormed());
  const policy = { name: "own", shard: long };
  await cluster.open(datasetId, { processingMode: "CUSTOM", policy });
  const { jobs } = await cluster.ask("describe", null);
  for (const { parameters } of jobs) assert(parameters.policy?.shard.isWellFormed() ?? true);
});

Deno.test("the command for a missing worker quotes tags for the shell", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const targetTags = ["it's big; true", "-x"];
  const { clientId } = await cluster.open(datasetId, { targetTags });
  const said = await waitingOf(cluster, clientId);
  assert(said?.endsWith("Start one (leat worker --tag 'it'\\''s big; true' --tag=-x)."), said);
});

Deno.test("a coordinated read says which consumers are missing, and where they are instead, until all have come", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("w1");
  await worker.heartbeat();
  const datasetId = await cluster.dataset("endless", -1);
  const open = (consumerIndex: number, repetition = 0) =>
    cluster.open(datasetId, {
      ...{ processingMode: "OFF", jobName: "job", numConsumers: 3 },
      ...{ consumerIndex, repetition },
    });
  const { clientId } = await open(1);
  const said = () => waitingOf(cluster, clientId);
  assertEquals(
    await said(),
    "Its consumers begin together, and consumers 0, 2 of 3 have not joined.",
  );
  const early = await open(0, 2);
  assertEquals(
    await said(),
    "Its consumers begin together, and consumers 0, 2 of 3 have not joined. Consumer 0 is in repetition " +
      "2, and not in this one, 0.",
  );
  await cluster.ask("releaseClient", { clientId: early.clientId });
  await open(0);
  assertEquals(await said(), "Its consumers begin together, and consumer 2 of 3 has not joined.");
  const { clientId: last } = await open(2);
  assertEquals(await said(), undefined);
  // It has its task now, and says that it does.
  for (let i = 0; i < 2; i++) await worker.heartbeat();
  await said();
  await cluster.ask("releaseClient", { clientId: last });
  assertEquals(await said(), undefined, "the others go on");
});

Deno.test("a consumer of a DETERMINISTIC job is told which others it waits for once it may read no further", async () => {
  await using cluster = await TestCluster.start({ windowSplits: 4 });
  const worker = cluster.worker("w1", tableOf(10));
  const datasetId = await cluster.dataset();
  const open = (consumerIndex: number, repetition = 0) =>
    cluster.open(datasetId, {
      ...{ processingMode: "DETERMINISTIC", jobName: "job", numConsumers: 2 },
      ...{ ordered: { seed: "0000000000000001", shuffled: false }, consumerIndex, repetition },
    });
  const early = await open(1, 1);
  const { clientId } = await open(0);
  const tasks = await worker.heartbeat();
  await settle();
  const taskId = tasks.at(-1)!;
  const split = (number: number) =>
    cluster.ask("getSplit", { taskId, number, source: 0, repetition: 0 });
  const said = async () => {
    const { starvation } = await cluster.ask("clientHeartbeat", { clientId });
    const { jobs } = await cluster.ask("describe", null);
    const { bottleneck } = jobs[0]!.iterations.find(({ repetition }) => repetition === 0)!;
    assertEquals(bottleneck.kind === "stuck" ? bottleneck.text : undefined, starvation);
    return starvation;
  };
  for (let number = 1; number <= 3; number++) await split(number);
  assertEquals(await said(), undefined, "there is more for it");
  await split(4);
  const missing =
    "Consumer 1 of 2 has not joined, and no more splits are assigned before it joins.";
  assertEquals(await said(), `${missing} Consumer 1 is in repetition 1, and not in this one, 0.`);
  await cluster.ask("releaseClient", { clientId: early.clientId });
  assertEquals(await said(), missing);
  await open(1);
  assertEquals(await said(), undefined, "it reads what the other one has");
});

Deno.test('a "local" job whose process has no worker says so', async () => {
  await using cluster = await TestCluster.start();
  await cluster.worker("w1").heartbeat();
  const { clientId } = await cluster.open(await cluster.dataset(), { targetWorkers: "local" });
  assertEquals(
    await waitingOf(cluster, clientId),
    'It waits for a worker in the trainer\'s own process (targetWorkers: "local"); there are "w1" ' +
      "(no tags). Start one there (serveWorker({ local: true })).",
  );
});

Deno.test('a client of a "local" job says so also while others of the job are served', async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("w1");
  worker.place = { tags: ["gpu"], process: "process a" };
  await worker.heartbeat();
  const datasetId = await cluster.dataset();
  const job = { jobName: "j", targetWorkers: "local", targetTags: ["gpu"] } as const;
  const served = await cluster.open(datasetId, { ...job, process: "process a" });
  const other = await cluster.open(datasetId, { ...job, process: "process b" });
  const heard = ({ clientId }: { clientId: number }) =>
    cluster.ask("clientHeartbeat", { clientId });
  assertEquals((await heard(served)).starvation, undefined);
  assertEquals(
    (await heard(other)).starvation,
    'It waits for a worker with the tag "gpu" in the trainer\'s own process (targetWorkers: "local"); ' +
      'there are "w1" (tags gpu). Start one there (serveWorker({ local: true, tags: ["gpu"] })).',
  );
});

Deno.test("WaitLog says what is waited for after a while, then seldom, and anew when it is over", () => {
  const log = new WaitLog();
  const said = (atMs: number, starvation?: string) => log.due(starvation, atMs);
  assertEquals([0, 1_000, 4_999].map((atMs) => said(atMs, "x")), [undefined, undefined, undefined]);
  assertEquals([5_000, 6_000, 64_999, 65_000].map((atMs) => said(atMs, "x")), [
    ...["x", undefined, undefined, "x"],
  ]);
  assertEquals(said(66_000), undefined);
  assertEquals([67_000, 72_000].map((atMs) => said(atMs, "y")), [undefined, "y"]);
});

Deno.test("what a job waits for is found without a look at each worker that may not serve it", async () => {
  const OPTIONS = [{ targetTags: ["gpu"] }, { targetWorkers: "local" }] as const;
  for (const options of OPTIONS) {
    await using cluster = await TestCluster.start();
    const { clientId } = await cluster.open(await cluster.dataset(), options);
    const looksWith = async (from: number, to: number) => {
      for (let i = from; i < to; i++) await cluster.worker(`w${i}`).heartbeat();
      using looks = new Looks();
      const { starvation } = await cluster.ask("clientHeartbeat", { clientId });
      return { looks: looks.count, waits: starvation?.includes(" more. Start") };
    };
    const few = await looksWith(0, 10);
    assertEquals(await looksWith(10, 60), few);
    assertEquals(few.waits, true);
  }
});
