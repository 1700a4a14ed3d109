/**
 * Ephemeral data sharing, end to end, on every carrier (paper section 3.5).
 *
 * @module
 */
import { Dataset, LeatError, type LocalCluster } from "../../mod.ts";
import { assertEquals, assertRejects } from "../assert.ts";
import { testOnEach } from "./carriers.ts";

function trainer(service: LocalCluster, trainerId: string, elements = 1_000) {
  return Dataset.range(elements).repeat().map((x) => ({
    x,
    ballast: new Uint8Array(1_000),
  }))
    .distribute({ service, jobName: "shared", sharing: { trainerId } })
    .iterator();
}

testOnEach(
  "trainers that share see one stream, produced once",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    await using a = trainer(cluster, "a");
    await using b = trainer(cluster, "b");
    const seen: { a: number[]; b: number[] } = { a: [], b: [] };
    for (let i = 0; i < 40; i++) {
      seen.a.push((await a.next()).value!.x);
      seen.b.push((await b.next()).value!.x);
    }
    assertEquals(seen.a, Array.from({ length: 40 }, (_, i) => i));
    assertEquals(seen.b, seen.a);
    const task = (await cluster.sources()).find(({ role }) => role === "task")!;
    assertEquals(
      task.produced < 80,
      true,
      `${task.produced} elements for two trainers`,
    );
  },
);

testOnEach(
  "a fast trainer never waits for one that does not read",
  async (start) => {
    await using cluster = await start({ workers: 1, windowBytesMax: 20_000 });
    await using slow = trainer(cluster, "slow");
    await using fast = trainer(cluster, "fast");
    assertEquals((await slow.next()).value!.x, 0);
    let last = -1;
    for (let i = 0; i < 500; i++) {
      const { x } = (await fast.next()).value!;
      assertEquals(x > last, true);
      last = x;
    }
    const cache = (await cluster.sources()).find(({ role }) => role === "cache")!;
    assertEquals(cache.bufferedBytes <= 20_000, true);
    // What the slow trainer's client had fetched is old; then it goes on at the back of the window.
    let newest = 0;
    for (let i = 0; i < 40; i++) newest = (await slow.next()).value!.x;
    assertEquals(newest > 300, true, `the slow trainer reads on at ${newest}`);
  },
);

testOnEach(
  "sharing a finite dataset is refused with the remedy",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const dataset = Dataset.range(10).distribute({
      service: cluster,
      jobName: "j",
      sharing: { trainerId: "t" },
    });
    await using iterator = dataset.iterator();
    const error = await assertRejects(
      () => iterator.next(),
      LeatError,
      "repeat",
    );
    assertEquals(error.code, "invalid_argument");
  },
);
