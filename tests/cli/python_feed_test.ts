/** The helper of a Python program: what it does with elements that the program has received. */
import { Feed } from "../../cli/python/feed.ts";
import { Dataset, LocalCluster } from "../../mod.ts";
import { assertEquals } from "../assert.ts";

Deno.test("Feed frees the memory of a service's elements that the program has received", async () => {
  await using cluster = await LocalCluster.start({ workers: 1, logLevel: "off" });
  const dataset = Dataset.range(4).map((x) => new Uint8Array(200_000).fill(x));
  const feed = new Feed(1, dataset.distribute({ service: cluster }).iterator());
  const first = await feed.take(0);
  const second = await feed.take(0);
  const lengths = ({ elements }: typeof first) =>
    (elements as Uint8Array[]).map(({ length }) => length);
  assertEquals([lengths(first), lengths(second)], [[200_000], [200_000]]);
  await feed.take(1);
  assertEquals([lengths(first), lengths(second)], [[0], [200_000]]);
  await feed.close();
});
