/** How many workers the dispatcher wants, from what workers and clients say: by a clock that moves when told to. */

import { noReport } from "../../../lib/no_figures.ts";
import { assertEquals, assertMatch } from "../../../assert.ts";
import { TestCluster } from "../lib.ts";
import { report, running, say } from "../report/reports.ts";
import { openSave } from "../saves.ts";
import type { TestWorker } from "../test_worker.ts";

const SECOND = 1_000;

/** A job of one client on one worker: reports come every five seconds, as often as is looked. */
class Job {
  readonly cluster: TestCluster;
  readonly worker: TestWorker;
  readonly #clientId: number;
  #atMs = 0;
  #taken = 0;

  private constructor(cluster: TestCluster, worker: TestWorker, clientId: number) {
    this.cluster = cluster;
    this.worker = worker;
    this.#clientId = clientId;
  }

  static async start(cluster: TestCluster): Promise<Job> {
    const worker = cluster.worker("w");
    await worker.heartbeat();
    const { clientId } = await cluster.open(await cluster.dataset(), { jobName: "job" });
    await worker.heartbeat();
    return new Job(cluster, worker, clientId);
  }

  /** The worker makes 100 elements a second without rest; the client waits for this share of its time. */
  async pass(
    ms: number,
    waitingShare: number,
    { worker = true, client = true } = {},
  ): Promise<void> {
    for (const endMs = this.#atMs + ms; this.#atMs < endMs;) {
      this.#atMs += 5 * SECOND;
      this.#taken += 500;
      if (worker) await this.#workerReports();
      if (client) await this.#clientReports(waitingShare);
      await this.cluster.world.advance(5 * SECOND);
    }
  }

  async #clientReports(waitingShare: number): Promise<void> {
    await this.cluster.ask("clientHeartbeat", {
      clientId: this.#clientId,
      figures: {
        atMs: this.#atMs,
        ...noReport("client"),
        elements: this.#taken,
        waitingMs: waitingShare * this.#atMs,
        trainingMs: (1 - waitingShare) * this.#atMs,
      },
    });
  }

  async #workerReports(): Promise<void> {
    const { name, ref, tasks } = this.worker;
    const stats = {
      ...noReport("task"),
      produced: this.#taken,
      served: this.#taken,
      busyMs: this.#atMs,
    };
    await this.cluster.ask("workerHeartbeat", {
      name,
      worker: ref,
      tags: [],
      tasks: [...tasks.values()].map((task) => ({ ...task, stats })),
      figures: { atMs: this.#atMs },
    });
  }

  async scaling() {
    return (await this.cluster.ask("describe", null)).scaling;
  }
}

Deno.test("a dispatcher wants more workers when trainers wait for busy ones, and says why", async () => {
  await using cluster = await TestCluster.start({ scaling: { maxWorkers: 8 } });
  const job = await Job.start(cluster);
  await job.pass(30 * SECOND, 0.6);
  const { workers, wanted, text, jobs } = await job.scaling();
  assertEquals([workers, wanted, jobs[0]!.kind], [1, 2, "more"]);
  assertMatch(
    text,
    /^2 workers wanted, 1 there: job job waits 60 % of its time, and its workers are/,
  );
});

/** Epochs of four seconds, each with a client that has a clock of its own. */
async function readEpochs(
  cluster: TestCluster,
  epochs: number,
  job: NonNullable<Parameters<TestCluster["open"]>[1]>,
): Promise<void> {
  const worker = cluster.worker("w");
  const dataset = await cluster.dataset();
  const stats: Record<number, { produced: number; busyMs: number }> = {};
  for (let repetition = 0; repetition < epochs; repetition++) {
    const [atMs, clockMs] = [4 * SECOND * repetition, 1e6 * (epochs - repetition)];
    // The first report of an epoch is the last of the task before.
    await report(cluster, worker, { atMs, stats });
    await worker.heartbeat();
    const { clientId } = await cluster.open(dataset, { ...job, repetition });
    const taskId = (await worker.heartbeat()).at(-1)!;
    await report(cluster, worker, { atMs: atMs + 1, stats });
    await say(cluster, clientId, { atMs: clockMs });
    await cluster.world.advance(3.5 * SECOND);
    stats[taskId] = { produced: 70, busyMs: 3.5 * SECOND };
    // An ordered task ends when its reader leaves.
    if (job.ordered === undefined) worker.complete(taskId);
    const spent = { waitingMs: 2.5 * SECOND, trainingMs: SECOND };
    await say(cluster, clientId, { atMs: clockMs + 3.5 * SECOND, elements: 70, ...spent });
    await cluster.ask("releaseClient", { clientId });
    await cluster.world.advance(0.5 * SECOND);
  }
}

const ORDERED = {
  processingMode: "DETERMINISTIC",
  ordered: { seed: "0000000000000001", shuffled: false },
} as const;

for (
  const [what, job] of [
    ["a job", { jobName: "job" }],
    ["a DETERMINISTIC job", { jobName: "job", ...ORDERED }],
    ["a job without a name", {}],
  ] as const
) {
  Deno.test(`Scaling measures ${what} whose epochs are shorter than its interval`, async () => {
    await using cluster = await TestCluster.start({ scaling: { maxWorkers: 8 } });
    await readEpochs(cluster, 8, job);
    assertEquals((await cluster.ask("describe", null)).scaling.wanted, 2);
  });
}

Deno.test("Scaling keeps the workers of a job whose epochs are produced between two observations", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("w");
  const dataset = await cluster.dataset();
  const stats: Record<number, { produced: number; busyMs: number }> = {};
  // The dispatcher observes every five seconds.
  await cluster.world.advance(SECOND);
  for (let repetition = 0; repetition < 30; repetition++) {
    const atMs = 5 * SECOND * repetition;
    await worker.heartbeat();
    const { clientId } = await cluster.open(dataset, { jobName: "job", repetition });
    const taskId = (await worker.heartbeat()).at(-1)!;
    await report(cluster, worker, { atMs, stats });
    await say(cluster, clientId, { atMs });
    await cluster.world.advance(0.5 * SECOND);
    stats[taskId] = { produced: 20, busyMs: 0.5 * SECOND };
    worker.complete(taskId);
    await report(cluster, worker, { atMs: atMs + 0.5 * SECOND, stats });
    await cluster.world.advance(4.5 * SECOND);
    const spent = { waitingMs: 0.2 * SECOND, trainingMs: 4.8 * SECOND };
    await say(cluster, clientId, { atMs: atMs + 5 * SECOND, elements: 20, ...spent });
    await cluster.ask("releaseClient", { clientId });
  }
  const { wanted, jobs } = (await cluster.ask("describe", null)).scaling;
  assertEquals([wanted, jobs[0]?.kind], [1, "enough"]);
});

Deno.test("Scaling waits for a worker that fills a buffer, and for none that has nothing to do", async () => {
  for (const [busyMs, kind] of [[30 * SECOND, "unknown"], [0, "enough"]] as const) {
    await using cluster = await TestCluster.start();
    const { workers, taskIds, clientId } = await running(cluster, ["working", "other"]);
    for (let atMs = 0; atMs <= 30 * SECOND; atMs += 5 * SECOND) {
      const share = atMs / (30 * SECOND);
      for (const [i, stats] of [{ produced: 300, busyMs: 30 * SECOND }, { busyMs }].entries()) {
        const now = Object.entries(stats).map(([key, value]) => [key, share * value]);
        const reported = { [taskIds[i]!]: Object.fromEntries(now) };
        await report(cluster, workers[i]!, { atMs, stats: reported });
      }
      await say(cluster, clientId, { atMs, elements: 300 * share, trainingMs: atMs });
      await cluster.world.advance(5 * SECOND);
    }
    assertEquals((await cluster.ask("describe", null)).scaling.jobs[0]!.kind, kind);
  }
});

Deno.test("a dispatcher wants no more workers for a trainer that does not wait", async () => {
  await using cluster = await TestCluster.start();
  const job = await Job.start(cluster);
  await job.pass(60 * SECOND, 0.02);
  const { wanted, jobs } = await job.scaling();
  assertEquals([wanted, jobs[0]!.kind], [1, "enough"]);
});

Deno.test("a dispatcher decides nothing on what a trainer said long ago, and decides once it says more", async () => {
  await using cluster = await TestCluster.start({ scaling: { maxWorkers: 8 } });
  const job = await Job.start(cluster);
  const decided = async () => {
    const { wanted, jobs } = await job.scaling();
    return [wanted, jobs[0]!.kind];
  };
  await job.pass(30 * SECOND, 0.02);
  assertEquals(await decided(), [1, "enough"]);
  // For less long than the dispatcher waits before it takes the trainer to be gone.
  for (let looks = 0; looks < 3; looks++) {
    await job.pass(35 * SECOND, 0, { client: false });
    assertEquals(await decided(), [1, "unknown"]);
  }
  await job.pass(30 * SECOND, 0.6);
  assertEquals(await decided(), [2, "more"]);
});

Deno.test("workers are asked for figures while somebody reads, and old figures decide nothing", async () => {
  await using cluster = await TestCluster.start();
  const job = await Job.start(cluster);
  const before = job.worker.wakes;
  await job.pass(30 * SECOND, 0.6, { worker: false });
  assertEquals(job.worker.wakes - before >= 5, true);
  assertEquals((await job.scaling()).jobs[0]!.kind, "unknown");
});

Deno.test("nobody is asked for figures while nobody reads", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("w");
  await worker.heartbeat();
  await cluster.world.advance(30 * SECOND);
  assertEquals(worker.wakes, 0);
});

Deno.test("a job that none of the workers there may serve wants one, and says which", async () => {
  await using cluster = await TestCluster.start();
  await cluster.worker("plain").heartbeat();
  const { clientId } = await cluster.open(await cluster.dataset(), {
    jobName: "tagged",
    targetTags: ["b"],
  });
  await cluster.ask("clientHeartbeat", { clientId });
  await cluster.world.advance(5 * SECOND);
  const { text, pools } = (await cluster.ask("describe", null)).scaling;
  assertEquals(pools, [{ targetTags: ["b"], wanted: 1 }]);
  assertMatch(
    text,
    /has no worker yet: it waits for a worker with the tag "b" .*no live worker is one/,
  );
});

Deno.test("a job that only workers of the trainer's own process serve wants no other worker", async () => {
  await using cluster = await TestCluster.start();
  const own = cluster.worker("own");
  own.place = { process: "process a", isPrivate: true };
  await own.heartbeat();
  const local = { targetWorkers: "local", process: "process a" } as const;
  const { clientId } = await cluster.open(await cluster.dataset(), local);
  await own.heartbeat();
  await cluster.ask("clientHeartbeat", { clientId });
  await cluster.world.advance(5 * SECOND);
  const { wanted, pools, jobs } = (await cluster.ask("describe", null)).scaling;
  assertEquals([wanted, pools, jobs], [0, [], []]);
});

Deno.test("Scaling wants all listed workers of a static job until each has produced its share", async () => {
  await using cluster = await TestCluster.start({ workers: ["a", "b"] });
  const a = cluster.worker("a");
  await a.heartbeat();
  const { clientId } = await cluster.open(await cluster.dataset(), { processingMode: "FILE" });
  const [taskId = 0] = await a.heartbeat();
  a.complete(taskId);
  for (let looks = 0; looks < 30; looks++) {
    await a.heartbeat();
    await cluster.ask("clientHeartbeat", { clientId });
    await cluster.world.advance(5 * SECOND);
  }
  const { wanted, pools } = (await cluster.ask("describe", null)).scaling;
  assertEquals([wanted, pools], [2, [{ names: ["a", "b"], wanted: 2 }]]);
});

Deno.test("Scaling wants a worker for a save that continues without its client", async () => {
  await using cluster = await TestCluster.start({ jobGcTimeoutMs: 60 * SECOND });
  const { worker, clientId } = await openSave(cluster);
  await cluster.ask("releaseClient", { clientId });
  for (let looks = 0; looks < 30; looks++) {
    await worker.heartbeat();
    await cluster.world.advance(5 * SECOND);
  }
  assertEquals((await cluster.ask("describe", null)).scaling.wanted, 1);
});
