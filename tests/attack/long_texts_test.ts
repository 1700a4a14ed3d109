/**
 * A client that sends a dispatcher endless texts and lists, which the dispatcher would keep,
 * journal and show to every reader of its state.
 */
import { noReport } from "../lib/no_figures.ts";
import { elementSourceChecks, workerChecks } from "../../actors/worker/protocol_check.ts";
import { dispatcherChecks } from "../../actors/dispatcher/protocol_check.ts";
import { refusalOf } from "../actors/lib/refusal.ts";
import { TestCluster } from "../actors/dispatcher/lib.ts";
import { assert, assertEquals, assertStringIncludes } from "../assert.ts";

const LONG = "x".repeat(1_000_000);
const MANY = Array<number>(100_000).fill(1);
/** More positions than a message holds. */
const POSITIONS = Array<number>(2 ** 22 + 1).fill(1);

const parameters = { datasetId: "1", processingMode: "CUSTOM", sharing: false } as const;
const opening = { requestId: "1", parameters, repetition: 0 };
const figures = {
  ...noReport("client"),
  atMs: 1,
  reads: [],
};
const read = {
  ...noReport("read"),
  ...{ worker: "w", taskId: 1 },
};
const element = { clientId: 1, sequence: 0, acknowledged: 0 };

/** Requests, and the fields of them that are made too long, or are unknown. */
const REQUESTS = [
  ...["requestId", "secret", "jobName", "process", "stream", "restoration", "runId"].map((key) =>
    ["openIteration", opening, { [key]: LONG }] as const
  ),
  ["openIteration", opening, { behind: POSITIONS }],
  ...[
    { datasetId: LONG },
    { policy: { name: LONG, shard: "" } },
    { policy: { name: "p", shard: LONG + LONG } },
    { policy: { name: "p", shard: "", more: LONG } },
    { targetTags: [LONG] },
    { targetTags: Array(1_000).fill("x") },
    { ordered: { seed: LONG, shuffled: false } },
    { save: { folder: LONG, overwrite: false, fingerprint: "" } },
    { unknown: LONG },
  ].map((more) => ["openIteration", opening, { parameters: { ...parameters, ...more } }] as const),
  ["registerDataset", { graph: new Uint8Array(1), fingerprint: "", cardinality: 1 }, {
    fingerprint: LONG,
  }],
  ["getDataset", { datasetId: "" }, { datasetId: LONG }],
  ...[
    { secret: LONG },
    { taskList: LONG },
    {
      report: {
        kind: "rounds",
        position: { kind: "reading", nextRound: 0, deliveredRound: 0, waitsFor: LONG },
      },
    },
    { report: { kind: "ordered", mark: 0, done: POSITIONS } },
    { report: { kind: "rounds", heldRounds: MANY } },
    { report: { kind: LONG } },
    { figures: { ...figures, reads: [{ ...read, worker: LONG }] } },
    { figures: { ...figures, reads: Array(100_000).fill(read) } },
  ].map((more) => ["clientHeartbeat", { clientId: 1, figures }, more] as const),
  ["releaseClient", { clientId: 1 }, { secret: LONG }],
  ["workerHeartbeat", {
    ...{ name: "w", worker: { node: "n", path: "/", incarnation: "1" }, tags: [], tasks: [] },
  }, { tags: [LONG] }],
  ["runnerDied", { taskId: 1, number: 1, error: { code: "unknown", message: "" } }, {
    error: { code: "unknown", message: LONG },
  }],
] as const;

Deno.test("a dispatcher refuses texts and lists that are too long, and unknown parameters", () => {
  for (const [method, request, more] of REQUESTS) {
    const where = `${method} ${Object.keys(more)} ${JSON.stringify(more).slice(0, 80)}`;
    assertEquals(refusalOf(dispatcherChecks[method], request)?.message, undefined, where);
    const error = refusalOf(dispatcherChecks[method], { ...request, ...more });
    assertEquals(error?.code, "invalid_argument", where);
    assert(error!.message.length < 500, error!.message.slice(0, 500));
  }
});

Deno.test("a worker refuses texts and lists that are too long", () => {
  for (const more of [{ trainerId: LONG }, { absent: MANY }]) {
    assertEquals(refusalOf(elementSourceChecks.getElement, element), undefined);
    assertEquals(
      refusalOf(elementSourceChecks.getElement, { ...element, ...more })?.code,
      "invalid_argument",
    );
  }
  assertEquals(refusalOf(workerChecks.nameWanted, { by: LONG })?.code, "invalid_argument");
});

Deno.test("a job with the longest tags does not make the state many times larger", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("w");
  await worker.heartbeat();
  const targetTags = Array.from({ length: 64 }, (_, i) => `${i}`.padEnd(1_024, "x"));
  const { clientId } = await cluster.open(await cluster.dataset(), { targetTags });
  const { starvation = "" } = await cluster.ask("clientHeartbeat", { clientId });
  assertStringIncludes(starvation, "and 56 more");
  assert(starvation.length < 3_000, `${starvation.length}`);
  const state = JSON.stringify(await cluster.ask("describe", null));
  assert(state.length < 3 * 64 * 1_024, `${state.length}`);
});
