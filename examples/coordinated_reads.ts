/**
 * Coordinated reads: two trainers of one model step together. In each step both get batches of one length bucket, so
 * that neither waits for the other's padding.
 *
 *     deno run -P examples/coordinated_reads.ts
 */
import { Dataset, LocalCluster } from "../mod.ts";

const TRAINERS = 2;
const STEPS = 12;

await using cluster = await LocalCluster.start({ workers: 2 });
const texts = Dataset.range(5_000).map((_, { random }) =>
  new Int32Array(1 + Math.floor(31 * random.next())).fill(7)
);
const rounds = texts
  .repeat()
  .bucketBySequenceLength({
    length: (tokens) => tokens.length,
    boundaries: [9, 17, 33],
    batchSizes: [32, 16, 8, 1],
    padToBucketBoundary: true, // to 8, 16 and 32 tokens
  })
  // Groups consecutive batches of one bucket into rounds: one batch for each trainer.
  .groupByWindow({
    key: (batch) => batch.shape[1]!,
    reduce: (_length, batches) => batches,
    windowSize: TRAINERS,
  });

const shapes = await Promise.all(
  Array.from({ length: TRAINERS }, (_, consumerIndex) => train(consumerIndex)),
);
let same = 0;
for (let step = 0; step < STEPS; step++) {
  const inStep = shapes.map((ofTrainer) => ofTrainer[step]!);
  console.log(`step ${step}: ${inStep.map((shape) => `[${shape}]`).join(" and ")}`);
  if (new Set(inStep.map(([, length]) => length)).size === 1) same++;
}
console.log(`${same} of ${STEPS} steps had batches of one length`);

/** One trainer. On several hosts, each runs this with its index. Returns the batches' shapes. */
async function train(consumerIndex: number): Promise<(readonly number[])[]> {
  const job = { jobName: "translation", consumerIndex, numConsumers: TRAINERS };
  const shapes: (readonly number[])[] = [];
  for await (const batch of rounds.distribute({ service: cluster, ...job }).take(STEPS)) {
    shapes.push(batch.shape);
  }
  return shapes;
}
