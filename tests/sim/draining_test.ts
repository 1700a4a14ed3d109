/** A draining worker: how long it waits for clients to acknowledge what it gave them. */
import { saveByService } from "../../actors/client/save_client.ts";
import { dispatcherAt } from "../../actors/dispatcher/protocol.ts";
import { workerAt } from "../../actors/worker/protocol.ts";
import { nodeActorOf } from "../../actors/runtime/node/node_actor.ts";
import { ACKNOWLEDGED_WITHIN_MS } from "../../actors/worker/tasks/task.ts";
import { Dataset } from "../../data/dataset.ts";
import type { DistributeOptions } from "../../data/operators/distribute.ts";
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

/** More elements than a worker holds ready. */
const ELEMENTS = 2_000;
/** Of unknown length: rounds of a dataset of known length would be refused. */
const DISTINCT = Dataset.range(ELEMENTS).filter((index) => index >= 0);

/** Longest time of a message, in ms. */
const MARGIN_MS = 100;
/** Drain time of the worker, and timeout of clients at the dispatcher, in ms. */
const DRAIN_MS = 120_000;
/** As in a `LocalCluster`: much shorter than a client's request timeout. */
const SHORT_DRAIN_MS = 5_000;
const CLIENT_TIMEOUT_MS = 120_000;
/** Time until each worker holds elements that a paused trainer does not fetch, in ms. */
const PAUSED_MS = 3_000;

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

async function runFor(cluster: SimCluster, ms: number): Promise<void> {
  const untilUs = cluster.scheduler.nowUs + 1_000 * ms;
  await cluster.run({ until: () => cluster.scheduler.nowUs >= untilUs, timeMaxMs: 2 * ms });
}

/** Starts two workers, and a trainer that stops reading, so that `worker-2` cannot stop draining. */
async function startDraining(
  readings: Readings,
  beforeDrain: (cluster: SimCluster) => Promise<void> = () => Promise.resolve(),
): Promise<SimCluster> {
  const cluster = new SimCluster({ seed: 1n, faults: NO_FAULTS });
  cluster.addNode(DISPATCHER_NODE, bootDispatcher({ workers: ["worker-1", "worker-2"] }));
  cluster.addNode("worker-1", bootWorker());
  cluster.addNode("worker-2", bootWorker());
  const operator = cluster.addNode("operator", () => {});
  const paused = readings.open(
    cluster.addNode("paused", () => {}),
    (service) => Dataset.range(1_000).distribute({ service, processingMode: "DYNAMIC" }),
  );
  takeAll(paused, () => new Promise(() => {})).catch(() => {});
  await runFor(cluster, PAUSED_MS);
  await beforeDrain(cluster);
  let isDrained: boolean | undefined;
  operator.system.ask(workerAt("worker-2"), "drain", { timeoutMs: DRAIN_MS }, {
    timeoutMs: 2 * DRAIN_MS,
  }).then((answer) => isDrained = answer, () => {});
  await runFor(cluster, SHORT_DRAIN_MS);
  assertEquals(isDrained, undefined, "the paused trainer must hold the worker");
  return cluster;
}

/** A program that reads all of a dataset, and how far it is. */
function readAll(
  cluster: SimCluster,
  readings: Readings,
  processingMode: "DYNAMIC" | "OFF" | "DATA",
  options: Partial<DistributeOptions> = {},
): { readonly taken: number[]; isEnded: boolean } {
  const reading = { taken: [] as number[], isEnded: false };
  const node = cluster.addNode(`reader-${options.consumerIndex ?? 0}`, () => {});
  const make = (service: string) => DISTINCT.distribute({ service, processingMode, ...options });
  const step = async (element: unknown) => {
    reading.taken.push(element as number);
    await node.host.sleep(5);
  };
  takeAll(readings.open(node, make), step).then(() => reading.isEnded = true);
  return reading;
}

Deno.test("an epoch that begins while a worker drains for another job ends without that worker", async () => {
  for (const mode of ["DYNAMIC", "OFF"] as const) {
    using readings = new Readings();
    const cluster = await startDraining(readings);
    const reading = readAll(cluster, readings, mode);
    await cluster.run({ until: () => reading.isEnded, timeMaxMs: DRAIN_MS / 2 });
    assertEquals(new Set(reading.taken).size, ELEMENTS, mode);
    assertEquals(reading.taken.length, ELEMENTS, mode);
  }
});

Deno.test("an epoch that had begun before a worker drains for another job ends without that worker", async () => {
  for (const mode of ["DYNAMIC", "OFF"] as const) {
    using readings = new Readings();
    let reading: ReturnType<typeof readAll> | undefined;
    const cluster = await startDraining(readings, async (cluster) => {
      const begun = reading = readAll(cluster, readings, mode);
      await cluster.run({ until: () => begun.taken.length > 100, timeMaxMs: 60_000 });
    });
    await cluster.run({ until: () => reading!.isEnded, timeMaxMs: DRAIN_MS / 2 });
    assertEquals(new Set(reading!.taken).size, ELEMENTS, mode);
    if (mode === "DYNAMIC") assertEquals(reading!.taken.length, ELEMENTS);
    else assert(reading!.taken.length < 2 * ELEMENTS, "the worker must not have produced all");
  }
});

Deno.test("an epoch of coordinated reads ends without a worker that drains for another job, and loses no round", async () => {
  for (const mode of ["DYNAMIC", "OFF"] as const) {
    using readings = new Readings();
    let pair: ReturnType<typeof readAll>[] = [];
    const cluster = await startDraining(readings, async (cluster) => {
      pair = [0, 1].map((consumerIndex) =>
        readAll(cluster, readings, mode, { jobName: "rounds", numConsumers: 2, consumerIndex })
      );
      const isBegun = () => pair.every(({ taken }) => taken.length > 100);
      await cluster.run({ until: isBegun, timeMaxMs: 60_000 });
    });
    const isEnded = () => pair.every(({ isEnded }) => isEnded);
    await cluster.run({ until: isEnded, timeMaxMs: DRAIN_MS / 2 });
    assertEquals(pair[0]!.taken.length, pair[1]!.taken.length, mode);
    const taken = pair.flatMap(({ taken }) => taken);
    assertEquals(new Set(taken).size, ELEMENTS, mode);
    if (mode === "DYNAMIC") assertEquals(taken.length, ELEMENTS);
  }
});

Deno.test("coordinated reads that were left before a drain end without the worker once they are read again", async () => {
  using readings = new Readings();
  const rounds = { jobName: "rounds", numConsumers: 1, consumerIndex: 0 };
  const cluster = await startDraining(readings, async (cluster) => {
    const first = readings.open(
      cluster.addNode("first", () => {}),
      (service) => DISTINCT.distribute({ service, processingMode: "DYNAMIC", ...rounds }),
    );
    let hasLeft = false;
    first.next().then(() => first.return()).then(() => hasLeft = true);
    await cluster.run({ until: () => hasLeft, timeMaxMs: 60_000 });
  });
  const reading = readAll(cluster, readings, "DYNAMIC", rounds);
  await cluster.run({ until: () => reading.isEnded, timeMaxMs: DRAIN_MS / 2 });
  assertEquals(new Set(reading.taken).size, reading.taken.length);
});

Deno.test("a draining worker waits for trainers that are behind in a shared window", async () => {
  const cluster = new SimCluster({ seed: 1n, faults: NO_FAULTS });
  using readings = new Readings();
  cluster.addNode(DISPATCHER_NODE, bootDispatcher());
  cluster.addNode("worker", bootWorker());
  const operator = cluster.addNode("operator", () => {});
  const taken: Record<string, number[]> = { fast: [], slow: [] };
  for (const [trainerId, elements] of Object.entries(taken)) {
    const node = cluster.addNode(trainerId, () => {});
    const shared = (service: string) =>
      Dataset.range(ELEMENTS).repeat()
        .distribute({ service, jobName: "shared", sharing: { trainerId } });
    const step = async (element: unknown) => {
      elements.push(element as number);
      await node.host.sleep(trainerId === "fast" ? 5 : 50);
    };
    takeAll(readings.open(node, shared), step).catch(() => {});
  }
  await cluster.run({ until: () => taken["fast"]!.length > 500, timeMaxMs: 60_000 });
  let isDrained: boolean | undefined;
  operator.system.ask(workerAt("worker"), "drain", { timeoutMs: DRAIN_MS }, {
    timeoutMs: 2 * DRAIN_MS,
  }).then((answer) => isDrained = answer);
  await cluster.run({ until: () => isDrained !== undefined, timeMaxMs: 2 * DRAIN_MS });
  cluster.node("worker").crash();
  await runFor(cluster, DRAIN_MS);
  assertEquals(isDrained, true);
  assertEquals(taken["slow"], taken["fast"]);
});

Deno.test("a draining worker does not wait for trainers that have all left its window or rounds", async () => {
  const jobs: Record<string, Partial<DistributeOptions>> = {
    window: { sharing: { trainerId: "trainer" } },
    rounds: { numConsumers: 1, consumerIndex: 0 },
  };
  for (const [jobName, options] of Object.entries(jobs)) {
    const cluster = new SimCluster({ seed: 1n, faults: NO_FAULTS });
    using readings = new Readings();
    cluster.addNode(DISPATCHER_NODE, bootDispatcher());
    cluster.addNode("worker", bootWorker());
    const operator = cluster.addNode("operator", () => {});
    const reading = readings.open(
      cluster.addNode("trainer", () => {}),
      (service) => Dataset.range(ELEMENTS).repeat().distribute({ service, jobName, ...options }),
    );
    let hasLeft = false;
    const leave = async () => {
      await reading.next();
      await reading.return();
      hasLeft = true;
    };
    leave().catch(() => {});
    await cluster.run({ until: () => hasLeft, timeMaxMs: 60_000 });
    let isDrained: boolean | undefined;
    operator.system.ask(workerAt("worker"), "drain", { timeoutMs: DRAIN_MS }, {
      timeoutMs: 2 * DRAIN_MS,
    }).then((answer) => isDrained = answer);
    await runFor(cluster, SHORT_DRAIN_MS);
    assertEquals(isDrained, true, jobName);
  }
});

Deno.test("a share of a draining worker waits for the worker's next life", async () => {
  using readings = new Readings();
  const cluster = await startDraining(readings);
  const reading = readAll(cluster, readings, "DATA");
  await cluster.run({ until: () => reading.taken.length === ELEMENTS / 2, timeMaxMs: 60_000 });
  const worker = cluster.node("worker-2");
  worker.crash();
  assertEquals(reading.isEnded, false);
  worker.start();
  await cluster.run({ until: () => reading.isEnded, timeMaxMs: DRAIN_MS / 2 });
  assertEquals(reading.taken.sort((a, b) => a - b), [...Array(ELEMENTS).keys()]);
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
