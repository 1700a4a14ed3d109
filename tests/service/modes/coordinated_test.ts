/** Coordinated reads, end to end, on every carrier (paper section 3.6). */
import { Dataset, type LocalCluster, type Tensor } from "../../../mod.ts";
import { assertEquals } from "../../assert.ts";
import { until } from "../../lib/until.ts";
import { testOnEach } from "../lib/carriers.ts";

const CONSUMERS = 2;
/** How many rounds a consumer requests ahead of its loop. */
const ROUNDS_AHEAD = 3;
/** No round is skipped, however late it is. */
const NEVER_MS = 600_000;

/** Texts of 1 to 40 tokens in buckets of ten; a round's batches are all of one bucket. */
function consumer(service: LocalCluster, consumerIndex: number) {
  return Dataset.range(1_000_000)
    .map((x) => Array.from({ length: 1 + (x * 7919) % 40 }, () => x), {
      spec: undefined,
    })
    .map((tokens) => new Int32Array(tokens as number[]))
    .bucketBySequenceLength({
      length: (tokens) => tokens.length,
      boundaries: [11, 21, 31],
      batchSizes: [4, 4, 4, 4],
    })
    .groupByWindow({
      key: (batch) => Math.ceil((batch as Tensor).shape[1]! / 10),
      reduce: (_key, window) => window.batch(1).unbatch(),
      windowSize: 2,
    })
    .repeat()
    .distribute({
      service,
      jobName: "coordinated",
      consumerIndex,
      numConsumers: CONSUMERS,
      maxOutstandingRequests: ROUNDS_AHEAD,
    });
}

/** How many rounds each worker has served, to all consumers together. */
async function servedRounds(cluster: LocalCluster): Promise<number[]> {
  const sources = await cluster.sources();
  return sources.filter(({ role }) => role === "reads").map(({ served }) => served);
}

testOnEach(
  "in a round all consumers get batches of one bucket",
  async (start) => {
    await using cluster = await start({ workers: 2, skipAfterMs: NEVER_MS });
    const readers = [0, 1].map((index) => consumer(cluster, index).iterator());
    for (let round = 0; round < 30; round++) {
      const batches = await Promise.all(readers.map((reader) => reader.next()));
      const buckets = batches.map(({ value }) => Math.ceil((value as Tensor).shape[1]! / 10));
      assertEquals(
        new Set(buckets).size,
        1,
        `round ${round}: buckets ${buckets}`,
      );
    }
    for (const reader of readers) await reader.return();
  },
);

testOnEach("rounds are served by the workers in turn", async (start) => {
  await using cluster = await start({ workers: 2, skipAfterMs: NEVER_MS });
  const readers = [0, 1].map((index) => consumer(cluster, index).iterator());
  let given = 0;
  const step = async () => {
    await Promise.all(readers.map((reader) => reader.next()));
    given++;
  };
  /** What each worker has served, once all rounds that the consumers hold ahead have arrived. */
  const served = () =>
    until(async () => {
      const counts = await servedRounds(cluster);
      const sum = counts.reduce((sum, count) => sum + count, 0);
      return sum === CONSUMERS * (given + ROUNDS_AHEAD) && counts;
    });
  await step();
  while ((await served()).filter((count) => count > 0).length < 2) await step();
  const before = await served();
  for (let round = 0; round < 20; round++) await step();
  const gained = (await served()).map((count, i) => count - before[i]!);
  assertEquals(gained, [10 * CONSUMERS, 10 * CONSUMERS]);
  for (const reader of readers) await reader.return();
});

testOnEach(
  "a worker that joins serves rounds too, for all consumers alike",
  async (start) => {
    await using cluster = await start({ workers: 1, skipAfterMs: NEVER_MS });
    const readers = [0, 1].map((index) => consumer(cluster, index).iterator());
    const step = async () => {
      const batches = await Promise.all(readers.map((reader) => reader.next()));
      return new Set(
        batches.map(({ value }) => Math.ceil((value as Tensor).shape[1]! / 10)),
      ).size;
    };
    for (let round = 0; round < 5; round++) assertEquals(await step(), 1);
    await cluster.addWorker();
    await until(async () => {
      assertEquals(await step(), 1);
      const served = await servedRounds(cluster);
      return served.length === 2 && served.every((count) => count > 4);
    }, 0);
    for (const reader of readers) await reader.return();
  },
);

testOnEach("consumers move on together when a worker dies", async (start) => {
  await using cluster = await start({
    workers: 2,
    skipAfterMs: NEVER_MS,
    workerTimeoutMs: 400,
  });
  const readers = [0, 1].map((index) => consumer(cluster, index).iterator());
  const step = async () => {
    const batches = await Promise.all(readers.map((reader) => reader.next()));
    return new Set(
      batches.map(({ value }) => Math.ceil((value as Tensor).shape[1]! / 10)),
    ).size;
  };
  for (let round = 0; round < 6; round++) assertEquals(await step(), 1);
  await cluster.stopWorker(0);
  let mixed = 0;
  for (let round = 0; round < 30; round++) if (await step() > 1) mixed++;
  assertEquals(mixed, 0, "rounds after the loss are of one bucket again");
  for (const reader of readers) await reader.return();
});
