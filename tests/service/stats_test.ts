/** Figures of a distributed pipeline, in the process that reads it. */

import { assert, assertEquals, assertStringIncludes } from "../assert.ts";
import { Dataset, LocalCluster, ShardingPolicy } from "../../mod.ts";

Deno.test("distribute counts elements, the bytes that came, and how long workers were waited for", async () => {
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
