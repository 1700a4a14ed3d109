/** Saves: what their clients are told of their end, and how they are shown. */
import { LeatError } from "../../../../core/error.ts";
import { definedFields } from "../../../../core/tree.ts";
import type { SaveWork } from "../../../../data/saved/distributed/work.ts";
import { assert, assertEquals, assertStringIncludes } from "../../../assert.ts";
import { settle, TestCluster } from "../lib.ts";
import { report } from "../report/reports.ts";
import { BEGUN, openSave, SAVE } from "../saves.ts";
import type { TestWorker } from "../test_worker.ts";

/** A cluster with a worker that can save nothing. */
async function clusterOfOne(): Promise<{ cluster: TestCluster; datasetId: string }> {
  const cluster = await TestCluster.start();
  await cluster.worker("w").heartbeat();
  return { cluster, datasetId: await cluster.dataset() };
}

Deno.test("a client whose save is over is told how it ended, though another has asked for it again since", async () => {
  const { cluster, datasetId } = await clusterOfOne();
  await using _ = cluster;
  const { clientId, iterationId } = await cluster.open(datasetId, SAVE);
  await settle();

  const next = await cluster.open(datasetId, SAVE);
  assert(next.iterationId !== iterationId, "who asks next has the folder looked at again");

  const { finished, error } = await cluster.ask("clientHeartbeat", { clientId });
  assert(finished);
  assertEquals(error?.code, "unimplemented");
  assertStringIncludes(error?.message ?? "", 'Worker "w" could not save to /saved');
});

Deno.test("a client whose save is over is told how it ended by a dispatcher that was restarted since", async () => {
  const { cluster, datasetId } = await clusterOfOne();
  await using _ = cluster;
  const { clientId } = await cluster.open(datasetId, SAVE);
  await settle();
  await cluster.open(datasetId, SAVE);

  await cluster.restart();
  const { error } = await cluster.ask("clientHeartbeat", { clientId });
  assertEquals(error?.code, "unimplemented");
});

Deno.test("the log of a worker that cannot begin a save names the save, and no listing", async () => {
  const cluster = await TestCluster.start();
  await using _ = cluster;
  const worker = cluster.worker("w");
  worker.begun = new LeatError("aborted", "the disk is away");
  await worker.heartbeat();
  await cluster.open(await cluster.dataset(), SAVE);
  await settle();
  assertEquals(cluster.world.warnings, [
    'Worker "w" could not begin the save: the disk is away',
  ]);
});

Deno.test("SplitListings leaves a forgotten save alone when its beginning fails", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("w");
  const begun = Promise.withResolvers<void>();
  worker.listing = begun.promise;
  worker.begun = new LeatError("data_loss", "the list of runs is damaged");
  await worker.heartbeat();
  const datasetId = await cluster.dataset();
  const { clientId } = await cluster.open(datasetId, SAVE);
  await settle();
  await cluster.ask("releaseClient", { clientId, cancel: true });
  // The save that was cancelled is forgotten, with its job.
  await cluster.open(datasetId, SAVE);
  begun.resolve();
  await settle();
  await cluster.world.advance(1_000);
  assertEquals((await cluster.ask("hello", null)).life, 1);
});

Deno.test("a save that ends without clients can be looked at for jobGcTimeoutMs", async () => {
  const cluster = await TestCluster.start({ jobGcTimeoutMs: 60_000 });
  await using _ = cluster;
  const { clientId } = await cluster.open(await cluster.dataset(), SAVE);
  await cluster.ask("releaseClient", { clientId });
  const jobs = async () => (await cluster.ask("describe", null)).jobs.length;
  await cluster.world.advance(200_000);
  assertEquals(await jobs(), 1, "it waits for a worker");
  await cluster.worker("w").heartbeat();
  await settle();
  await cluster.world.advance(40_000);
  assertEquals(await jobs(), 1, "it has just failed");
  await cluster.world.advance(40_000);
  assertEquals(await jobs(), 0);
});

Deno.test("a client that was released while its save went on is told that it is not known", async () => {
  const cluster = await TestCluster.start();
  await using _ = cluster;
  const { clientId } = await cluster.open(await cluster.dataset(), SAVE);
  await cluster.ask("releaseClient", { clientId });
  const { code } = await cluster.refused("clientHeartbeat", { clientId });
  assert(code === "failed_precondition" || code === "not_found", code);
});

Deno.test("releaseClient cancels no save if it is refused", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const { clientId } = await cluster.open(datasetId, SAVE);
  const other = await cluster.open(datasetId, SAVE);
  const request = { clientId, cancel: true, nextRound: Number.MAX_SAFE_INTEGER };
  assertEquals((await cluster.refused("releaseClient", request)).code, "invalid_argument");
  const { error } = await cluster.ask("clientHeartbeat", { clientId: other.clientId });
  assertEquals(error, undefined);
});

Deno.test("describe shows the progress of a save and its workers, with and without its client", async () => {
  await using cluster = await TestCluster.start();
  const { worker, clientId, taskId } = await openSave(cluster);
  const shown = async () => {
    const { jobs, workers } = await cluster.ask("describe", null);
    return [jobs[0]!.iterations[0]!.bottleneck, workers[0]!.activity];
  };
  const saving = {
    kind: "balanced",
    text: "The workers have saved 1 of 900 splits.",
  } as const;
  await cluster.ask("getSaveWork", { taskId });
  const run = { work: "run", place: 0, attempt: "1", elements: 10, sizeBytes: 10 } as const;
  await cluster.ask("getSaveWork", { taskId, done: run });
  assertEquals((await shown())[0], saving);
  await cluster.ask("releaseClient", { clientId });
  const starting = { state: "starting", reason: "It is starting its tasks." } as const;
  assertEquals(await shown(), [saving, starting]);
  await report(cluster, worker, { atMs: 0 });
  await report(cluster, worker, { atMs: 5_000, stats: { [taskId]: { busyMs: 5 } } });
  const reason = "Its save waits for the data that it reads, for its folder, or for other workers.";
  assertEquals(await shown(), [saving, { state: "idle", reason }]);
});

Deno.test("getSaveWork counts left-over rows in the length of the next run, and not as saved", async () => {
  await using cluster = await TestCluster.start();
  const { clientId, taskId } = await openSave(cluster);
  const ask = async (place?: number, restBytes?: number) => {
    const amount = { elements: 0, sizeBytes: 0, ...definedFields({ restBytes }) };
    const done = { work: place === undefined ? "entry" : "run", place: place ?? 0, ...amount };
    const { work } = await cluster.ask("getSaveWork", { taskId, done } as never);
    return work as SaveWork;
  };
  await cluster.ask("getSaveWork", { taskId });
  assertEquals((await ask(0, 8 * 2 ** 20)).work, "entry");
  const next = await ask();
  // Eight splits of 8 MiB are 64 MiB. Without the rows, it would be a fourth of all splits.
  assertEquals([next.work, next.work === "run" && next.splits.length], ["run", 8]);
  const { news } = await cluster.ask("clientHeartbeat", { clientId });
  assert(news?.kind === "save");
  assertEquals(news.progress.sizeBytes, 0);
});

Deno.test("releaseClient with cancel gives each worker a task that writes the end of the save into its folder", async () => {
  await using cluster = await TestCluster.start();
  const hidden = cluster.worker("hidden");
  const workers = [hidden, cluster.worker("shown"), cluster.worker("other")];
  hidden.place = { process: "its client's", isPrivate: true };
  for (const worker of workers) worker.begun = BEGUN;
  await hidden.heartbeat();
  const { clientId } = await cluster.open(await cluster.dataset(), {
    ...SAVE,
    process: "its client's",
  });
  const beats = async () => await Promise.all(workers.map((worker) => worker.heartbeat()));
  const before = (await beats()).flat();
  assertEquals(before.length, 3);
  for (const taskId of before) await cluster.ask("getSaveWork", { taskId });
  await cluster.ask("releaseClient", { clientId, cancel: true });

  for (const taskId of before) await cluster.refused("getSaveWork", { taskId });
  const after = await beats();
  assertEquals(after[0], [], "the client whose process it is in has left");
  assertEquals(after.flat().length, 2);
  // One of them may be drained or lost before it has written the end.
  await workers[1]!.leave();
  const [taskId = 0] = after[2]!;
  const { work } = await cluster.ask("getSaveWork", { taskId });
  assert(work !== null && work !== "later" && work.work === "failure");
  assertEquals([work.id, work.error.code], [BEGUN.id, "aborted"]);
  assertStringIncludes(work.error.message, "saving to /saved was ended by a client");
});

/** Cancels a save while a worker begins it. */
async function cancelBeginning(cluster: TestCluster, begun: TestWorker["begun"]) {
  const worker = cluster.worker("w");
  const { promise, resolve: begin } = Promise.withResolvers<void>();
  worker.listing = promise;
  worker.begun = begun;
  await worker.heartbeat();
  const { clientId } = await cluster.open(await cluster.dataset(), SAVE);
  await settle();
  await cluster.ask("releaseClient", { clientId, cancel: true });
  return { worker, begin };
}

Deno.test("releaseClient with cancel has the end of a save written that has not begun yet", async () => {
  await using cluster = await TestCluster.start();
  const { worker, begin } = await cancelBeginning(cluster, BEGUN);
  assertEquals(await worker.heartbeat(), [], "there is no end to write yet");
  begin();
  await settle();
  const [taskId = 0] = await worker.heartbeat();
  const { work } = await cluster.ask("getSaveWork", { taskId });
  assert(work !== null && work !== "later" && work.work === "failure");
  assertEquals([work.id, work.error.code], [BEGUN.id, "aborted"]);
});

Deno.test("releaseClient with cancel leaves no task of a save that never begins", async () => {
  await using cluster = await TestCluster.start();
  const { worker, begin } = await cancelBeginning(cluster, new LeatError("data_loss", "damaged"));
  begin();
  await settle();
  for (const each of [worker, cluster.worker("late")]) assertEquals(await each.heartbeat(), []);
});

Deno.test("getSaveWork gives the failure of a save to the task that failed alone", async () => {
  await using cluster = await TestCluster.start();
  const { taskId } = await openSave(cluster);
  const other = cluster.worker("v");
  const [otherId = 0] = await other.heartbeat();
  await cluster.ask("getSaveWork", { taskId });
  await cluster.ask("getSaveWork", { taskId: otherId });
  const failed = new LeatError("data_loss", "element 7 is damaged").toWire();
  for (let repeated = 0; repeated < 2; repeated++) {
    const { work } = await cluster.ask("getSaveWork", { taskId, failed });
    assert(work !== null && work !== "later" && work.work === "failure");
    assertStringIncludes(work.error.message, 'Worker "w" could not save to /saved: element 7');
  }
  assertEquals(await cluster.ask("getSaveWork", { taskId: otherId }), { work: null });
});
