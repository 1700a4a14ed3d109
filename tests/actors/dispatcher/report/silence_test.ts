/** Workers and clients that stop reporting: their last figures are not shown as current ones. */
import {
  activityOf,
  bottleneckOf,
  type IterationFigures,
} from "../../../../actors/dispatcher/report/diagnosis.ts";
import { assert, assertEquals, assertMatch } from "../../../assert.ts";
import { noFigures } from "../../../lib/no_figures.ts";
import { TestCluster } from "../lib.ts";
import { iterationOf, report, running, say } from "./reports.ts";

/** A client that waits, and a worker that is not busy, which both report for the last time. */
async function waiting(cluster: TestCluster) {
  const { workers: [worker], taskIds: [taskId = 0], clientId } = await running(cluster, ["w"]);
  for (const atMs of [0, 1_000, 2_000]) {
    await report(cluster, worker!, { atMs, stats: { [taskId]: { produced: atMs, busyMs: 0 } } });
    await say(cluster, clientId, { atMs, elements: atMs, waitingMs: atMs });
  }
  return { worker: worker!, taskId, clientId };
}

Deno.test("a worker that does not report although it is asked is silent, without figures", async () => {
  await using cluster = await TestCluster.start();
  const { worker, taskId, clientId } = await waiting(cluster);
  await cluster.world.advance(17_000);
  await say(cluster, clientId, { atMs: 19_000, elements: 2_000, waitingMs: 19_000 });
  const [silent] = (await cluster.ask("describe", null)).workers;
  assertEquals([silent?.activity.state, silent?.figures], ["silent", null]);
  assertMatch(silent!.activity.reason!, /^It has not reported for 17 s: /);
  const { tasks, bottleneck } = await iterationOf(cluster);
  assertEquals(tasks[0]!.figures, null);
  assertMatch(bottleneck.text, /^No current figures\. Worker "w" has not reported for 17 s: /);
  await report(cluster, worker, { atMs: 20_000, stats: { [taskId]: { produced: 2_000 } } });
  const [back] = (await cluster.ask("describe", null)).workers;
  assertEquals([back?.activity.state, back?.figures?.ageMs], ["idle", 0]);
});

Deno.test("a worker that nobody asks for reports is not silent, however old its figures are", async () => {
  await using cluster = await TestCluster.start();
  await report(cluster, cluster.worker("w"), { atMs: 0 });
  await cluster.world.advance(29_000);
  for (let times = 0; times < 2; times++) {
    const [worker] = (await cluster.ask("describe", { refresh: true })).workers;
    assertEquals([worker?.activity.reason, worker?.figures?.ageMs], [
      "There is no unfinished job.",
      29_000,
    ]);
  }
});

Deno.test("a client that does not report has no figures, and the bottleneck says so", async () => {
  await using cluster = await TestCluster.start();
  const { worker } = await waiting(cluster);
  await cluster.world.advance(30_000);
  await report(cluster, worker, { atMs: 32_000 });
  const { readers, optimalWorkers, bottleneck } = await iterationOf(cluster);
  assertEquals([readers[0]!.figures, optimalWorkers], [null, null]);
  assertMatch(bottleneck.text, /^No current figures\. Client \d+ has not reported for 30 s: /);
});

Deno.test("a client that reports less often than the autoscaler looks is not silent", async () => {
  await using cluster = await TestCluster.start({ scaling: { intervalMs: 100, measureMs: 200 } });
  await waiting(cluster);
  await cluster.world.advance(5_000);
  assert((await iterationOf(cluster)).readers[0]!.figures !== null);
});

Deno.test("the bottleneck of a client that cannot read from a worker is what the client says", async () => {
  await using cluster = await TestCluster.start();
  const { clientId } = await waiting(cluster);
  assertMatch((await iterationOf(cluster)).bottleneck.text, /the path between them is slow/);
  const unread = "It cannot read from 1 of its 2 workers.";
  const figures = { atMs: 3_000, elements: 2_000, waitingMs: 3_000, unread };
  await say(cluster, clientId, figures);
  const { readers, bottleneck } = await iterationOf(cluster);
  assertEquals(readers[0]!.figures!.unread, unread);
  assertEquals(
    bottleneck.text,
    `Trainers wait 100 % of their time. Client ${clientId}: ${unread}`,
  );
  await say(cluster, clientId, { atMs: 4_000, elements: 2_000, waitingMs: 4_000 });
  assertMatch((await iterationOf(cluster)).bottleneck.text, /the path between them is slow/);
});

/** Two workers that are not busy, and a client that always waits. */
const WAITING: IterationFigures = {
  tasks: ["one", "two"].map((worker, taskId) => ({
    taskId,
    worker,
    state: "running",
    figures: { ...noFigures("task"), compression: null, sharing: null, failure: null },
  })),
  readers: [{
    clientId: 1,
    consumerIndex: null,
    figures: { ...noFigures("client"), waitingShare: 1, reads: [] },
  }],
  finished: false,
  progress: null,
  failure: null,
  starvation: null,
  waiting: null,
  sharing: false,
  unreachable: new Set(),
  silentMs: new Map(),
  journalWaits: false,
};

Deno.test("bottleneckOf names no slow path while a worker is silent or the journal waits", () => {
  const textOf = (figures: Partial<IterationFigures>) =>
    bottleneckOf({ ...WAITING, ...figures }).text;
  assertMatch(textOf({}), /the path between them is slow/);
  const [one, two] = WAITING.tasks;
  const silentMs = new Map([['Worker "one"', 15_900], ['Worker "three"', 20_000]]);
  assertMatch(
    textOf({ tasks: [{ ...one!, figures: null }, two!], silentMs }),
    /^Trainers wait 100 % of their time\. Worker "one" \(and 1 more\) has not reported for 15 s: /,
  );
  const busy = { ...two!, figures: { ...two!.figures!, busyShare: 1 } };
  const [reader] = WAITING.readers;
  const unread = "It cannot read from one.";
  assertMatch(
    textOf({
      tasks: [one!, busy],
      readers: [{ ...reader!, figures: { ...reader!.figures!, unread } }],
    }),
    /1 of 2 workers busy\. .* Client 1: It cannot read from one\.$/,
  );
  for (const tasks of [WAITING.tasks, [busy]]) {
    assertEquals(
      textOf({ tasks, journalWaits: true }),
      "Trainers wait 100 % of their time: the dispatcher waits for disk space.",
    );
  }
});

Deno.test("activityOf calls a worker gone, not silent, once it is lost", () => {
  const signs = { address: "ws://w:1", unreachable: undefined, tasks: [], hasJobs: true };
  assertEquals(activityOf({ ...signs, alive: false, silentMs: 70_000 }).state, "gone");
  assert(activityOf({ ...signs, alive: true, silentMs: 70_000 }).state === "silent");
});
