/**
 * Data-parallel training on one deterministic stream. Consumer i of n gets every n-th batch. Together the consumers
 * get every element once, although a worker crashes in the middle.
 *
 *     deno run -P examples/data_parallel.ts
 */
import { Dataset, LocalCluster } from "../mod.ts";

const CONSUMERS = 2;
const ELEMENTS = 4_000;
const BATCH = 20;

await using cluster = await LocalCluster.start({ workers: 2 });
const batches = Dataset.range(ELEMENTS).shuffle(500).batch(BATCH).withOptions({ seed: 3 });

const given = await Promise.all(
  Array.from({ length: CONSUMERS }, (_, consumerIndex) => train(consumerIndex)),
);
for (const [consumer, elements] of given.entries()) {
  console.log(`consumer ${consumer}: ${elements.length} elements, first ${elements.slice(0, 5)}`);
}
console.log(`${given.flat().length} elements, ${new Set(given.flat()).size} different ones`);

/** One consumer. On several hosts, each runs this with its index. Returns its elements. */
async function train(consumerIndex: number): Promise<number[]> {
  const share = batches.distribute({
    service: cluster,
    processingMode: "DETERMINISTIC",
    jobName: "vision",
    consumerIndex,
    numConsumers: CONSUMERS,
    maxOutstandingRequests: 4,
  });
  const elements: number[] = [];
  for await (const batch of share) {
    elements.push(...batch.data as Float64Array);
    if (consumerIndex === 0 && elements.length === 10 * BATCH) await crash();
  }
  return elements;
}

/** Ends a worker abruptly, and restarts it. */
async function crash(): Promise<void> {
  await cluster.stopWorker(0);
  console.log("worker 0 has crashed");
  await cluster.restartWorker(0);
}
