/** DETERMINISTIC: one stream, the same for any cluster, with every element once, whatever dies. */
import { openIterator } from "../../../data/dataset_iterator.ts";
import { Dataset, LeatError } from "../../../mod.ts";
import {
  assert,
  assertEquals,
  assertNotEquals,
  assertRejects,
  assertStringIncludes,
} from "../../assert.ts";
import { orderedReference } from "../../data/lib/ordered_reference.ts";
import { hurried } from "../../data/lib/hurried.ts";
import { type Outcome, outcomesOf, readOutcomes } from "../../data/lib/outcomes.ts";
import { TempFolder } from "../../lib/temp_folder.ts";
import { distributed, makeDataset } from "../lib/canonical.ts";
import { testInline, testOnEach } from "../lib/carriers.ts";

testOnEach(
  "DETERMINISTIC gives the canonical stream, whatever the number of workers",
  async (start) => {
    const dataset = makeDataset();
    const wanted = await orderedReference(dataset);
    for (const workers of [1, 3]) {
      await using cluster = await start({ workers });
      assertEquals(await outcomesOf(distributed(dataset, cluster).iterator()), wanted);
    }
  },
);

testOnEach("DETERMINISTIC numbers the epochs of a repeated stream on", async (start) => {
  await using cluster = await start({ workers: 2 });
  const dataset = Dataset.range(60).shuffle(10).batch(7);
  const found = await outcomesOf(distributed(dataset, cluster).repeat(2).iterator());
  const wanted = [
    ...await orderedReference(dataset),
    ...await orderedReference(dataset, { epoch: 1 }),
  ];
  assertEquals(found, wanted);
});

testInline(
  "DETERMINISTIC reads the files of a shuffled listing in an order of its seed and epoch",
  async (start) => {
    await using folder = await TempFolder.make();
    for (let i = 0; i < 8; i++) await Deno.writeTextFile(`${folder.path}/${i}.txt`, `${i}\n`);
    await using cluster = await start({ workers: 2 });
    const lines = Dataset.textLines(Dataset.listFiles(`${folder.path}/*.txt`));
    const stream = (seed: number) =>
      outcomesOf(distributed(lines, cluster).repeat(2).withOptions({ seed }).iterator());
    const wanted = await Promise.all(
      [1n, 2n].flatMap((seed) => [0, 1].map((epoch) => orderedReference(lines, { seed, epoch }))),
    );
    assertEquals([...await stream(1), ...await stream(2)], wanted.flat());
    assertEquals(new Set(wanted.map((epoch) => JSON.stringify(epoch))).size, 4);
  },
);

testOnEach("DETERMINISTIC runs at the reader what cannot be run by splits", async (start) => {
  await using cluster = await start({ workers: 2 });
  const chain = Dataset.range(100).map((x) => x * 2);
  const dataset = Dataset.zip([chain, Dataset.range(50).skip(3)]).take(20).batch(6);
  const local = await outcomesOf(openIterator(dataset.node, { seed: 0n }));
  assertEquals(await outcomesOf(distributed(dataset, cluster).iterator()), local);
});

testInline(
  "DETERMINISTIC keeps the order of datasets that functions make, at workers and at the reader",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const range = Dataset.range(2);
    const wanted = [0, 1, 2, 3].map((element) => ({ element }));
    for (const numbers of [hurried(range), hurried(range.take(2))]) {
      assertEquals(await outcomesOf(distributed(numbers, cluster).iterator()), wanted);
    }
  },
);

testInline(
  "DETERMINISTIC keeps the order at the reader if withOptions sets deterministic: false",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    // A call without a promise ends before any that has one.
    const numbers = Dataset.range(8).take(8).batch(8).unbatch()
      .map((x) => Number(x) % 2 === 0 ? Promise.resolve(x) : x, { numParallelCalls: 4 });
    const hurried = { deterministic: false };
    const wanted = Array.from({ length: 8 }, (_, element) => ({ element }));
    for (
      const stream of [
        distributed(numbers.withOptions(hurried), cluster),
        distributed(numbers, cluster).withOptions(hurried),
      ]
    ) assertEquals(await outcomesOf(stream.iterator()), wanted);
  },
);

testOnEach("DETERMINISTIC loses and repeats nothing when workers die", async (start) => {
  const dataset = makeDataset();
  const wanted = await orderedReference(dataset);
  await using cluster = await start({ workers: 3, workerTimeoutMs: 1_500 });
  await using iterator = distributed(dataset, cluster).iterator();
  const found = await readOutcomes(iterator, 15);
  await cluster.stopWorker(0);
  found.push(...await readOutcomes(iterator, 15));
  await cluster.stopWorker(1);
  await cluster.addWorker();
  found.push(...await outcomesOf(iterator));
  assertEquals(found, wanted);
});

testOnEach("DETERMINISTIC goes on when the dispatcher restarts on its journal", async (start) => {
  await using temporary = await TempFolder.make();
  const journal = temporary.path;
  const dataset = makeDataset();
  const wanted = await orderedReference(dataset);
  {
    await using cluster = await start({ workers: 2, journal });
    await using iterator = distributed(dataset, cluster).iterator();
    const found = await readOutcomes(iterator, 20);
    await cluster.stopDispatcher();
    await cluster.restartDispatcher();
    found.push(...await outcomesOf(iterator));
    assertEquals(found, wanted);
  }
});

testInline("a token is refused where the dataset has other splits by now", async (start) => {
  await using temporary = await TempFolder.make();
  const folder = temporary.path;
  const write = (name: string) => Deno.writeTextFile(`${folder}/${name}.txt`, "");
  for (const name of ["a", "b", "c"]) await write(name);
  // Only their names: an open file would outlive its cluster.
  const names = Dataset.listFiles(`${folder}/*.txt`);
  await using cluster = await start({ workers: 1 });
  await using saver = distributed(names, cluster).iterator();
  await readOutcomes(saver, 2);
  const token = await saver.save();
  await write("0");
  await using iterator = distributed(names, cluster).iterator();
  await iterator.restore(token);
  const error = await assertRejects(() => iterator.next(), LeatError);
  assertEquals(error.code, "failed_precondition");
  assert(error.message.includes("other splits"), error.message);
  assertEquals((await iterator.next()).done, true, "told once");
  await using again = distributed(names, cluster).iterator();
  await again.restore(await iterator.save());
  await assertRejects(() => again.next(), LeatError, "other splits");
  await saver.return!();
  await cluster.close();
});

testInline(
  "save of a distributed iterator of another mode is refused with the remedy",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    for (const processingMode of ["OFF", "DYNAMIC", "DATA"] as const) {
      const job = Dataset.range(10).distribute({ service: cluster, processingMode });
      await using iterator = job.iterator();
      await iterator.next();
      const error = await assertRejects(() => iterator.save(), LeatError);
      assertEquals(error.code, "failed_precondition");
      assert(error.message.includes("DETERMINISTIC"), error.message);
    }
  },
);

testOnEach("a second reader of a DETERMINISTIC job is refused by name", async (start) => {
  await using cluster = await start();
  const job = () =>
    Dataset.range(500).batch(2).distribute({
      service: cluster,
      processingMode: "DETERMINISTIC",
      jobName: "one stream",
    });
  await using first = job().iterator();
  await first.next();
  await using second = job().iterator();
  const error = await assertRejects(() => second.next(), LeatError);
  assertEquals(error.code, "failed_precondition");
  assert(error.message.includes('"one stream"'), error.message);
  assertEquals((await second.next()).done, true, "told once");
});

testOnEach("errors of elements keep their places in a DETERMINISTIC stream", async (start) => {
  await using cluster = await start({ workers: 2 });
  const dataset = Dataset.range(200).map((x) => {
    if (x % 50 === 7) throw new Error(`no ${x}`);
    return x;
  }).batch(3);
  const wanted: Outcome[] = await orderedReference(dataset);
  assertEquals(wanted.filter((at) => "error" in at).length, 4);
  assertEquals(await outcomesOf(distributed(dataset, cluster).iterator()), wanted);
});

testInline(
  "iterators of a DETERMINISTIC dataset share a cache at the reader, for each seed one",
  async (start) => {
    await using cluster = await start({ workers: 2 });
    const cached = Dataset.range(40).shuffle(40).take(6).cache();
    const dataset = distributed(cached, cluster);
    const [one, two] = [1, 2].map((seed) => dataset.withOptions({ seed }));
    const first = await outcomesOf(one!.iterator());
    const other = await outcomesOf(two!.iterator());
    assertNotEquals(other, first);
    // The local stream is another one.
    assertNotEquals(await outcomesOf(cached.withOptions({ seed: 1 }).iterator()), first);
    assertEquals(await outcomesOf(one!.iterator()), first);
    assertEquals(await outcomesOf(two!.repeat(2).iterator()), [...other, ...other]);
  },
);

testInline(
  "restore of a DETERMINISTIC dataset finds a cache at the reader though settings that change no elements differ",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const threads = (dataset: Dataset<unknown>) => dataset.withOptions({ threads: false });
    const make = (set: typeof threads) => {
      const parts = [0, 40].map((from) => set(Dataset.range(from, from + 20).shuffle(9)).take(3));
      const [left, right] = parts.map((part) => set(part.cache()));
      return distributed(set(Dataset.zip([left!, right!])), cluster).repeat(3);
    };
    const pipelines = [
      () => make((dataset) => dataset),
      () => make(threads),
      () => threads(make(threads)),
    ];
    for (const saved of pipelines) {
      await using iterator = saved().iterator();
      await readOutcomes(iterator, 4);
      const state = await iterator.save();
      const rest = await outcomesOf(iterator);
      assertEquals(rest.length, 5);
      for (const other of pipelines) {
        await using restored = other().iterator();
        await restored.restore(state);
        assertEquals(await outcomesOf(restored), rest);
      }
    }
  },
);

testInline(
  "an element that fails at the reader of a DETERMINISTIC dataset names its operator as in the pipeline",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    const fails = (dataset: Dataset<number>) =>
      dataset.skip(1).map((x) => {
        throw new Error(`no ${x}`);
      });
    const range = Dataset.range(2);
    for (
      const [dataset, operator] of [
        [distributed(fails(range), cluster), "map (operator 1)"],
        [
          distributed(fails(range.shuffle(2)), cluster).withOptions({ seed: 1 }),
          "map (operator 2)",
        ],
        [distributed(range.map((x) => x).concatenate(fails(range)), cluster), "map (operator 4)"],
      ] as const
    ) {
      await using iterator = dataset.iterator();
      const errors = (await outcomesOf(iterator)).filter((outcome) => "error" in outcome);
      assertEquals(errors.length, 1);
      assertStringIncludes(errors[0]!.error, `${operator}: the function failed at element 0: no `);
      const { elements, errors: failed } = iterator.stats().find((at) =>
        at.operator === "distribute"
      )!;
      assertEquals([elements, failed], [operator.endsWith("4)") ? 2 : 0, 1]);
    }
  },
);
