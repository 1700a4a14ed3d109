/** `"auto"` compression decides by measurement; tested over simulated networks of known speed. */
import { dispatcherAt, type DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import { Dataset } from "../../data/dataset.ts";
import { fingerprintGraph, serializeGraph } from "../../data/wire.ts";
import { SimCluster } from "../../sim/engine/cluster.ts";
import { NO_FAULTS } from "../../sim/faults/options.ts";
import {
  bootDispatcher,
  bootWorker,
  DISPATCHER_NODE,
  startClient,
} from "../../sim/engine/service.ts";
import { PROXY_KINDS } from "../../platform/nodes/service_kinds.ts";
import { assert, assertEquals, assertStringIncludes } from "../assert.ts";

/** 80 kB per element, which zstd reduces to about a tenth. */
const SMALLER = Dataset.range(10_000).repeat().batch(10_000);
/** Incompressible. */
const NOISE = Dataset.from([crypto.getRandomValues(new Uint8Array(65_536))]).repeat();

interface Run {
  readonly dataset: Dataset<unknown>;
  readonly bytesPerSecond: number;
  /** Time of a training step, in ms. */
  readonly stepMs?: number;
  readonly isFar?: boolean;
  readonly elements: number;
}

/** Reads so many elements; returns what was done, and the virtual time in ms. */
async function read({ dataset, bytesPerSecond, stepMs = 0, isFar = true, elements }: Run) {
  const faults = { ...NO_FAULTS, bytesPerSecond };
  const cluster = new SimCluster({ seed: 1n, faults, kinds: PROXY_KINDS });
  cluster.addNode(DISPATCHER_NODE, bootDispatcher());
  cluster.addNode("worker-1", bootWorker({ heartbeatMs: 500 }));
  let taken = 0;
  let bytes = 0;
  const client = cluster.addNode("client", (node) => {
    const feed = startClient(node, {
      dataset: {
        graph: serializeGraph(dataset.node),
        fingerprint: fingerprintGraph(dataset.node),
        cardinality: -1,
      },
      parameters: { processingMode: "OFF", sharing: false },
      repetition: 0,
      refreshMs: 100,
      isFar: () => isFar,
    });
    const loop = async () => {
      for (;;) {
        const fed = await feed.take();
        if (fed.kind !== "element") throw new Error(`${fed.kind} came`);
        bytes += fed.element.byteLength;
        taken++;
        await node.host.sleep(stepMs);
      }
    };
    loop();
  });
  await cluster.run({ until: () => taken >= elements, timeMaxMs: 3_600_000 });
  const ms = cluster.scheduler.nowUs / 1_000;
  const described = client.system.ask<DispatcherProtocol, "describe">(
    dispatcherAt(DISPATCHER_NODE),
    "describe",
    { refresh: true },
    { timeoutMs: 5_000 },
  );
  let description: Awaited<typeof described> | undefined;
  described.then((answer) => description = answer);
  await cluster.run({ until: () => description !== undefined, timeMaxMs: 3_600_000 });
  const [iteration] = description!.jobs[0]!.iterations;
  assert(bytes / taken > 65_536, "elements arrive whole");
  return {
    ms,
    compression: iteration!.tasks[0]!.figures!.compression!,
    reader: iteration!.readers[0]!.figures!,
  };
}

Deno.test('"auto" compresses over a slow network, and elements come faster for it', async () => {
  // 8 ms per element at 10 MB/s.
  const slow = { dataset: SMALLER, bytesPerSecond: 10e6, elements: 1_000 };
  const { compression, reader, ms } = await read(slow);
  assertEquals(compression.active, "zstd");
  assertStringIncludes(compression.reason, "times as fast");
  assert(compression.compressedBytes < compression.bytes / 4);
  assert(reader.wireBytes! < reader.bytes, "the reader tells what came over the wire");
  const plain = await read({ ...slow, isFar: false });
  assertEquals(plain.compression.active, "none");
  assert(ms < plain.ms / 2, `${ms} ms, and ${plain.ms} ms without`);
});

Deno.test('"auto" leaves alone what does not get smaller, and hardly tries it', async () => {
  const { compression } = await read({ dataset: NOISE, bytesPerSecond: 10e6, elements: 400 });
  assertEquals([compression.active, compression.bytes], ["none", 0]);
  assertStringIncludes(compression.reason, "100 % of the bytes are left");
});

Deno.test('"auto" compresses nothing while training loops hardly wait', async () => {
  const busy = { dataset: SMALLER, bytesPerSecond: 10e6, stepMs: 50, elements: 100 };
  const { compression } = await read(busy);
  assertEquals([compression.active, compression.ms], ["none", 0]);
  assertStringIncludes(compression.reason, "hardly wait");
});
