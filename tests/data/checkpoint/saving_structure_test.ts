/**
 * Checkpoints of operators that combine datasets and split them: each continues at its position.
 */
import { Dataset, LeatError, tensor } from "../../../mod.ts";
import { assert, assertEquals, assertRejects } from "../../assert.ts";
import { assertCheckpointLaw } from "../lib/checkpoint_law.ts";
import { outcomesOf, readOutcomes } from "../lib/outcomes.ts";

/**
 * Datasets of varying lengths, one in four empty, whose elements depend on random numbers and
 * index.
 */
const spread = (n: number) =>
  Dataset.range(n).flatMap((x, { Dataset, random, index }) => {
    const randomState = random.next();
    return Dataset.range(x % 4).flatMap((y, { Dataset, random }) =>
      Dataset.from([[x, y, index, randomState, random.int(1000)]])
    );
  });

/** The numbers below n; those in `failing` fail, and odd ones come later. */
const faulty = (n: number, ...failing: number[]) =>
  Dataset.range(n).flatMap(async (x, { Dataset }) => {
    if (x % 2 === 1) await Promise.resolve();
    if (failing.includes(x)) throw new LeatError("data_loss", `no ${x}`);
    return Dataset.from([x]);
  });

Deno.test("a checkpoint of flatMap repeats the random numbers of calls and of their datasets", async () => {
  await assertCheckpointLaw(() => spread(9));
  await assertCheckpointLaw(() => spread(9).shuffle(5));
  await assertCheckpointLaw(() =>
    Dataset.range(5).shuffle(3).flatMap((x, { Dataset }) => Dataset.range(x).shuffle(2))
  );
  await assertCheckpointLaw(() => Dataset.range(4).flatMap(() => Dataset.range(0)));
});

Deno.test("a checkpoint of flatMap keeps asynchronous calls and failures in order", async () => {
  await assertCheckpointLaw(() => faulty(7, 0, 3, 6));
  await assertCheckpointLaw(() =>
    Dataset.range(4).flatMap(async (x, { Dataset, random, index }) => {
      await Promise.resolve();
      if (x === 1) throw new Error("no dataset");
      return x === 2
        ? (undefined as unknown as Dataset<number>)
        : Dataset.from([random.next(), index]);
    })
  );
});

Deno.test("a checkpoint of interleave keeps its slots, blocks and turns", async () => {
  const made = (cycleLength: number, blockLength: number) => () =>
    Dataset.range(7).shuffle(4).interleave(
      (x, { Dataset, random }) => {
        const randomState = random.next();
        return Dataset.range(x % 4).flatMap((y) => Dataset.from([[x, y, randomState]]));
      },
      { cycleLength, blockLength },
    );
  await assertCheckpointLaw(made(3, 1));
  await assertCheckpointLaw(made(2, 2));
  await assertCheckpointLaw(made(9, 3));
  await assertCheckpointLaw(() =>
    Dataset.range(4).interleave(async (x, { Dataset }) => {
      await Promise.resolve();
      if (x === 2) throw new LeatError("data_loss", "no 2");
      return Dataset.range(3).flatMap((y, { Dataset }) => {
        if (y === x) throw new LeatError("data_loss", `no ${y}`);
        return Dataset.from([x * 10 + y]);
      });
    }, { cycleLength: 2 })
  );
});

Deno.test("a checkpoint of groupByWindow keeps its windows and the current one", async () => {
  await assertCheckpointLaw(() =>
    Dataset.range(13).shuffle(5).groupByWindow({
      key: (x, { random }) => x % 3 + (random.int(2) === 0 ? 3 : 0),
      reduce: (key, window, { Dataset, random, index }) =>
        window.shuffle(4).concatenate(Dataset.from([-key, index, random.next()])),
      windowSize: (key) => key % 3 + 1,
    })
  );
  await assertCheckpointLaw(() =>
    // elements without tokens
    faulty(9, 4).groupByWindow({
      key: async (x) => {
        await Promise.resolve();
        if (x === 2) throw new LeatError("data_loss", "no key");
        return x % 2;
      },
      reduce: async (key, window, { Dataset }) => {
        await Promise.resolve();
        return key === 0 ? window.repeat(2) : Dataset.range(0);
      },
      windowSize: 3,
    })
  );
});

Deno.test("save of bucketBySequenceLength keeps its buckets", async () => {
  const rows = () =>
    Dataset.from([1, 5, 2, 7, 3, 4, 9, 2, 1].map((n) => new Int16Array(n).fill(n))).shuffle(3);
  for (const dropRemainder of [false, true]) {
    await assertCheckpointLaw(() =>
      rows().bucketBySequenceLength({
        length: (x) => x.length,
        boundaries: [3, 6],
        batchSizes: [2, 3, 2],
        dropRemainder,
      }).unbatch()
    );
  }
});

Deno.test("a checkpoint of repeat includes the repetition and its seed", async () => {
  const seeded = () => Dataset.range(5).shuffle(5).repeat(3);
  const elements = await Array.fromAsync(seeded().withOptions({ seed: 1 }));
  const orders = [0, 5, 10].map((at) => String(elements.slice(at, at + 5)));
  assertEquals(new Set(orders).size, 3);
  await assertCheckpointLaw(seeded);
  await assertCheckpointLaw(() => seeded().shuffle(4));
  await assertCheckpointLaw(() => Dataset.range(3).repeat().shuffle(2), { elementsMax: 11 });
  await assertCheckpointLaw(() => Dataset.range(3).enumerate(1).repeat().shuffle(7), {
    elementsMax: 13,
  });
  await assertCheckpointLaw(() => Dataset.range(0).repeat());
  await assertCheckpointLaw(() => faulty(3, 0, 1, 2).repeat(2));
  await assertCheckpointLaw(() => spread(4).repeat(2).repeat(2));
});

Deno.test("a checkpoint of zip, enumerate, shard and concatenate continues all inputs", async () => {
  await assertCheckpointLaw(() =>
    Dataset.zip({ a: Dataset.range(4).shuffle(2), b: spread(9), c: faulty(9, 1) })
  );
  await assertCheckpointLaw(() => faulty(5, 1, 4).zip(Dataset.range(3).repeat()));
  await assertCheckpointLaw(() => Dataset.range(7).enumerate(-2).shuffle(3));
  await assertCheckpointLaw(() => Dataset.range(11).shard(3, 1).shuffle(2));
  await assertCheckpointLaw(() =>
    Dataset.range(3).concatenate(Dataset.range(2).shuffle(2)).concatenate(Dataset.range(0))
      .zip(Dataset.range(9).shuffle(3)).shuffle(3)
  );
  await assertCheckpointLaw(() =>
    Dataset.range(3).concatenate(Dataset.range(2)).take(4).shuffle(4)
  );
  await assertCheckpointLaw(() =>
    Dataset.zip([Dataset.range(6), Dataset.range(5).concatenate(Dataset.range(5))] as const)
      .shuffle(4).enumerate().shard(2, 1)
  );
});

Deno.test("a checkpoint of unbatch keeps the remaining rows", async () => {
  await assertCheckpointLaw(() =>
    Dataset.from([
      { x: tensor([[1, 2], [3, 4]]), y: new Int8Array([1, 2]) },
      { x: tensor([[5, 6]]), y: new Int8Array([1, 2]) }, // fails
      { x: tensor([[7, 8]]), y: new Int8Array([3]) },
    ]).shuffle(2).unbatch().shuffle(2)
  );
});

Deno.test("a checkpoint of cache continues to fill it, or includes a complete one", async () => {
  await assertCheckpointLaw(() => Dataset.range(5).shuffle(5).cache().repeat(3));
  await assertCheckpointLaw(() => faulty(4, 2).cache().repeat(3));
  await assertCheckpointLaw(() =>
    // left in the middle, and not being read when it is saved
    Dataset.range(4).shuffle(4).cache().concatenate(Dataset.range(2)).repeat(3)
  );
  await assertCheckpointLaw(() => spread(5).cache().take(3).repeat(3));
  await assertCheckpointLaw(() =>
    Dataset.range(3).flatMap((_, { Dataset }) =>
      Dataset.range(3).shuffle(3).cache().repeat(2).concatenate(Dataset.range(1))
    )
  );
});

Deno.test("restore fills a dataset's cache for the iterations after it", async () => {
  let made = 0;
  const make = () =>
    Dataset.range(3).flatMap((x, { Dataset }) => {
      made++;
      return Dataset.from([x]);
    }).cache();
  const first = make();
  await Array.fromAsync(first);
  await using saver = first.iterator();
  await saver.next();
  const state = await saver.save();
  const second = make();
  made = 0;
  await using restored = second.iterator();
  await restored.restore(state);
  assertEquals(await Array.fromAsync(restored), [1, 2]);
  assertEquals(await Array.fromAsync(second), [0, 1, 2]);
  assertEquals(made, 0);
});

Deno.test("restore does not affect iterators that read another pass of the cache", async () => {
  const make = () => Dataset.range(4).shuffle(4).cache();
  const dataset = make();
  const elements = await Array.fromAsync(dataset);
  const other = make();
  const differing = await Array.fromAsync(other.withOptions({ seed: 3 }));
  await using reading = other.iterator();
  await reading.next();
  const state = await reading.save();
  await using before = dataset.iterator();
  await before.next();
  await using restored = dataset.iterator();
  await restored.restore(state);
  assertEquals(await Array.fromAsync(restored), differing.slice(1));
  await using after = dataset.iterator();
  await after.restore(await before.save());
  assertEquals(await Array.fromAsync(after), elements.slice(1));
  assertEquals(await Array.fromAsync(before), elements.slice(1));
});

Deno.test("zip reports the first input's failure, whichever comes first", async () => {
  const failing = (what: string) => {
    throw new LeatError("data_loss", what);
  };
  const later = Dataset.range(1).map(async () => (await Promise.resolve(), failing("first")));
  const atOnce = Dataset.range(1).map(() => failing("second"));
  for (const inputs of [[later, atOnce], [atOnce, later]]) {
    const error = await assertRejects(() => Dataset.zip(inputs).iterator().next(), LeatError);
    assertEquals(error.message.includes(inputs[0] === later ? "first" : "second"), true);
  }
});

Deno.test("a checkpoint of fromGenerator counts the steps to repeat, including errors", async () => {
  await assertCheckpointLaw(() =>
    Dataset.fromGenerator(function* ({ random }) {
      for (let i = 0; i < 5; i++) yield [i, random.next()];
    })
  );
  await assertCheckpointLaw(() =>
    Dataset.fromGenerator(async function* () {
      yield 1;
      await Promise.resolve();
      yield 2;
      throw new Error("no more");
    })
  );
  await assertCheckpointLaw(() =>
    Dataset.fromGenerator(() => {
      let count = 0;
      return {
        [Symbol.iterator]: () => ({
          next: () => {
            if (++count % 2 === 0) throw new Error(`no ${count}`);
            return { done: count > 6, value: count };
          },
        }),
      };
    }).repeat(2)
  );
  await assertCheckpointLaw(() =>
    Dataset.fromGenerator((): Iterable<number> => {
      throw new Error("cannot begin");
    })
  );
});

Deno.test("a saved iterator that was read to its end stays at its end", async () => {
  const make = () => Dataset.range(3).repeat(2).zip(Dataset.range(9)).cache();
  await using iterator = make().iterator();
  await outcomesOf(iterator);
  await using restored = make().iterator();
  await restored.restore(await iterator.save());
  assertEquals(await readOutcomes(restored, 2), []);
});

Deno.test("save keeps a cache that several operators read once, and restore fills each copy of it", async () => {
  const make = () => Dataset.range(1000).cache();
  const filled = async (dataset: Dataset<number>) => {
    await Array.fromAsync(dataset);
    return dataset;
  };
  const one = await filled(make());
  /** Equal pipelines: one reads a cache four times, the other has four caches. */
  const together = Dataset.zip([one, one, one, one]);
  const apart = Dataset.zip([make(), make(), make(), make()]);
  await using iterator = together.iterator();
  await iterator.next();
  const state = await iterator.save();
  await using alone = one.iterator();
  await alone.next();
  assert(state.length < 1.5 * (await alone.save()).length);
  const left = await Array.fromAsync(iterator);
  assertEquals(left.length, 999);
  for (const dataset of [together, apart]) {
    await using restored = dataset.iterator();
    await restored.restore(state);
    const again = await restored.save();
    assertEquals(await Array.fromAsync(restored), left);
    await using backAgain = together.iterator();
    await backAgain.restore(again);
    assertEquals(await Array.fromAsync(backAgain), left);
  }
});

Deno.test("save of a distributed dataset is refused with its mode", async () => {
  for (const processingMode of ["OFF", "DYNAMIC"] as const) {
    const dataset = Dataset.range(4).distribute({ service: "ws://127.0.0.1:1", processingMode });
    await using iterator = dataset.batch(2).iterator();
    const { code, message } = await assertRejects(() => iterator.save(), LeatError);
    assertEquals(code, "failed_precondition");
    assertEquals(message.includes(processingMode), true);
  }
});
