/** Static policies: who has which share of an iteration, and when it is done. */
import type { DispatcherConfig } from "../../../../actors/dispatcher/config.ts";
import type { TaskDefinition } from "../../../../actors/dispatcher/protocol.ts";
import { LeatError } from "../../../../core/error.ts";
import { shardingPolicy } from "../../../../data/mod.ts";
import { serveDispatcher } from "../../../../mod.ts";
import { assertEquals, assertRejects, assertStringIncludes } from "../../../assert.ts";
import { TestCluster, workIn } from "../lib.ts";
import type { TestWorker } from "../test_worker.ts";

const LISTED: DispatcherConfig = { workers: ["a", "b"] };
const FILE = { processingMode: "FILE" } as const;

/** The tasks that a worker is told to start. */
async function newTasks(cluster: TestCluster, { name, ref }: TestWorker) {
  const request = { name, worker: ref, tags: [], tasks: [] };
  return workIn(await cluster.ask("workerHeartbeat", request)).newTasks;
}

function shardsIn(tasks: readonly TaskDefinition[]) {
  return tasks.map(({ shard }) => shard);
}

Deno.test("a listed worker has the share of its place in the list, whenever it comes", async () => {
  await using cluster = await TestCluster.start(LISTED);
  const b = cluster.worker("b");
  assertEquals(await b.heartbeat(), []);
  const datasetId = await cluster.dataset();
  await cluster.open(datasetId, FILE);
  assertEquals(shardsIn(await newTasks(cluster, b)), [{ index: 1, count: 2 }]);
  const a = cluster.worker("a");
  assertEquals(shardsIn(await newTasks(cluster, a)), [{ index: 0, count: 2 }]);
  await cluster.restart();
  assertEquals(shardsIn(await newTasks(cluster, b)), [{ index: 1, count: 2 }]);
  const [first, second] = [...await newTasks(cluster, a), ...await newTasks(cluster, b)];
  assertEquals(first?.seed, second?.seed);
});

Deno.test("a worker beyond the list gets nothing of static policies, and it is shown why", async () => {
  await using cluster = await TestCluster.start(LISTED);
  const c = cluster.worker("c");
  await c.heartbeat();
  const datasetId = await cluster.dataset();
  await cluster.open(datasetId, { ...FILE, jobName: "shared" });
  assertEquals(await c.heartbeat(), []);
  const { workers, jobs } = await cluster.ask("describe", null);
  assertEquals(
    workers[0]?.noShard,
    "FILE job shared is shared by the workers a, b, and this one is not among them",
  );
  assertEquals(jobs[0]?.iterations[0]?.workersMissing, ["a", "b"]);
  await cluster.open(datasetId, { processingMode: "OFF" });
  assertEquals((await c.heartbeat()).length, 1);
});

Deno.test("a client of a static policy is told which listed workers are missing", async () => {
  await using cluster = await TestCluster.start(LISTED);
  const { clientId } = await cluster.open(await cluster.dataset(), FILE);
  const waits = async () => (await cluster.ask("clientHeartbeat", { clientId })).starvation;
  const listed = "which the dispatcher's list of workers names. Start";
  const both = `It waits for a, b, ${listed} them (leat worker --name a, and so on).`;
  assertEquals(await waits(), both);
  await cluster.worker("c").heartbeat();
  assertEquals(await waits(), both, "c is not listed");
  const bottleneck = async () =>
    (await cluster.ask("describe", null)).jobs[0]?.iterations[0]?.bottleneck;
  assertEquals(await bottleneck(), { kind: "stuck", text: both });
  const a = cluster.worker("a");
  const [task = 0] = await a.heartbeat();
  assertEquals(await waits(), undefined, "a has work to do");
  a.complete(task);
  await a.heartbeat();
  const onlyB = `It waits for b, ${listed} it (leat worker --name b).`;
  assertEquals(await waits(), onlyB);
  assertEquals(await bottleneck(), { kind: "stuck", text: onlyB }, "a has completed its task");
});

Deno.test("a draining worker gets no share, and clients are told that they wait for its next life", async () => {
  await using cluster = await TestCluster.start(LISTED);
  const [a, b] = [cluster.worker("a"), cluster.worker("b")];
  await a.heartbeat();
  await b.heartbeat();
  const { clientId } = await cluster.open(await cluster.dataset(), FILE);
  const { name, ref } = b;
  const request = { name, worker: ref, tags: [], tasks: [], figures: { atMs: 1, draining: true } };
  assertEquals(workIn(await cluster.ask("workerHeartbeat", request)).newTasks, []);
  const [task = 0] = await a.heartbeat();
  a.complete(task);
  await a.heartbeat();
  const news = () => cluster.ask("clientHeartbeat", { clientId });
  await cluster.restart();
  const { starvation, finished } = await news();
  assertEquals(finished, false);
  assertEquals(starvation, "It waits for b to stop, and to be started again.");
  await b.leave();
  const next = await b.reborn();
  const [share = 0] = await next.heartbeat();
  assertEquals((await news()).starvation, undefined);
  next.complete(share);
  await next.heartbeat();
  assertEquals((await news()).finished, true);
});

Deno.test("StaticMode.whyWaiting names live listed workers that no client may read", async () => {
  await using cluster = await TestCluster.start({ workers: ["a", "b", "c"] });
  const [a, b] = [cluster.worker("a"), cluster.worker("b")];
  b.place = { tags: ["COLOCATED"], process: "another" };
  await a.heartbeat();
  await b.heartbeat();
  const datasetId = await cluster.dataset();
  const { clientId } = await cluster.open(datasetId, { ...FILE, jobName: "j", process: "own" });
  const [task = 0] = await a.heartbeat();
  a.complete(task);
  await a.heartbeat();
  const waits = async () => (await cluster.ask("clientHeartbeat", { clientId })).starvation ?? "";
  assertStringIncludes(await waits(), "It waits for c, which the dispatcher's list");
  assertStringIncludes(await waits(), "It waits for b, which its trainers may not read");
  await cluster.open(datasetId, { ...FILE, jobName: "j", process: "another" });
  assertEquals(await waits(), "", "b serves a client of its own process");
});

Deno.test("an iteration of a static policy is done when every listed worker has done its share", async () => {
  await using cluster = await TestCluster.start(LISTED);
  const a = cluster.worker("a");
  const { clientId } = await cluster.open(await cluster.dataset(), { ...FILE, jobName: "j" });
  const [task = 0] = await a.heartbeat();
  a.complete(task);
  await a.heartbeat();
  assertEquals((await cluster.ask("clientHeartbeat", { clientId })).finished, false);
  const b = cluster.worker("b");
  const [other = 0] = await b.heartbeat();
  b.complete(other);
  await b.heartbeat();
  assertEquals((await cluster.ask("clientHeartbeat", { clientId })).finished, true);
});

Deno.test("a worker that comes back begins its share again, unless it had done it", async () => {
  await using cluster = await TestCluster.start(LISTED);
  const [a, b] = [cluster.worker("a"), cluster.worker("b")];
  const { clientId } = await cluster.open(await cluster.dataset(), { ...FILE, jobName: "j" });
  const [done = 0] = await a.heartbeat();
  const [cut = 0] = await b.heartbeat();
  a.complete(done);
  await a.heartbeat();
  const [next, again] = [await a.reborn(), await b.reborn()];
  assertEquals(await next.heartbeat(), []);
  await cluster.restart();
  assertEquals(await next.heartbeat(), []);
  const [taken = 0] = await again.heartbeat();
  assertEquals(taken > cut, true);
  again.complete(taken);
  await again.heartbeat();
  assertEquals((await cluster.ask("clientHeartbeat", { clientId })).finished, true);
});

Deno.test("a job keeps the list that it began with", async () => {
  await using cluster = await TestCluster.start(LISTED);
  await cluster.open(await cluster.dataset(), { ...FILE, jobName: "old" });
  await cluster.restart({ workers: ["b", "c", "a"] });
  const a = cluster.worker("a");
  assertEquals(shardsIn(await newTasks(cluster, a)), [{ index: 0, count: 2 }]);
  await cluster.open(await cluster.dataset(), { ...FILE, jobName: "new" });
  assertEquals(shardsIn(await newTasks(cluster, a)), [{ index: 0, count: 2 }, {
    index: 2,
    count: 3,
  }]);
});

Deno.test("a static policy without a list of workers is refused with the remedy", async () => {
  await using cluster = await TestCluster.start();
  const request = cluster.openRequest(await cluster.dataset(), FILE);
  const error = await cluster.refused("openIteration", request);
  assertEquals(error.code, "failed_precondition");
  assertStringIncludes(error.message, "--workers");
});

Deno.test("a list of workers with a name twice or without one is refused", async () => {
  for (const workers of [["a", "b", "a"], ["a", ""]]) {
    const error = await assertRejects(() => serveDispatcher({ workers }), LeatError);
    assertEquals(error.code, "invalid_argument");
    assertStringIncludes(error.message, JSON.stringify(workers));
  }
});

Deno.test("a custom policy goes with its job: another one of its name is another job's", async () => {
  await using cluster = await TestCluster.start(LISTED);
  const datasetId = await cluster.dataset();
  const custom = (take: number) => ({
    jobName: "j",
    processingMode: "CUSTOM" as const,
    policy: shardingPolicy("mine", {
      shard: (dataset, { take }) => dataset.take(take),
      captures: { take },
    }).toWire(),
  });
  await cluster.open(datasetId, custom(1));
  await cluster.open(datasetId, custom(1));
  const error = await cluster.refused("openIteration", cluster.openRequest(datasetId, custom(2)));
  assertEquals(error.code, "invalid_argument");
  assertStringIncludes(error.message, 'processingMode: "mine (');
  const [task] = await newTasks(cluster, cluster.worker("a"));
  assertEquals(task?.parameters.policy, custom(1).policy);
  const without = { jobName: "k", processingMode: "CUSTOM" } as const;
  const refused = await cluster.refused("openIteration", cluster.openRequest(datasetId, without));
  assertStringIncludes(refused.message, "CUSTOM");
});
