/**
 * Whose a client and a job are: what others are refused, also after a restart; and what one identity may
 * take.
 */
import { joinIteration } from "../../../../actors/client/first_answer.ts";
import type { DispatcherConfig } from "../../../../actors/dispatcher/config.ts";
import { createDispatcher } from "../../../../actors/dispatcher/dispatcher.ts";
import { DATASET_BYTES } from "../../../../actors/dispatcher/held_bytes.ts";
import type { DispatcherProtocol } from "../../../../actors/dispatcher/protocol.ts";
import { checkedQuotas } from "../../../../actors/dispatcher/jobs/quotas.ts";
import { normalFolder } from "../../../../actors/dispatcher/modes/save/save_folder.ts";
import { RequestRates } from "../../../../actors/dispatcher/jobs/request_rates.ts";
import type { Identity } from "../../../../actors/runtime/identity.ts";
import type { AnswerOf, MethodOf, RequestOf } from "../../../../actors/runtime/protocol.ts";
import { ActorSystem } from "../../../../actors/runtime/system.ts";
import { hashBytes } from "../../../../core/hash.ts";
import { LeatError } from "../../../../core/error.ts";
import { inlinePair } from "../../../../transport/inline.ts";
import { DenoWorld } from "../../../../platform/deno_world.ts";
import { noReport } from "../../../lib/no_figures.ts";
import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../../../assert.ts";
import { settle, tableOf, TestCluster, workIn } from "../lib.ts";

const ADMIN: Identity = { name: "root", role: "admin" };
const A: Identity = { name: "team-a", role: "client" };
const B: Identity = { name: "team-b", role: "client" };
/** What a pipeline counts for beyond its bytes, if its id is one digit. */
const DATASET_EXTRA = DATASET_BYTES + 1 + hashBytes("").length;
const PATIENCE = { timeoutMs: 60_000 };

/** A dispatcher, and teams that have proved who they are. */
class Teams implements AsyncDisposable {
  readonly #system: ActorSystem;
  readonly #world = new DenoWorld({ logLevel: "off", logsInMemory: true });
  readonly #nodes: ActorSystem[] = [];

  constructor(config: DispatcherConfig = {}) {
    this.#system = new ActorSystem({ node: "dispatcher", world: this.#world });
    this.#system.spawn<DispatcherProtocol>({
      name: "dispatcher",
      create: (context) => createDispatcher(context, config),
    });
  }

  /** A node of a team. */
  join(identity: Identity, node: string = identity.name): Team {
    const system = new ActorSystem({ node, world: this.#world });
    const ids = [this.#world, this.#system.id, this.#world, system.id] as const;
    const [there, here] = inlinePair(...ids);
    this.#system.attach(Object.assign(there, { identity }));
    system.attach(here);
    this.#nodes.push(system);
    return new Team(system);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const node of this.#nodes) await node.stop();
    await this.#system.stop();
  }
}

class Team {
  readonly #system: ActorSystem;
  #requests = 0;

  constructor(system: ActorSystem) {
    this.#system = system;
  }

  get incarnation(): string {
    return this.#system.id.incarnation;
  }

  ask<M extends MethodOf<DispatcherProtocol>>(
    method: M,
    request: RequestOf<DispatcherProtocol, M>,
  ): Promise<AnswerOf<DispatcherProtocol, M>> {
    const target = { node: "dispatcher", path: "/dispatcher" };
    return this.#system.ask<DispatcherProtocol, M>(target, method, request, PATIENCE);
  }

  async refused<M extends MethodOf<DispatcherProtocol>>(
    method: M,
    request: RequestOf<DispatcherProtocol, M>,
  ): Promise<LeatError> {
    return await assertRejects(() => this.ask(method, request), LeatError);
  }

  async register(text: string, transient = true): Promise<string> {
    const { datasetId } = await this.ask("registerDataset", {
      ...definitionOf(new TextEncoder().encode(text)),
      ...(transient ? { transient } : {}),
    });
    return datasetId;
  }

  openRequest(datasetId: string, jobName?: string): RequestOf<DispatcherProtocol, "openIteration"> {
    return {
      requestId: `${this.#system.id.node} ${++this.#requests}`,
      ...(jobName === undefined ? {} : { jobName }),
      parameters: { datasetId, processingMode: "DYNAMIC", sharing: false },
      repetition: 0,
    };
  }
}

function definitionOf(graph: Uint8Array) {
  return { graph, fingerprint: hashBytes(graph), cardinality: 10 };
}

Deno.test("a client is read and released with the secret that it was opened with alone, also after a restart", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const request = { ...cluster.openRequest(datasetId), secret: "open sesame" };
  const { clientId } = await cluster.ask("openIteration", request);
  for (const restarts of [0, 1]) {
    if (restarts > 0) await cluster.crash();
    for (const forged of [{ clientId }, { clientId, secret: "open barley" }]) {
      for (const method of ["clientHeartbeat", "releaseClient"] as const) {
        const { code, message } = await cluster.refused(method, forged);
        assertEquals(code, "permission_denied");
        assertStringIncludes(message, `Client ${clientId}`);
      }
    }
    const again = await cluster.refused("openIteration", { ...request, secret: "open barley" });
    assertEquals(again.code, "permission_denied");
    assertEquals((await cluster.ask("openIteration", request)).clientId, clientId);
    await cluster.ask("clientHeartbeat", { clientId, secret: "open sesame" });
  }
  await cluster.ask("releaseClient", { clientId, secret: "open sesame" });
});

Deno.test("the journal holds no client's secret", async () => {
  await using cluster = await TestCluster.start();
  const request = { ...cluster.openRequest(await cluster.dataset()), secret: "open sesame" };
  await cluster.ask("openIteration", request);
  for (const suffix of ["", "-wal"]) {
    const bytes = await Deno.readFile(cluster.journalPath + suffix);
    assertEquals(new TextDecoder("latin1").decode(bytes).includes("open sesame"), false);
  }
});

Deno.test("a neighbour who names another's stream puts nobody out of it", async () => {
  await using teams = new Teams();
  const [a, b] = [teams.join(A), teams.join(B)];
  const datasetId = await a.register("stream", false);
  const request = (team: Team, jobName: string, repetition: number) => ({
    ...team.openRequest(datasetId, jobName),
    parameters: {
      ...{ datasetId, processingMode: "DETERMINISTIC", sharing: false } as const,
      ordered: { seed: "0000000000000001", shuffled: false },
    },
    ...{ repetition, stream: "the stream" },
  });
  const lastReader = await a.ask("openIteration", { ...request(a, "job", 0), runId: "1" });
  // It says that it was restored, and that its run is another one.
  for (const startAt of [{}, { startAt: 1 }]) {
    const forged = { ...request(b, `other ${startAt.startAt}`, 0), ...startAt, runId: "2" };
    await joinIteration(forged, (asked) => b.ask("openIteration", asked));
  }
  await a.ask("openIteration", { ...request(a, "job", 1), lastReader, runId: "1" });
});

Deno.test("an admin who restores a client's job does not take it over", async () => {
  await using teams = new Teams();
  const [a, admin] = [teams.join(A), teams.join(ADMIN)];
  const datasetId = await a.register("stream", false);
  const open = (team: Team, runId: string) =>
    joinIteration({
      ...team.openRequest(datasetId, "job"),
      parameters: {
        ...{ datasetId, processingMode: "DETERMINISTIC", sharing: false },
        ordered: { seed: "0000000000000001", shuffled: false },
      },
      ...{ stream: "the stream", startAt: 0, runId },
    }, (asked) => team.ask("openIteration", asked));
  await open(a, "1");
  await open(admin, "2");
  await open(a, "3");
});

Deno.test("a named job is joined by the identity that began it and by admins", async () => {
  await using teams = new Teams();
  const [a, alsoA, b, admin] = [
    teams.join(A),
    teams.join(A, "team-a-2"),
    teams.join(B),
    teams.join(ADMIN),
  ];
  const datasetId = await a.register("shared", false);
  const { jobId } = await a.ask("openIteration", a.openRequest(datasetId, "job"));
  assertEquals(
    (await alsoA.ask("openIteration", alsoA.openRequest(datasetId, "job"))).jobId,
    jobId,
  );
  assertEquals(
    (await admin.ask("openIteration", admin.openRequest(datasetId, "job"))).jobId,
    jobId,
  );
  const { code, message } = await b.refused("openIteration", b.openRequest(datasetId, "job"));
  assertEquals(code, "permission_denied");
  for (const part of [`"job"`, `"team-a"`, `"team-b"`]) assertStringIncludes(message, part);
  const other = await b.ask("openIteration", b.openRequest(datasetId, "other"));
  assert(other.jobId !== jobId);
});

Deno.test("the job of a save belongs to its folder, however its path is spelt and whatever name it is given", async () => {
  await using teams = new Teams();
  const [a, b] = [teams.join(A), teams.join(B)];
  const datasetId = await a.register("saved", false);
  const request = (team: Team, folder: string, jobName?: string) => ({
    ...team.openRequest(datasetId, jobName),
    parameters: {
      ...{ datasetId, processingMode: "DETERMINISTIC", sharing: false } as const,
      ordered: { seed: "0000000000000000", shuffled: false },
      save: { folder, overwrite: true, fingerprint: hashBytes("saved") },
    },
  });
  const { jobId } = await a.ask("openIteration", request(a, "/data/v"));
  const spellings = ["/data/./v", "/data//v", "/data/v/", "/data/x/../v", "//data/v", "/../data/v"];
  for (const folder of spellings) {
    for (const jobName of [undefined, "another", `distributedSave ${folder}`]) {
      const { code } = await b.refused("openIteration", request(b, folder, jobName));
      assertEquals(code, "permission_denied", folder);
    }
    assertEquals((await a.ask("openIteration", request(a, folder))).jobId, jobId, folder);
  }
  for (const folder of ["data/v", "./data/v", "../data/v", "file:///data/v", "s3://data/v"]) {
    const { code, message } = await b.refused("openIteration", request(b, folder));
    assertEquals(code, "invalid_argument", folder);
    assertStringIncludes(message, "absolute path");
  }
  const secretive = await b.refused("openIteration", request(b, "https://u:secret@h/v?k=secret"));
  assertEquals(secretive.message.includes("secret"), false, secretive.message);
  await b.ask("openIteration", request(b, "/data/v2"));
  const squatted = b.openRequest(datasetId, "distributedSave /data/v3");
  assertEquals((await b.refused("openIteration", squatted)).code, "invalid_argument");
});

Deno.test("an aborted save is its owner's as a completed one, until it is forgotten", async () => {
  await using teams = new Teams();
  const [a, b] = [teams.join(A), teams.join(B)];
  const datasetId = await a.register("saved", false);
  const save = (team: Team) => ({
    ...team.openRequest(datasetId),
    parameters: {
      ...{ datasetId, processingMode: "DETERMINISTIC", sharing: false } as const,
      ordered: { seed: "0000000000000000", shuffled: false },
      save: { folder: "/data/v", overwrite: true, fingerprint: hashBytes("saved") },
    },
  });
  // The second time it continues the save that it has aborted.
  for (let aborts = 0; aborts < 2; aborts++) {
    const { clientId } = await a.ask("openIteration", save(a));
    await a.ask("releaseClient", { clientId, cancel: true });
    const { code, message } = await b.refused("openIteration", save(b));
    assertEquals(code, "permission_denied");
    assertStringIncludes(message, `belongs to "${A.name}"`);
  }
});

Deno.test("normalFolder leaves out steps that lead nowhere", () => {
  const cases = [
    ["/", "/"],
    ["/a/b", "/a/b"],
    ["a", "a"],
    ["./a", "a"],
    ["../a", "../a"],
    ["a/../../b", "../b"],
    ["/..", "/"],
    [".", "."],
    ["a/..", "."],
  ];
  for (const [path, normal] of cases) assertEquals(normalFolder(path!), normal, path);
});

Deno.test("a dataset registered for jobs alone is read by the identity that did so, another's equal one is its own", async () => {
  await using teams = new Teams();
  const [a, b] = [teams.join(A), teams.join(B)];
  const datasetId = await a.register("secret pipeline");
  for (
    const refused of [
      await b.refused("getDataset", { datasetId }),
      await b.refused("openIteration", b.openRequest(datasetId)),
      await b.refused("registerDataset", {
        ...definitionOf(new TextEncoder().encode("secret pipeline")),
        datasetId,
      }),
    ]
  ) {
    assertEquals(refused.code, "permission_denied");
    assertStringIncludes(refused.message, `"${datasetId}"`);
  }
  assertEquals((await a.ask("getDataset", { datasetId })).datasetId, datasetId);
  const own = await b.register("secret pipeline");
  assert(own !== datasetId);
  await b.ask("openIteration", b.openRequest(own));
  assertEquals(await a.register("secret pipeline"), datasetId);
});

Deno.test("registerDataset refuses the fingerprint of another pipeline, and an id that the dispatcher may give later", async () => {
  await using teams = new Teams();
  const b = teams.join(B);
  const { fingerprint } = definitionOf(Uint8Array.of(1));
  const poison = { ...definitionOf(Uint8Array.of(2)), fingerprint };
  const { code, message } = await b.refused("registerDataset", poison);
  assertEquals(code, "invalid_argument");
  assertStringIncludes(message, fingerprint);
  const last = { ...definitionOf(Uint8Array.of(3)), datasetId: "999999999999999" };
  assertEquals((await b.refused("registerDataset", last)).code, "invalid_argument");
});

Deno.test("jobs, clients and bytes of pipelines are limited for each identity by itself", async () => {
  const datasetsBytesMax = 150 + 2 * DATASET_EXTRA;
  const quotas = { jobsMax: 2, clientsMax: 3, datasetBytesMax: 100, datasetsBytesMax };
  await using teams = new Teams({ quotas });
  const [a, b] = [teams.join(A), teams.join(B)];
  const datasetId = await a.register("x".repeat(100), false);
  for (const [bytes, limit] of [[101, "datasetBytesMax"], [60, "datasetsBytesMax"]] as const) {
    const refused = await a.refused("registerDataset", definitionOf(new Uint8Array(bytes)));
    assertEquals(refused.code, "resource_exhausted");
    assertStringIncludes(refused.message, limit);
  }
  await b.register("y".repeat(60), false);
  const first = a.openRequest(datasetId, "job 1");
  await a.ask("openIteration", first);
  await a.ask("openIteration", a.openRequest(datasetId, "job 2"));
  const jobs = await a.refused("openIteration", a.openRequest(datasetId, "job 3"));
  await a.ask("openIteration", a.openRequest(datasetId, "job 2"));
  const clients = await a.refused("openIteration", a.openRequest(datasetId, "job 2"));
  for (const [{ code, message }, limit] of [[jobs, "jobsMax"], [clients, "clientsMax"]] as const) {
    assertEquals(code, "resource_exhausted");
    assertStringIncludes(message, limit);
  }
  await a.ask("openIteration", first);
  await b.ask("openIteration", b.openRequest(datasetId, "job 4"));
});

Deno.test("an identity's tasks on a worker are limited; ended ones and those of others do not count", async () => {
  await using teams = new Teams({ quotas: { tasksMax: 2 } });
  const [a, b, admin] = [teams.join(A), teams.join(B), teams.join(ADMIN)];
  const datasetId = await a.register("x", false);
  const first = a.openRequest(datasetId, "job 1");
  const { clientId } = await a.ask("openIteration", first);
  const second = a.openRequest(datasetId, "job 2");
  await a.ask("openIteration", second);
  const third = a.openRequest(datasetId, "job 3");
  for (const request of [third, { ...a.openRequest(datasetId, "job 2"), repetition: 1 }]) {
    const { code, message } = await a.refused("openIteration", request);
    assertEquals(code, "resource_exhausted");
    assertStringIncludes(message, "tasksMax");
  }
  // Another client of a job needs no other task, and a repeated request changes nothing.
  await a.ask("openIteration", a.openRequest(datasetId, "job 2"));
  await a.ask("openIteration", second);
  const others = await b.register("y", false);
  await b.ask("openIteration", b.openRequest(others, "job 4"));
  for (const name of ["job 5", "job 6", "job 7"]) {
    await admin.ask("openIteration", admin.openRequest(others, name));
  }
  const { secret } = first as { readonly secret?: string };
  await a.ask("releaseClient", { clientId, ...(secret === undefined ? {} : { secret }) });
  await a.ask("openIteration", third);
});

Deno.test("a job without clients counts against the limit of tasks while it has a task", async () => {
  await using teams = new Teams({ quotas: { tasksMax: 1 } });
  const worker = teams.join({ name: "workers", role: "worker" }, "worker");
  await worker.ask("workerHeartbeat", {
    name: "worker",
    worker: { node: "worker", path: "/", incarnation: `${worker.incarnation}-1` },
    tags: [],
    tasks: [],
  });
  const a = teams.join(A);
  const datasetId = await a.register("x", false);
  const { clientId } = await a.ask("openIteration", a.openRequest(datasetId, "job 1"));
  await a.ask("releaseClient", { clientId });
  const { code, message } = await a.refused("openIteration", a.openRequest(datasetId, "job 2"));
  assertEquals([code, message.includes("tasksMax")], ["resource_exhausted", true]);
  await a.ask("openIteration", a.openRequest(datasetId, "job 1"));
});

Deno.test("completed tasks that nobody reads end where an identity would have more tasks than its limit", async () => {
  await using teams = new Teams({ quotas: { tasksMax: 2 } });
  const worker = teams.join({ name: "workers", role: "worker" }, "worker");
  const completed = new Set<number>();
  /** Completes all tasks; answers those that the worker must drop. */
  const heartbeat = async () => {
    const { newTasks, endedTasks } = workIn(
      await worker.ask("workerHeartbeat", {
        ...{ name: "worker", tags: [] },
        worker: { node: "worker", path: "/", incarnation: `${worker.incarnation}-1` },
        tasks: [...completed].map((taskId) => ({ taskId, completed: true })),
      }),
    );
    for (const taskId of endedTasks) completed.delete(taskId);
    for (const { taskId } of newTasks) completed.add(taskId);
    return { newTasks: newTasks.map(({ taskId }) => taskId), endedTasks };
  };
  await heartbeat();
  const [a, b] = [teams.join(A), teams.join(B)];
  const datasetId = await a.register("x", false);
  /** Reads a repetition of a job to its end, and leaves; the task that served it. */
  const read = async (team: Team, repetition: number) => {
    const request = { ...team.openRequest(datasetId, `job of ${team.incarnation}`), repetition };
    const { clientId } = await team.ask("openIteration", request);
    const { newTasks: [taskId], endedTasks } = await heartbeat();
    await heartbeat();
    await team.ask("releaseClient", { clientId });
    return { taskId: taskId!, endedTasks };
  };
  const [first, second] = [await read(a, 0), await read(a, 1)];
  assertEquals([first.endedTasks, second.endedTasks, (await read(b, 0)).endedTasks], [[], [], []]);
  assertEquals((await read(a, 2)).endedTasks, [first.taskId]);
  assertEquals((await read(a, 3)).endedTasks, [second.taskId]);
  // A later client finds the iteration finished, and no task begins it anew.
  const late = await a.ask("openIteration", a.openRequest(datasetId, `job of ${a.incarnation}`));
  assertEquals((await heartbeat()).newTasks, []);
  const { finished } = await a.ask("clientHeartbeat", { clientId: late.clientId });
  assertEquals(finished, true);
});

Deno.test("a job that the pipeline of a task reads belongs to the owner of the task's job", async () => {
  await using teams = new Teams({ quotas: { tasksMax: 2 } });
  const { clusterId } = await teams.join(ADMIN).ask("hello", null);
  const [a, b] = [teams.join(A), teams.join(B)];
  const workers = await Promise.all(["w1", "w2"].map(async (name) => {
    const worker = teams.join({ name: `host of ${name}`, role: "worker" }, name);
    const heartbeat = async () => {
      const answer = await worker.ask("workerHeartbeat", {
        ...{ name, tags: [], tasks: [] },
        worker: { node: name, path: "/", incarnation: `${worker.incarnation}-1` },
      });
      return workIn(answer).newTasks.map(({ taskId }) => taskId);
    };
    await heartbeat();
    return { worker, heartbeat };
  }));
  const outer = await a.register("outer", false);
  await a.ask("openIteration", a.openRequest(outer));
  /** Reads a job as a task of the worker. */
  const read = async (index: number, jobName: string, asOf = index) => {
    const { worker } = workers[index]!;
    const [taskId = 0] = await workers[asOf]!.heartbeat();
    const forTask = { clusterId, taskId };
    const definition = definitionOf(new TextEncoder().encode("inner"));
    const request = { ...definition, transient: true, forTask } as const;
    const { datasetId } = await worker.ask("registerDataset", request);
    return await worker.ask("openIteration", {
      ...worker.openRequest(datasetId, jobName),
      forTask,
    });
  };
  const [one, other] = [await read(0, "inner"), await read(1, "inner")];
  assertEquals(other.jobId, one.jobId, "the workers of one job read one inner job");
  const inner = await a.register("inner");
  await a.ask("openIteration", a.openRequest(inner, "inner"));
  const ofAnother = await b.refused(
    "openIteration",
    b.openRequest(await b.register("inner"), "inner"),
  );
  assertStringIncludes(ofAnother.message, '"team-a"');
  const tooMany = await assertRejects(() => read(0, "more"), LeatError);
  assertStringIncludes(tooMany.message, '"team-a" has 2 tasks on each worker (tasksMax)');
  // A worker acts for no task of another worker: this job is its own.
  await read(0, "own", 1);
});

Deno.test("a job that the pipeline of a task reads is the owner's also if its worker is an admin", async () => {
  await using teams = new Teams({ quotas: { tasksMax: 2 } });
  const [a, b, worker] = [teams.join(A), teams.join(B), teams.join(ADMIN)];
  const { clusterId } = await worker.ask("hello", null);
  const self = { node: ADMIN.name, path: "/", incarnation: `${worker.incarnation}-1` };
  const heartbeat = { name: "worker", worker: self, tags: [], tasks: [] };
  await worker.ask("workerHeartbeat", heartbeat);
  const ofOther = await b.register("of another");
  await b.ask("openIteration", b.openRequest(ofOther, "of another"));
  /** Reads a job as the newest task of the worker. */
  const read = async (text: string, jobName: string) => {
    const { newTasks } = workIn(await worker.ask("workerHeartbeat", heartbeat));
    const forTask = { clusterId, taskId: newTasks.at(-1)!.taskId };
    const definition = definitionOf(new TextEncoder().encode(text));
    const request = { ...definition, transient: true, forTask } as const;
    const { datasetId } = await worker.ask("registerDataset", request);
    return await worker.ask("openIteration", {
      ...worker.openRequest(datasetId, jobName),
      forTask,
    });
  };
  await a.ask("openIteration", a.openRequest(await a.register("outer")));
  const { newTasks } = workIn(await worker.ask("workerHeartbeat", heartbeat));
  const forTask = { clusterId, taskId: newTasks.at(-1)!.taskId };
  const secret = await worker.refused("getDataset", { datasetId: ofOther, forTask });
  assertEquals(secret.code, "permission_denied");
  const stolen = await assertRejects(() => read("of another", "of another"), LeatError);
  assertEquals(stolen.code, "permission_denied");
  const inner = await read("inner", "inner");
  const datasetId = await a.register("inner");
  const own = await a.ask("openIteration", a.openRequest(datasetId, "inner"));
  assertEquals(own.jobId, inner.jobId);
  const tooMany = await assertRejects(() => read("more", "more"), LeatError);
  assertStringIncludes(tooMany.message, '"team-a" has 2 tasks on each worker (tasksMax)');
  // The worker's name alone is not enough: a client acts for no task.
  const client = teams.join({ ...ADMIN, role: "client" }, "client");
  const asTask = { ...client.openRequest(datasetId, "inner"), forTask };
  assertEquals((await client.refused("openIteration", asTask)).code, "permission_denied");
  // The worker's own programs stay admins, and their pipelines have no limit of tasks.
  const ofAdmin = await worker.register("of the admin");
  for (const name of ["1", "2", "3"]) {
    await worker.ask("openIteration", worker.openRequest(ofAdmin, name));
    await read("inner of the admin", `inner ${name}`);
  }
});

Deno.test("a pipeline that an admin reads has no admin's rights, although the worker is the admin's own", async () => {
  await using teams = new Teams();
  const [a, author, admin] = [teams.join(A), teams.join(B), teams.join(ADMIN)];
  const { clusterId } = await admin.ask("hello", null);
  const datasetId = await a.register("of a team");
  await a.ask("openIteration", a.openRequest(datasetId, "of a team"));
  const self = { node: ADMIN.name, path: "/", incarnation: `${admin.incarnation}-1` };
  const heartbeat = { name: "worker", worker: self, tags: [], tasks: [] };
  await admin.ask("workerHeartbeat", heartbeat);
  const outer = await author.register("of an author", false);
  await admin.ask("openIteration", admin.openRequest(outer));
  const { newTasks } = workIn(await admin.ask("workerHeartbeat", heartbeat));
  const forTask = { clusterId, taskId: newTasks.at(-1)!.taskId };
  const definition = definitionOf(new TextEncoder().encode("of a team"));
  for (
    const refused of [
      await admin.refused("getDataset", { datasetId, forTask }),
      await admin.refused("registerDataset", { ...definition, datasetId, forTask }),
      await admin.refused("openIteration", { ...admin.openRequest(datasetId), forTask }),
    ]
  ) assertEquals(refused.code, "permission_denied");
  const own = await admin.ask("registerDataset", { ...definition, transient: true, forTask });
  const join = { ...admin.openRequest(own.datasetId, "of a team"), forTask };
  const { code, message } = await admin.refused("openIteration", join);
  assertEquals(code, "permission_denied");
  assertStringIncludes(message, `belongs to "${A.name}"`);
  // The admin's program itself may join.
  await admin.ask("openIteration", admin.openRequest(datasetId, "of a team"));
});

Deno.test("a pipeline whose task has ended gets no rights of an admin's worker", async () => {
  await using teams = new Teams();
  const [a, b, worker] = [teams.join(A), teams.join(B), teams.join(ADMIN)];
  const { clusterId } = await worker.ask("hello", null);
  const self = { node: ADMIN.name, path: "/", incarnation: `${worker.incarnation}-1` };
  const heartbeat = { name: "worker", worker: self, tags: [], tasks: [] };
  await worker.ask("workerHeartbeat", heartbeat);
  const datasetId = await b.register("of another");
  await b.ask("openIteration", b.openRequest(datasetId, "of another"));
  const outer = a.openRequest(await a.register("outer"));
  const { clientId } = await a.ask("openIteration", outer);
  const { newTasks } = workIn(await worker.ask("workerHeartbeat", heartbeat));
  const forTask = { clusterId, taskId: newTasks.at(-1)!.taskId };
  await a.ask("releaseClient", { clientId });
  const open = { ...worker.openRequest(datasetId, "of another"), forTask };
  for (
    const refused of [
      await worker.refused("getDataset", { datasetId, forTask }),
      await worker.refused("openIteration", open),
    ]
  ) assertEquals(refused.code, "permission_denied");
});

Deno.test("requests of a task's pipeline count against the rate of its job's owner, not of the worker", async () => {
  await using teams = new Teams({ quotas: { requestsPerSecondMax: 2 } });
  const { clusterId } = await teams.join(ADMIN).ask("hello", null);
  const [a, b] = [teams.join(A), teams.join(B)];
  const worker = teams.join({ name: "workers", role: "worker" }, "worker");
  const self = { node: "worker", path: "/", incarnation: `${worker.incarnation}-1` };
  /** Opens a job, and registers a dataset as its task's pipeline. */
  const chain = async (team: Team) => {
    await team.ask("openIteration", team.openRequest(await team.register("outer")));
    const heartbeat = { name: "worker", worker: self, tags: [], tasks: [] };
    const { newTasks } = workIn(await worker.ask("workerHeartbeat", heartbeat));
    const forTask = { clusterId, taskId: newTasks.at(-1)!.taskId };
    const definition = definitionOf(new TextEncoder().encode("inner"));
    const register = () =>
      worker.ask("registerDataset", { ...definition, transient: true, forTask });
    const { datasetId } = await register();
    const { clientId } = await worker.ask("openIteration", {
      ...{ ...worker.openRequest(datasetId), forTask, secret: team.incarnation },
    });
    return [
      register,
      () => worker.ask("clientHeartbeat", { clientId, secret: team.incarnation }),
    ] as const;
  };
  const [ofA, ofB] = [await chain(a), await chain(b)];
  for (const ask of ofA) {
    const tooMany = await assertRejects(async () => {
      for (;;) await ask();
    }, LeatError);
    assertStringIncludes(tooMany.message, '"team-a" has used up its 2 requests a second');
  }
  for (const ask of ofB) await ask();
});

Deno.test("the parameters of an identity's jobs and clients are bounded, together and with those of others", async () => {
  await using cluster = await TestCluster.start({
    quotas: { parametersBytesMax: 10_000, allParametersBytesMax: 10_000 },
  });
  const datasetId = await cluster.dataset();
  const open = (jobName?: string) =>
    cluster.openRequest(datasetId, {
      ...(jobName === undefined ? {} : { jobName }),
      targetTags: Array.from({ length: 8 }, (_, i) => `${i}`.padEnd(500, "x")),
    });
  const before = open("first");
  const { clientId } = await cluster.ask("openIteration", before);
  await cluster.ask("openIteration", open());
  for (let restarts = 0; restarts < 2; restarts++) {
    const { code, message } = await cluster.refused("openIteration", open());
    assertEquals(code, "resource_exhausted");
    assertStringIncludes(message, "over 10000 (allParametersBytesMax)");
    assertEquals((await cluster.ask("openIteration", before)).clientId, clientId);
    await cluster.restart({
      quotas: { parametersBytesMax: 10_000, allParametersBytesMax: 10_000 },
    });
  }
  await cluster.restart({ quotas: { parametersBytesMax: 10_000 } });
  const own = await cluster.refused("openIteration", open());
  assertStringIncludes(own.message, "over 10000 (parametersBytesMax)");
  // What is forgotten makes room again.
  await cluster.ask("releaseClient", { clientId });
  await cluster.world.advance(400_000);
  await cluster.ask("openIteration", open());
});

Deno.test("the repetitions of an identity's jobs are bounded also if nobody reads them", async () => {
  await using cluster = await TestCluster.start({ quotas: { parametersBytesMax: 10_000 } });
  const datasetId = await cluster.dataset();
  const read = async (repetition: number) => {
    const { clientId } = await cluster.open(datasetId, { jobName: "job", repetition });
    await cluster.ask("releaseClient", { clientId });
  };
  const refused = await assertRejects(async () => {
    for (let repetition = 0; repetition < 100; repetition++) await read(repetition);
  }, LeatError);
  assertEquals(refused.code, "resource_exhausted");
  assertStringIncludes(refused.message, "over 10000 (parametersBytesMax)");
  await cluster.world.advance(400_000);
  await read(100);
});

Deno.test("the splits of an identity's jobs are bounded, together and with those of others, also after a restart", async () => {
  // Room for two of these tables, and not for three.
  const bytesMax = 40_000;
  const quotas = { splitsBytesMax: bytesMax, allSplitsBytesMax: bytesMax };
  await using cluster = await TestCluster.start({ quotas });
  const worker = cluster.worker("a", tableOf(1_000));
  const datasetId = await cluster.dataset();
  /** A job that has listed its splits, and why it cannot have them. */
  const job = async () => {
    const { clientId } = await cluster.open(datasetId);
    await worker.heartbeat();
    await settle();
    const { error } = await cluster.ask("clientHeartbeat", { clientId });
    return { clientId, error };
  };
  const first = await job();
  assertEquals([first.error, (await job()).error], [undefined, undefined]);
  for (const name of ["allSplitsBytesMax", "splitsBytesMax"]) {
    const { error } = await job();
    assertEquals(error?.code, "resource_exhausted");
    assertStringIncludes(error!.message, `over ${bytesMax} (${name})`);
    await cluster.restart({ quotas: { splitsBytesMax: bytesMax } });
  }
  // What is forgotten makes room again.
  await cluster.ask("releaseClient", { clientId: first.clientId });
  await settle();
  assertEquals((await job()).error, undefined);
});

Deno.test("the pipelines of all identities together are bounded, so that a journal's snapshot can hold them", async () => {
  const allDatasetsBytesMax = 200 + 3 * DATASET_EXTRA;
  const datasetsBytesMax = 150 + 2 * DATASET_EXTRA;
  await using teams = new Teams({ quotas: { datasetsBytesMax, allDatasetsBytesMax } });
  const [a, b] = [teams.join(A), teams.join(B)];
  await a.register("x".repeat(120), false);
  await b.register("y".repeat(70), false);
  for (const team of [a, b]) {
    const { code, message } = await team.refused(
      "registerDataset",
      definitionOf(new Uint8Array(20)),
    );
    assertEquals(code, "resource_exhausted");
    const over = `${allDatasetsBytesMax + 10} bytes together, over ${allDatasetsBytesMax} `;
    assertStringIncludes(message, `${over}(allDatasetsBytesMax)`);
  }
});

Deno.test("a quota that is none is refused", () => {
  const error = assertThrows(() => checkedQuotas({ jobsMax: 0 }), LeatError);
  assertStringIncludes(error.message, "quotas.jobsMax");
});

Deno.test("checkedQuotas gives an undefined quota its default", () => {
  assertEquals(checkedQuotas({ jobsMax: undefined as never }), checkedQuotas());
});

Deno.test("RequestRates lets bursts and a steady stream through, refuses beyond, and tells senders apart", () => {
  let nowMs = 0;
  const rates = new RequestRates(10, () => nowMs);
  const from = (sender: Identity, node: string) => ({
    sender,
    source: { node, path: "/client", incarnation: "1" },
  });
  for (let i = 0; i < 50; i++) rates.take(from(A, `node ${i}`));
  const error = assertThrows(() => rates.take(from(A, "node")), LeatError);
  assertEquals(error.code, "resource_exhausted");
  assertStringIncludes(error.message, `"team-a"`);
  rates.take(from(B, "node"));
  for (let i = 0; i < 50; i++) rates.take(from(ADMIN, "one"));
  assertThrows(() => rates.take(from(ADMIN, "one")), LeatError);
  rates.take(from(ADMIN, "two"));
  for (let i = 0; i < 100; i++) {
    nowMs += 100;
    rates.take(from(A, "node"));
  }
});

Deno.test("the dispatcher counts a request with long lists as several against its sender's rate", async () => {
  for (const method of ["clientHeartbeat", "openIteration", "releaseClient"] as const) {
    await using teams = new Teams({ quotas: { requestsPerSecondMax: 10 } });
    const a = teams.join(A);
    const request = a.openRequest(await a.register("numbers"));
    const { clientId } = await a.ask("openIteration", request);
    await a.ask("hello", null);
    const numbers = Array.from({ length: 65_536 }, (_, i) => i);
    if (method === "openIteration") {
      await a.ask(method, { ...request, behind: numbers });
    } else if (method === "releaseClient") {
      const read = { ...noReport("read"), worker: "w" };
      const reads = numbers.map((taskId) => ({ ...read, taskId }));
      await a.ask(method, { clientId, figures: { ...noReport("client"), atMs: 0, reads } });
    } else {
      await a.ask(method, { clientId, report: { kind: "ordered", mark: 0, done: numbers } });
    }
    assertEquals((await a.refused("hello", null)).code, "resource_exhausted", method);
  }
});
