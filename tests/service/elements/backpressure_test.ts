/** Memory stays bounded for a trainer that stops reading, and for one that keeps reading. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Dataset, type LocalCluster } from "../../../mod.ts";
import { assertEquals } from "../../assert.ts";
import { testInline, testOnEach } from "../lib/carriers.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

testOnEach("a trainer that stops reading makes nothing grow", async (start) => {
  await using cluster = await start({ workers: 1 });
  const ballast = 100_000;
  const dataset = Dataset.range(1_000_000).map((_x, { ballast }) => new Uint8Array(ballast), {
    captures: { ballast },
  }).distribute({ service: cluster, maxOutstandingRequests: 4 });
  await using iterator = dataset.iterator();
  await iterator.next();
  const last = await settled(cluster);
  // One taken, four in transit or waiting, a few prefetched.
  assertEquals(last <= 12, true, `${last} elements were produced for one that was read`);
  const [task] = await cluster.sources();
  assertEquals(task!.bufferedBytes <= 4 * ballast, true, `${task!.bufferedBytes} bytes wait`);
  for (let i = 0; i < 20; i++) assertEquals((await iterator.next()).done, false);
});

testInline("bufferBytesMax bounds what waits for a trainer that stops reading", async (start) => {
  for (const processingMode of ["DYNAMIC", "DETERMINISTIC"] as const) {
    await using cluster = await start({ workers: 1 });
    const ballast = 100_000;
    const dataset = Dataset.range(1_000_000).map((_x, { ballast }) => new Uint8Array(ballast), {
      captures: { ballast },
    }).distribute({ service: cluster, processingMode, bufferBytesMax: 3 * ballast });
    await using iterator = dataset.iterator();
    await iterator.next();
    const last = await settled(cluster);
    // One taken, three waiting, those requested before their size was known, a few prefetched.
    assertEquals(last <= 16, true, `${last} elements were produced for one that was read`);
    for (let i = 0; i < 20; i++) assertEquals((await iterator.next()).done, false);
  }
});

/** How many elements the only task has produced, once it produces no more. */
async function settled(cluster: LocalCluster): Promise<number> {
  let last = -1;
  for (let same = 0; same < 5;) {
    const now = (await cluster.sources())[0]!.produced;
    same = now === last ? same + 1 : 0;
    last = now;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return last;
}

testOnEach("a trainer that reads on makes nothing grow", async (start) => {
  await using cluster = await start({ workers: 1 });
  const bytes = 2 ** 20;
  const dataset = Dataset.range(1_000_000).map((_x, { bytes }) => new Uint8Array(bytes), {
    captures: { bytes },
  }).distribute({ service: cluster, maxOutstandingRequests: 2 });
  await using iterator = dataset.iterator();
  const read = async (batches: number) => {
    for (let i = 0; i < batches; i++) await iterator.next();
    // Ports and timers release their messages; what remains is held by a reference.
    await new Promise((resolve) => setTimeout(resolve, 0));
    collectGarbage();
    return Deno.memoryUsage().external;
  };
  const before = await read(20);
  const grown = await read(200) - before;
  assertEquals(grown < 100 * bytes, true, `${grown} bytes are left of ${200 * bytes}`);
});
