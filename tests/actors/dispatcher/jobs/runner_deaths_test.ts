/**
 * Runners that die: what they ran is counted on all workers, through restarts, and ends its job alone.
 */
import { TASK_ENDED } from "../../../../actors/dispatcher/protocol.ts";
import { dispatcherAnswers } from "../../../../actors/dispatcher/protocol_check.ts";
import { RUNNERS_DIED } from "../../../../actors/dispatcher/jobs/runner_deaths.ts";
import { listerError } from "../../../../actors/worker/protocol.ts";
import { LeatError } from "../../../../core/error.ts";
import { hashBytes } from "../../../../core/hash.ts";
import { assert, assertEquals } from "../../../assert.ts";
import { settle, tableOf, TestCluster } from "../lib.ts";

const DIED = {
  code: "resource_exhausted",
  message: "The runner was ended: out of memory",
} as const;
const ORDERED = {
  processingMode: "DETERMINISTIC",
  ordered: { seed: "0000000000000001", shuffled: false },
} as const;

/** As a confined process answers that has died. */
function died(message: string): LeatError {
  return new LeatError("unavailable", message, { details: { reason: "runner_died" } });
}

/** The only iteration of a job, as people see it. */
async function iterationOf(cluster: TestCluster, jobName: string) {
  const { jobs } = await cluster.ask("describe", null);
  return jobs.find(({ name }) => name === jobName)!.iterations[0]!;
}

Deno.test("dispatcher fails a job whose runners died three times on any workers, through its restarts and theirs, and no other", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const [a, b] = [cluster.worker("a", tableOf(9)), cluster.worker("b", tableOf(9))];
  const { clientId } = await cluster.open(datasetId, { jobName: "poison", processingMode: "OFF" });
  const bystander = await cluster.open(datasetId, { jobName: "healthy" });
  const [atA] = await a.heartbeat();
  const [atB] = await b.heartbeat();
  const first = { taskId: atA!, number: 1, error: DIED };
  assertEquals(await cluster.ask("runnerDied", first), { mayStart: true });
  // The answer was lost.
  assertEquals(await cluster.ask("runnerDied", first), { mayStart: true });
  await cluster.crash();
  const second = { taskId: atB!, number: 1, error: { ...DIED, message: "SIGKILL" } };
  assertEquals(await cluster.ask("runnerDied", second), { mayStart: true });
  assertEquals((await cluster.ask("clientHeartbeat", { clientId })).error, undefined);
  const reborn = await a.reborn();
  const [atReborn] = await reborn.heartbeat();
  await cluster.restart();
  const third = { taskId: atReborn!, number: 1, error: DIED };
  assertEquals(await cluster.ask("runnerDied", third), { mayStart: false });
  const { error } = await cluster.ask("clientHeartbeat", { clientId });
  assertEquals([error?.code, error?.details?.reason], ["aborted", RUNNERS_DIED]);
  for (const said of ['"poison"', 'worker "a"', 'worker "b"', "SIGKILL", DIED.message]) {
    assert(error!.message.includes(said), `${said} in ${error!.message}`);
  }
  const refused = await cluster.refused("runnerDied", { ...third, number: 2 });
  assertEquals(refused.details?.reason, TASK_ENDED);
  // Neither those that restart nor those that come get a task of it; the other job has its own.
  await cluster.restart();
  for (const worker of [reborn, b, cluster.worker("c", tableOf(9))]) {
    assertEquals((await worker.heartbeat()).length, 1, worker.name);
  }
  assertEquals((await cluster.ask("clientHeartbeat", bystander)).error, undefined);
  assertEquals((await iterationOf(cluster, "healthy")).tasks.length, 3);
});

Deno.test("dispatcher fails a job whose listing killed three runners on any workers, through its restarts, and no other", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const workers = ["a", "b"].map((name) => cluster.worker(name, tableOf(9)));
  for (const worker of workers) await worker.heartbeat();
  const bystander = await cluster.open(datasetId, { jobName: "healthy" });
  await settle();
  for (const worker of workers) {
    [worker.table, worker.listings] = [listerError(died(`of a file, at ${worker.name}`)), 0];
  }
  const { clientId } = await cluster.open(datasetId, { jobName: "poison" });
  await settle();
  assertEquals(workers.map(({ listings }) => listings), [1, 1]);
  assertEquals((await cluster.ask("clientHeartbeat", { clientId })).error, undefined);
  await cluster.crash();
  await settle();
  const { error } = await cluster.ask("clientHeartbeat", { clientId });
  assertEquals([error?.code, error?.details?.reason], ["aborted", RUNNERS_DIED]);
  const began = 'Listing the splits of job "poison" killed 3 runners, so the job failed (';
  for (const said of [began, 'worker "a": of a file, at a', 'worker "b": of a file, at b']) {
    assert(error!.message.includes(said), `${said} in ${error!.message}`);
  }
  await cluster.world.advance(60_000);
  assertEquals(workers.reduce((sum, { listings }) => sum + listings, 0), 3);
  assertEquals((await cluster.ask("clientHeartbeat", bystander)).error, undefined);
});

Deno.test("deaths of listers are forgotten when the splits are listed, and other failures count as none", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("a", tableOf(9));
  await worker.heartbeat();
  const lister = listerError(died("it was ended by SIGKILL"));
  worker.table = lister;
  const { clientId } = await cluster.open(await cluster.dataset(), { jobName: "job" });
  await settle();
  // Its machine has no process to list with: no file is to blame.
  for (const table of [new LeatError("resource_exhausted", "EAGAIN"), lister]) {
    worker.table = table;
    await cluster.world.advance(1_000);
  }
  worker.table = new LeatError("aborted", "Another failure");
  for (let pauses = 0; pauses < 5; pauses++) await cluster.world.advance(1_000);
  assertEquals((await cluster.ask("clientHeartbeat", { clientId })).error, undefined);
  worker.table = tableOf(9);
  await cluster.world.advance(1_000);
  const [taskId] = await worker.heartbeat();
  for (const [number, mayStart] of [[1, true], [2, true], [3, false]] as const) {
    const answer = await cluster.ask("runnerDied", { taskId: taskId!, number, error: DIED });
    assertEquals(answer, { mayStart });
  }
});

Deno.test("a save whose beginning killed three runners fails", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("a", tableOf(9));
  worker.begun = listerError(died("it was ended by SIGKILL"));
  await worker.heartbeat();
  const jobName = "distributedSave /saved";
  const save = { folder: "/saved", overwrite: false, fingerprint: hashBytes("numbers") };
  await cluster.open(await cluster.dataset(), { jobName, ...ORDERED, save });
  await settle();
  await cluster.world.advance(1_000);
  assertEquals((await iterationOf(cluster, jobName)).failure, undefined);
  await cluster.world.advance(1_000);
  const { failure, tasks } = await iterationOf(cluster, jobName);
  assert(failure!.includes("killed 3 runners"), failure);
  assertEquals(tasks.map(({ runnerDeaths }) => runnerDeaths), [undefined]);
});

Deno.test("a job whose runners died is shown with its failed tasks and their causes, and begins anew for who comes when all have left", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const worker = cluster.worker("a", tableOf(9));
  const { clientId } = await cluster.open(datasetId, { jobName: "poison", ...ORDERED });
  const [taskId] = await worker.heartbeat();
  await cluster.ask("getSplit", { taskId: taskId!, number: 1, source: 0, repetition: 0 });
  for (const number of [1, 2, 3]) {
    await cluster.ask("runnerDied", { taskId: taskId!, number, place: 0, error: DIED });
  }
  await cluster.ask("releaseClient", { clientId });
  const { failure, bottleneck, tasks } = await iterationOf(cluster, "poison");
  assert(failure!.startsWith('Split 0 of job "poison" killed 3 runners, so'), failure!);
  assertEquals(bottleneck, { kind: "stuck", text: `It has failed: ${failure}` });
  const causes = Array<string>(3).fill(DIED.message);
  assertEquals(tasks, [
    { taskId: taskId!, worker: "a", state: "failed", figures: null, runnerDeaths: causes },
  ]);
  // The function was mended, so that the pipeline is another one.
  const mended = await cluster.dataset("mended");
  const again = await cluster.open(mended, { jobName: "poison", ...ORDERED });
  assertEquals((await cluster.ask("clientHeartbeat", again)).error, undefined);
  assertEquals((await worker.heartbeat()).length, 1);
});

Deno.test("under DETERMINISTIC deaths count by split, and those of a split that was received are forgotten", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const worker = cluster.worker("a", tableOf(9));
  const { clientId } = await cluster.open(datasetId, { jobName: "job", ...ORDERED });
  const [taskId] = await worker.heartbeat();
  for (const request of [1, 2, 3]) {
    await cluster.ask("getSplit", { taskId: taskId!, number: request, source: 0, repetition: 0 });
  }
  let number = 0;
  const die = async (place: number) => {
    const request = { taskId: taskId!, number: ++number, place, error: DIED };
    return (await cluster.ask("runnerDied", request)).mayStart;
  };
  for (const place of [0, 0, 1, 1, 2]) assertEquals(await die(place), true);
  await cluster.ask("clientHeartbeat", {
    clientId,
    report: { kind: "ordered", mark: 1, done: [] },
  });
  const known = await iterationOf(cluster, "job");
  assertEquals(known.tasks[0]!.runnerDeaths?.length, 3);
  assertEquals(await die(1), false);
});

Deno.test("deaths at splits that a task does not have count as one piece of work, and name no split", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const worker = cluster.worker("a", tableOf(9));
  const { clientId } = await cluster.open(datasetId, { jobName: "job", ...ORDERED });
  const [taskId] = await worker.heartbeat();
  await cluster.ask("getSplit", { taskId: taskId!, number: 1, source: 0, repetition: 0 });
  const die = async (place: number) => {
    const request = { taskId: taskId!, number: place + 1, place, error: DIED };
    return (await cluster.ask("runnerDied", request)).mayStart;
  };
  for (const [place, mayStart] of [true, true, true, false].entries()) {
    assertEquals(await die(place), mayStart, `${place}`);
  }
  const { error } = await cluster.ask("clientHeartbeat", { clientId });
  assert(error!.message.startsWith('Job "job" killed 3 runners, so'), error!.message);
});

Deno.test("no deaths are kept of the tasks of a save that has failed", async () => {
  await using cluster = await TestCluster.start();
  // Its worker can save nothing.
  const worker = cluster.worker("a", tableOf(9));
  await worker.heartbeat();
  const jobName = "distributedSave /saved";
  const save = { folder: "/saved", overwrite: false, fingerprint: hashBytes("numbers") };
  await cluster.open(await cluster.dataset(), { jobName, ...ORDERED, save });
  await settle();
  const [taskId] = await worker.heartbeat();
  for (const number of [1, 2]) {
    const request = { taskId: taskId!, number, error: DIED };
    assertEquals(await cluster.ask("runnerDied", request), { mayStart: false });
  }
  const { failure, tasks } = await iterationOf(cluster, jobName);
  assert(failure !== undefined);
  assertEquals(tasks[0]!.runnerDeaths, undefined);
});

Deno.test("under a static policy deaths count by the share", async () => {
  await using cluster = await TestCluster.start({ workers: ["a", "b"] });
  const datasetId = await cluster.dataset();
  const workers = [cluster.worker("a"), cluster.worker("b")];
  await cluster.open(datasetId, { jobName: "job", processingMode: "DATA" });
  const tasks: number[] = [];
  for (const worker of workers) tasks.push(...await worker.heartbeat());
  const die = async (at: number, number: number) => {
    const request = { taskId: tasks[at]!, number, error: DIED };
    return (await cluster.ask("runnerDied", request)).mayStart;
  };
  for (const number of [1, 2]) for (const at of [0, 1]) assertEquals(await die(at, number), true);
  assertEquals(await die(1, 3), false);
});

Deno.test("workers that die with the same work, however often, fail no job", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const clients = [
    await cluster.open(datasetId, { jobName: "ordered", ...ORDERED }),
    await cluster.open(datasetId, { jobName: "off", processingMode: "OFF" }),
  ];
  let worker = cluster.worker("a", tableOf(9));
  for (let life = 0; life < 10; life++) {
    const tasks = await worker.heartbeat();
    assertEquals(tasks.length, 2);
    const request = { taskId: tasks[0]!, number: 1, source: 0, repetition: 0 };
    assertEquals((await cluster.ask("getSplit", request)).split?.sequence, 0);
    worker = await worker.reborn();
  }
  for (const { clientId } of clients) {
    assertEquals((await cluster.ask("clientHeartbeat", { clientId })).error, undefined);
  }
});

Deno.test("runnerDeathsMax says how many deaths fail a job", async () => {
  await using cluster = await TestCluster.start({ runnerDeathsMax: 1 });
  const { clientId } = await cluster.open(await cluster.dataset(), { jobName: "job" });
  const [taskId] = await cluster.worker("a", tableOf(9)).heartbeat();
  const request = { taskId: taskId!, number: 1, error: DIED };
  assertEquals(await cluster.ask("runnerDied", request), { mayStart: false });
  assertEquals((await cluster.ask("clientHeartbeat", { clientId })).error?.code, "aborted");
});

Deno.test("RUNNERS_DIED errors show the last eight deaths, so that clients accept the answer", async () => {
  await using cluster = await TestCluster.start({ runnerDeathsMax: 100 });
  const { clientId } = await cluster.open(await cluster.dataset(), { jobName: "job" });
  const [taskId = 0] = await cluster.worker("a", tableOf(9)).heartbeat();
  for (let number = 1; number <= 100; number++) {
    const message = `death ${number}: ${"x".repeat(1_000)}`;
    await cluster.ask("runnerDied", { taskId, number, error: { ...DIED, message } });
  }
  const answer = await cluster.ask("clientHeartbeat", { clientId });
  const { message } = dispatcherAnswers.clientHeartbeat(answer, "test").error!;
  assert(message.includes('killed 100 runners, so the job failed (the last 8: on worker "a"'));
  assert(message.includes("death 93: ") && message.includes("death 100: "), message);
  assert(!message.includes("death 92: "), message);
});

Deno.test("a runner's long error is cut between characters, so that its death is journaled", async () => {
  await using cluster = await TestCluster.start({ runnerDeathsMax: 1 });
  const { clientId } = await cluster.open(await cluster.dataset(), { jobName: "job" });
  const [taskId] = await cluster.worker("a", tableOf(9)).heartbeat();
  const text = "x".repeat(999);
  const request = { taskId: taskId!, number: 1, error: { ...DIED, message: `${text}😀` } };
  assertEquals(await cluster.ask("runnerDied", request), { mayStart: false });
  const { error } = await cluster.ask("clientHeartbeat", { clientId });
  assert(error!.message.includes(`${text}\ufffd)`), error!.message);
});
