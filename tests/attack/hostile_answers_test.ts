/**
 * Parties that answer what they are asked with anything. Clients and workers are asked, too: no
 * answer of a client must end the dispatcher or a worker, and none of a worker a trainer or the
 * dispatcher, or add to its journal what the worker has no say in.
 */
import { createClient } from "../../actors/client/client.ts";
import { Feed } from "../../actors/client/feed.ts";
import type { ClientProtocol } from "../../actors/client/protocol.ts";
import { dispatcherAt, type DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import { dispatcherAnswers } from "../../actors/dispatcher/protocol_check.ts";
import { ElementFetcher } from "../../actors/exactly_once/fetcher.ts";
import type { ActorContext } from "../../actors/runtime/actor.ts";
import { CHECK_FROM, IDLE_MS } from "../../actors/runtime/asking/answers.ts";
import type { Envelope } from "../../actors/runtime/envelope.ts";
import { nodeActorOf } from "../../actors/runtime/node/node_actor.ts";
import type { ElementSourceProtocol } from "../../actors/worker/protocol.ts";
import { LeatError } from "../../core/error.ts";
import { hashBytes } from "../../core/hash.ts";
import { packSplits } from "../../data/sharding/split_table.ts";
import { DenoWorld } from "../../platform/deno_world.ts";
import { inlinePair } from "../../transport/inline.ts";
import { Payload } from "../../transport/payload.ts";
import { settle as settled, tableOf, TestCluster } from "../actors/dispatcher/lib.ts";
import { openSave } from "../actors/dispatcher/saves.ts";
import { settle, SOON, spawnProbe, TestNode, TestPair } from "../actors/runtime/nodes.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";

/** Answers of no method. */
const NONSENSE: readonly unknown[] = [
  ...[undefined, null, 7, NaN, 2n ** 70n, "text", true, [], {}, [[[]]], { length: 1e9 }],
  ...[{ kind: "none" }, { kind: ["element"] }, { then: "me" }, new Uint8Array(3)],
];

/** A world with a manual clock. */
class LaterWorld extends DenoWorld {
  laterMs = 0;
  override nowMs(): number {
    return super.nowMs() + this.laterMs;
  }
}

Deno.test("a node withstands every answer to its question which of a client's actors have ended", async () => {
  for (const answer of [...NONSENSE, [7, {}, null]]) {
    const world = new LaterWorld({ logLevel: "off" });
    await using node = new TestNode("node", { world });
    const target = spawnProbe(node);
    const [link, toAttacker] = inlinePair(
      world,
      { node: "attacker", incarnation: "1" },
      world,
      node.system.id,
    );
    node.system.attach(toAttacker);
    let [number, asked] = [0, 0];
    const send = (envelope: object) =>
      link.send({ ...envelope, number: ++number } as unknown as Envelope);
    link.start((envelope) => {
      if (envelope.kind !== "ask") return;
      asked++;
      const source = { ...nodeActorOf("attacker"), incarnation: "1-2" };
      send({ kind: "reply", source, target: envelope.source, id: envelope.id, body: answer });
    });
    const ask = (actor: string, id: number) => {
      const source = { node: "attacker", path: `/${actor}`, incarnation: `1-${actor}` };
      const request = { method: "echo", body: null, timeoutMs: 60_000, settledBelow: 0 };
      send({ kind: "ask", source, target, id, ...request });
    };
    for (let id = 1; id <= CHECK_FROM; id++) ask("first", id);
    await settle();
    world.laterMs += IDLE_MS;
    ask("second", 1);
    await settle();
    assertEquals(asked, 1);
    const { calls } = await node.system.ask(target, "echo", null, SOON);
    assertEquals(calls, CHECK_FROM + 2, "it still answers");
  }
});

const element = new Payload(new Uint8Array(8));
const place = { sequence: 0, split: 0, index: 0 };
/** Answers to `getElement` that differ from good ones in one field. */
const BAD_ELEMENTS: readonly unknown[] = [
  ...NONSENSE,
  ...[undefined, null, 7, {}, { bytes: new Uint8Array(8) }].map((element) => ({
    kind: "element",
    element,
  })),
  ...[null, 7, [place], { ...place, sequence: -1 }, { ...place, index: 1e300 }, { split: 0 }]
    .flatMap((place) => [
      { kind: "element", element, place },
      { kind: "remainder", element, place },
      { kind: "split_end", place },
      { kind: "passed", count: 1, place },
    ]),
  ...[undefined, 7, {}, { code: "internal" }].map((error) => ({ kind: "error", error })),
  { kind: "passed", place, count: -1 },
  { kind: "later", from: "x" },
  { kind: "element", element, skipped: {} },
];

Deno.test("no answer of a worker ends the trainer that asks it for an element", async () => {
  for (const answer of BAD_ELEMENTS) {
    await using pair = new TestPair();
    const source = pair.b.system.spawn<ElementSourceProtocol>({
      name: "source",
      create: () => ({
        handlers: {
          getElement: () => answer as never,
          leave: () => null,
          stats: () => ({}) as never,
        },
      }),
    });
    let client: ActorContext | undefined;
    pair.a.system.spawn({
      name: "client",
      create: (context) => (client = context, { handlers: {} }),
    });
    await settle();
    const fetcher = new ElementFetcher(client!, source, { clientId: 1, requestTimeoutMs: 60_000 });
    const error = await assertRejects(() => fetcher.fetch(), LeatError);
    assertEquals(error.code, "invalid_argument", error.message);
    assertStringIncludes(
      error.message,
      "The answer of b to getElement is malformed: ",
    );
    fetcher.stop();
  }
});

const JOINED = { jobId: 1, iterationId: 1, clientId: 1, clusterId: "c" };
const NEWS = { kind: "whole", tasks: [], finished: false };
const task = { taskId: 1, worker: "w", source: { node: "w", path: "/t", incarnation: "1" } };
/** Answers of a dispatcher to its clients that differ from good ones, with the wrong field. */
const BAD_ANSWERS: readonly (readonly [method: string, answer: unknown, field: string])[] = [
  ...["registerDataset", "openIteration", "clientHeartbeat"].flatMap((method) =>
    [null, 7, "text", true].map((answer) => [method, answer, "the answer"] as const)
  ),
  ["registerDataset", { datasetId: 7 }, "datasetId"],
  ["openIteration", { ...JOINED, clientId: NaN }, "clientId"],
  ["clientHeartbeat", { ...NEWS, tasks: 7 }, "tasks"],
  ["clientHeartbeat", { ...NEWS, tasks: [task, { ...task, taskId: "1" }] }, "tasks.1.taskId"],
  ["clientHeartbeat", { ...NEWS, tasks: [{ ...task, source: "w" }] }, "tasks.0.source"],
  ["clientHeartbeat", { ...NEWS, timeoutMs: -1 }, "timeoutMs"],
  ["clientHeartbeat", { ...NEWS, starvation: {} }, "starvation"],
  ["clientHeartbeat", { ...NEWS, kind: "\u001b[2J" }, "kind"],
  ["clientHeartbeat", { ...NEWS, kind: "changes", endedTasks: null }, "endedTasks"],
  ["clientHeartbeat", { ...NEWS, news: { kind: "ordered", windowSplits: 1 } }, "news.left"],
];

Deno.test("a malformed answer of a dispatcher fails the iterator, with the dispatcher and the field", async () => {
  for (const [method, answer, field] of BAD_ANSWERS) {
    await using pair = new TestPair();
    const answers: Record<string, unknown> = {
      registerDataset: { datasetId: "d" },
      openIteration: JOINED,
      clientHeartbeat: NEWS,
      [method]: answer,
    };
    const handlers = Object.fromEntries(
      Object.entries(answers).map(([method, answer]) => [method, () => answer]),
    );
    pair.b.system.spawn<DispatcherProtocol>({
      name: "dispatcher",
      create: () => ({
        handlers: { ...handlers, hello: () => ({}), releaseClient: () => null } as never,
      }),
    });
    const feed = new Feed();
    pair.a.system.spawn<ClientProtocol>({
      name: "client",
      create: (context) =>
        createClient(context, {
          dispatcher: dispatcherAt("b"),
          dataset: { graph: new Uint8Array(1), fingerprint: "f", cardinality: -1 },
          parameters: { processingMode: "OFF", sharing: false },
          repetition: 0,
        }, feed),
    });
    const error = await assertRejects(async () => await feed.take(), LeatError);
    assertEquals(error.code, "invalid_argument", error.message);
    const start = `The answer of b to ${method} is malformed: ${field} `;
    assert(error.message.startsWith(start), `${error.message}, not ${start}`);
    // deno-lint-ignore no-control-regex -- a terminal would act on it
    assert(!/[\x00-\x1f]/.test(error.message));
  }
});

const SAVE = {
  jobName: "distributedSave /saved",
  processingMode: "DETERMINISTIC",
  ordered: { seed: "0000000000000000", shuffled: false },
  save: { folder: "/saved", overwrite: false, fingerprint: hashBytes("numbers") },
} as const;
const BEGUN = {
  ...{ id: "1", bounds: packSplits(tableOf(3)), entries: 0, upTo: 0, runs: [] },
  ...{ elements: 0, sizeBytes: 0 },
};

/** A table may list no source. */
function hasNoSource(table: unknown): boolean {
  return Array.isArray(table) && table.length === 0;
}

Deno.test("every malformed answer of a worker that prepares a job fails that job, and no other", async () => {
  const tables = [...NONSENSE, [7], [[7]], [[{ start: -1, stop: 2 }]], [[{ start: 0 }]]];
  tables.push(...[[0], [3, 1], [-1, 2], [0.5, 1]].map((runs) => [Float64Array.from(runs)]));
  const answers = [
    // The worker of this test has no answer for the first, `undefined`.
    ...NONSENSE.slice(1),
    ...tables.map((bounds) => ({ ...BEGUN, bounds })),
    ...Object.keys(BEGUN).map((key) => ({ ...BEGUN, [key]: key === "id" ? 7 : "x" })),
    { ...BEGUN, runs: [{ first: 0, count: 1 }] },
  ];
  await using cluster = await TestCluster.start();
  const { errors } = cluster.world;
  const assertRefused = (jobName: string, method: string) => {
    const [said = "", ...more] = errors.splice(0);
    assert(said.startsWith(`Job "${jobName}" cannot continue repetition 0: `), said);
    assertStringIncludes(said, `The worker's answer to ${method} is malformed`);
    assertEquals(more, []);
  };
  const worker = cluster.worker("w", tableOf(3));
  await worker.heartbeat();
  const { clientId } = await cluster.open(await cluster.dataset("victim"), { jobName: "victim" });
  for (const [i, table] of tables.entries()) {
    worker.table = table as never;
    const datasetId = await cluster.dataset(`listed ${i}`);
    await cluster.open(datasetId, { jobName: `listed ${i}`, processingMode: "DYNAMIC" });
    await settled();
    if (!hasNoSource(table)) assertRefused(`listed ${i}`, "listSplits");
  }
  for (const [i, begun] of answers.entries()) {
    worker.begun = begun as never;
    const folder = `/saved/${i}`;
    const save = { ...SAVE.save, folder };
    const datasetId = await cluster.dataset(`saved ${i}`);
    await cluster.open(datasetId, { ...SAVE, jobName: `distributedSave ${folder}`, save });
    await settled();
    const { bounds } = (begun ?? {}) as { bounds?: unknown };
    if (!hasNoSource(bounds)) assertRefused(`distributedSave ${folder}`, "beginSave");
  }
  await cluster.restart();
  await cluster.ask("clientHeartbeat", { clientId });
});

Deno.test("runs of a save that are none of its splits fail that save, and not the dispatcher", async () => {
  const run = (first: number, count = 1) => ({ first, count, attempt: "a" });
  const forged = [
    [run(2 ** 40)],
    [run(2, 2)],
    [run(1, 0)],
    [run(1), run(0)],
    [run(0, 2), run(1)],
  ];
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("w", tableOf(3));
  await worker.heartbeat();
  const { clientId } = await cluster.open(await cluster.dataset("victim"), { jobName: "victim" });
  for (const [i, runs] of forged.entries()) {
    worker.begun = { ...BEGUN, runs } as never;
    const folder = `/saved/${i}`;
    const save = { ...SAVE.save, folder };
    const datasetId = await cluster.dataset(`saved ${i}`);
    await cluster.open(datasetId, { ...SAVE, jobName: `distributedSave ${folder}`, save });
    await settled();
    const [said = "", ...more] = cluster.world.errors.splice(0);
    assertStringIncludes(said, `runs that are not in the 3 splits`);
    assertEquals(more, []);
  }
  await cluster.restart();
  await cluster.ask("clientHeartbeat", { clientId });
});

Deno.test("a worker that prepares a save cannot add another record to the dispatcher's journal", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("w", tableOf(3));
  await worker.heartbeat();
  const victim = await cluster.open(await cluster.dataset("victim"), { jobName: "victim" });
  const { clientId } = victim;
  worker.begun = {
    ...BEGUN,
    ...{ type: "client_released", clientId, why: "gone", nextRound: null },
  } as never;
  await cluster.open(await cluster.dataset("saved"), SAVE);
  await settled();
  await cluster.ask("clientHeartbeat", { clientId });
  await cluster.restart();
  await cluster.ask("clientHeartbeat", { clientId });
  const { jobs } = await cluster.ask("describe", null);
  assert(jobs.some(({ name }) => name === "victim"));
});

Deno.test("amounts that a worker of a save states do not make the dispatcher's answers malformed", async () => {
  await using cluster = await TestCluster.start();
  const { clientId, taskId } = await openSave(cluster);
  const amount = { elements: Number.MAX_SAFE_INTEGER, sizeBytes: Number.MAX_SAFE_INTEGER };
  const run = {
    work: "run",
    place: 0,
    attempt: "1",
    ...amount,
    restBytes: amount.sizeBytes,
  } as const;
  await cluster.ask("getSaveWork", { taskId });
  await cluster.ask("getSaveWork", { taskId, done: run });
  await cluster.ask("getSaveWork", { taskId, done: { work: "entry", place: 0, ...amount } });
  await cluster.restart();
  const answer = await cluster.ask("clientHeartbeat", { clientId });
  const { news } = dispatcherAnswers.clientHeartbeat(answer, "dispatcher");
  assertEquals(news, { kind: "save", progress: { splitsDone: 1, splitsTotal: 900, ...amount } });
});
