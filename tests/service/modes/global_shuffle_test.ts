/** A dataset in random order, divided among workers. */
import { Dataset } from "../../../mod.ts";
import { assertEquals, assertNotEquals } from "../../assert.ts";
import { orderedReference } from "../../data/lib/ordered_reference.ts";
import { outcomesOf } from "../../data/lib/outcomes.ts";
import { numbersOf, sorted, testInline, upTo } from "../lib/carriers.ts";

testInline(
  "workers under DYNAMIC divide one permutation, another one each epoch",
  async (start) => {
    await using cluster = await start({ workers: 3 });
    for (const make of [() => Dataset.range(500), () => Dataset.range(500).map((x) => x)]) {
      const shuffled = make().globalShuffle().batch(7);
      const batches = shuffled.distribute({ service: cluster, processingMode: "DYNAMIC" });
      const first = await numbersOf(batches);
      assertEquals(sorted(first), upTo(500));
      assertNotEquals(first, sorted(first));
      const twice = make().globalShuffle().repeat(2).batch(9)
        .distribute({ service: cluster, processingMode: "DYNAMIC" });
      assertEquals(sorted(await numbersOf(twice)), upTo(500, 2));
    }
  },
);

testInline(
  "DETERMINISTIC gives the one order of globalShuffle, as the process itself",
  async (start) => {
    const dataset = Dataset.range(300).map((x, { random }) => x + random.next() / 2)
      .globalShuffle({ seed: 3 }).batch(6);
    const wanted = await orderedReference(dataset);
    for (const workers of [1, 3]) {
      await using cluster = await start({ workers });
      const distributed = dataset.distribute({ service: cluster, processingMode: "DETERMINISTIC" });
      assertEquals(await outcomesOf(distributed.iterator()), wanted);
    }
    const local = dataset.withOptions({ seed: 0 });
    assertEquals(await outcomesOf(local.iterator()), wanted);
  },
);

testInline("workers under OFF shuffle each in its own order", async (start) => {
  await using cluster = await start({ workers: 2 });
  const batches = Dataset.range(64).globalShuffle().batch(64).distribute({ service: cluster });
  const orders: string[] = [];
  for await (const batch of batches) orders.push(String(batch.toArray()));
  assertEquals(new Set(orders).size, 2);
});
