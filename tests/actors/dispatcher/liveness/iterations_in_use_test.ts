/** Which jobs are forgotten if their clients are tasks of other jobs, or of their own. */
import { joinIteration } from "../../../../actors/client/first_answer.ts";
import { type DispatcherProtocol, TASK_ENDED } from "../../../../actors/dispatcher/protocol.ts";
import type { AnswerOf } from "../../../../actors/runtime/protocol.ts";
import { assertEquals } from "../../../assert.ts";
import { tableOf, TestCluster } from "../lib.ts";
import type { TestWorker } from "../test_worker.ts";

const CLUSTER_ID = "00000000deadbeef";
const OFF = { processingMode: "OFF" } as const;
/** The default of `jobGcTimeoutMs`, in ms, and the time of two checks. */
const GC_MS = 310_000;

/** A cluster with one worker, in which no client and no worker times out. */
class Chain implements AsyncDisposable {
  readonly cluster: TestCluster;
  readonly #worker: TestWorker;
  readonly #datasetId: string;

  private constructor(cluster: TestCluster, datasetId: string) {
    this.cluster = cluster;
    this.#worker = cluster.worker("w");
    this.#datasetId = datasetId;
  }

  static async start(): Promise<Chain> {
    const cluster = await TestCluster.start({ workerTimeoutMs: 1e9, clientTimeoutMs: 1e9 });
    const chain = new Chain(cluster, await cluster.dataset());
    await chain.#worker.heartbeat();
    return chain;
  }

  /** Opens a job, as a program or for a task. */
  async open(
    jobName?: string,
    taskId?: number,
    clusterId = CLUSTER_ID,
  ): Promise<AnswerOf<DispatcherProtocol, "openIteration">> {
    return await this.cluster.ask("openIteration", this.#request(jobName, taskId, clusterId));
  }

  /** Opens a job, and returns the task that this starts. */
  async opensTask(jobName?: string, taskId?: number): Promise<number> {
    await this.open(jobName, taskId);
    const tasks = await this.#worker.heartbeat();
    return tasks.at(-1)!;
  }

  async jobs(): Promise<(string | null)[]> {
    const { jobs } = await this.cluster.ask("describe", null);
    return jobs.map(({ name }) => name);
  }

  async refusalOf(jobName: string, taskId: number): Promise<unknown> {
    const error = await this.cluster.refused("openIteration", this.#request(jobName, taskId));
    assertEquals(error.code, "failed_precondition");
    return error.details?.reason;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster[Symbol.asyncDispose]();
  }

  #request(jobName?: string, taskId?: number, clusterId = CLUSTER_ID) {
    const request = this.cluster.openRequest(this.#datasetId, {
      ...OFF,
      ...(jobName === undefined ? {} : { jobName }),
    });
    return taskId === undefined ? request : { ...request, forTask: { clusterId, taskId } };
  }
}

Deno.test("a job that reads itself is forgotten after jobGcTimeoutMs, once no program reads it", async () => {
  await using chain = await Chain.start();
  const { clientId } = await chain.open();
  const first = await chain.opensTask("c", 1);
  await chain.open("c", first);
  await chain.cluster.world.advance(GC_MS);
  assertEquals((await chain.jobs()).length, 2, "a program reads through the first job");
  await chain.cluster.ask("releaseClient", { clientId });
  await chain.cluster.world.advance(200_000);
  assertEquals(await chain.jobs(), ["c"], "not yet");
  await chain.cluster.world.advance(GC_MS - 200_000);
  assertEquals(await chain.jobs(), []);
});

Deno.test("two jobs that read each other are forgotten, also by a restarted dispatcher", async () => {
  await using chain = await Chain.start();
  const { clientId } = await chain.open("c");
  const c = await chain.opensTask("c");
  const d = await chain.opensTask("d", c);
  await chain.open("c", d);
  await chain.cluster.ask("releaseClient", { clientId });
  await chain.cluster.ask("releaseClient", { clientId: clientId + 1 });
  await chain.cluster.restart();
  assertEquals((await chain.jobs()).sort(), ["c", "d"]);
  await chain.cluster.world.advance(GC_MS);
  assertEquals(await chain.jobs(), []);
});

Deno.test("a job that a task reads is kept while a program reads through other jobs, and no longer", async () => {
  await using chain = await Chain.start();
  const { clientId } = await chain.open("outer");
  const outer = await chain.opensTask("outer");
  const middle = await chain.opensTask("middle", outer);
  await chain.open("inner", middle);
  await chain.cluster.ask("releaseClient", { clientId });
  await chain.cluster.world.advance(1_000_000);
  assertEquals((await chain.jobs()).sort(), ["inner", "middle", "outer"]);
  await chain.cluster.ask("releaseClient", { clientId: clientId + 1 });
  await chain.cluster.world.advance(GC_MS);
  assertEquals(await chain.jobs(), []);
});

Deno.test("a program that comes back in time keeps a chain of jobs", async () => {
  await using chain = await Chain.start();
  const { clientId } = await chain.open("outer");
  const outer = await chain.opensTask("outer");
  await chain.open("inner", outer);
  for (const each of [clientId, clientId + 1]) {
    await chain.cluster.ask("releaseClient", { clientId: each });
  }
  await chain.cluster.world.advance(290_000);
  await chain.open("outer");
  await chain.cluster.world.advance(1_000_000);
  assertEquals((await chain.jobs()).sort(), ["inner", "outer"]);
});

Deno.test("jobs that take turns to read each other do not keep each other", async () => {
  await using chain = await Chain.start();
  const { clientId } = await chain.open("c");
  const c = await chain.opensTask("c");
  const d = await chain.opensTask("d", c);
  for (const each of [clientId, clientId + 1, clientId + 2]) {
    await chain.cluster.ask("releaseClient", { clientId: each });
  }
  for (let turn = 0; turn < 3; turn++) {
    for (const [jobName, taskId] of [["d", c], ["c", d]] as const) {
      const { clientId } = await chain.open(jobName, taskId);
      await chain.cluster.world.advance(50_000);
      await chain.cluster.ask("releaseClient", { clientId });
    }
  }
  await chain.cluster.world.advance(GC_MS - 300_000);
  assertEquals(await chain.jobs(), []);
});

Deno.test("a job that a task of an idle job creates is forgotten with that job", async () => {
  await using chain = await Chain.start();
  const { clientId } = await chain.open("0");
  let newest = await chain.opensTask("0");
  for (const each of [clientId, clientId + 1]) {
    await chain.cluster.ask("releaseClient", { clientId: each });
  }
  for (let number = 1; number <= 3; number++) {
    await chain.cluster.world.advance(90_000);
    newest = await chain.opensTask(String(number), newest);
  }
  assertEquals((await chain.jobs()).length, 4);
  await chain.cluster.world.advance(GC_MS - 270_000);
  assertEquals(await chain.jobs(), []);
  assertEquals(await chain.refusalOf("4", newest), TASK_ENDED);
});

Deno.test("a job whose task opens it anew, in its own place, is forgotten", async () => {
  await using cluster = await TestCluster.start({ workerTimeoutMs: 1e9, clientTimeoutMs: 1e9 });
  const worker = cluster.worker("w", tableOf(1));
  await worker.heartbeat();
  const request = (runId: string) => ({
    ...cluster.openRequest("1", {
      processingMode: "DETERMINISTIC",
      ordered: { seed: "0".repeat(16), shuffled: false },
      jobName: "c",
    }),
    runId,
  });
  await cluster.dataset();
  await cluster.ask("openIteration", request("1"));
  const [taskId = 0] = await worker.heartbeat();
  await joinIteration(
    { ...request("2"), forTask: { clusterId: CLUSTER_ID, taskId } },
    (asked) => cluster.ask("openIteration", asked),
  );
  await cluster.world.advance(10_000);
  assertEquals((await cluster.ask("describe", null)).jobs, []);
});

Deno.test("a task of another cluster keeps the job that it reads, like a program", async () => {
  await using chain = await Chain.start();
  const { clientId } = await chain.open("c", 1, "00000000cafecafe");
  await chain.cluster.world.advance(1_000_000);
  assertEquals(await chain.jobs(), ["c"]);
  await chain.cluster.ask("releaseClient", { clientId });
  await chain.cluster.world.advance(GC_MS);
  assertEquals(await chain.jobs(), []);
});
