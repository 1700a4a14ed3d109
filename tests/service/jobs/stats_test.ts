/** Statistics of a distributed pipeline, in the process that reads it. */

import { assert, assertEquals, assertStringIncludes } from "../../assert.ts";
import { Dataset, LocalCluster, ShardingPolicy } from "../../../mod.ts";
import { until } from "../../lib/until.ts";

Deno.test("distribute counts elements, received bytes, and the time of waiting for workers", async () => {
  await using cluster = await LocalCluster.start({ workers: 1 });
  for (const processingMode of [ShardingPolicy.DYNAMIC, ShardingPolicy.DETERMINISTIC]) {
    const dataset = Dataset.range(40).batch(10)
      .distribute({ service: cluster, processingMode }).map((batch) => batch.size);
    await using iterator = dataset.iterator();
    for await (const _ of iterator);
    const [map, distribute, batch] = iterator.stats();
    assertEquals([map!.elements, distribute!.elements, batch!.elements], [4, 4, 0]);
    assertEquals([map!.bytesIn, distribute!.bytesOut], [320, 320]);
    assert(distribute!.bytesIn >= 320);
    assert(distribute!.waitMs > 0);
    assertStringIncludes(String(iterator.explain()), "distribute(");
  }
});

Deno.test("distribute counts its elements if its reader runs a part of the pipeline, in each repetition", async () => {
  await using cluster = await LocalCluster.start({
    workers: 1,
    carrier: "inline",
    runners: "inline",
    logLevel: "off",
  });
  const dataset = Dataset.range(40).batch(10).take(3)
    .distribute({ service: cluster, processingMode: "DETERMINISTIC" }).repeat(2);
  await using iterator = dataset.iterator();
  for await (const _ of iterator);
  const [repeat, distribute, take] = iterator.stats();
  assertEquals([distribute!.operator, take!.operator], ["distribute", "take"]);
  assertEquals([repeat!.elements, distribute!.elements, take!.elements], [6, 6, 0]);
  assertEquals(distribute!.bytesOut, 6 * 80);
  assert(distribute!.bytesIn >= distribute!.bytesOut, "what workers sent counts there");
  assert(distribute!.service!.elements >= 3, "and how it goes with them");
});

Deno.test("distribute reports where a training loop's time goes, and the progress of each worker", async () => {
  await using cluster = await LocalCluster.start({
    workers: 2,
    carrier: "inline",
    runners: "inline",
    logLevel: "off",
  });
  for (const processingMode of [ShardingPolicy.OFF, ShardingPolicy.DETERMINISTIC]) {
    const dataset = Dataset.range(4_000).batch(100)
      .distribute({ service: cluster, processingMode, compression: "zstd" });
    await using iterator = dataset.iterator();
    assertEquals(iterator.stats()[0]!.service, undefined, "nothing has begun");
    let elements = 0;
    for await (const _ of iterator) elements++;
    const { service } = iterator.stats()[0]!;
    assertEquals(service!.elements, elements);
    assert(service!.bytes > 8 * 100 * elements);
    assert(service!.wireBytes < service!.bytes, "they came compressed");
    assert(service!.unpackingMs > 0 && service!.decodingMs > 0 && service!.waitingMs > 0);
  }
  const dataset = Dataset.range(100).repeat().batch(10).distribute({ service: cluster });
  await using iterator = dataset.iterator();
  // From both workers, in any order.
  const readsOf = () => iterator.stats()[0]!.service!.reads;
  do await iterator.next(); while (
    readsOf().length < 2 || readsOf().some(({ elements }) => elements === 0)
  );
  const { reads, inFlight } = iterator.stats()[0]!.service!;
  assertEquals(new Set(reads.map(({ worker }) => worker)).size, 2);
  assert(
    reads.every(({ elements, bytes, answerMs, heldMs }) =>
      elements > 0 && bytes > 80 * elements && answerMs >= heldMs
    ),
    JSON.stringify(reads),
  );
  assertEquals(reads.reduce((sum, { outstanding }) => sum + outstanding, 0), inFlight);
});

Deno.test("LocalCluster.sources leaves out a task that ends while it is asked", async () => {
  await using cluster = await LocalCluster.start({
    workers: 1,
    carrier: "inline",
    runners: "inline",
    logLevel: "off",
  });
  const tasks = async () => (await cluster.actors()).filter(({ kind }) => kind === "task");
  const iterator = Dataset.range(4).distribute({ service: cluster }).iterator();
  await iterator.next();
  const listed = await tasks();
  assertEquals(listed.length, 1);
  await iterator.return();
  await until(async () => (await tasks()).length === 0);
  cluster.actors = () => Promise.resolve(listed); // as if it ended just after it was listed
  assertEquals(await cluster.sources(), []);
});
