/** A draining worker: how long it waits for clients to acknowledge what it gave them. */
import { saveByService } from "../../actors/client/save_client.ts";
import { dispatcherAt } from "../../actors/dispatcher/protocol.ts";
import { workerAt } from "../../actors/worker/protocol.ts";
import { nodeActorOf } from "../../actors/runtime/node/node_actor.ts";
import { ACKNOWLEDGED_WITHIN_MS } from "../../actors/worker/tasks/task.ts";
import { Dataset } from "../../data/dataset.ts";
import { LeatError } from "../../core/error.ts";
import { fingerprintGraph, serializeGraph } from "../../data/wire.ts";
import { SimCluster } from "../../sim/engine/cluster.ts";
import { NO_FAULTS } from "../../sim/faults/options.ts";
import { Readings, takeAll } from "../../sim/workloads/lib/reading.ts";
import {
  bootDispatcher,
  bootWorker,
  DISPATCHER_NODE,
  startClient,
} from "../../sim/engine/service.ts";
import { assert, assertEquals } from "../assert.ts";

/** One element, so that the worker holds nothing but the element that it has given. */
const DATASET = Dataset.range(1);
const DEFINITION = {
  graph: serializeGraph(DATASET.node),
  fingerprint: fingerprintGraph(DATASET.node),
  cardinality: 1,
};

/** Longest time of a message, in ms. */
const MARGIN_MS = 100;
/** Drain time of the worker, and timeout of clients at the dispatcher, in ms. */
const DRAIN_MS = 120_000;
/** As in a `LocalCluster`: much shorter than a client's request timeout. */
const SHORT_DRAIN_MS = 5_000;
const CLIENT_TIMEOUT_MS = 120_000;

/** The result. */
interface Left {
  readonly isDrained: boolean;
  /** Virtual time since the last request for an element, in ms. */
  readonly waitedMs: number;
  /** Number of elements that the client received. */
  readonly fed: number;
}

/**
 * Drains a worker while its element is on its way to a client.
 *
 * @param onGiven Called as the element leaves the worker.
 * @param isTaken Whether the training loop takes it; if not, there is no room for another request.
 */
async function leave(
  onGiven: (cluster: SimCluster) => void,
  { drainMs = DRAIN_MS, isTaken = true } = {},
): Promise<Left> {
  const cluster = new SimCluster({ seed: 1n, faults: NO_FAULTS });
  const nowMs = () => cluster.scheduler.nowUs / 1_000;
  cluster.addNode(DISPATCHER_NODE, bootDispatcher({ clientTimeoutMs: CLIENT_TIMEOUT_MS }));
  const worker = cluster.addNode("worker", bootWorker());
  const operator = cluster.addNode("operator", () => {});
  let fed = 0;
  cluster.addNode("trainer", (node) => {
    const feed = startClient(node, {
      dataset: DEFINITION,
      parameters: { processingMode: "DYNAMIC", sharing: false },
      repetition: 0,
      ...(isTaken ? {} : { maxOutstandingRequests: 1 }),
    });
    const read = async () => {
      for (; (await feed.take()).kind === "element"; fed++);
    };
    if (isTaken) read().catch(() => {});
  });
  let askedMs = 0;
  let isGiven = false;
  worker.system.inspect((event) => {
    if (event.type === "deliver") {
      const { envelope } = event;
      if (envelope.kind === "ask" && envelope.method === "getElement") askedMs = nowMs();
    } else if (event.type === "send" && event.envelope.kind === "reply" && !isGiven) {
      const body = event.envelope.body as { readonly kind?: string } | null;
      isGiven = body?.kind === "element";
      if (isGiven) onGiven(cluster);
    }
  });
  await cluster.run({ until: () => isGiven, timeMaxMs: 60_000 });
  let isDrained: boolean | undefined;
  operator.system.ask(workerAt("worker"), "drain", { timeoutMs: drainMs }, {
    timeoutMs: 2 * DRAIN_MS,
  }).then((answer) => isDrained = answer);
  await cluster.run({ until: () => isDrained !== undefined, timeMaxMs: 2 * DRAIN_MS });
  return { isDrained: isDrained!, waitedMs: nowMs() - askedMs, fed };
}

Deno.test("a worker that drains waits ACKNOWLEDGED_WITHIN_MS for a silent client to acknowledge, and no longer", async () => {
  const { isDrained, waitedMs } = await leave((cluster) =>
    cluster.node("trainer").crash({ silent: true })
  );
  assertEquals(isDrained, true);
  assert(
    ACKNOWLEDGED_WITHIN_MS <= waitedMs && waitedMs < ACKNOWLEDGED_WITHIN_MS + MARGIN_MS,
    `${waitedMs} ms`,
  );
});

Deno.test("a draining worker waits for a client that repeats a request whose answer was lost", async () => {
  for (const lostMs of [MARGIN_MS, SHORT_DRAIN_MS / 2]) {
    const { isDrained, fed } = await leave((cluster) => {
      cluster.network.partition(new Set(["worker>trainer"]));
      cluster.after(lostMs, "mended", () => cluster.network.partition(new Set()));
    }, { drainMs: SHORT_DRAIN_MS });
    assertEquals({ isDrained, fed }, { isDrained: true, fed: 1 }, `lost for ${lostMs} ms`);
  }
});

Deno.test("a draining worker learns that everything arrived from a client without further requests", async () => {
  const { isDrained } = await leave(() => {}, { drainMs: SHORT_DRAIN_MS, isTaken: false });
  assertEquals(isDrained, true);
});

Deno.test("a draining worker does not wait for a client whose node reports it as ended", async () => {
  const { isDrained } = await leave((cluster) => {
    const trainer = cluster.node("trainer");
    trainer.crash();
    cluster.after(MARGIN_MS, "restart", () => {
      trainer.start();
      // A worker dials no client: it asks over an existing link.
      trainer.system.tell(nodeActorOf("worker"), "ended", { lives: [] });
    });
  }, { drainMs: SHORT_DRAIN_MS });
  assertEquals(isDrained, true);
});

Deno.test("endless coordinated reads continue while one of their workers drains", async () => {
  const cluster = new SimCluster({ seed: 1n, faults: NO_FAULTS });
  using readings = new Readings();
  cluster.addNode(DISPATCHER_NODE, bootDispatcher());
  cluster.addNode("worker-1", bootWorker());
  cluster.addNode("worker-2", bootWorker());
  const operator = cluster.addNode("operator", () => {});
  const taken = [0, 0];
  const ended: string[] = [];
  for (const consumerIndex of taken.keys()) {
    const node = cluster.addNode(`trainer-${consumerIndex}`, () => {});
    const endless = (service: string) =>
      Dataset.range(10).repeat()
        .distribute({ service, jobName: "rounds", numConsumers: taken.length, consumerIndex });
    const step = async () => {
      taken[consumerIndex]!++;
      await node.host.sleep(10);
    };
    takeAll(readings.open(node, endless), step).then(
      () => ended.push("the end"),
      (error) => ended.push(LeatError.from(error).message),
    );
  }
  const taking = (count: number) => () => ended.length > 0 || taken.every((each) => each >= count);
  await cluster.run({ until: taking(20), timeMaxMs: 60_000 });
  let isDrained: boolean | undefined;
  operator.system.ask(workerAt("worker-1"), "drain", { timeoutMs: DRAIN_MS }, {
    timeoutMs: 2 * DRAIN_MS,
  }).then((answer) => isDrained = answer);
  await cluster.run({ until: () => isDrained !== undefined, timeMaxMs: 2 * DRAIN_MS });
  await cluster.run({ until: taking(60), timeMaxMs: 60_000 });
  assertEquals({ isDrained, ended }, { isDrained: true, ended: [] });
  assert(taken.every((each) => each >= 60), `${taken}`);
});

Deno.test("a save continues while a worker with a part of it drains", async () => {
  for (const isBusy of [true, false]) {
    const cluster = new SimCluster({ seed: 1n, faults: NO_FAULTS });
    cluster.addNode(DISPATCHER_NODE, bootDispatcher());
    const worker = cluster.addNode("worker-1", bootWorker());
    cluster.addNode("worker-2", bootWorker());
    const operator = cluster.addNode("operator", () => {});
    const saver = cluster.addNode("saver", () => {});
    let asked = 0;
    worker.system.inspect((event) => {
      if (event.type !== "send" || event.envelope.kind !== "ask") return;
      const { method, body } = event.envelope;
      const isOfWork = method === "getSaveWork" && typeof body === "object" && body !== null;
      if (isOfWork && "done" in body === isBusy) asked++;
    });
    let isSaved = false;
    const home = {
      system: saver.system,
      dispatcher: dispatcherAt(DISPATCHER_NODE),
      timings: {},
      release: () => {},
    };
    const save = { folder: "/saved", overwrite: false };
    saveByService(Dataset.range(40).node, "simulated", { save }, () => home)
      .then(() => isSaved = true);
    await cluster.run({ until: () => asked > 0, timeMaxMs: 60_000 });
    let isDrained: boolean | undefined;
    operator.system.ask(workerAt("worker-1"), "drain", { timeoutMs: DRAIN_MS }, {
      timeoutMs: 2 * DRAIN_MS,
    }).then((answer) => isDrained = answer);
    await cluster.run({ until: () => isSaved, timeMaxMs: 60_000 });
    assertEquals({ isDrained, isSaved, isBusy }, { isDrained: true, isSaved: true, isBusy });
  }
});
