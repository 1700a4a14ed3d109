/** A worker that is to leave: how long it waits for clients to say that they have what it gave them. */
import { workerAt } from "../../actors/worker/protocol.ts";
import { Dataset } from "../../data/dataset.ts";
import { fingerprintGraph, serializeGraph } from "../../data/wire.ts";
import { SimCluster } from "../../sim/cluster.ts";
import { NO_FAULTS } from "../../sim/options.ts";
import { bootDispatcher, bootWorker, DISPATCHER_NODE, startClient } from "../../sim/service.ts";
import { assert, assertEquals } from "../assert.ts";

/** One element, so that nothing is left in the worker but what it has given. */
const DATASET = Dataset.range(1);
const DEFINITION = {
  graph: serializeGraph(DATASET.node),
  fingerprint: fingerprintGraph(DATASET.node),
  cardinality: 1,
};

/** How long a task waits for a silent client (`ACKNOWLEDGED_WITHIN_MS`), and what messages take, in ms. */
const PATIENCE_MS = 5_000;
const MARGIN_MS = 100;
/** How long the worker may drain, in ms. */
const DRAIN_MS = 60_000;

Deno.test("a worker that drains waits ACKNOWLEDGED_WITHIN_MS for a silent client to acknowledge, and no longer", async () => {
  const cluster = new SimCluster({ seed: 1n, faults: NO_FAULTS });
  const nowMs = () => cluster.scheduler.nowUs / 1_000;
  cluster.addNode(DISPATCHER_NODE, bootDispatcher());
  const worker = cluster.addNode("worker", bootWorker());
  const operator = cluster.addNode("operator", () => {});
  const trainer = cluster.addNode("trainer", (node) => {
    startClient(node, {
      dataset: DEFINITION,
      parameters: { processingMode: "DYNAMIC", sharing: false },
      repetition: 0,
    });
  });
  let askedMs: number | undefined;
  let isGiven = false;
  worker.system.inspect((event) => {
    if (event.type === "deliver") {
      const { envelope } = event;
      if (envelope.kind === "ask" && envelope.method === "getElement") askedMs = nowMs();
    } else if (event.type === "send" && event.envelope.kind === "reply") {
      const body = event.envelope.body as { readonly kind?: string } | null;
      if (isGiven || body?.kind !== "element") return;
      isGiven = true;
      // It never gets it, and is not heard of any more.
      trainer.crash({ silent: true });
    }
  });
  await cluster.run({ until: () => isGiven, timeMaxMs: 60_000 });

  let isDrained: boolean | undefined;
  operator.system.ask(workerAt("worker"), "drain", { timeoutMs: DRAIN_MS }, {
    timeoutMs: 2 * DRAIN_MS,
  }).then((answer) => isDrained = answer);
  await cluster.run({ until: () => isDrained !== undefined, timeMaxMs: 2 * DRAIN_MS });
  assertEquals(isDrained, true);
  const waitedMs = nowMs() - askedMs!;
  assert(PATIENCE_MS <= waitedMs && waitedMs < PATIENCE_MS + MARGIN_MS, `${waitedMs} ms`);
});
