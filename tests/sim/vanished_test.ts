/** A vanished training process: how long its requests stay, by the way in which it vanished. */
import { fingerprintGraph, serializeGraph } from "../../data/wire.ts";
import { Dataset } from "../../data/dataset.ts";
import { SimCluster } from "../../sim/engine/cluster.ts";
import { hasLeaks } from "../../sim/workloads/lib/leak_check.ts";
import {
  bootDispatcher,
  bootWorker,
  DISPATCHER_NODE,
  startClient,
} from "../../sim/engine/service.ts";
import { assert } from "../assert.ts";

const DATASET = Dataset.range(10).repeat();
const DEFINITION = {
  graph: serializeGraph(DATASET.node),
  fingerprint: fingerprintGraph(DATASET.node),
  cardinality: -1,
};

const TIMEOUT_MS = 120_000;
const GRACE_MS = 10_000;

/** How long anything of a client is left after its node crashes, in ms of virtual time. */
async function leftForMs(options: { readonly silent: boolean }): Promise<number> {
  const cluster = new SimCluster({ seed: 1n });
  cluster.addNode(
    DISPATCHER_NODE,
    bootDispatcher({ clientTimeoutMs: TIMEOUT_MS, clientGraceMs: GRACE_MS }),
  );
  cluster.addNode("worker", bootWorker());
  let fed = 0;
  const trainer = cluster.addNode("trainer", (node) => {
    const feed = startClient(node, {
      dataset: DEFINITION,
      parameters: { processingMode: "OFF", sharing: false },
      repetition: 0,
    });
    const read = async () => {
      for (; (await feed.take()).kind === "element"; fed++);
    };
    read().catch(() => {});
  });
  await cluster.run({ until: () => fed >= 10, timeMaxMs: 60_000 });
  const { scheduler } = cluster;
  const crashedUs = scheduler.nowUs;
  trainer.crash(options);
  await cluster.run({ until: () => !hasLeaks(cluster), timeMaxMs: 600_000 });
  return (scheduler.nowUs - crashedUs) / 1_000;
}

Deno.test("a trainer's resources are freed within seconds after its process ends", async () => {
  const ms = await leftForMs({ silent: false });
  assert(GRACE_MS <= ms && ms < 2 * GRACE_MS, `${ms} ms`);
});

Deno.test("a trainer's resources are freed when its silent machine has timed out", async () => {
  const ms = await leftForMs({ silent: true });
  assert(TIMEOUT_MS - GRACE_MS <= ms && ms < 2 * TIMEOUT_MS, `${ms} ms`);
});
