/** DETERMINISTIC readers that are restored, or replaced by a restored one. */
import {
  Dataset,
  type DatasetIterator,
  LeatError,
  type LocalCluster,
  registerDataset,
} from "../../../mod.ts";
import { assert, assertEquals, assertRejects } from "../../assert.ts";
import { rounds } from "../../data/lib/collect.ts";
import { orderedReference, withMisfits } from "../../data/lib/ordered_reference.ts";
import { type Outcome, outcomesOf, readOutcomes } from "../../data/lib/outcomes.ts";
import { distributed, makeDataset } from "../lib/canonical.ts";
import { testInline, testOnEach } from "../lib/carriers.ts";

testOnEach("a DETERMINISTIC iterator is restored on a cluster of another size", async (start) => {
  const dataset = makeDataset();
  const wanted = await orderedReference(dataset);
  const positions = [0, 17, wanted.length];
  const states: Uint8Array[] = [];
  {
    await using cluster = await start({ workers: 3 });
    for (const position of positions) {
      await using iterator = distributed(dataset, cluster).iterator();
      const found = await readOutcomes(iterator, position);
      states.push(await iterator.save());
      found.push(...await outcomesOf(iterator));
      // Each iterator of one dataset is another epoch; these are of datasets of their own.
      assertEquals(found, wanted, `the saver went on from ${position}`);
    }
  }
  assert(states.every((state) => state.length < 4096), `${states.map((state) => state.length)}`);
  await using other = await start({ workers: 1 });
  for (const [i, position] of positions.entries()) {
    await using iterator = distributed(dataset, other).iterator();
    await iterator.restore(states[i]!);
    assertEquals(await outcomesOf(iterator), wanted.slice(position), `restored at ${position}`);
  }
});

testInline(
  "a DETERMINISTIC iterator is restored between the errors and the batch of one split's rows",
  async (start) => {
    const stream = await orderedReference(withMisfits());
    await using cluster = await start({ workers: 2 });
    const dataset = withMisfits().distribute({ service: cluster, processingMode: "DETERMINISTIC" });
    const from = [...Array(24).keys(), stream.length - 2, stream.length - 1];
    const states: Uint8Array[] = [];
    await using iterator = dataset.iterator();
    for (const [position] of stream.entries()) {
      if (from.includes(position)) states.push(await iterator.save());
      assertEquals(await readOutcomes(iterator, 1), [stream[position]], `${position}`);
    }
    assertEquals((await iterator.next()).done, true);
    for (const [i, position] of from.entries()) {
      await using restored = dataset.iterator();
      await restored.restore(states[i]!);
      const wanted = stream.slice(position, position + 9);
      assertEquals(await readOutcomes(restored, 9), wanted, `from ${position}`);
    }
  },
);

testInline(
  "a DETERMINISTIC iterator is restored at every element of a cache that the reader fills or reads",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    const cached = Dataset.range(9).shuffle(9).skip(4).cache();
    const id = await registerDataset(cluster, cached.repeat(2));
    for (
      const open of [
        () => distributed(cached.repeat(2), cluster),
        () => distributed(cached, cluster).repeat(2),
        () => distributed(Dataset.range(2).concatenate(cached).cache().repeat(2), cluster),
        () => distributed(Dataset.range(7).batch(2).unbatch().cache().repeat(2), cluster),
        () => Dataset.fromId(cluster, id, { processingMode: "DETERMINISTIC" }),
        () => Dataset.fromId(cluster, id, { processingMode: "DETERMINISTIC" }).repeat(2),
      ]
    ) {
      const stream = await outcomesOf(open().iterator());
      const [first, second] = [stream.slice(0, stream.length / 2), stream.slice(stream.length / 2)];
      assertEquals(first, second);
      await using iterator = open().iterator();
      for (let position = 0; position <= stream.length; position++) {
        await using restored = open().iterator();
        await restored.restore(await iterator.save());
        assertEquals(await outcomesOf(restored), stream.slice(position), `from ${position}`);
        await readOutcomes(iterator, 1);
      }
    }
  },
);

testInline(
  "an iterator that reads a cache at the reader is saved right after another was restored",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const open = () => {
      const cached = Dataset.range(12).skip(4).shuffle(8).cache().repeat(2);
      return distributed(cached.withOptions({ seed: 1 }), cluster);
    };
    const dataset = open();
    await using begun = dataset.iterator();
    await readOutcomes(begun, 2);
    const early = await begun.save();
    await using reading = dataset.iterator();
    await readOutcomes(reading, 10);
    await using restored = dataset.iterator();
    await restored.restore(early);
    await readOutcomes(restored, 8);
    const state = await reading.save();
    const rest = await outcomesOf(reading);
    await using again = open().iterator();
    await again.restore(state);
    assertEquals(await outcomesOf(again), rest);
  },
);

testInline(
  "the saved position of a reader that has lost its service continues on another one",
  async (start) => {
    const dataset = makeDataset();
    const wanted = [
      ...await orderedReference(dataset),
      ...await orderedReference(dataset, { epoch: 1 }),
    ];
    const read = (service: LocalCluster) =>
      distributed(dataset, service).prefetch(3).repeat(2).ignoreErrors().prefetch(2);
    const states: Uint8Array[] = [];
    const found: Outcome[] = [];
    {
      await using cluster = await start({ workers: 1 });
      await using iterator = read(cluster).iterator();
      found.push(...await readOutcomes(iterator, 5));
      await cluster.close();
      // What had arrived is read to its end.
      for (let isLost = false; !isLost;) {
        await rounds(3);
        states.push(await iterator.save());
        const [outcome] = await readOutcomes(iterator, 1);
        isLost = outcome === undefined || "error" in outcome;
        if (!isLost) found.push(outcome!);
        else assertEquals("error" in outcome!, true, "it has not ended");
      }
      states.push(await iterator.save());
    }
    assertEquals(found, wanted.slice(0, found.length));
    await using other = await start({ workers: 1 });
    // The failure was ahead of the first already, next of the second, and reported before the
    // third.
    for (const i of [0, states.length - 2, states.length - 1]) {
      await using iterator = read(other).iterator();
      await iterator.restore(states[i]!);
      const from = Math.min(5 + i, found.length);
      assertEquals(await outcomesOf(iterator), wanted.slice(from), `saved at ${from}`);
    }
  },
);

testInline(
  "a restored DETERMINISTIC reader takes over from one that is in a later repetition",
  async (start) => {
    await using cluster = await start();
    const size = 200;
    const job = (jobName: string, own: number) =>
      Dataset.range(size).distribute({
        service: cluster,
        processingMode: "DETERMINISTIC",
        jobName,
      }).concatenate(Dataset.range(own)).repeat(2);
    // Within an epoch, before and at its end, before the first element, and without reading a
    // service.
    for (
      const [savedAt, own] of [[100, 0], [size - 1, 0], [size, 0], [0, 0], [size + 2, 5]] as const
    ) {
      const dataset = job(`saved at ${savedAt}`, own);
      const wanted = await outcomesOf(
        Dataset.range(size).concatenate(Dataset.range(own)).repeat(2).iterator(),
      );
      await using first = dataset.iterator();
      await readOutcomes(first, savedAt);
      const state = await first.save();
      await readOutcomes(first, size + own + 10 - savedAt);
      await using second = dataset.iterator();
      await second.restore(state);
      assertEquals(await outcomesOf(second), wanted.slice(savedAt), `saved at ${savedAt}`);
    }
  },
);

testInline(
  "a restored DETERMINISTIC reader takes over the next repetition though it left its own before it had joined",
  async (start) => {
    await using cluster = await start();
    const elements = 5;
    const stream = Dataset.range(200).distribute({
      service: cluster,
      processingMode: "DETERMINISTIC",
      jobName: "one stream",
    });
    const dataset = Dataset.zip([stream, Dataset.range(elements)]).repeat(2);
    await using first = dataset.iterator();
    await readOutcomes(first, elements);
    const state = await first.save();
    await readOutcomes(first, 2);
    // The zip ends its repetition at once, because the other dataset has ended.
    await using second = dataset.iterator();
    await second.restore(state);
    const wanted = Array.from({ length: elements }, (_, i) => ({ element: [i, i] }));
    assertEquals(await outcomesOf(second), wanted);
  },
);

testInline(
  "a reader that was restored at an epoch's end takes over the next epoch, and the replaced one is refused",
  async (start) => {
    await using cluster = await start();
    for (const dataset of [Dataset.range(12), Dataset.range(11).batch(2)] as Dataset<unknown>[]) {
      const elements = dataset.cardinality();
      // After the last element, and after the end itself.
      for (const ends of [0, 1]) {
        const job = () =>
          dataset.distribute({
            service: cluster,
            processingMode: "DETERMINISTIC",
            jobName: `${elements} ${ends}`,
          });
        const replaced = job();
        const first = replaced.iterator();
        await readOutcomes(first, elements + ends);
        const state = await first.save();
        await outcomesOf(first);
        await readOutcomes(replaced.iterator(), 3);
        const successor = job();
        const restored = successor.iterator();
        await restored.restore(state);
        assertEquals(await outcomesOf(restored), []);
        assertEquals((await outcomesOf(successor.iterator())).length, elements);
        const error = await assertRejects(() => replaced.iterator().next(), LeatError);
        assertEquals(error.code, "failed_precondition");
        assertEquals((await outcomesOf(successor.iterator())).length, elements);
      }
    }
  },
);

testInline(
  "the iterator after a restored one reads a DYNAMIC epoch that was not begun",
  async (start) => {
    await using cluster = await start();
    const dataset = Dataset.range(10).distribute({
      service: cluster,
      processingMode: "DYNAMIC",
      jobName: "epochs",
    });
    const first = dataset.iterator();
    await outcomesOf(first);
    const state = await first.save();
    await readOutcomes(dataset.iterator(), 4);
    const restored = dataset.iterator();
    await restored.restore(state);
    assertEquals(await outcomesOf(restored), []);
    assertEquals((await outcomesOf(dataset.iterator())).length, 10);
  },
);

testInline(
  "a DETERMINISTIC reader is told that one that was restored in an earlier repetition reads on",
  async (start) => {
    await using cluster = await start();
    const dataset = Dataset.range(5_000).distribute({
      service: cluster,
      processingMode: "DETERMINISTIC",
      jobName: "one stream",
    }).repeat(2);
    await using first = dataset.iterator();
    await readOutcomes(first, 10);
    const state = await first.save();
    await readOutcomes(first, 5_000);
    await using second = dataset.iterator();
    await second.restore(state);
    assertEquals(await second.next(), { done: false, value: 10 });
    const error = await assertRejects(async () => {
      for (let next = await first.next(); !next.done; next = await first.next());
    }, LeatError);
    assertEquals(error.code, "failed_precondition");
    assert(error.message.includes("restored reader has replaced this client"), error.message);
  },
);

testInline(
  "a DETERMINISTIC reader that was replaced between two epochs is refused the next, which the restored one gets",
  async (start) => {
    await using cluster = await start();
    const size = 200;
    const job = () =>
      Dataset.range(size).distribute({
        service: cluster,
        processingMode: "DETERMINISTIC",
        jobName: "one stream",
      });
    const [old, restored] = [job(), job()];
    const first = old.iterator();
    await readOutcomes(first, 10);
    const state = await first.save();
    await outcomesOf(first);
    const second = restored.iterator();
    await second.restore(state);
    assertEquals(await second.next(), { done: false, value: 10 });
    for (let attempt = 0; attempt < 2; attempt++) {
      const error = await assertRejects(() => old.iterator().next(), LeatError);
      assertEquals(error.code, "failed_precondition");
      assert(error.message.includes("was restored by another reader"), error.message);
      // The same while the restored one is itself between two epochs.
      await outcomesOf(second);
    }
    const atEnd = await second.save();
    assertEquals((await outcomesOf(restored.iterator())).length, size);
    // Restored at the end of an epoch, it reads the next one only.
    const later = job();
    await using third = later.iterator();
    await third.restore(atEnd);
    assertEquals(await third.next(), { done: true, value: undefined });
    assertEquals((await outcomesOf(later.iterator())).length, size);
    // So does the refused one, and so does one that cannot be restored and starts from the
    // beginning.
    await using again = old.iterator();
    await again.restore(atEnd);
    assertEquals((await outcomesOf(old.iterator())).length, size);
    const anew = job();
    await using failed = anew.iterator();
    await assertRejects(() => failed.restore(new Uint8Array(3)), LeatError);
    assertEquals((await outcomesOf(anew.iterator())).length, size);
  },
);

testInline(
  "iterators of one DETERMINISTIC dataset go on from one another, in whichever order they are restored and read",
  async (start) => {
    await using cluster = await start();
    const size = 40;
    let jobs = 0;
    const job = () =>
      Dataset.range(size).distribute({
        service: cluster,
        processingMode: "DETERMINISTIC",
        jobName: `stream ${++jobs}`,
      });
    const savedAfter = async (iterator: DatasetIterator<number>, count: number) => {
      await readOutcomes(iterator, count);
      return await iterator.save();
    };
    {
      const dataset = job();
      const first = dataset.iterator();
      const state = await savedAfter(first, 5);
      await outcomesOf(first);
      const [one, other] = [dataset.iterator(), dataset.iterator()];
      await one.restore(state);
      await other.restore(state);
      assertEquals((await outcomesOf(other)).length, size - 5);
      assertEquals((await outcomesOf(one)).length, size - 5);
      assertEquals((await outcomesOf(dataset.iterator())).length, size);
    }
    {
      const dataset = job();
      const first = dataset.iterator();
      const state = await savedAfter(first, 5);
      const next = dataset.iterator();
      await first.restore(state);
      assertEquals((await outcomesOf(first)).length, size - 5);
      assertEquals((await outcomesOf(next)).length, size);
    }
    {
      // One whose own epochs continue is refused, though it has the same dataset.
      const dataset = job().repeat();
      await using first = dataset.iterator();
      const state = await savedAfter(first, 5);
      await readOutcomes(first, size - 5);
      await using second = dataset.iterator();
      await second.restore(state);
      await readOutcomes(second, size - 5);
      const error = await assertRejects(() => first.next(), LeatError);
      assert(error.message.includes("was restored by another reader"), error.message);
      assertEquals((await readOutcomes(second, 2 * size)).length, 2 * size);
    }
    {
      // Of two restored ones, the one whose first request comes last reads on.
      const dataset = job().repeat();
      await using first = dataset.iterator();
      const state = await savedAfter(first, 5);
      await using late = dataset.iterator();
      await late.restore(state);
      await using last = dataset.iterator();
      await last.restore(state);
      await readOutcomes(last, size - 5);
      assertEquals(await late.next(), { done: false, value: 5 });
      const error = await assertRejects(() => last.next(), LeatError);
      assert(error.message.includes("was restored by another reader"), error.message);
      assertEquals((await readOutcomes(late, 2 * size)).length, 2 * size);
    }
  },
);
