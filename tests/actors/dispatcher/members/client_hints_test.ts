/** Hints to clients that there is news of their iteration. */
import type { ClientProtocol } from "../../../../actors/client/protocol.ts";
import { ClientHints } from "../../../../actors/dispatcher/members/client_hints.ts";
import type { DispatcherProtocol } from "../../../../actors/dispatcher/protocol.ts";
import { DispatcherState } from "../../../../actors/dispatcher/state/state.ts";
import type { ActorContext } from "../../../../actors/runtime/actor.ts";
import type { RoundsReport } from "../../../../actors/dispatcher/protocol_heartbeats.ts";
import type { AnswerOf } from "../../../../actors/runtime/protocol.ts";
import { LeatError } from "../../../../core/error.ts";
import { Payload } from "../../../../transport/payload.ts";
import { assert, assertEquals } from "../../../assert.ts";
import { orderedNews, roundsNews, settle, SteppedWorld, tableOf, TestCluster } from "../lib.ts";

type Rounds = Pick<RoundsReport, "position" | "acceptedSchedule">;
type News = AnswerOf<DispatcherProtocol, "clientHeartbeat">;

/** A client actor that sends heartbeats when it is told to, and counts how often it is woken. */
class TestClient {
  wakes = 0;
  readonly #context = Promise.withResolvers<ActorContext>();
  readonly clientId: number;
  readonly #cluster: TestCluster;

  constructor(cluster: TestCluster, clientId: number) {
    this.#cluster = cluster;
    this.clientId = clientId;
    cluster.system.spawn<ClientProtocol>({
      name: `client-${clientId}`,
      create: (context) => {
        this.#context.resolve(context);
        return {
          handlers: {
            wake: () => (this.wakes++, null),
            askAgain: () => ({}),
            readSource: () => ({ given: new Payload(new Uint8Array()) }),
          },
        };
      },
    });
  }

  async heartbeat(rounds?: Rounds): Promise<News> {
    const { dispatcher } = this.#cluster;
    const context = await this.#context.promise;
    const request = {
      clientId: this.clientId,
      ...(rounds === undefined ? {} : { report: { kind: "rounds", ...rounds } as const }),
    };
    return await context.ask(dispatcher, "clientHeartbeat", request, { timeoutMs: 10_000 });
  }

  /** How often it is woken from now until no timer is due soon. */
  async wakesOf(change: () => Promise<unknown>): Promise<number> {
    const before = this.wakes;
    await change();
    await settle();
    await this.#cluster.world.advance(100);
    return this.wakes - before;
  }
}

Deno.test("a client is woken when a task can be read, when one has ended and when all is done", async () => {
  await using cluster = await TestCluster.start();
  const { clientId } = await cluster.open(await cluster.dataset());
  const client = new TestClient(cluster, clientId);
  assertEquals((await client.heartbeat()).tasks, []);
  const [a, b] = [cluster.worker("a"), cluster.worker("b")];
  assertEquals(await client.wakesOf(() => a.heartbeat()), 1);
  assertEquals((await client.heartbeat()).tasks.map(({ worker }) => worker), ["a"]);
  assertEquals(await client.wakesOf(() => b.heartbeat()), 1, "a worker that comes later");
  assertEquals((await client.heartbeat()).tasks.map(({ worker }) => worker), ["a", "b"]);
  assertEquals(await client.wakesOf(() => b.heartbeat()), 0, "nothing is new");
  const reborn = await b.reborn();
  assertEquals(await client.wakesOf(() => reborn.heartbeat()), 1, "the tasks of a worker's life");
  assertEquals((await client.heartbeat()).tasks.length, 2);
  for (const worker of [a, reborn]) {
    for (const taskId of worker.tasks.keys()) worker.complete(taskId);
  }
  assertEquals(await client.wakesOf(() => a.heartbeat()), 0, "clients hear that from the task");
  assertEquals(await client.wakesOf(() => reborn.heartbeat()), 1, "the iteration is finished");
  assert((await client.heartbeat()).finished);
});

Deno.test("clients are woken when the splits are known, or cannot be listed", async () => {
  for (const table of [tableOf(3), new LeatError("not_found", "no such folder")]) {
    await using cluster = await TestCluster.start();
    const { clientId } = await cluster.open(await cluster.dataset(), {
      processingMode: "DETERMINISTIC",
      ordered: { seed: "0".repeat(16), shuffled: false },
    });
    const client = new TestClient(cluster, clientId);
    await client.heartbeat();
    const { name, ref } = Object.assign(cluster.worker("w"), { table });
    const registration = { name, worker: ref, tags: [], tasks: [] };
    assertEquals(await client.wakesOf(() => cluster.ask("workerHeartbeat", registration)), 1);
    const answer = await client.heartbeat();
    const { error } = answer;
    const [total, code] = table instanceof LeatError ? [undefined, "not_found"] : [3, undefined];
    assertEquals(
      { total: orderedNews(answer).table?.total, code: error?.code },
      { total, code } as never,
    );
  }
});

Deno.test("consumers are woken when a schedule of rounds is proposed, and when it is in force", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset("endless", -1);
  const consumers: TestClient[] = [];
  for (const consumerIndex of [0, 1]) {
    const { clientId } = await cluster.open(datasetId, {
      jobName: "rounds",
      processingMode: "OFF",
      numConsumers: 2,
      consumerIndex,
    });
    consumers.push(new TestClient(cluster, clientId));
  }
  const [a, b] = consumers as [TestClient, TestClient];
  for (const consumer of consumers) await consumer.heartbeat();
  await a.wakesOf(() => cluster.worker("first").heartbeat());
  assertEquals([a.wakes, b.wakes], [1, 1], "rounds begin");
  const position = { kind: "reading", nextRound: 0, deliveredRound: 0 } as const;
  const begun = { position, acceptedSchedule: 1 };
  for (const consumer of consumers) await consumer.heartbeat(begun);
  await a.wakesOf(() => cluster.worker("second").heartbeat());
  assertEquals([a.wakes, b.wakes], [2, 2], "the second worker is to serve rounds, too");
  const { proposed } = roundsNews(await a.heartbeat(begun));
  const accepted = { ...begun, acceptedSchedule: proposed!.version };
  await b.heartbeat(accepted);
  await b.wakesOf(() => a.heartbeat(accepted));
  assertEquals(b.wakes, 3, "all have agreed");
  assertEquals(roundsNews(await b.heartbeat(accepted)).schedules.length, 2);
});

Deno.test("no client is woken before what it would hear is durable", async () => {
  await using cluster = await TestCluster.start();
  const { clientId } = await cluster.open(await cluster.dataset());
  const client = new TestClient(cluster, clientId);
  await client.heartbeat();
  const worker = cluster.worker("w");
  await cluster.ask("workerHeartbeat", { name: "w", worker: worker.ref, tags: [], tasks: [] });
  cluster.holdJournal();
  const heartbeat = worker.heartbeat();
  await cluster.world.advance(1_000);
  assertEquals(client.wakes, 0);
  cluster.releaseJournal();
  await heartbeat;
  await cluster.world.advance(100);
  assertEquals(client.wakes, 1);
});

Deno.test("a client that has left is not woken any more", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const clients: TestClient[] = [];
  for (let i = 0; i < 2; i++) {
    const { clientId } = await cluster.open(datasetId, { jobName: "shared" });
    clients.push(new TestClient(cluster, clientId));
    await clients[i]!.heartbeat();
  }
  const [gone, left] = clients as [TestClient, TestClient];
  await cluster.ask("releaseClient", { clientId: gone.clientId });
  await left.wakesOf(() => cluster.worker("w").heartbeat());
  assertEquals([gone.wakes, left.wakes], [0, 1]);
});

Deno.test("changes that come fast are told together, and no more clients at once than their answers allow", async () => {
  const [clients, workers] = [1_000, 100];
  const world = new SteppedWorld(() => Promise.reject(new Error("there is no log")));
  const state = stateOf(clients, workers);
  const told: string[] = [];
  const context: Partial<ActorContext> = {
    world,
    timer: (delayMs, fn) => world.timer(delayMs, fn),
    tell: ({ path }) => void told.push(path),
  };
  const hints = new ClientHints(context as ActorContext, { state, whenDurable: (act) => act() });
  for (let i = 1; i <= clients; i++) {
    hints.noteClient(i, { node: "n", path: `/client-${i}`, incarnation: "1" });
  }
  for (let i = 0; i < 5_000; i++) hints.changed(1);
  await world.advance(0);
  assertEquals(told.length, 20, "2,000 tasks are named in the answers to 20 clients");
  hints.noteClient(21, { node: "n", path: "/client-21", incarnation: "1" });
  hints.forget(22);
  await world.advance(19);
  assertEquals(told.length, 20);
  await world.advance(1);
  assertEquals(told.slice(-2), ["/client-41", "/client-42"]);
  for (let i = 0; i < 10; i++) {
    hints.changed(1);
    await world.advance(2);
  }
  assertEquals(told.length, 60, "however often there is news");
  await world.advance(10_000);
  const times = Map.groupBy(told, (path) => path);
  assertEquals(times.size, clients - 1, "everybody hears of it in the end");
  assert(told.length < 2 * clients, `${told.length} hints for ${clients} clients`);
});

/** One iteration with so many clients, and a task on each of so many workers. */
function stateOf(clients: number, workers: number): DispatcherState {
  const state = new DispatcherState();
  const parameters = { datasetId: "d", processingMode: "DYNAMIC", sharing: false } as const;
  const graph = new Uint8Array();
  state.apply({
    type: "dataset_registered",
    owner: "anyone",
    datasetId: "d",
    graph,
    fingerprint: "f",
    cardinality: 1,
  });
  state.apply({ type: "job_created", owner: "anyone", jobId: 1, name: "job", parameters });
  const seed = "0".repeat(16);
  state.apply({ type: "iteration_created", iterationId: 1, jobId: 1, repetition: 0, seed });
  for (let i = 1; i <= workers; i++) {
    const worker = `w${i}`;
    const ref = { node: worker, path: "/worker", incarnation: "1" };
    state.apply({ type: "worker_registered", name: worker, worker: ref, tags: [] });
    state.apply({ type: "task_created", taskId: i, iterationId: 1, worker, seed });
  }
  for (let clientId = 1; clientId <= clients; clientId++) {
    const requestId = `r${clientId}`;
    const opened = { clientId, iterationId: 1, requestId, consumerIndex: null };
    state.apply({ type: "client_opened", ...opened });
  }
  return state;
}
