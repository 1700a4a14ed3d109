/** A cluster that scales to its trainer's needs, and delivers every element exactly once. */
import {
  Dataset,
  type DispatcherDescription,
  LeatError,
  LocalCluster,
  type Tensor,
} from "../../../mod.ts";
import { assertEquals, assertRejects } from "../../assert.ts";
import { until } from "../../lib/until.ts";
import { testInline, upTo } from "../lib/carriers.ts";
import { hurry, returned } from "../lib/fixture_slow.ts";
import { slowly } from "../lib/slowly.ts";

/** Decisions within tenths of a second. */
const QUICK = { intervalMs: 20, measureMs: 150, downAfterMs: 300 };

const aliveOf = ({ workers }: DispatcherDescription) =>
  workers.filter(({ alive }) => alive).map(({ name }) => name);

testInline(
  "a DYNAMIC job grows its cluster while its trainer waits, shrinks it when the trainer slows, and loses nothing",
  async (start) => {
    await using cluster = await start({ workers: { min: 1, max: 3 }, scaling: QUICK });
    // More than are produced before the cluster has grown and shrunk, however slow the machine is.
    const elements = 100_000;
    const numbers = Dataset.range(elements).batch(10).map(slowly);
    await using iterator = numbers.distribute({
      service: cluster,
      processingMode: "DYNAMIC",
      jobName: "job",
    }).iterator();
    const seen: number[] = [];
    const take = async () => {
      const { value, done } = await iterator.next();
      if (done !== true) seen.push(...(value as Tensor).data as Float64Array);
      return done !== true;
    };
    // The test rarely asks for the number of workers: on a slow machine it would wait for the
    // answer, not for elements. It waits for a second worker and no third, which a busy machine may
    // not need.
    for (let taken = 0; taken % 10 > 0 || aliveOf(await cluster.describe()).length < 2; taken++) {
      assertEquals(await take(), true);
    }
    const grown = (await cluster.describe()).scaling;
    assertEquals([grown.minWorkers, grown.maxWorkers], [1, 3]);
    // A slow trainer: one worker is enough for it.
    while (aliveOf(await cluster.describe()).length > 1) {
      assertEquals(await take(), true);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    using _fast = hurry();
    while (await take());
    assertEquals(seen.sort((a, b) => a - b), upTo(elements));
    await cluster.close();
    await returned();
  },
);

testInline("the dispatcher knows of a worker that it drains", async (start) => {
  await using cluster = await start({ workers: 1 });
  // It drains until its split is finished: for longer than the test lasts.
  const numbers = Dataset.range(1_000_000).batch(10).map(slowly);
  await using iterator = numbers.distribute({ service: cluster, processingMode: "DYNAMIC" })
    .iterator();
  await iterator.next();
  const areDraining = async () =>
    (await cluster.describe()).workers.map(({ figures }) => figures?.draining === true);
  assertEquals(await areDraining(), [false]);
  const stopped = cluster.stopWorker(0, { graceful: true, drainTimeoutMs: 600_000 });
  await until(async () => (await areDraining())[0] === true, 5);
  // Then its elements have no reader.
  await iterator.return();
  await stopped;
  await cluster.close();
  await returned();
});

/** Resolves once `isMeant` holds for the worker; returns the live workers. */
async function untilAlive(
  cluster: LocalCluster,
  name: string,
  isMeant: (incarnation: string) => boolean,
): Promise<string[]> {
  return await until(async () => {
    const state = await cluster.describe();
    const { alive, ref } = state.workers.find((worker) => worker.name === name)!;
    return alive && isMeant(ref.incarnation!) && aliveOf(state);
  }, 5);
}

async function lifeOf(cluster: LocalCluster, name: string): Promise<string> {
  const { workers } = await cluster.describe();
  return workers.find((worker) => worker.name === name)!.ref.incarnation!;
}

testInline("workers that are stopped are replaced, under their names", async (start) => {
  await using cluster = await start({ workers: { min: 2, max: 3 }, scaling: QUICK });
  const before = aliveOf(await cluster.describe());
  const life = await lifeOf(cluster, before[0]!);
  await cluster.stopWorker(0);
  assertEquals(await untilAlive(cluster, before[0]!, (one) => one !== life), before);
  assertEquals(cluster.workers, 2);
});

Deno.test("a worker whose thread dies by itself is replaced, under its name", async () => {
  await using cluster = await LocalCluster.start({
    workers: { min: 1, max: 1 },
    scaling: QUICK,
    runners: "inline",
    logLevel: "off",
  });
  const [name] = aliveOf(await cluster.describe());
  const life = await lifeOf(cluster, name!);
  // Uncaught, it ends the thread of the function, which is the worker's.
  const deadly = Dataset.range(3).map((x: number) => {
    setTimeout(() => {
      throw new Error("died of the test");
    });
    return x;
  });
  await using reading = deadly.distribute({ service: cluster, processingMode: "DYNAMIC" })
    .iterator();
  const taken = reading.next().catch(() => {});
  const alive = await untilAlive(cluster, name!, (one) => one !== life);
  assertEquals([alive, cluster.workers], [[name!], 1]);
  await cluster.close();
  await taken;
});

Deno.test("an invalid range of workers is refused", async () => {
  await assertRejects(
    () => LocalCluster.start({ workers: { min: 3, max: 2 } }),
    LeatError,
    "min of at most its max, got 3 and 2",
  );
  await assertRejects(
    () => LocalCluster.start({ workers: { min: -1, max: 2 } }),
    LeatError,
    "got -1",
  );
});
