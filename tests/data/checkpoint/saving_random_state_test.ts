/**
 * Seeds that no user chose: seeds drawn once for all iterations of a dataset are saved with every
 * iterator, and so are the names of files.
 */
import { openIterator } from "../../../data/dataset_iterator.ts";
import { Dataset } from "../../../mod.ts";
import { assert, assertEquals, assertNotEquals } from "../../assert.ts";
import { assertCheckpointLaw } from "../lib/checkpoint_law.ts";
import { rounds } from "../lib/collect.ts";
import { MemoryHost } from "../lib/memory_host.ts";

type Numbers = Dataset<number>;

const once = { reshuffleEachIteration: false };

/** Datasets that draw a seed once if there is no user's seed; each has at least 6 elements. */
const ONCE: Record<string, () => Numbers> = {
  shuffle: () => Dataset.range(6).shuffle(6, once),
  globalShuffle: () => Dataset.range(6).globalShuffle(once),
  random: () => Dataset.random().take(6),
  sampleFromDatasets: () =>
    Dataset.sampleFromDatasets([Dataset.range(3), Dataset.range(10, 13)], { weights: [1, 1] }),
  sampleByDataset: () =>
    Dataset.sampleFromDatasets([Dataset.range(3), Dataset.range(10, 13)], {
      weights: Dataset.from([[1, 2]]).repeat(),
    }),
};

const later = (x: number) => rounds(x % 3).then(() => x);

/** Pipelines that drop their iterators early, make them late, or prefetch. */
const WITHIN: Record<string, (drawn: Numbers) => Dataset<unknown>> = {
  itself: (drawn) => drawn,
  repeat: (drawn) => drawn.repeat(2),
  take: (drawn) => drawn.take(3).repeat(3),
  "take and shuffle": (drawn) => drawn.take(4).shuffle(9),
  "take and prefetch": (drawn) => drawn.take(5).prefetch(9),
  "repeat and shuffle": (drawn) => drawn.take(3).repeat(2).shuffle(9),
  "the first of concatenate": (drawn) => drawn.take(3).concatenate(Dataset.range(3)).shuffle(4),
  "the second of concatenate": (drawn) => Dataset.range(3).concatenate(drawn).repeat(2),
  "both of concatenate": (drawn) => drawn.concatenate(drawn).prefetch(3),
  zip: (drawn) => drawn.take(2).zip(drawn).repeat(2),
  choose: (drawn) =>
    Dataset.chooseFromDatasets([drawn.take(2), drawn], Dataset.from([0, 1, 0, 1, 0, 1, 1])),
  "parallel map": (drawn) => drawn.take(4).map(later, { numParallelCalls: 3 }).repeat(2),
  takeWhile: (drawn) => drawn.takeWhile((x) => x % 5 !== 4).repeat(2),
  window: (drawn) => drawn.take(5).window(2, { shift: 1 }).flatMap((window) => window),
  groups: (drawn) =>
    drawn.take(5).groupByWindow({ key: (x) => x % 2, reduce: (_, w) => w, windowSize: 2 }),
  flatMap: (drawn) => Dataset.range(3).flatMap(() => drawn.take(2).repeat(2)),
  interleave: (drawn) =>
    Dataset.range(3).interleave(() => drawn.take(2).repeat(2), { cycleLength: 2 }),
  "parallel interleave": (drawn) =>
    Dataset.range(3).interleave(() => drawn.take(2).map(later), {
      cycleLength: 2,
      numParallelCalls: 2,
    }),
  "a function that makes it": () =>
    Dataset.range(3).flatMap((x, { Dataset }) =>
      Dataset.range(x, 6).shuffle(6, { reshuffleEachIteration: false }).take(2).repeat(2)
    ).shuffle(3),
};

for (const [name, make] of Object.entries(ONCE)) {
  Deno.test(`${name} without a seed continues as it was saved, in every position of a pipeline`, async () => {
    for (const within of Object.values(WITHIN)) {
      await assertCheckpointLaw(() => within(make()), {
        seed: "drawn",
        elementsMax: 20,
        beforeSave: () => rounds(4),
      });
    }
  });

  Deno.test(`${name} without a seed gives the same in later iterations, in every position of a pipeline`, async () => {
    for (const position of [0, 3, Infinity]) {
      const dataset = make();
      await using iterator = dataset.iterator();
      for (let i = 0; i < position; i++) if ((await iterator.next()).done) break;
      const state = await iterator.save();
      const other = make();
      await using restored = other.iterator();
      await restored.restore(state);
      const whole = await Array.fromAsync(dataset);
      assertEquals(await Array.fromAsync(restored), whole.slice(position));
      assertEquals(await Array.fromAsync(other), whole, `saved at ${position}`);
    }
  });
}

Deno.test("the iterator after a restored one is the next epoch, however many its dataset has had", async () => {
  const make = () => Dataset.range(20).shuffle(20, { seed: 3 });
  const undisturbed = make();
  const epochs: number[][] = [];
  while (epochs.length < 3) epochs.push(await Array.fromAsync(undisturbed));
  const dataset = make();
  assertEquals(await Array.fromAsync(dataset), epochs[0]);
  await using interrupted = dataset.iterator();
  for (let i = 0; i < 5; i++) await interrupted.next();
  const state = await interrupted.save();
  for (const _attempt of ["first", "second"]) {
    const restored = dataset.iterator();
    await restored.restore(state);
    assertEquals(await Array.fromAsync(restored), epochs[1]!.slice(5));
  }
  assertEquals(await Array.fromAsync(dataset), epochs[2]);
});

Deno.test("datasets that a function makes draw their own orders, from the random numbers of its calls", async () => {
  const orders = Dataset.range(4).flatMap((_, { Dataset }) =>
    Dataset.range(50).shuffle(50, { reshuffleEachIteration: false }).repeat(2).batch(50)
  );
  const texts = (await Array.fromAsync(orders)).map(({ data }) => String(data));
  for (const at of [0, 2, 4, 6]) assertEquals(texts[at], texts[at + 1]);
  assertEquals(new Set(texts).size, 4);
  assertNotEquals(String((await Array.fromAsync(orders))[0]!.data), texts[0]);
});

const FILES = Object.fromEntries(["a", "b", "c", "d", "e"].map((x) => [`/${x}`, `${x}1\n${x}2\n`]));

Deno.test("file names are saved as names, in every position of a pipeline", async () => {
  for (const shuffle of [false, true]) {
    const names = () => Dataset.listFiles("/*", { shuffle }) as Dataset<string>;
    const upper = (name: string) => rounds(1).then(() => name.toUpperCase());
    const pipelines: (() => Dataset<unknown>)[] = [
      () => names().take(3).shuffle(9),
      () => names().take(3).prefetch(9).repeat(2),
      () => names().repeat(2).shuffle(9),
      () => names().take(2).concatenate(names()).shuffle(9),
      () => names().concatenate(Dataset.from(["x", "y"])).shuffle(4).repeat(2),
      () => Dataset.zip([names().take(2), names()]).shuffle(9),
      () => names().takeWhile((name) => name !== "/d").shuffle(9),
      () => Dataset.chooseFromDatasets([names(), names()], Dataset.from([0, 1, 1, 0])).shuffle(9),
      () => names().take(3).shuffle(9).ignoreErrors(),
      () => names().map(upper, { numParallelCalls: 2 }).take(3).shuffle(9),
      () => names().take(4).window(3).flatMap((window) => window),
      () =>
        names().take(4).groupByWindow({
          key: (name) => name.charCodeAt(1) % 2,
          reduce: (_, window) => window,
          windowSize: 3,
        }),
      () => names().take(4).map((name) => new Int32Array([name.charCodeAt(1)])).pack({ length: 3 }),
      () =>
        names().repeat(2).interleave((name, { Dataset }) => Dataset.textLines(name), {
          cycleLength: 3,
          numParallelCalls: 2,
        }),
      () => names().repeat(2).flatMap((name, { Dataset }) => Dataset.textLines(name)),
      () => Dataset.textLines(names().take(3), { numParallelReads: 2 }).shuffle(4),
    ];
    for (const make of pipelines) {
      const host = new MemoryHost(FILES);
      await assertCheckpointLaw(make, { host });
      await assertCheckpointLaw(make, { host, seed: "drawn", beforeSave: () => rounds(4) });
    }
  }
});

Deno.test("a shuffle of files is saved as their names, not as their contents", async () => {
  const host = new MemoryHost(FILES);
  const dataset = Dataset.listFiles("/*").map((_name) => new Uint8Array(100_000)).shuffle(9);
  await using iterator = openIterator(dataset.node, { host });
  await iterator.next();
  assert((await iterator.save()).length < 10_000);
});

Deno.test("a failing restore leaves a complete cache, and drawn seeds, unchanged", async () => {
  const host = new MemoryHost(FILES);
  const make = () => {
    const lines = Dataset.textLines("/a").cache();
    const order = Dataset.range(20).shuffle(20, once);
    return { lines, order, both: Dataset.zip([order, lines]) };
  };
  const open = (dataset: Dataset<unknown>) => openIterator(dataset.node, { host });
  const { both: elsewhere } = make();
  await using saver = open(elsewhere);
  await saver.next();
  const state = await saver.save();
  const { lines, order, both } = make();
  await using iterator = open(both);
  const first = await iterator.next();
  const [whole, orderBefore] = [
    await Array.fromAsync(open(lines)),
    await Array.fromAsync(open(order)),
  ];
  assertEquals(first.value, [orderBefore[0], whole[0]]);
  host.contents.delete("/a");
  await iterator.restore(state).then(() => assert(false, "restored without its file"), () => {});
  assertEquals(await Array.fromAsync(open(lines)), whole);
  assertEquals(await Array.fromAsync(open(order)), orderBefore);
  assertEquals((await iterator.next()).value, [orderBefore[1], whole[1]]);
});

Deno.test("a failing restore leaves the cache of a dataset that functions give", async () => {
  const host = new MemoryHost(FILES);
  const lines = Dataset.textLines("/a").cache();
  const open = (dataset: Dataset<unknown>) => openIterator(dataset.node, { host });
  const dataset = Dataset.range(2).flatMap(() => lines);
  await using saver = open(dataset);
  await saver.next();
  const state = await saver.save();
  const whole = await Array.fromAsync(open(lines));
  host.contents.delete("/a");
  await using iterator = open(dataset);
  await iterator.restore(state).then(() => assert(false, "restored without its file"), () => {});
  assertEquals(await Array.fromAsync(iterator), [...whole, ...whole]);
});
