/**
 * The service's actors on simulated nodes, placed by configuration, and the promises of the cache
 * and the scheduler there, with and without loss.
 */
import type { ClientOptions } from "../../actors/client/client.ts";
import { Dataset } from "../../data/dataset.ts";
import { ShardingPolicy } from "../../data/sharding/sharding_policy.ts";
import { fingerprintGraph, serializeGraph } from "../../data/wire.ts";
import { SimCluster } from "../../sim/engine/cluster.ts";
import { type FaultOptions, NO_FAULTS } from "../../sim/faults/options.ts";
import {
  bootDispatcher,
  bootWorker,
  DISPATCHER_NODE,
  startClient,
} from "../../sim/engine/service.ts";
import { WORKLOAD_FAULTS } from "../../sim/workloads/workload.ts";
import { decodeMessage } from "../../transport/codec.ts";
import { PROXY_KINDS } from "../../platform/nodes/service_kinds.ts";
import { assert, assertEquals } from "../assert.ts";

const CLIENTS = ["client-1", "client-2"] as const;
const STEPS = 100;

/** Endless, and ascending for longer than any run lasts. */
const DATASET = Dataset.range(1_000_000).repeat();

interface Run {
  readonly seed?: bigint;
  readonly faults?: FaultOptions;
  /** The node of caches and schedulers; default: that of their tasks. */
  readonly front?: string;
  readonly isLockstep: boolean;
  readonly clientOptions: (index: number) => Pick<ClientOptions, "parameters"> & {
    readonly trainerId?: string;
    readonly consumerIndex?: number;
  };
}

/**
 * Runs one worker and two clients until both have taken their steps; returns what they received.
 */
async function train({ seed = 1n, faults = NO_FAULTS, front, isLockstep, clientOptions }: Run) {
  const cluster = new SimCluster({ seed, faults, kinds: PROXY_KINDS });
  const taken: number[][] = [[], []];
  cluster.addNode(DISPATCHER_NODE, bootDispatcher());
  cluster.addNode("front", () => {});
  const placement = front === undefined ? {} : { cache: front, reads: front };
  cluster.addNode("worker-1", bootWorker({ heartbeatMs: 5_000, placement }));
  for (const [index, name] of CLIENTS.entries()) {
    cluster.addNode(name, (node) => {
      const feed = startClient(node, {
        dataset: {
          graph: serializeGraph(DATASET.node),
          fingerprint: fingerprintGraph(DATASET.node),
          cardinality: -1,
        },
        jobName: "job",
        repetition: 0,
        requestTimeoutMs: 500,
        ...clientOptions(index),
      });
      const mine = taken[index]!;
      const theirs = taken[1 - index]!;
      const loop = async () => {
        for (;;) {
          const fed = await feed.take();
          assert(fed.kind === "element", `${name} was fed ${fed.kind}`);
          mine.push(decodeMessage(fed.element.bytes) as number);
          await node.host.sleep(index === 0 ? 2 : 5);
          while (isLockstep && theirs.length < mine.length) await node.host.sleep(1);
        }
      };
      loop();
    });
  }
  const isDone = () => taken.every(({ length }) => length >= STEPS);
  await cluster.run({ until: isDone, timeMaxMs: 600_000, stepsMax: 200_000 });
  return { cluster, taken };
}

function kindsOn(cluster: SimCluster, node: string): string[] {
  return cluster.node(node).system.actors().map(({ kind }) => kind).filter((kind) =>
    kind !== "node"
  )
    .sort();
}

const SHARING = (index: number) => ({
  parameters: { processingMode: ShardingPolicy.OFF, sharing: true },
  trainerId: CLIENTS[index]!,
});
const COORDINATED = (index: number) => ({
  parameters: { processingMode: ShardingPolicy.OFF, sharing: false, numConsumers: 2 },
  consumerIndex: index,
});

for (const [kind, clientOptions] of [["cache", SHARING], ["reads", COORDINATED]] as const) {
  Deno.test(`the ${kind} runs on its task's node or on another one, by configuration`, async () => {
    const isLockstep = kind === "reads";
    const beside = await train({ isLockstep, clientOptions });
    assertEquals(kindsOn(beside.cluster, DISPATCHER_NODE), ["dispatcher"]);
    assertEquals(kindsOn(beside.cluster, "worker-1"), [kind, "task", "worker"].sort());
    assertEquals(kindsOn(beside.cluster, "front"), []);
    const apart = await train({ front: "front", isLockstep, clientOptions });
    assertEquals(kindsOn(apart.cluster, "worker-1"), ["task", "worker"]);
    assertEquals(kindsOn(apart.cluster, "front"), [kind]);
    assertEquals(kindsOn(apart.cluster, "client-1"), ["client"]);
  });
}

Deno.test("sharing: whatever is lost, each trainer gets a subsequence of one stream, in order", async () => {
  for (let seed = 1n; seed <= 4n; seed++) {
    const run = { seed, faults: WORKLOAD_FAULTS, isLockstep: false, clientOptions: SHARING };
    const { taken } = await train(run);
    for (const elements of taken) {
      assertEquals(elements, elements.toSorted((a, b) => a - b), `SEED=${seed}`);
      assertEquals(new Set(elements).size, elements.length, `SEED=${seed}`);
    }
  }
});

Deno.test("coordinated reads: whatever is lost, both consumers of a step get neighbours of one round", async () => {
  for (let seed = 1n; seed <= 4n; seed++) {
    const run = { seed, faults: WORKLOAD_FAULTS, isLockstep: true, clientOptions: COORDINATED };
    const { taken: [first, second] } = await train(run);
    for (let step = 0; step < STEPS; step++) {
      assertEquals(second![step], first![step]! + 1, `SEED=${seed}, step ${step}`);
      assertEquals(first![step]! % 2, 0, `SEED=${seed}, step ${step}`);
    }
  }
});
