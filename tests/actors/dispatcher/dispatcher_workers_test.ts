/** What the dispatcher does with workers that come, go and miss heartbeats. */
import { SAME_PROCESS } from "../../../actors/runtime/identity.ts";
import { LeatError } from "../../../core/error.ts";
import { hashBytes } from "../../../core/hash.ts";
import { assert, assertEquals, assertRejects } from "../../assert.ts";
import { settle, TestCluster, workIn } from "./lib.ts";
import { isFinished, OFF } from "./off_jobs.ts";
import { TestWorker } from "./test_worker.ts";

Deno.test("every worker gets one task of every iteration, whichever came first", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const [a, b] = [cluster.worker("a"), cluster.worker("b")];
  await a.heartbeat();
  await cluster.open(datasetId, OFF);
  await settle();
  assertEquals(a.wakes, 1, "a worker that has news is woken");
  assertEquals(await a.heartbeat(), [1]);
  assertEquals(await b.heartbeat(), [2]);
  await cluster.open(datasetId, OFF);
  assertEquals([await a.heartbeat(), await b.heartbeat()], [[1, 3], [2, 4]]);
  await cluster.restart();
  assertEquals([await a.heartbeat(), await b.heartbeat()], [[1, 3], [2, 4]]);
});

Deno.test("after a restart, a worker gets tasks of new iterations once it is heard, and no iteration waits for it", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const [live, late] = [cluster.worker("live"), cluster.worker("late")];
  for (const worker of [live, late]) await worker.heartbeat();
  await cluster.restart();
  await settle();
  assertEquals([live.wakes, late.wakes], [1, 1], "they are dialled");
  const first = await cluster.open(datasetId, OFF);
  assertEquals(await live.heartbeat(), [1]);
  live.complete(1);
  await live.heartbeat();
  assertEquals(await isFinished(cluster, first.clientId), true);
  const second = await cluster.open(datasetId, OFF);
  assertEquals(await live.heartbeat(), [1, 2]);
  await cluster.restart();
  await live.heartbeat();
  assertEquals(await late.heartbeat(), [3]);
  live.complete(2);
  await live.heartbeat();
  assertEquals(await isFinished(cluster, second.clientId), false);
});

Deno.test("a new life of a worker ends its tasks and gets new ones; the old life is refused", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("w");
  const { clientId } = await cluster.open(await cluster.dataset(), OFF);
  await worker.heartbeat();
  await worker.heartbeat();
  const next = await worker.reborn();
  assertEquals(await next.heartbeat(), [2]);
  await next.heartbeat();
  const { tasks } = await cluster.ask("clientHeartbeat", { clientId });
  assertEquals(tasks.map(({ taskId }) => taskId), [2]);
  await cluster.restart();
  const stale = { name: "w", worker: worker.ref, tags: [], tasks: [...worker.tasks.values()] };
  assertEquals((await cluster.refused("workerHeartbeat", stale)).code, "failed_precondition");
  assertEquals(await next.heartbeat(), [2]);
});

Deno.test("a late first heartbeat of a life does not take the name from a later life", async () => {
  await using cluster = await TestCluster.start({ clientTimeoutMs: 1e9 });
  const first = cluster.worker("w");
  await cluster.open(await cluster.dataset(), OFF);
  await first.heartbeat();
  const dead = await first.reborn();
  const late = { name: "w", worker: dead.ref, tags: [], tasks: [] };
  const follows = first.ref.incarnation;
  const answer = await cluster.ask("workerHeartbeat", late);
  assertEquals(answer, { kind: "takeover", incarnation: follows });
  const next = await dead.reborn();
  assertEquals(await next.heartbeat(), [2]);
  for (const word of [late, { ...late, follows }]) {
    const { incarnation } = next.ref;
    assertEquals(await cluster.ask("workerHeartbeat", word), { kind: "takeover", incarnation });
  }
  assertEquals(await next.heartbeat(), [2]);
  // Nor when the name is free.
  await cluster.world.advance(70_000);
  assertEquals((await cluster.ask("describe", null)).workers[0]?.alive, false);
  assertEquals((await cluster.ask("workerHeartbeat", late)).kind, "takeover");
  assertEquals(await next.heartbeat(), [3]);
});

Deno.test("a live worker keeps its name, and another one gets it as soon as the first has ended", async () => {
  await using cluster = await TestCluster.start({ clientTimeoutMs: 1e9 });
  const first = cluster.worker("w");
  await cluster.open(await cluster.dataset(), OFF);
  assertEquals(await first.heartbeat(), [1]);
  const second = new TestWorker(cluster, "w", [[]], "another actor");
  for (let times = 1; times <= 3; times++) {
    const { code, message } = await assertRejects(() => second.heartbeat(), LeatError);
    assertEquals([code, message.includes("is alive"), first.wantedBy.length], [
      "unavailable",
      true,
      times,
    ]);
  }
  assertEquals(await first.heartbeat(), [1]);
  await cluster.system.stopActor("w");
  assertEquals(await second.heartbeat(), [2]);
});

Deno.test("a worker that has left, or does not answer, does not keep its name", async () => {
  await using cluster = await TestCluster.start({ clientTimeoutMs: 1e9 });
  const gone = cluster.worker("w");
  await gone.heartbeat();
  await gone.leave();
  const stuck = new TestWorker(cluster, "w", [[]], "one that hangs");
  stuck.stuck = new Promise(() => {});
  await stuck.heartbeat();
  assertEquals(gone.wantedBy, []);
  const next = new TestWorker(cluster, "w", [[]], "the next");
  const registered = next.heartbeat();
  await settle();
  assertEquals(stuck.wantedBy.length, 1);
  await cluster.world.advance(3_000);
  await registered;
  const stale = { name: "w", worker: stuck.ref, tags: [], tasks: [] };
  assertEquals((await cluster.refused("workerHeartbeat", stale)).code, "failed_precondition");
});

Deno.test("a late heartbeat of a worker that has left is refused, also after a restart, and gets no task", async () => {
  await using cluster = await TestCluster.start({ clientTimeoutMs: 1e9 });
  const { clientId } = await cluster.open(await cluster.dataset(), OFF);
  const gone = cluster.worker("w");
  await gone.heartbeat();
  await gone.leave();
  const late = { name: "w", worker: gone.ref, tags: [], tasks: [] };
  const isRefused = async () => {
    const { code, message } = await cluster.refused("workerHeartbeat", late);
    assertEquals([code, message.includes("has left")], ["failed_precondition", true]);
    assertEquals((await cluster.ask("clientHeartbeat", { clientId })).tasks, []);
  };
  await isRefused();
  // The request to leave is repeated as well.
  await gone.leave();
  await cluster.restart();
  await isRefused();
  const next = new TestWorker(cluster, "w", [[]], "the next");
  assertEquals((await next.heartbeat()).length, 1);
  assertEquals((await cluster.refused("workerHeartbeat", late)).code, "failed_precondition");
});

Deno.test("a worker without heartbeats for too long loses its tasks; when it comes back it gets others", async () => {
  await using cluster = await TestCluster.start({ clientTimeoutMs: 1e9 });
  const worker = cluster.worker("w");
  const { clientId } = await cluster.open(await cluster.dataset(), OFF);
  await worker.heartbeat();
  await worker.heartbeat();
  await cluster.world.advance(59_000);
  const sources = async () => (await cluster.ask("clientHeartbeat", { clientId })).tasks.length;
  assertEquals(await sources(), 1);
  // A restarted dispatcher counts everybody as just heard.
  await cluster.restart();
  await cluster.world.advance(59_000);
  assertEquals(await sources(), 1);
  await cluster.world.advance(10_000);
  assertEquals(await sources(), 0);
  assertEquals((await cluster.ask("describe", null)).workers[0]?.alive, false);
  const tasks = [...worker.tasks.values()];
  const answer = workIn(
    await cluster.ask("workerHeartbeat", { name: "w", worker: worker.ref, tags: [], tasks }),
  );
  assertEquals(answer.endedTasks, [1]);
  assertEquals(answer.newTasks.map((task) => [task.taskId, task.owner]), [[2, SAME_PROCESS.name]]);
});

Deno.test("a worker is told to drop tasks that are unknown here or another's", async () => {
  await using cluster = await TestCluster.start();
  const [a, b] = [cluster.worker("a"), cluster.worker("b")];
  await cluster.open(await cluster.dataset(), OFF);
  const [taskA = 0] = await a.heartbeat();
  await b.heartbeat();
  const tasks = [taskA, 2, 77].map((taskId) => ({ taskId, completed: true }));
  const { endedTasks } = workIn(
    await cluster.ask("workerHeartbeat", { name: "b", worker: b.ref, tags: [], tasks }),
  );
  assertEquals(endedTasks, [taskA, 77]);
});

Deno.test("an iteration whose workers have all died waits for a worker", async () => {
  await using cluster = await TestCluster.start({ clientTimeoutMs: 1e9 });
  const worker = cluster.worker("w");
  const { clientId } = await cluster.open(await cluster.dataset(), OFF);
  assertEquals(await isFinished(cluster, clientId), false, "no worker yet");
  await worker.heartbeat();
  await cluster.world.advance(70_000);
  assertEquals(await isFinished(cluster, clientId), false, "none left");
  const [taskId = 0] = await cluster.worker("other").heartbeat();
  assert(taskId > 0);
});

Deno.test("a completed task counts although its worker dies, an incomplete one does not", async () => {
  await using cluster = await TestCluster.start({ clientTimeoutMs: 1e9 });
  const [a, b] = [cluster.worker("a"), cluster.worker("b")];
  const { clientId } = await cluster.open(await cluster.dataset(), OFF);
  for (const worker of [a, b]) await worker.heartbeat();
  a.complete(1);
  await a.heartbeat();
  await cluster.world.advance(50_000);
  await b.heartbeat();
  await cluster.world.advance(20_000);
  assertEquals(await isFinished(cluster, clientId), false, "b goes on");
  await cluster.world.advance(60_000);
  assertEquals(await isFinished(cluster, clientId), true);
});

Deno.test("a worker that restarts while others go on starts over", async () => {
  await using cluster = await TestCluster.start();
  const [a, b] = [cluster.worker("a"), cluster.worker("b")];
  const { clientId } = await cluster.open(await cluster.dataset(), OFF);
  for (const worker of [a, b]) await worker.heartbeat();
  a.complete(1);
  await a.heartbeat();
  const next = await b.reborn();
  assertEquals(await next.heartbeat(), [3]);
  assertEquals(await isFinished(cluster, clientId), false);
});

Deno.test("time in which the dispatcher was paused does not count as missed heartbeats", async () => {
  await using cluster = await TestCluster.start({ workerTimeoutMs: 1_000, clientTimeoutMs: 1_000 });
  const worker = cluster.worker("w");
  const { clientId } = await cluster.open(await cluster.dataset(), { jobName: "job" });
  const [task] = await worker.heartbeat();
  // Heartbeats wait in its mailbox while the timer that looks for silence is late, too.
  cluster.world.stall(5_000);
  await cluster.world.advance(500);
  assertEquals(await worker.heartbeat(), [task]);
  await cluster.ask("clientHeartbeat", { clientId });
  await cluster.world.advance(1_500);
  assertEquals((await cluster.ask("describe", null)).workers.map(({ alive }) => alive), [false]);
});

Deno.test("a worker gets the tasks of large pipelines in several answers, each small enough to send", async () => {
  await using cluster = await TestCluster.start();
  const graph = new Uint8Array(30 * 2 ** 20);
  const dataset = { graph, fingerprint: hashBytes(graph), cardinality: 10 };
  const { datasetId } = await cluster.ask("registerDataset", dataset);
  for (const jobName of ["1", "2", "3", "4", "5"]) await cluster.open(datasetId, { jobName });
  const worker = cluster.worker("a");
  const counts: number[] = [];
  for (const tasks = [...worker.tasks.values()]; counts.at(-1) !== 0;) {
    const { newTasks, hasMoreTasks } = workIn(
      await cluster.ask("workerHeartbeat", { name: "a", worker: worker.ref, tags: [], tasks }),
    );
    tasks.push(...newTasks.map(({ taskId }) => ({ taskId, completed: false })));
    counts.push(newTasks.length);
    assertEquals(hasMoreTasks === true, tasks.length < 5);
  }
  assertEquals(counts, [2, 2, 1, 0]);
});
