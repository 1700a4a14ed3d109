/** Figures in heartbeats, and what the dispatcher makes of them: by a clock that moves when told to. */

import { costOf } from "../../../../core/cost.ts";
import { noReport } from "../../../lib/no_figures.ts";
import { assertAlmostEquals, assertEquals, assertMatch } from "../../../assert.ts";
import { settle, TestCluster, workIn } from "../lib.ts";
import { iterationOf, report, running, say } from "./reports.ts";

Deno.test("a report of a time that is no number is dropped, and those after it count", async () => {
  for (const wrong of [Infinity, NaN]) {
    await using cluster = await TestCluster.start();
    const { workers: [worker], taskIds: [taskId = 0], clientId } = await running(cluster, ["w"]);
    await report(cluster, worker!, { atMs: wrong });
    await say(cluster, clientId, { atMs: wrong });
    await report(cluster, worker!, { atMs: 0 });
    await say(cluster, clientId, { atMs: 0 });
    await report(cluster, worker!, {
      atMs: 2_000,
      stats: { [taskId]: { produced: 20, busyMs: 1_000 } },
    });
    await say(cluster, clientId, { atMs: 2_000, elements: 20, waitingMs: 500, trainingMs: 1_500 });
    const { tasks, readers } = await iterationOf(cluster);
    assertEquals(tasks[0]!.figures?.elementsPerSecond, 10, `${wrong}`);
    assertEquals(readers[0]!.figures?.elements, 20, `${wrong}`);
    const { usage } = (await cluster.ask("describe", null)).jobs[0]!;
    assertEquals(usage.clientHours, 2_000 / 3_600_000, `${wrong}`);
  }
});

Deno.test("rates are exact, by the clock of who reports, whenever the heartbeat arrives", async () => {
  await using cluster = await TestCluster.start();
  const { workers: [worker], taskIds: [taskId = 0], clientId } = await running(cluster, ["w"]);
  await report(cluster, worker!, { atMs: 500_000 });
  await say(cluster, clientId, { atMs: 70, elements: 10 });
  await cluster.world.advance(12_345);
  await report(cluster, worker!, {
    atMs: 504_000,
    stats: { [taskId]: { produced: 40, servedBytes: 8_000, bytesRead: 2_000, busyMs: 1_000 } },
  });
  await say(cluster, clientId, {
    atMs: 2_070,
    elements: 20,
    bytes: 500,
    waitingMs: 1_500,
    trainingMs: 500,
    inFlight: 3,
    bufferedBytes: 70,
  });
  const { tasks, readers } = await iterationOf(cluster);
  const { elementsPerSecond, bytesPerSecond, bytesReadPerSecond, busyShare, processingMs } =
    tasks[0]!.figures!;
  assertEquals(
    { elementsPerSecond, bytesPerSecond, bytesReadPerSecond, busyShare, processingMs },
    {
      elementsPerSecond: 10,
      bytesPerSecond: 2_000,
      bytesReadPerSecond: 500,
      busyShare: 0.25,
      processingMs: 25,
    },
  );
  const { reads: _, ...figures } = readers[0]!.figures!;
  assertEquals(figures, {
    elements: 20,
    bytes: 500,
    skipped: 0,
    waitingMs: 1_500,
    trainingMs: 500,
    decodingMs: 0,
    unpackingMs: 0,
    wireBytes: 0,
    inFlight: 3,
    bufferedBytes: 70,
    elementsPerSecond: 5,
    bytesPerSecond: 250,
    offloadRatio: null,
    offloadWorkers: null,
    wireBytesPerSecond: 0,
    waitingShare: 0.75,
    decodingShare: 0,
    unpackingShare: 0,
    targetProcessingMs: 50,
  });
});

Deno.test("a client makes the dispatcher keep no figures of tasks that it does not read", async () => {
  await using cluster = await TestCluster.start();
  const { taskIds: [taskId = 0], clientId } = await running(cluster, ["w", "other"]);
  const figures = { elements: 0, bytes: 0, wireBytes: 0, outstanding: 0, answerMs: 0, heldMs: 0 };
  const reads = Array.from(
    { length: 64 },
    (_, i) => ({ ...figures, taskId: taskId + i, worker: "w" }),
  );
  await say(cluster, clientId, { atMs: 0, reads });
  const [reader] = (await iterationOf(cluster)).readers;
  assertEquals(reader!.figures!.reads.map((read) => read.taskId), [taskId]);
});

Deno.test("describe tells where a reader's time goes, and how it goes with each of its tasks", async () => {
  await using cluster = await TestCluster.start();
  const { taskIds: [taskId = 0], clientId } = await running(cluster, ["w"]);
  const read = {
    taskId,
    worker: "w",
    elements: 0,
    bytes: 0,
    wireBytes: 0,
    outstanding: 2,
    answerMs: 0,
    heldMs: 0,
    roundTripMs: 3,
  };
  await say(cluster, clientId, { atMs: 0, elements: 1, reads: [read] });
  await say(cluster, clientId, {
    atMs: 2_000,
    elements: 21,
    bytes: 8_000,
    wireBytes: 2_000,
    waitingMs: 1_000,
    trainingMs: 500,
    decodingMs: 500,
    unpackingMs: 200,
    reads: [{ ...read, elements: 20, bytes: 8_000, wireBytes: 2_000, answerMs: 400, heldMs: 100 }],
  });
  const figures = (await iterationOf(cluster)).readers[0]!.figures!;
  const { waitingShare, decodingShare, unpackingShare, wireBytesPerSecond, reads } = figures;
  assertEquals(
    { waitingShare, decodingShare, unpackingShare, wireBytesPerSecond },
    { waitingShare: 0.5, decodingShare: 0.25, unpackingShare: 0.1, wireBytesPerSecond: 1_000 },
  );
  assertEquals(reads, [{
    taskId,
    worker: "w",
    outstanding: 2,
    elements: 20,
    bytes: 8_000,
    wireBytes: 2_000,
    answerMs: 400,
    heldMs: 100,
    elementsPerSecond: 10,
    bytesPerSecond: 4_000,
    wireBytesPerSecond: 1_000,
    meanAnswerMs: 20,
    meanHeldMs: 5,
    roundTripMs: 3,
    slotBytes: null,
  }]);
});

Deno.test("the wait for a first element counts while it lasts, and not against what follows", async () => {
  await using cluster = await TestCluster.start();
  const { clientId } = await running(cluster, ["w"]);
  const waitingShare = async () => (await iterationOf(cluster)).readers[0]!.figures!.waitingShare;
  await say(cluster, clientId, { atMs: 0 });
  await say(cluster, clientId, { atMs: 5_000, waitingMs: 5_000 });
  assertEquals(await waitingShare(), 1);
  await say(cluster, clientId, { atMs: 6_000, elements: 1, waitingMs: 6_000 });
  await say(cluster, clientId, { atMs: 7_000, elements: 9, waitingMs: 6_200, trainingMs: 800 });
  assertEquals(await waitingShare(), 0.2);
});

Deno.test("the last figures of a released client count for the client of the next epoch", async () => {
  await using cluster = await TestCluster.start();
  const { clientId } = await running(cluster, ["w"]);
  await say(cluster, clientId, { atMs: 0, elements: 1 });
  await cluster.world.advance(500);
  const spent = { elements: 6, waitingMs: 400, trainingMs: 100 };
  await cluster.ask("releaseClient", {
    clientId,
    figures: { ...noReport("client"), ...spent, atMs: 500 },
  });
  const options = { jobName: "job", repetition: 1 };
  const next = await cluster.open(await cluster.dataset(), options);
  await say(cluster, next.clientId, { atMs: 500 });
  const [, { readers = [] } = {}] = (await cluster.ask("describe", null)).jobs[0]!.iterations;
  const { waitingShare, targetProcessingMs } = readers[0]!.figures!;
  assertEquals([waitingShare, targetProcessingMs], [0.8, 20]);
});

Deno.test("a heartbeat that is heard twice counts once", async () => {
  await using cluster = await TestCluster.start();
  const { workers: [worker], taskIds: [taskId = 0], clientId } = await running(cluster, ["w"]);
  const process = { cpuSeconds: 3_600, memoryBytes: 1e9, shared: false };
  await report(cluster, worker!, { atMs: 0, process: { ...process, cpuSeconds: 0 } });
  for (let times = 0; times < 3; times++) {
    await report(cluster, worker!, { atMs: 1_000, process, stats: { [taskId]: { busyMs: 900 } } });
    await say(cluster, clientId, { atMs: 1_000 * 60 * 60 });
  }
  const [job] = (await cluster.ask("describe", null)).jobs;
  assertEquals(job!.usage.workerCpuHours, 1);
  assertEquals(job!.usage.clientHours, 0, "counted from the first report on");
});

Deno.test("figures are not journaled: a dispatcher that starts again has none", async () => {
  await using cluster = await TestCluster.start();
  const { workers: [worker], taskIds: [taskId = 0], clientId } = await running(cluster, ["w"]);
  // An operation that is journaled, after which the journal stays as it is.
  await settle();
  const sizeBytes = () => Deno.statSync(`${cluster.journalPath}-wal`).size;
  const beforeBytes = sizeBytes();
  for (const atMs of [1_000, 2_000]) {
    const stats = { [taskId]: { produced: atMs, busyMs: atMs } };
    const process = { cpuSeconds: atMs, memoryBytes: 1, shared: false };
    await report(cluster, worker!, { atMs, process, stats });
    await say(cluster, clientId, { atMs, elements: atMs, trainingMs: atMs });
  }
  assertEquals(sizeBytes(), beforeBytes, "nothing was written");
  const { tasks, readers } = await iterationOf(cluster);
  assertEquals([tasks[0]!.figures?.produced, readers[0]!.figures?.elements], [2_000, 2_000]);
  await cluster.restart();
  const later = await cluster.ask("describe", null);
  const [job] = later.jobs;
  assertEquals(job!.iterations[0]!.tasks[0]!.figures, null);
  assertEquals(job!.iterations[0]!.readers[0]!.figures, null);
  assertEquals(later.workers[0]!.figures, null);
  assertEquals(job!.usage.workerCpuHours, null);
  assertEquals(job!.usage.workerBusyHours, 0);
});

Deno.test("what a worker uses is divided among its jobs by their pipelines' work", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("w");
  await worker.heartbeat();
  for (const jobName of ["a", "b"]) await cluster.open(await cluster.dataset(), { jobName });
  const [a = 0, b = 0] = await worker.heartbeat();
  const use = (cpuSeconds: number) => ({ cpuSeconds, memoryBytes: 4e9, shared: false });
  await report(cluster, worker, { atMs: 0, process: use(0) });
  await report(cluster, worker, {
    atMs: 3_600_000,
    process: use(7_200),
    stats: { [a]: { busyMs: 3_000_000 }, [b]: { busyMs: 1_000_000 } },
  });
  const usages = (await cluster.ask("describe", null)).jobs.map(({ usage }) => usage);
  assertEquals(usages.map(({ workerCpuHours }) => workerCpuHours), [1.5, 0.5]);
  assertEquals(usages.map(({ workerMemoryGBHours }) => workerMemoryGBHours), [2, 2]);
  const { workers } = costOf({
    jobSeconds: 3_600,
    workers: 1,
    workerCores: 1.5,
    workerMemoryGB: 2,
    trainers: 0,
    trainerCores: 0,
    trainerMemoryGB: 0,
    acceleratorsPerTrainer: 0,
  });
  assertAlmostEquals(usages[0]!.workersDollars!, workers, 1e-12);
});

Deno.test("the CPU time of a process that a worker shares is nobody's", async () => {
  await using cluster = await TestCluster.start();
  const { workers: [worker], taskIds: [taskId = 0] } = await running(cluster, ["w"]);
  for (const atMs of [0, 3_600_000]) {
    const process = { cpuSeconds: atMs, memoryBytes: 1e9, shared: true };
    await report(cluster, worker!, { atMs, process, stats: { [taskId]: { busyMs: atMs } } });
  }
  const { jobs: [job], workers: [described] } = await cluster.ask("describe", null);
  const { workerCpuHours, workerMemoryGBHours, workersDollars, workerBusyHours } = job!.usage;
  assertEquals(
    { workerCpuHours, workerMemoryGBHours, workersDollars, workerBusyHours },
    { workerCpuHours: null, workerMemoryGBHours: null, workersDollars: null, workerBusyHours: 1 },
  );
  assertEquals(described!.figures?.process?.shared, true);
});

Deno.test("optimalWorkers is what the clients could use over what a worker makes", async () => {
  await using cluster = await TestCluster.start();
  const { workers, taskIds, clientId } = await running(cluster, ["w1", "w2"]);
  const second = await cluster.open(await cluster.dataset(), { jobName: "job" });
  const report2 = async (atMs: number, busyMs: number, produced: number) => {
    for (const [i, worker] of workers.entries()) {
      await report(cluster, worker, { atMs, stats: { [taskIds[i]!]: { busyMs, produced } } });
    }
  };
  assertEquals((await iterationOf(cluster)).optimalWorkers, null);
  await report2(0, 0, 0);
  await report2(2_000, 2_000, 10);
  for (const id of [clientId, second.clientId]) {
    await say(cluster, id, { atMs: 0, elements: 10 });
    await say(cluster, id, { atMs: 2_000, elements: 20, trainingMs: 500, waitingMs: 1_500 });
  }
  const { optimalWorkers, bottleneck } = await iterationOf(cluster);
  // Each client takes 20 elements a second when it does not wait; a worker makes 5.
  assertEquals(optimalWorkers, 8);
  assertEquals(bottleneck.kind, "trainers_wait");
  assertMatch(bottleneck.text, /75 %.*2 of 2 workers busy.*8 would do/);
});

Deno.test("bottleneckOf proposes no more workers once a worker has found no splits left", async () => {
  await using cluster = await TestCluster.start();
  const { workers, taskIds: [first = 0, second = 0], clientId } = await running(cluster, [
    "w1",
    "w2",
  ]);
  const waits = async (atMs: number) => {
    for (const [taskId, worker] of [[first, workers[0]!], [second, workers[1]!]] as const) {
      await report(cluster, worker, {
        atMs,
        stats: { [taskId]: { busyMs: atMs, produced: atMs / 200 } },
      });
    }
    await say(cluster, clientId, {
      ...{ atMs, elements: atMs / 100, trainingMs: atMs / 4, waitingMs: atMs * 3 / 4 },
    });
    return (await iterationOf(cluster)).bottleneck.text;
  };
  await waits(2_000);
  assertMatch(await waits(4_000), /2 of 2 workers busy\. About 8 would do/);
  const { total } = (await iterationOf(cluster)).splits[0]!;
  for (let number = 1; number <= total; number++) {
    await cluster.ask("getSplit", { taskId: first, number, source: 0, repetition: 0 });
  }
  // Another worker may still begin a later repetition.
  assertMatch(await waits(6_000), /About 8 would do/);
  workers[1]!.complete(second);
  const text = await waits(8_000);
  assertMatch(text, /All splits are assigned, so more workers would get none in this epoch/);
});

Deno.test("workers that rest while elements are ready wait for trainers, and are idle", async () => {
  await using cluster = await TestCluster.start();
  const { workers: [worker], taskIds: [taskId = 0], clientId } = await running(cluster, ["w"]);
  await report(cluster, worker!, { atMs: 0 });
  await report(cluster, worker!, { atMs: 5_000, stats: { [taskId]: { busyMs: 50, produced: 5 } } });
  await say(cluster, clientId, { atMs: 0, elements: 5 });
  await say(cluster, clientId, { atMs: 5_000, elements: 10, trainingMs: 4_990, waitingMs: 10 });
  assertEquals((await iterationOf(cluster)).bottleneck.kind, "workers_wait");
  const [described] = (await cluster.ask("describe", null)).workers;
  assertEquals(described!.activity.state, "idle");
  // It cannot tell a slow client from a slow network.
  assertMatch(described!.activity.reason!, /or the network to them, are slower than this worker/);
});

Deno.test("trainers that wait while workers rest are told to look at the way between them", async () => {
  await using cluster = await TestCluster.start();
  const { workers: [worker], taskIds: [taskId = 0], clientId } = await running(cluster, ["w"]);
  await report(cluster, worker!, { atMs: 0 });
  await report(cluster, worker!, {
    atMs: 5_000,
    stats: { [taskId]: { busyMs: 500, produced: 5 } },
  });
  await say(cluster, clientId, { atMs: 0, elements: 5 });
  await say(cluster, clientId, { atMs: 5_000, elements: 10, trainingMs: 1_000, waitingMs: 4_000 });
  const { kind, text } = (await iterationOf(cluster)).bottleneck;
  assertEquals(kind, "trainers_wait");
  assertMatch(text, /1 of 1 worker is not busy.*network is full, compression.*if not, more req/);
});

Deno.test("bottleneckOf and activityOf judge no shares before the second report", async () => {
  await using cluster = await TestCluster.start();
  const { workers: [worker], taskIds: [taskId = 0], clientId } = await running(cluster, ["w"]);
  const seen = async () => {
    const { workers: [described] } = await cluster.ask("describe", null);
    const { bottleneck, readers, tasks } = await iterationOf(cluster);
    return {
      kind: bottleneck.kind,
      state: described!.activity.state,
      shares: [readers[0]!.figures?.waitingShare, tasks[0]!.figures?.busyShare],
    };
  };
  const unknown = { kind: "unknown", state: "starting" } as const;
  await report(cluster, worker!, { atMs: 0 });
  await say(cluster, clientId, { atMs: 0 });
  assertEquals(await seen(), { ...unknown, shares: [null, null] });
  // The loop has not asked for an element yet.
  await say(cluster, clientId, { atMs: 500 });
  assertEquals(await seen(), { ...unknown, shares: [null, null] });
  await say(cluster, clientId, { atMs: 1_000, waitingMs: 1_000 });
  assertEquals(await seen(), { ...unknown, shares: [1, null] });
  await say(cluster, clientId, { atMs: 2_000, elements: 1, waitingMs: 2_000 });
  await report(cluster, worker!, { atMs: 2_000, stats: { [taskId]: { busyMs: 2_000 } } });
  assertEquals(await seen(), { kind: "unknown", state: "working", shares: [null, 1] });
});

Deno.test("activityOf says starting of a worker whose tasks have produced nothing", async () => {
  await using cluster = await TestCluster.start();
  const { workers: [worker], taskIds: [taskId = 0] } = await running(cluster, ["w"]);
  const stateAt = async (atMs: number, produced: number) => {
    await report(cluster, worker!, { atMs, stats: { [taskId]: { produced } } });
    return (await cluster.ask("describe", null)).workers[0]!.activity.state;
  };
  const states = [await stateAt(0, 0), await stateAt(5_000, 0), await stateAt(10_000, 1)];
  assertEquals([...states, await stateAt(15_000, 1)], ["starting", "starting", "starting", "idle"]);
});

Deno.test("optimalWorkers leaves out the time before a task's first element", async () => {
  await using cluster = await TestCluster.start();
  const { workers: [worker], taskIds: [taskId = 0], clientId } = await running(cluster, ["w"]);
  const reports = async (atMs: number, produced: number) => {
    await report(cluster, worker!, { atMs, stats: { [taskId]: { produced, busyMs: atMs } } });
    await say(cluster, clientId, { atMs, elements: produced, trainingMs: 10 * produced });
  };
  for (const [atMs, produced] of [[0, 0], [5_000, 0], [9_000, 1], [10_000, 26]] as const) {
    await reports(atMs, produced);
  }
  // The client takes 100 elements a second, and the worker produces 25.
  assertEquals((await iterationOf(cluster)).optimalWorkers, 4);
});

Deno.test("a worker without work says why", async () => {
  let answers = true;
  await using cluster = await TestCluster.start({
    dialWorker: () => answers ? Promise.resolve() : Promise.reject(new Error("nobody there")),
  });
  const reasonOf = async (name: string) =>
    (await cluster.ask("describe", null)).workers.find((one) => one.name === name)!.activity.reason;
  const worker = cluster.worker("w");
  await worker.heartbeat();
  assertEquals(await reasonOf("w"), "There is no unfinished job.");
  const { clientId } = await cluster.open(await cluster.dataset(), { jobName: "job" });
  const [taskId = 0] = await worker.heartbeat();
  await cluster.ask("releaseClient", { clientId });
  assertEquals(await reasonOf("w"), "Nobody reads its jobs now.");
  await cluster.open(await cluster.dataset(), { jobName: "job" });
  answers = false;
  await cluster.worker("lost").heartbeat();
  await settle();
  assertMatch((await reasonOf("lost"))!, /reach it at test \(nobody there\).*--advertise/);
  worker.complete(taskId);
  await worker.heartbeat();
  assertEquals(await reasonOf("w"), "It has produced all elements of its tasks.");
});

Deno.test("a worker that has produced everything of a job that is still read says so", async () => {
  await using cluster = await TestCluster.start();
  const { workers: [worker], taskIds: [taskId = 0], clientId } = await running(cluster, ["w"]);
  worker!.complete(taskId);
  await worker!.heartbeat();
  await cluster.worker("late").heartbeat();
  const reasons = async () =>
    (await cluster.ask("describe", null)).workers.map(({ activity }) => activity.reason);
  const { finished, clients } = await iterationOf(cluster);
  assertEquals({ finished, clients }, { finished: true, clients: 1 });
  assertEquals(await reasons(), [
    "It has produced all elements of its tasks.",
    "No unfinished job has a task for it.",
  ]);
  await cluster.ask("releaseClient", { clientId });
  assertEquals(await reasons(), ["There is no unfinished job.", "There is no unfinished job."]);
});

Deno.test("a window's hit rate is the share of what it served that was there when it was asked for", async () => {
  await using cluster = await TestCluster.start();
  const { workers: [worker], taskIds: [taskId = 0] } = await running(cluster, ["w"]);
  const window = {
    ...{ windowBytes: 64, windowBytesMax: 128, elements: 2, trainers: 3 },
    ...{ produced: 10, served: 40, skipped: 2, hits: 30, misses: 10 },
  };
  await report(cluster, worker!, { atMs: 0, sharing: { [taskId]: window } });
  const { sharing } = (await iterationOf(cluster)).tasks[0]!.figures!;
  assertEquals(sharing, { ...window, hitRate: 0.75 });
});

Deno.test("describe asks workers for figures when it is told to, and those that have just given some not", async () => {
  await using cluster = await TestCluster.start();
  const [fresh, stale] = [cluster.worker("fresh"), cluster.worker("stale")];
  for (const worker of [fresh, stale]) await report(cluster, worker, { atMs: 0 });
  await cluster.world.advance(2_000);
  await report(cluster, fresh, { atMs: 2_000 });
  await cluster.ask("describe", null);
  await settle();
  assertEquals([fresh.wakes, stale.wakes], [0, 0]);
  await cluster.ask("describe", { refresh: true });
  await settle();
  assertEquals([fresh.wakes, stale.wakes], [0, 1]);
});

Deno.test("after a restart, describe asks a live worker for figures beside a hundred lost ones", async () => {
  await using cluster = await TestCluster.start({ workerTimeoutMs: 10_000 });
  for (let i = 0; i < 110; i++) await report(cluster, cluster.worker(`lost-${i}`), { atMs: 0 });
  await cluster.world.advance(20_000);
  const live = cluster.worker("live");
  await report(cluster, live, { atMs: 20_000 });
  await cluster.restart();
  await cluster.world.advance(2_000);
  const { wakes } = live;
  const { workers } = await cluster.ask("describe", { refresh: true });
  await settle();
  assertEquals(live.wakes, wakes + 1);
  const lost = workers.filter(({ alive }) => !alive);
  assertEquals([lost.length, lost.filter(({ lastHeardMs }) => lastHeardMs !== undefined)], [
    110,
    [],
  ]);
});

Deno.test("figures that a heartbeat leaves out of a completed task are as before, and are asked for after a restart", async () => {
  await using cluster = await TestCluster.start();
  const { workers: [worker], taskIds: [taskId = 0] } = await running(cluster, ["w"]);
  const { name, ref } = worker!;
  await report(cluster, worker!, { atMs: 0 });
  worker!.complete(taskId);
  await report(cluster, worker!, { atMs: 10_000, stats: { [taskId]: { produced: 40 } } });
  const rest = async (atMs: number) => {
    const answer = workIn(
      await cluster.ask("workerHeartbeat", {
        ...{ name, worker: ref, tags: [] },
        ...{ tasks: [{ taskId, completed: true }], figures: { atMs } },
      }),
    );
    const { produced, elementsPerSecond } = (await iterationOf(cluster)).tasks[0]!.figures ?? {};
    return { produced, elementsPerSecond, lacksFigures: answer.lacksFigures };
  };
  const known = { produced: 40, lacksFigures: undefined };
  assertEquals(await rest(20_000), { ...known, elementsPerSecond: 0 });
  await cluster.restart();
  assertEquals((await rest(30_000)).lacksFigures, true);
  await report(cluster, worker!, { atMs: 40_000, stats: { [taskId]: { produced: 40 } } });
  assertEquals((await rest(50_000)).lacksFigures, undefined);
});

Deno.test("JobUsage counts no work from before the dispatcher started", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("w");
  const { name, ref } = worker;
  await worker.heartbeat();
  for (const jobName of ["over", "runs"]) await cluster.open(await cluster.dataset(), { jobName });
  const [over = 0, runs = 0] = await worker.heartbeat();
  worker.complete(over);
  await cluster.restart();
  const use = (cpuSeconds: number) => ({ cpuSeconds, memoryBytes: 4e9, shared: false });
  await cluster.ask("workerHeartbeat", {
    ...{ name, worker: ref, tags: [] },
    tasks: [{ taskId: over, completed: true }, {
      taskId: runs,
      completed: false,
      stats: { ...noReport("task"), busyMs: 5_000_000 },
    }],
    figures: { atMs: 0, process: use(0) },
  });
  await report(cluster, worker, {
    atMs: 3_600_000,
    process: use(3_600),
    stats: { [over]: { busyMs: 7_200_000 }, [runs]: { busyMs: 6_000_000 } },
  });
  const usages = (await cluster.ask("describe", null)).jobs.map(({ usage }) => usage);
  assertEquals(usages.map(({ workerBusyHours }) => workerBusyHours), [0, 1_000_000 / 3_600_000]);
  assertEquals(usages.map(({ workerCpuHours }) => workerCpuHours), [null, 1]);
});
