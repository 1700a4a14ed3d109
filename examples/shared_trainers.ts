/**
 * Ephemeral data sharing: three trainers try three learning rates on one stream, which is produced once. The slow
 * one misses elements instead of holding up the others.
 *
 *     deno run -P examples/shared_trainers.ts
 */
import { Dataset, type DatasetIterator, LocalCluster, type Tensor } from "../mod.ts";

const BATCHES = 200;
const BATCH_BYTES = 8 * 1_024 * 4;

// The window holds the newest 32 batches.
await using cluster = await LocalCluster.start({ workers: 1, windowBytesMax: 32 * BATCH_BYTES });
const stream = Dataset.range(100_000)
  .repeat()
  .map((x, { random }) => new Float32Array(1_024).fill(x % 2 + random.next()))
  .batch(8);

const trials = [{ rate: 0.5, stepMs: 1 }, { rate: 0.1, stepMs: 1 }, { rate: 0.01, stepMs: 10 }];
const readers = trials.map(({ rate }) => readerOf(`rate-${rate}`));
await Promise.all(readers.map((reader) => reader.next())); // all have joined
await Promise.all(trials.map(({ rate, stepMs }, i) => train(readers[i]!, rate, stepMs)));

const tasks = (await cluster.sources()).filter(({ role }) => role === "task");
const produced = tasks.reduce((sum, { produced }) => sum + produced, 0);
console.log(`${BATCHES * trials.length} batches read, ${produced} produced`);

function readerOf(trainerId: string): DatasetIterator<Tensor> {
  return stream.distribute({
    service: cluster,
    jobName: "sweep",
    sharing: { trainerId },
    maxOutstandingRequests: 4,
  }).take(BATCHES).iterator();
}

async function train(reader: DatasetIterator<Tensor>, rate: number, stepMs: number): Promise<void> {
  let weight = 0;
  for await (const batch of reader) {
    for (const x of batch.data as Float32Array) weight += rate * 0.001 * (x - weight);
    await new Promise((resolve) => setTimeout(resolve, stepMs)); // what an accelerator would take
  }
  const { skipped } = reader.stats().find(({ operator }) => operator === "distribute")!;
  console.log(`learning rate ${rate}: weight ${weight.toFixed(2)}, ${skipped} batches missed`);
}
