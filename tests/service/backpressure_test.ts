/**
 * A trainer that stops reading holds up nothing and fills nothing.
 *
 * @module
 */
import { Dataset } from "../../mod.ts";
import { assertEquals } from "../assert.ts";
import { testOnEach } from "./carriers.ts";

testOnEach("a trainer that stops reading makes nothing grow", async (start) => {
  await using cluster = await start({ workers: 1 });
  const ballast = 100_000;
  const dataset = Dataset.range(1_000_000).map((_x, { ballast }) => new Uint8Array(ballast), {
    captures: { ballast },
  }).distribute({ service: cluster, maxOutstandingRequests: 4 });
  await using iterator = dataset.iterator();
  await iterator.next();
  const produced = async () => (await cluster.sources())[0]!.produced;
  let last = -1;
  for (let same = 0; same < 5;) {
    const now = await produced();
    same = now === last ? same + 1 : 0;
    last = now;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  // One taken, four on their way or waiting, a few made ahead.
  assertEquals(last <= 12, true, `${last} elements were produced for one that was read`);
  const [task] = await cluster.sources();
  assertEquals(task!.bufferedBytes <= 4 * ballast, true, `${task!.bufferedBytes} bytes wait`);
  for (let i = 0; i < 20; i++) assertEquals((await iterator.next()).done, false);
});
