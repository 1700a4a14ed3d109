/** Jobs: shared readers, leftover elements, and jobs without readers. */
import { Dataset, type LocalCluster, type Tensor } from "../../../mod.ts";
import { assert, assertEquals, assertNotEquals } from "../../assert.ts";
import {
  numbersOf,
  sorted,
  testInline,
  testOnEach,
  untilForgotten,
  upTo,
} from "../lib/carriers.ts";
import { until } from "../../lib/until.ts";

/** Forty numbers; each worker's share is read as far ahead as clients allow. */
function job(service: LocalCluster, jobName?: string): Dataset<number> {
  return Dataset.range(40).distribute({
    service,
    processingMode: "DYNAMIC",
    maxOutstandingRequests: 1,
    ...(jobName === undefined ? {} : { jobName }),
  });
}

testOnEach("a client that leaves leaves the rest to the others of its job", async (start) => {
  await using cluster = await start({ workers: 2 });
  const first = job(cluster, "j").iterator();
  const seen = [(await first.next()).value!, (await first.next()).value!];
  await using second = job(cluster, "j").iterator();
  seen.push((await second.next()).value!);
  await first.return();
  for await (const x of second) seen.push(x);
  assertEquals(new Set(seen).size, seen.length);
  // Elements in transit to the client that left are lost with it.
  assert(seen.length >= 40 - 2, `${seen.length} of 40`);
});

testInline(
  "an iteration that was read to its end has no elements for a later client",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    await using keeper = job(cluster, "j").iterator();
    assertEquals(sorted(await Array.fromAsync(keeper)), upTo(40));
    assertEquals(await Array.fromAsync(job(cluster, "j")), []);
  },
);

testInline(
  "the n-th iterators of datasets share the n-th iteration of their job",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    const [one, two] = [job(cluster, "j"), job(cluster, "j")];
    for (let repetition = 0; repetition < 2; repetition++) {
      const both = await Promise.all([one, two].map((dataset) => Array.fromAsync(dataset)));
      assertEquals(sorted(both.flat()), upTo(40), `repetition ${repetition}`);
    }
  },
);

testInline("each client has its own unnamed job, which ends with it", async (start) => {
  await using cluster = await start({ workers: 2 });
  const both = await Promise.all([job(cluster), job(cluster)].map((one) => Array.fromAsync(one)));
  assertEquals(both.map(sorted), [upTo(40), upTo(40)]);
  await untilForgotten(cluster);
});

testInline("a named job without readers is forgotten, and starts again", async (start) => {
  await using cluster = await start({ workers: 2, jobGcTimeoutMs: 30 });
  const dataset = () => Dataset.range(40).batch(4);
  const distribution = { service: cluster, processingMode: "DYNAMIC", jobName: "j" } as const;
  for (let times = 0; times < 2; times++) {
    const batches = dataset().distribute(distribution);
    assertEquals(sorted(await numbersOf(batches)), upTo(40));
    await untilForgotten(cluster);
  }
});

testInline("a named job is kept while it has a reader, however slow", async (start) => {
  await using cluster = await start({ workers: 1, jobGcTimeoutMs: 20, clientTimeoutMs: 10_000 });
  await using reader = job(cluster, "j").iterator();
  await reader.next();
  // Another job comes and is forgotten meanwhile.
  for (let times = 0; times < 2; times++) {
    const other = job(cluster, "k").iterator();
    await other.next();
    await other.return();
    await until(async () => (await cluster.describe()).jobs.length <= 1);
  }
  assertEquals((await Array.fromAsync(reader)).length, 39);
});

testInline("jobs of different names each give all elements", async (start) => {
  await using cluster = await start({ workers: 2 });
  const both = [job(cluster, "one"), job(cluster, "other")].map((one) => Array.fromAsync(one));
  assertEquals((await Promise.all(both)).map(sorted), [upTo(40), upTo(40)]);
});

testInline("clients of one job divide each repetition of it", async (start) => {
  await using cluster = await start({ workers: 2 });
  const both = [job(cluster, "j"), job(cluster, "j")].map((one) => Array.fromAsync(one.repeat(3)));
  assertEquals(sorted((await Promise.all(both)).flat()), upTo(40, 3));
});

testInline("the name of a forgotten job can be used for other elements", async (start) => {
  await using cluster = await start({ workers: 1, jobGcTimeoutMs: 20 });
  assertEquals(sorted(await Array.fromAsync(job(cluster, "j"))), upTo(40));
  await untilForgotten(cluster);
  const others = Dataset.range(5).distribute({ service: cluster, jobName: "j" });
  assertEquals(await Array.fromAsync(others), upTo(5));
});

testOnEach("a worker that restarts under OFF begins again in another order", async (start) => {
  await using cluster = await start({ workers: 1 });
  const batches = Dataset.range(64).shuffle(64).batch(64).repeat().distribute({ service: cluster });
  await using iterator = batches.iterator();
  const orderOf = ({ value }: IteratorResult<Tensor, undefined>) => String(value!.toArray());
  const [first, second] = [orderOf(await iterator.next()), orderOf(await iterator.next())];
  assertNotEquals(first, second);
  const orders = new Set([first]);
  await cluster.stopWorker(0);
  await cluster.restartWorker(0);
  // Some of the earlier run may have arrived.
  for (let i = 0; i < 40; i++) orders.add(orderOf(await iterator.next()));
  assertEquals(orders.size, 41);
});
