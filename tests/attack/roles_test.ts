/**
 * Tokens with roles, over real sockets: a client must not act as a worker, a worker not as another
 * one, a viewer must not join a job, and the holder of a withdrawn token must not stay connected.
 */
import { dispatcherAt, NAME_TAKEN } from "../../actors/dispatcher/protocol.ts";
import type { AccessRole } from "../../actors/runtime/identity.ts";
import { ActorSystem } from "../../actors/runtime/system.ts";
import { workerAt, type WorkerProtocol } from "../../actors/worker/protocol.ts";
import { askForState } from "../../cli/cluster/state_request.ts";
import {
  Dataset,
  type DispatcherServer,
  LeatError,
  serveDispatcher,
  serveWorker,
  type WorkerServer,
} from "../../mod.ts";
import { webSocketConnector } from "../../transport/web_socket.ts";
import { DenoWorld } from "../../platform/deno_world.ts";
import { rejection } from "../actors/runtime/nodes.ts";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { soon } from "../cluster/lib.ts";
import { TempFolder } from "../lib/temp_folder.ts";
import { until } from "../lib/until.ts";

const QUIET = { logLevel: "off" } as const;
const PATIENCE = { timeoutMs: 60_000 };

const entry = (name: string, role: AccessRole) => ({ name, role, token: `token-of-${name}-0123` });
const BOSS = entry("boss", "admin");
const ONE = entry("one", "worker");
const TWO = entry("two", "worker");
const TEAM = entry("team", "client");
const EYES = entry("eyes", "viewer");
const ALL = [BOSS, ONE, TWO, TEAM, EYES];

interface Cluster extends AsyncDisposable {
  readonly dispatcher: DispatcherServer;
  readonly worker: WorkerServer;
  readonly service: string;
}

/** A dispatcher that knows all tokens, and the worker "one", which knows its clients. */
async function startCluster(): Promise<Cluster> {
  const dispatcher = await serveDispatcher({ ...QUIET, tokens: ALL });
  const service = dispatcher.address;
  const worker = await serveWorker({
    ...{ ...QUIET, dispatcher: service, name: "one", heartbeatMs: 50 },
    ...{ token: ONE.token, tokens: [TEAM] },
  });
  await until(async () => (await dispatcher.describe()).workers.length === 1, 10);
  return {
    ...{ dispatcher, worker, service },
    async [Symbol.asyncDispose]() {
      await worker.close();
      await dispatcher.close();
    },
  };
}

/** A node with a token of its own. */
function nodeWith(token: string, target: "service" | "node", node = "attacker"): ActorSystem {
  const world = new DenoWorld(QUIET);
  const identity = { name: "whoever answers", role: "admin" } as const;
  const connector = webSocketConnector({ world, credentials: () => ({ token, target, identity }) });
  return new ActorSystem({ node, world, connector });
}

async function sumOf(service: string, token: string): Promise<number> {
  let sum = 0;
  const numbers = Dataset.range(100).batch(10).distribute({
    ...{ service, token, processingMode: "DYNAMIC" },
  });
  for await (const batch of numbers) for (const number of batch.data) sum += Number(number);
  return sum;
}

Deno.test("a client can read elements; a viewer and a stranger cannot", async () => {
  await using cluster = await startCluster();
  const { service } = cluster;
  assertEquals(await sumOf(service, TEAM.token), 4_950);
  const denied = await rejection(sumOf(service, EYES.token), "permission_denied");
  assertStringIncludes(denied.message, '"eyes" has the role viewer');
  await rejection(sumOf(service, "token-of-nobody-0123"), "unauthenticated");
});

Deno.test("a client's token registers no worker, and the refusal names it", async () => {
  await using cluster = await startCluster();
  await using impostor = await serveWorker({
    ...{ ...QUIET, dispatcher: cluster.service, name: "impostor", token: TEAM.token },
  });
  const error = await soon("the refusal", impostor.failed);
  assertEquals(error.code, "permission_denied");
  assertStringIncludes(error.message, '"team" has the role client');
  assertEquals((await cluster.dispatcher.describe()).workers.map(({ name }) => name), ["one"]);
});

Deno.test("neither a client nor another worker makes a worker leave, or speaks for it", async () => {
  await using cluster = await startCluster();
  const { service, worker, dispatcher } = cluster;
  const numbers = Dataset.range(1_000_000_000).batch(10)
    .distribute({ service, token: TEAM.token, processingMode: "DYNAMIC" });
  await using iterator = numbers.iterator();
  assert(!(await iterator.next()).done);
  const ref = { node: worker.address, path: "/worker", incarnation: "known" };
  const leaving = { name: "one", worker: ref, tags: [], tasks: [], leaving: true };
  const split = { taskId: 0, number: 1, source: 0, repetition: 0 };
  const { jobs } = await dispatcher.describe();
  const { taskId } = jobs[0]!.iterations[0]!.tasks[0]!;
  for (const [{ name, token }, why] of [[TEAM, /role client/], [TWO, /speaks for/]] as const) {
    await using system = nodeWith(token, "service");
    const at = dispatcherAt(service);
    const left = await rejection(
      system.ask(at, "workerHeartbeat", leaving, PATIENCE),
      "permission_denied",
    );
    assertMatch(left.message, why);
    assertStringIncludes(left.message, `"${name}"`);
    await rejection(
      system.ask(at, "getSplit", { ...split, taskId }, PATIENCE),
      "permission_denied",
    );
  }
  await using toWorker = nodeWith(TEAM.token, "node");
  const target = workerAt(worker.address);
  for (
    const asked of [
      () => toWorker.ask(target, "leave", null, PATIENCE),
      () => toWorker.ask(target, "drain", { timeoutMs: 0 }, PATIENCE),
    ]
  ) assertMatch((await rejection(asked(), "permission_denied")).message, /"team" has the role/);
  for (let i = 0; i < 100; i++) assert(!(await iterator.next()).done);
  assertEquals((await dispatcher.describe()).workers.map(({ alive }) => alive), [true]);
});

Deno.test("a worker's name belongs to its token while it lives, and its address to no other node", async () => {
  await using cluster = await startCluster();
  const { dispatcher, service, worker } = cluster;
  await using thief = nodeWith(TWO.token, "service");
  const asked = Promise.withResolvers<unknown>();
  thief.spawn<WorkerProtocol>({
    name: "worker",
    create: (context) => {
      const heartbeat = { name: "one", worker: context.self, tags: [], tasks: [] };
      asked.resolve(context.ask(dispatcherAt(service), "workerHeartbeat", heartbeat, PATIENCE));
      return { handlers: {} as never };
    },
  });
  const error = await rejection(asked.promise, "permission_denied");
  assertStringIncludes(error.message, 'The worker "one" belongs to "one", and "two" must wait');
  assertEquals(error.details, { reason: NAME_TAKEN });
  await using forger = nodeWith(TEAM.token, "service", worker.address);
  const refused = await rejection(
    forger.ask(dispatcherAt(service), "hello", null, PATIENCE),
    "permission_denied",
  );
  assertStringIncludes(refused.message, '"team" has the role client and calls its node');
  await using heir = await serveWorker({
    ...{ ...QUIET, dispatcher: service, name: "one", token: TWO.token },
  });
  await worker.close();
  const hasName = until(async () => {
    const { workers } = await dispatcher.describe();
    return workers.some(({ alive, ref }) => alive && ref.node === heir.address);
  });
  await soon("the name", Promise.race([hasName, heir.failed.then((why) => Promise.reject(why))]));
});

Deno.test("pages are for admins, workers and viewers, by the header or by a proof", async () => {
  await using cluster = await startCluster();
  const page = `${cluster.dispatcher.page}state`;
  const statusOf = async (token: string) => {
    const response = await fetch(page, { headers: { authorization: `Bearer ${token}` } });
    await response.body?.cancel();
    return response.status;
  };
  for (const { token } of [BOSS, ONE, EYES]) {
    assertEquals(await statusOf(token), 200);
    assertEquals((await askForState(cluster.service, { token })).workers.length, 1);
  }
  assertEquals(await statusOf(TEAM.token), 403);
  await rejection(askForState(cluster.service, { token: TEAM.token }), "permission_denied");
});

Deno.test("a job goes on with the other workers when the token of one is withdrawn", async () => {
  await using folder = await TempFolder.make();
  const file = `${folder.path}/tokens`;
  const write = (entries: readonly (typeof ONE)[]) =>
    Deno.writeTextFile(file, entries.map((e) => `${e.name} ${e.role} ${e.token}\n`).join(""));
  await write([ONE, TWO, TEAM]);
  await using dispatcher = await serveDispatcher({
    ...{ ...QUIET, tokens: { file }, workerGraceMs: 3_000, workerTimeoutMs: 3_600_000 },
  });
  const service = dispatcher.address;
  const serve = ({ name, token }: typeof ONE) =>
    serveWorker({ ...QUIET, name, dispatcher: service, token, tokens: [TEAM] });
  await using _one = await serve(ONE);
  await using _two = await serve(TWO);
  await until(async () => (await dispatcher.describe()).workers.length === 2, 10);
  const reading = Dataset.range(5_000)
    .distribute({ service, token: TEAM.token, processingMode: "DYNAMIC" })[Symbol.asyncIterator]();
  const taken: unknown[] = [];
  // Both workers have splits.
  for (let i = 0; i < 100; i++) taken.push((await reading.next()).value);
  await write([ONE, TEAM, EYES]);
  const sees = () => askForState(service, { token: EYES.token }).then(() => true, () => false);
  await until(sees, 10);
  for (let next = await reading.next(); !next.done; next = await reading.next()) {
    taken.push(next.value);
  }
  assertEquals(new Set(taken).size, taken.length);
});

Deno.test("a file of tokens is read again when it changes: new ones get in, withdrawn ones go", async () => {
  await using folder = await TempFolder.make();
  const file = `${folder.path}/tokens`;
  const write = (entries: readonly (typeof ONE)[]) =>
    Deno.writeTextFile(file, entries.map((e) => `${e.name} ${e.role} ${e.token}\n`).join(""));
  await write([ONE, TEAM]);
  await using dispatcher = await serveDispatcher({ ...QUIET, tokens: { file } });
  const service = dispatcher.address;
  await using worker = await serveWorker({
    ...{ ...QUIET, dispatcher: service, heartbeatMs: 50, token: ONE.token, tokens: [TEAM, EYES] },
  });
  assertEquals(await sumOf(service, TEAM.token), 4_950);
  await rejection(askForState(service, { token: EYES.token }), "unauthenticated");
  await using client = nodeWith(TEAM.token, "service");
  const at = dispatcherAt(service);
  await client.ask(at, "hello", null, PATIENCE);
  await write([ONE, EYES]);
  await until(
    () => askForState(service, { token: EYES.token }).then(() => true, () => false),
    50,
  );
  // Its link is closed, and it gets no other.
  const refusal = await until(
    () => client.ask(at, "hello", null, PATIENCE).then(() => false, LeatError.from),
    50,
  );
  assert(typeof refusal === "object");
  await until(
    () =>
      client.ask(at, "hello", null, PATIENCE).then(
        () => false,
        (error) => LeatError.from(error).code === "unauthenticated",
      ),
    50,
  );
  assertEquals((await dispatcher.describe()).workers.map(({ alive }) => alive), [true]);
  assertEquals(worker.name, worker.address);
});
