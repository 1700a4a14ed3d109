/**
 * DETERMINISTIC with several consumers: each has its part of one stream, which is produced once.
 */
import {
  Dataset,
  type DatasetIterator,
  LeatError,
  type LocalCluster,
  registerDataset,
} from "../../../mod.ts";
import { assert, assertEquals, assertMatch, assertRejects } from "../../assert.ts";
import { orderedReference, withMisfits } from "../../data/lib/ordered_reference.ts";
import { type Outcome, outcomesOf, readOutcomes } from "../../data/lib/outcomes.ts";
import { testInline, testOnEach } from "../lib/carriers.ts";
import { TempFolder } from "../../lib/temp_folder.ts";

/**
 * A pipeline with everything that could break the order: random numbers, a filter, remainders, a
 * map after them.
 */
function makeDataset(): Dataset<unknown> {
  return Dataset.range(400)
    .shuffle(20)
    .map((x, { random }) => x + random.next() / 2)
    .filter((x) => Math.floor(x) % 7 !== 0)
    .batch(5)
    .map((batch) => ({ batch }));
}

function consumer(
  dataset: Dataset<unknown>,
  service: LocalCluster,
  consumerIndex: number,
  numConsumers: number,
): Dataset<unknown> {
  const processingMode = "DETERMINISTIC";
  return dataset.distribute({ service, processingMode, jobName: "j", consumerIndex, numConsumers });
}

/** An iterator of each consumer. */
function consumersOf(
  dataset: Dataset<unknown>,
  service: LocalCluster,
  count: number,
): DatasetIterator<unknown>[] {
  return Array.from({ length: count }, (_, i) => consumer(dataset, service, i, count).iterator());
}

/** Each consumer's part of a stream, after so many of its own elements. */
function partsOf(stream: readonly Outcome[], count: number, from = 0): Outcome[][] {
  return Array.from({ length: count }, (_, i) => stream.filter((_, k) => k % count === i))
    .map((part) => part.slice(from));
}

testOnEach(
  "consumer i of n gets every n-th element of the canonical stream from the i-th on",
  async (start) => {
    const dataset = makeDataset();
    const stream = await orderedReference(dataset);
    await using cluster = await start({ workers: 2 });
    const parts = await Promise.all(consumersOf(dataset, cluster, 3).map((one) => outcomesOf(one)));
    assertEquals(parts, partsOf(stream, 3));
  },
);

testInline(
  "consumers of one stream have each element produced once, and sent to one of them",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    const iterators = consumersOf(Dataset.range(400).batch(5), cluster, 4);
    const last = await Promise.all(iterators.map((iterator) => readOutcomes(iterator, 20)));
    assertEquals(last.flat().length, 80);
    const sources = await cluster.sources();
    assertEquals(sources.reduce((sum, { produced }) => sum + produced, 0), 80);
    assertEquals(sources.reduce((sum, { served }) => sum + served, 0), 80);
    for (const iterator of iterators) await iterator.return();
  },
);

testInline("consumers share out also what is done at the reader", async (start) => {
  await using cluster = await start({ workers: 2 });
  const dataset = makeDataset().skip(3).take(40);
  const processingMode = "DETERMINISTIC";
  const alone = dataset.distribute({ service: cluster, processingMode });
  const stream = await outcomesOf(alone.iterator());
  const parts = await Promise.all(consumersOf(dataset, cluster, 2).map((one) => outcomesOf(one)));
  assertEquals(parts, partsOf(stream, 2));
});

testInline(
  "consumers draw at the reader the numbers that one reader draws, and share out its errors",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    const dataset = Dataset.range(24).scan(0, (sum, x) => [sum + x, sum]).shuffle(8)
      .map((x, { random }) => {
        if (x % 5 === 1) throw new Error(`no ${x}`);
        return x + random.next();
      }).withOptions({ seed: 3 });
    const alone = dataset.distribute({ service: cluster, processingMode: "DETERMINISTIC" });
    const stream = await outcomesOf(alone.iterator());
    assert(stream.some((outcome) => "error" in outcome));
    const wanted = partsOf(stream, 2);
    const begun = consumersOf(dataset, cluster, 2);
    const before = await Promise.all(begun.map((one) => readOutcomes(one, 5)));
    const states = await Promise.all(begun.map((one) => one.save()));
    const after = await Promise.all(begun.map((one) => outcomesOf(one)));
    assertEquals(before.map((part, i) => [...part, ...after[i]!]), wanted);
    await using other = await start({ workers: 1 });
    const restored = consumersOf(dataset, other, 2);
    await Promise.all(restored.map((one, i) => one.restore(states[i]!)));
    assertEquals(await Promise.all(restored.map((one) => outcomesOf(one))), after);
  },
);

testInline("consumers are restored while they read a full cache", async (start) => {
  const dataset = Dataset.range(13).shuffle(13).skip(3).cache().repeat(2).withOptions({ seed: 1 });
  await using cluster = await start({ workers: 2 });
  const begun = consumersOf(dataset, cluster, 2);
  await Promise.all(begun.map((one) => readOutcomes(one, 7)));
  const states = await Promise.all(begun.map((one) => one.save()));
  const after = await Promise.all(begun.map((one) => outcomesOf(one)));
  assertEquals(after.map(({ length }) => length), [3, 3]);
  await using other = await start({ workers: 1 });
  const restored = consumersOf(dataset, other, 2);
  await Promise.all(restored.map((one, i) => one.restore(states[i]!)));
  assertEquals(await Promise.all(restored.map((one) => outcomesOf(one))), after);
});

testInline(
  "consumers read the same epoch, whichever of them filled a cache before",
  async (start) => {
    const dataset = Dataset.range(13).shuffle(13).skip(3).cache().withOptions({ seed: 1 });
    await using cluster = await start({ workers: 2 });
    const datasets = [0, 1].map((i) => consumer(dataset, cluster, i, 2));
    const [fills, leaves] = datasets.map((one) => one.iterator());
    await Promise.all([outcomesOf(fills!), readOutcomes(leaves!, 2)]);
    await leaves!.return();
    const parts = await Promise.all(datasets.map((one) => outcomesOf(one.iterator())));
    const given = parts.flat().map((outcome) => "element" in outcome && outcome.element);
    assertEquals(new Set(given).size, 10);
  },
);

testInline(
  "consumers number the batches that remainders join over the ends of splits",
  async (start) => {
    await using cluster = await start({ workers: 3 });
    for (
      const dataset of [
        Dataset.range(100).filter((x) => x % 3 !== 0).batch(7),
        Dataset.range(30).batch(40),
        Dataset.range(300).filter((x) => x > 250),
        Dataset.range(50).batch(8, { dropRemainder: true }),
      ]
    ) {
      const stream = await orderedReference(dataset);
      const iterators = consumersOf(dataset, cluster, 3);
      assertEquals(await Promise.all(iterators.map((one) => outcomesOf(one))), partsOf(stream, 3));
      for (const iterator of iterators) await iterator.return();
    }
  },
);

testInline(
  "consumers share out the errors of rows that fit no batch, also if they are restored",
  async (start) => {
    const stream = await orderedReference(withMisfits());
    const sorted = (outcomes: readonly Outcome[]) => outcomes.map((at) => Deno.inspect(at)).sort();
    await using cluster = await start({ workers: 2 });
    const iterators = consumersOf(withMisfits(), cluster, 2);
    const parts = await Promise.all(iterators.map((one) => outcomesOf(one)));
    assertEquals(sorted(parts.flat()), sorted(stream));
    for (const counts of [[9, 12], [14, 13], [15, 15]] as const) {
      await using other = await start({ workers: 1 });
      const saved = consumersOf(withMisfits(), other, 2);
      const before = await Promise.all(saved.map((one, i) => readOutcomes(one, counts[i]!)));
      const states = await Promise.all(saved.map((one) => one.save()));
      const restored = consumersOf(withMisfits(), other, 2);
      await Promise.all(restored.map((one, i) => one.restore(states[i]!)));
      const after = await Promise.all(restored.map((one) => outcomesOf(one)));
      assertEquals(before.map((part, i) => [...part, ...after[i]!]), parts, `from ${counts}`);
    }
  },
);

testInline("consumers lose and repeat nothing when workers die", async (start) => {
  const dataset = makeDataset();
  const stream = await orderedReference(dataset);
  await using cluster = await start({ workers: 3, workerTimeoutMs: 300 });
  const iterators = consumersOf(dataset, cluster, 2);
  const read = (count: number) => Promise.all(iterators.map((one) => readOutcomes(one, count)));
  const found = await read(8);
  await cluster.stopWorker(0);
  (await read(8)).forEach((more, i) => found[i]!.push(...more));
  await cluster.stopWorker(1);
  await cluster.addWorker();
  (await Promise.all(iterators.map((one) => outcomesOf(one)))).forEach((more, i) =>
    found[i]!.push(...more)
  );
  assertEquals(found, partsOf(stream, 2));
});

testInline("consumers go on when the dispatcher restarts on its journal", async (start) => {
  await using temporary = await TempFolder.make();
  const journal = temporary.path;
  const dataset = makeDataset();
  const stream = await orderedReference(dataset);
  {
    await using cluster = await start({ workers: 2, journal });
    const iterators = consumersOf(dataset, cluster, 2);
    const found = await Promise.all(iterators.map((one) => readOutcomes(one, 10)));
    await cluster.stopDispatcher();
    await cluster.restartDispatcher();
    (await Promise.all(iterators.map((one) => outcomesOf(one)))).forEach((more, i) =>
      found[i]!.push(...more)
    );
    assertEquals(found, partsOf(stream, 2));
  }
});

testInline(
  "consumers are restored each at its own place, on a cluster of another size",
  async (start) => {
    const dataset = makeDataset();
    const stream = await orderedReference(dataset);
    for (const [position, ahead] of [[0, 0], [7, 1], [20, 1]] as const) {
      const states: Uint8Array[] = [];
      {
        await using cluster = await start({ workers: 3 });
        const iterators = consumersOf(dataset, cluster, 3);
        const counts = [position, position, position + ahead];
        await Promise.all(iterators.map((one, i) => readOutcomes(one, counts[i]!)));
        for (const iterator of iterators) states.push(await iterator.save());
      }
      assert(states.every((state) => state.length < 4096));
      await using other = await start({ workers: 1 });
      const restored = consumersOf(dataset, other, 3);
      await Promise.all(restored.map((iterator, i) => iterator.restore(states[i]!)));
      const found = await Promise.all(restored.map((one) => outcomesOf(one)));
      const wanted = partsOf(stream, 3, position);
      wanted[2] = wanted[2]!.slice(ahead);
      assertEquals(found, wanted, `from ${position}`);
    }
  },
);

testInline("a consumer refuses the state of another, by the index in it", async (start) => {
  await using cluster = await start({ workers: 1 });
  const dataset = Dataset.range(12);
  const datasetId = await registerDataset(cluster, dataset);
  const job = { processingMode: "DETERMINISTIC", jobName: "j", numConsumers: 2 } as const;
  for (
    const [kind, open] of [
      ["distribute", (consumerIndex: number) => consumer(dataset, cluster, consumerIndex, 2)],
      [
        "fromId",
        (consumerIndex: number) => Dataset.fromId(cluster, datasetId, { ...job, consumerIndex }),
      ],
    ] as const
  ) {
    await using saved = open(0).iterator();
    const state = await saved.save();
    await using other = open(1).iterator();
    const error = await assertRejects(() => other.restore(state), LeatError);
    assertEquals(error.code, "failed_precondition");
    assertMatch(error.message, new RegExp(`: ${kind}: consumerIndex was 0 and is 1\\.`));
  }
});

testInline(
  "a restored consumer restarts the stream for all, and the others have to be restored",
  async (start) => {
    const dataset = makeDataset();
    const stream = await orderedReference(dataset);
    await using cluster = await start({ workers: 2 });
    const iterators = consumersOf(dataset, cluster, 2);
    await Promise.all(iterators.map((one) => readOutcomes(one, 5)));
    const states = await Promise.all(iterators.map((one) => one.save()));
    await Promise.all(iterators.map((one) => readOutcomes(one, 5)));
    const restored = consumersOf(dataset, cluster, 2);
    await restored[0]!.restore(states[0]!);
    const first = restored[0]!.next();
    const error = await assertRejects(() => outcomesUntilError(iterators[1]!), LeatError);
    assertEquals(error.code, "failed_precondition");
    await restored[1]!.restore(states[1]!);
    const [, ...rest] = await Promise.all([first, ...restored.map((one) => outcomesOf(one))]);
    const wanted = partsOf(stream, 2, 5);
    assertEquals(rest, [wanted[0]!.slice(1), wanted[1]!]);
    for (const iterator of iterators) await iterator.return();
  },
);

testInline(
  "consumers are restored from one step on both sides of an epoch's end, whichever comes first",
  async (start) => {
    // One of them has one more element in each epoch.
    const dataset = Dataset.range(21);
    const parts = [0, 1].map((index) =>
      Array.from({ length: 21 }, (_, x) => x).filter((x) => x % 2 === index)
    );
    await using cluster = await start({ workers: 2 });
    for (const order of [[0, 1], [1, 0]]) {
      // At the last one the first consumer is at the end of its epoch, and the second already in
      // the next.
      for (const [savedAt, leftAt] of [[4, 14], [11, 14], [11, 11]] as [number, number][]) {
        const open = () =>
          [0, 1].map((i) =>
            consumer(dataset, cluster, i, 2).repeat(3).iterator() as DatasetIterator<unknown>
          );
        const old = open();
        await Promise.all(old.map((one) => readOutcomes(one, savedAt)));
        const states = await Promise.all(old.map((one) => one.save()));
        await Promise.all(old.map((one) => readOutcomes(one, leftAt - savedAt)));
        const restored = open();
        const firsts: unknown[] = [];
        for (const i of order) {
          await restored[i]!.restore(states[i]!);
          firsts[i] = (await restored[i]!.next()).value;
        }
        const rest = await Promise.all(restored.map(async (one, i) => [
          firsts[i],
          ...(await outcomesOf(one)).map((outcome) => "element" in outcome && outcome.element),
        ]));
        const wanted = parts.map((part) => [...part, ...part, ...part].slice(savedAt));
        assertEquals(rest, wanted, `saved at ${savedAt}, left at ${leftAt}, first ${order[0]}`);
        for (const iterator of old) await iterator.return();
      }
    }
  },
);

testInline(
  "consumers that were restored in part are restored together under another runId, while readers of both starts live",
  async (start) => {
    const dataset = makeDataset();
    const stream = await orderedReference(dataset);
    await using cluster = await start({ workers: 2 });
    const open = (runId: string) =>
      [0, 1].map((consumerIndex) =>
        dataset.distribute({
          service: cluster,
          processingMode: "DETERMINISTIC",
          jobName: "j",
          runId,
          consumerIndex,
          numConsumers: 2,
        }).iterator()
      );
    const wanted = partsOf(stream, 2, 5);
    const begun = open("start 1");
    await Promise.all(begun.map((one) => readOutcomes(one, 5)));
    const states = await Promise.all(begun.map((one) => one.save()));
    // Its first consumer never comes.
    const inPart = open("start 2");
    await inPart[1]!.restore(states[1]!);
    const putOut = assertRejects(() => outcomesUntilError(inPart[1]!), LeatError);
    for (const old of begun) {
      const error = await assertRejects(() => outcomesUntilError(old), LeatError);
      assertEquals(error.code, "failed_precondition");
      await old.return();
    }
    const whole = open("start 3");
    await whole[0]!.restore(states[0]!);
    const first = outcomesOf(whole[0]!);
    assertEquals((await putOut).code, "failed_precondition");
    await inPart[1]!.return();
    await whole[1]!.restore(states[1]!);
    assertEquals(await Promise.all([first, outcomesOf(whole[1]!)]), wanted);
    await inPart[0]!.restore(states[0]!);
    const refused = await assertRejects(() => inPart[0]!.next(), LeatError);
    assertMatch(refused.message, /"start 3", which has replaced the run "start 2"/);
    await inPart[0]!.return();
  },
);

testInline(
  "consumers of a run read every epoch of every iterator of a repeated dataset",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    const datasets = [0, 1].map((consumerIndex) =>
      Dataset.range(6).distribute({
        service: cluster,
        processingMode: "DETERMINISTIC",
        jobName: "j",
        runId: "start 1",
        consumerIndex,
        numConsumers: 2,
      }).repeat(2)
    );
    for (let epoch = 0; epoch < 6; epoch++) {
      const parts = await Promise.all(datasets.map((each) => Array.fromAsync(each)));
      assertEquals(parts, [[0, 2, 4, 0, 2, 4], [1, 3, 5, 1, 3, 5]], `epoch ${epoch}`);
    }
  },
);

testInline(
  "a consumer restored in an older iterator's pass does not wait for those in a later iterator",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    const open = (runId: string) =>
      [0, 1].map((consumerIndex) =>
        Dataset.range(6).distribute({
          service: cluster,
          processingMode: "DETERMINISTIC",
          jobName: "j",
          runId,
          consumerIndex,
          numConsumers: 2,
        }).repeat(2)
      );
    const [first, second] = open("start 1");
    const [one, other] = [first!.iterator(), second!.iterator()];
    const begins = await Promise.all([one.next(), other.next()]);
    assertEquals(begins.map(({ value }) => value), [0, 1]);
    const early = await other.save();
    await Promise.all([Array.fromAsync(one), Array.fromAsync(other)]);
    await using later = first!.iterator();
    await using alongside = second!.iterator();
    await Promise.all([later.next(), alongside.next()]);
    const state = await later.save();
    // One consumer is restored in the first iterator, the other one in the second iterator.
    const [newest, older] = open("start 2");
    await using ahead = newest!.iterator();
    await using behind = older!.iterator();
    await Promise.all([ahead.restore(state), behind.restore(early)]);
    const begun = ahead.next();
    assertEquals(await Array.fromAsync(behind), [3, 5, 1, 3, 5]);
    assertEquals((await begun).value, 2);
  },
);

testInline(
  "a consumer without an element in one repetition reads the next, and all end if no consumer has any",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    const one = Dataset.range(5).filter((x) => x % 3 !== 0).batch(3).map(({ data }) => [...data]);
    const of = (dataset: Dataset<unknown>, repetitions?: number) =>
      Promise.all(
        [0, 1].map((i) =>
          outcomesOf(consumer(dataset, cluster, i, 2).repeat(repetitions).iterator())
        ),
      );
    const batch: Outcome = { element: [1, 2, 4] };
    assertEquals(await of(one, 3), [[batch, batch, batch], []]);
    // What is done at the reader needs all of the stream, and each leaves out the other's.
    const numbered: Outcome = { element: [0, [1, 2, 4]] };
    assertEquals(await of(one.enumerate(), 2), [[numbered, numbered], []]);
    assertEquals(await of(Dataset.range(9).filter((x) => x > 9)), [[], []]);
  },
);

testInline(
  "consumers that were restored at the last step of an epoch come to its end, in batches or not",
  async (start) => {
    const filtered = Dataset.range(23).filter((x) => x % 3 !== 1);
    await using cluster = await start({ workers: 2 });
    for (const dataset of [filtered, filtered.batch(2)] as Dataset<unknown>[]) {
      const open = () => consumersOf(dataset.map((x) => x), cluster, 3);
      const begun = open();
      const parts = partsOf(await orderedReference(dataset.map((x) => x)), 3);
      await Promise.all(begun.map((one, i) => readOutcomes(one, parts[i]!.length)));
      const states = await Promise.all(begun.map((one) => one.save()));
      await Promise.all(begun.map((one) => one.return()));
      const restored = open();
      await Promise.all(restored.map((one, i) => one.restore(states[i]!)));
      assertEquals(await Promise.all(restored.map((one) => outcomesOf(one))), [[], [], []]);
    }
  },
);

testInline(
  "consumers that were restored in their processes come to the next epoch together, however often each was",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    const datasets = [0, 1].map((i) => consumer(Dataset.range(24), cluster, i, 2));
    const begun = datasets.map((one) => one.iterator());
    const states = await Promise.all(begun.map((one) => one.save()));
    await Promise.all(begun.map((one) => readOutcomes(one, 3)));
    const read = async (i: number, attempts: number) => {
      let iterator = begun[i]!;
      for (let attempt = 0; attempt < attempts; attempt++) {
        await iterator.return();
        iterator = datasets[i]!.iterator();
        await iterator.restore(states[i]!);
      }
      return [await outcomesOf(iterator), await outcomesOf(datasets[i]!.iterator())];
    };
    const part = (i: number) =>
      Array.from({ length: 12 }, (_, n): Outcome => ({ element: 2 * n + i }));
    const given = await Promise.all([read(0, 2), read(1, 1)]);
    assertEquals(given, [[part(0), part(0)], [part(1), part(1)]]);
  },
);

async function outcomesUntilError(iterator: DatasetIterator<unknown>): Promise<void> {
  for (let next = await iterator.next(); !next.done; next = await iterator.next());
}

testInline(
  "consumers do not wait for one that has left, and it cannot come back by itself",
  async (start) => {
    const dataset = makeDataset();
    const stream = await orderedReference(dataset);
    await using cluster = await start({ workers: 2 });
    const [stays, leaves] = consumersOf(dataset, cluster, 2);
    await Promise.all([stays!, leaves!].map((one) => readOutcomes(one, 3)));
    await leaves!.return();
    assertEquals(await readOutcomes(stays!, 15), partsOf(stream, 2, 3)[0]!.slice(0, 15));
    await using back = consumer(dataset, cluster, 1, 2).iterator();
    const error = await assertRejects(() => back.next(), LeatError);
    assertEquals(error.code, "failed_precondition");
    assertMatch(error.message, /Restore all consumers/);
    assertEquals(await outcomesOf(stays!), partsOf(stream, 2, 18)[0]);
  },
);

testInline(
  "no pass or chain waits for a consumer that has left its iterator, and the next epoch does",
  async (start) => {
    const range = Dataset.range(200);
    type Make = (service: LocalCluster, index: number) => Dataset<unknown>;
    const pipelines: [make: Make, ofEach: number][] = [
      [(service, i) => consumer(range.repeat(3), service, i, 2), 300],
      [(service, i) => consumer(range, service, i, 2).repeat(3), 300],
      [(service, i) => consumer(range.concatenate(range), service, i, 2), 200],
      // In each pass the stream is not read to its end.
      [(service, i) => consumer(range, service, i, 2).take(9).repeat(2), 18],
    ];
    for (const [make, ofEach] of pipelines) {
      await using cluster = await start({ workers: 1 });
      const [stays, leaves] = [make(cluster, 0), make(cluster, 1)];
      const [staying, leaving] = [stays.iterator(), leaves.iterator()];
      await Promise.all([readOutcomes(staying, 5), readOutcomes(leaving, 5)]);
      await leaving.return();
      assertEquals((await outcomesOf(staying)).length, ofEach - 5);
      const next = [stays, leaves].map((each) => outcomesOf(each.iterator()));
      assertEquals((await Promise.all(next)).map(({ length }) => length), [ofEach, ofEach]);
    }
  },
);

testInline(
  "two readers cannot be one consumer, and all agree on how many there are",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const dataset = makeDataset();
    const [first, second] = consumersOf(dataset, cluster, 2);
    await Promise.all([first!.next(), second!.next()]);
    const refusals: [Dataset<unknown>, string][] = [
      [consumer(dataset, cluster, 1, 2), "failed_precondition"],
      [consumer(dataset, cluster, 2, 3), "invalid_argument"],
      [
        dataset.distribute({ service: cluster, processingMode: "DETERMINISTIC", jobName: "j" }),
        "invalid_argument",
      ],
    ];
    for (const [refused, code] of refusals) {
      await using iterator = refused.iterator();
      assertEquals((await assertRejects(() => iterator.next(), LeatError)).code, code);
    }
    for (const iterator of [first!, second!]) await iterator.return();
  },
);
