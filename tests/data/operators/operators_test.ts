/** Operators that select, order, join and repeat elements. */

import {
  assert,
  assertEquals,
  assertNotEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";
import { LeatError } from "../../../core/error.ts";
import { Dataset, TensorSpec, UNKNOWN_CARDINALITY } from "../../../data/mod.ts";
import { assertCheckpointLaw } from "../lib/checkpoint_law.ts";
import { collect, collectWithErrors, failingOn, rounds } from "../lib/collect.ts";
import { itemsMoved } from "../lib/items_moved.ts";

const slow = <T>(dataset: Dataset<T>) =>
  dataset.map(async (x) => {
    await rounds(1);
    return x;
  });

Deno.test("filter keeps the elements for which the predicate is true, synchronous or not", async () => {
  assertEquals(await collect(Dataset.range(5).filter((x) => x % 2 === 1)), [1, 3]);
  assertEquals(await collect(Dataset.range(4).filter((x) => Promise.resolve(x > 1))), [2, 3]);
  assertEquals(await collect(slow(Dataset.range(4)).filter((x) => x > 1)), [2, 3]);
  assertEquals(Dataset.range(5).filter(() => true).cardinality(), UNKNOWN_CARDINALITY);
});

Deno.test("filter refuses results other than booleans; an error loses its element", async () => {
  const odd = Dataset.range(2).filter(((x: number) => x) as never);
  assertEquals(await collectWithErrors(odd), ["error invalid_argument", "error invalid_argument"]);
  const failing = Dataset.range(4).filter((x) => failingOn(1)(x) !== 2);
  assertEquals(await collectWithErrors(failing), [0, "error data_loss", 3]);
});

Deno.test("flatMap reads one dataset after the other", async () => {
  const dataset = Dataset.range(4).flatMap((n, { Dataset }) => Dataset.range(n));
  assertEquals(await collect(dataset), [0, 0, 1, 0, 1, 2]);
  assertEquals(await collect(slow(Dataset.range(3)).flatMap((n) => slow(Dataset.range(n)))), [
    0,
    0,
    1,
  ]);
});

Deno.test("flatMap: a function's error loses its element, an inner error the inner element", async () => {
  const dataset = Dataset.range(4).map(failingOn(1))
    .flatMap((n) => Dataset.range(n).map(failingOn(1)));
  assertEquals(await collectWithErrors(dataset), [
    "error data_loss",
    0,
    "error data_loss",
    0,
    "error data_loss",
    2,
  ]);
  const wrong = Dataset.range(1).flatMap((() => 5) as never);
  assertEquals(await collectWithErrors(wrong), ["error invalid_argument"]);
});

const letters = (...words: string[]) =>
  Dataset.from(words).interleave((word) => Dataset.from(word), { cycleLength: 2 });

Deno.test("interleave is round-robin, and opens a dataset only when its turn comes", async () => {
  assertEquals((await collect(letters("aaa", "b", "cc", "d"))).join(""), "abaaccd");
  const counts = Dataset.from([4, 5, 6, 4, 5, 6])
    .interleave((n) => Dataset.from([n]).repeat(n), { cycleLength: 2 });
  assertEquals((await collect(counts.take(21))).join(""), "454545455664646464656");
  const blocks = Dataset.from(["aaa", "b", "cc"])
    .interleave((word) => Dataset.from(word), { cycleLength: 2, blockLength: 2 });
  assertEquals((await collect(blocks)).join(""), "aabacc");
});

Deno.test("interleave has four datasets open by default, wherever it runs", async () => {
  const words = ["aa", "bb", "cc", "dd", "ee"];
  const dataset = Dataset.from(words).interleave((word) => slow(Dataset.from(word)));
  assertEquals((await collect(dataset)).join(""), "abcdabcdee");
});

Deno.test("interleave continues after an inner error, which uses up its turn", async () => {
  const dataset = Dataset.from([0, 10]).interleave(
    (from) => Dataset.range(from, from + 2).map(failingOn(0)),
    { cycleLength: 2 },
  );
  assertEquals(await collectWithErrors(dataset), ["error data_loss", 10, 1, 11]);
});

Deno.test("take and skip count elements, not errors, and -1 is all", async () => {
  const dataset = Dataset.range(5).map(failingOn(1));
  assertEquals(await collectWithErrors(dataset.take(2)), [0, "error data_loss", 2]);
  assertEquals(await collectWithErrors(dataset.skip(2)), ["error data_loss", 3, 4]);
  assertEquals(await collect(Dataset.range(3).take(-1)), [0, 1, 2]);
  assertEquals(await collect(Dataset.range(3).skip(-1)), []);
  assertEquals(await collect(Dataset.range(3).take(0)), []);
  assertEquals(await collect(slow(Dataset.range(3)).skip(2)), [2]);
  assertEquals(Dataset.range(9).repeat().take(4).cardinality(), 4);
  assertEquals(Dataset.range(9).repeat().skip(4).cardinality(), Infinity);
});

Deno.test("take releases its input with its last element", async () => {
  let ended = false;
  const dataset = Dataset.fromGenerator(function* () {
    try {
      yield* [1, 2, 3];
    } finally {
      ended = true;
    }
  }).take(2);
  const iterator = dataset.iterator();
  await iterator.next();
  assertEquals(ended, false);
  await iterator.next();
  assertEquals(ended, true);
});

Deno.test("shard takes every n-th element and refuses an invalid index", async () => {
  assertEquals(await collect(Dataset.range(7).shard(3, 1)), [1, 4]);
  assertEquals(Dataset.range(7).shard(3, 0).cardinality(), 3);
  for (const [count, index] of [[3, 3], [3, -1], [0, 0]] as const) {
    assertThrows(() => Dataset.range(7).shard(count, index), LeatError);
  }
});

Deno.test("repeat repeats, and ends at once over an empty input", async () => {
  assertEquals(await collect(Dataset.range(2).repeat(2)), [0, 1, 0, 1]);
  assertEquals(await collect(Dataset.range(2).repeat(0)), []);
  assertEquals(await collect(Dataset.range(2).repeat().take(3)), [0, 1, 0]);
  assertEquals(await collect(Dataset.range(0).repeat()), []);
  assertEquals(await collect(Dataset.range(9).filter(() => false).repeat()), []);
  assertEquals(await collect(slow(Dataset.range(0)).repeat()), []);
  let passes = 0;
  const emptyAtFirst = Dataset.fromGenerator(function* () {
    if (passes++ > 0) yield passes;
  });
  assertEquals(await collect(emptyAtFirst.repeat(3)), [2, 3]);
  assertEquals(await collect(Dataset.range(0).repeat(2 ** 40)), []);
  assertEquals(Dataset.range(2).repeat().cardinality(), Infinity);
  assertEquals(Dataset.range(2).filter(() => true).repeat().cardinality(), Infinity);
  assertEquals(Dataset.range(0).repeat().cardinality(), 0);
});

Deno.test("repeat over only errors repeats the errors", async () => {
  const dataset = Dataset.range(1).map(failingOn(0)).repeat(2);
  assertEquals(await collectWithErrors(dataset), ["error data_loss", "error data_loss"]);
});

Deno.test("shuffle gives every element once, and none before the buffer allows", async () => {
  const order = await collect(Dataset.range(50).shuffle(5, { seed: 1 })) as number[];
  assertEquals(order.toSorted((a, b) => a - b), await collect(Dataset.range(50)));
  assertNotEquals(order, order.toSorted((a, b) => a - b));
  order.forEach((element, position) => assertEquals(element <= position + 4, true));
  assertEquals(await collect(Dataset.range(9).shuffle(1)), await collect(Dataset.range(9)));
});

Deno.test("shuffle reshuffles each epoch and repeats from run to run with a seed", async () => {
  const epochs = async (dataset: Dataset<number>) => {
    const all = await collect(dataset.repeat(2)) as number[];
    return [all.slice(0, 10), all.slice(10)];
  };
  const reshuffled = await epochs(Dataset.range(10).shuffle(10, { seed: 1 }));
  assertNotEquals(reshuffled[0], reshuffled[1]);
  assertEquals(await epochs(Dataset.range(10).shuffle(10, { seed: 1 })), reshuffled);
  const [first, second] = await epochs(
    Dataset.range(10).shuffle(10, { seed: 1, reshuffleEachIteration: false }),
  );
  assertEquals(first, second);
});

Deno.test("iterating again reshuffles, unless configured otherwise", async () => {
  const dataset = Dataset.range(20).shuffle(20, { seed: 1 });
  assertNotEquals(await collect(dataset), await collect(dataset));
  const fixed = Dataset.range(20).shuffle(20, { reshuffleEachIteration: false });
  assertEquals(await collect(fixed), await collect(fixed));
});

Deno.test("two shuffles of one seed agree, without seeds they differ, and options seed all", async () => {
  const order = (seed?: number) => collect(Dataset.range(20).shuffle(20, { seed }));
  assertEquals(await order(5), await order(5));
  assertNotEquals(await order(), await order());
  const seeded = () => collect(Dataset.range(20).shuffle(20).withOptions({ seed: 5 }));
  assertEquals(await seeded(), await seeded());
});

Deno.test("shuffle keeps epochs apart before repeat and mixes them after", async () => {
  const apart = await collect(Dataset.range(5).shuffle(9, { seed: 1 }).repeat(2)) as number[];
  assertEquals(new Set(apart.slice(0, 5)).size, 5);
  const mixed = await collect(Dataset.range(100).repeat(2).shuffle(200, { seed: 1 })) as number[];
  assertNotEquals(new Set(mixed.slice(0, 100)).size, 100);
});

Deno.test("shuffle keeps its buffer when an element fails", async () => {
  const dataset = Dataset.range(6).map(failingOn(2)).shuffle(4, { seed: 1 });
  const answers = await collectWithErrors(dataset);
  assertEquals(answers[0], "error data_loss");
  assertEquals(answers.slice(1).toSorted(), [0, 1, 3, 4, 5]);
});

Deno.test("cache reads its input once if the pass is complete", async () => {
  let calls = 0;
  const dataset = Dataset.range(3).map((x) => (calls++, x)).cache();
  await collect(dataset.take(2));
  assertEquals(calls, 2);
  assertEquals(await collect(dataset), [0, 1, 2]);
  assertEquals(calls, 5);
  assertEquals(await collect(dataset.repeat(2)), [0, 1, 2, 0, 1, 2]);
  assertEquals(calls, 5);
});

Deno.test("cache does not keep a pass with an error", async () => {
  let fails = true;
  const dataset = Dataset.range(2).map((x) => {
    if (fails && x === 1) throw new Error("once");
    return x;
  }).cache();
  assertEquals(await collectWithErrors(dataset), [0, "error unknown"]);
  fails = false;
  assertEquals(await collect(dataset), [0, 1]);
});

Deno.test("prefetch reads n ahead and no further", async () => {
  for (const n of [0, 1, 3]) {
    let pulled = 0;
    const count = (x: number) => (pulled++, x);
    for (const input of [Dataset.range(20).map(count), slow(Dataset.range(20).map(count))]) {
      pulled = 0;
      await using iterator = input.prefetch(n).iterator();
      assertEquals((await iterator.next()).value, 0);
      await rounds(30);
      assertEquals(pulled, n + 1);
    }
  }
});

Deno.test("prefetch keeps order, errors and the end", async () => {
  for (const input of [Dataset.range(5), slow(Dataset.range(5))]) {
    const dataset = input.map(failingOn(2)).prefetch(2);
    assertEquals(await collectWithErrors(dataset), [0, 1, "error data_loss", 3, 4]);
  }
});

Deno.test("prefetch moves no elements that it holds when it gives one", async () => {
  const count = 2_000;
  let read = 0;
  await using iterator = Dataset.range(count).map((x) => (read++, x)).prefetch(count).iterator();
  await iterator.next();
  while (read < count) await rounds(1);
  const rest: number[] = [];
  const moved = await itemsMoved(async () => {
    for await (const x of iterator) rest.push(x);
  });
  assertEquals(rest, Array.from({ length: count - 1 }, (_, i) => i + 1));
  assert(moved <= 10 * count, `${moved} items`);
});

Deno.test("zip ends with the shortest and keeps the structure it was given", async () => {
  const [three, two] = [Dataset.range(3), Dataset.from(["a", "b"])];
  assertEquals(await collect(three.zip(two)), [[0, "a"], [1, "b"]]);
  assertEquals(await collect(Dataset.zip({ x: three.map((x) => Promise.resolve(x)), y: two })), [
    { x: 0, y: "a" },
    { x: 1, y: "b" },
  ]);
  assertEquals(Dataset.zip([three, two]).cardinality(), 2);
  assertThrows(() => Dataset.zip([]), LeatError);
});

Deno.test("zip accepts datasets as arguments, and says how to write one alone", async () => {
  const [three, two] = [Dataset.range(3), Dataset.from(["a", "b"])];
  const texts = Dataset.zip(three, two, three).map(([x, y, z]) => y.repeat(x) + (x + z));
  assertEquals(await collect(texts), ["0", "b2"]);
  const { message } = assertThrows(() => Dataset.zip(three as never), LeatError);
  assertEquals(
    message,
    "zip: datasets must be at least two, as in Dataset.zip(a, b), or an array or object of them, got Dataset",
  );
});

Deno.test("zip accepts nested arrays and objects of datasets, such as windows", async () => {
  const three = Dataset.range(3);
  const nested = Dataset.zip({ x: three, rest: [three.skip(1), { z: Dataset.from("abc") }] });
  const sums = nested.map(({ x, rest: [y, { z }] }) => `${x + y}${z}`);
  assertEquals(await collect(sums), ["1a", "3b"]);
  const windows = nested.window(2).flatMap((window, { Dataset }) => Dataset.zip(window).batch(2));
  assertEquals((await collect(windows)).length, 1);
  await assertCheckpointLaw(() => nested.shuffle(2).repeat(2));
  for (const wrong of [{ x: three, y: {} }, { x: [three, 5] }, [three, new Map()], three]) {
    const error = assertThrows(() => Dataset.zip(wrong as never), LeatError);
    assertEquals(error.code, "invalid_argument");
  }
});

Deno.test("zip reads the end of every input, so caches of equal length are complete", async () => {
  for (const later of [false, true]) {
    let calls = 0;
    const cached = () => {
      return Dataset.range(3).map((x) => (calls++, later ? Promise.resolve(x) : x)).cache();
    };
    const dataset = Dataset.zip([cached(), Dataset.from("abc"), cached()]);
    for (let epoch = 0; epoch < 3; epoch++) assertEquals((await collect(dataset)).length, 3);
    assertEquals(calls, 6);
  }
});

Deno.test("zip pulls longer inputs once at its end, and drops their failures", async () => {
  for (const [first, second] of [[true, false], [false, true]]) {
    const pulled = [0, 0];
    const long = (index: number, later = false) =>
      Dataset.range(9).map((x) => {
        pulled[index]!++;
        if (x === 2) throw new Error("too late");
        return later ? Promise.resolve(x) : x;
      });
    const dataset = Dataset.zip([long(0, first), Dataset.from("ab"), long(1, second)]);
    assertEquals(await collect(dataset), [[0, "a", 0], [1, "b", 1]]);
    assertEquals(pulled, [3, 3]);
  }
});

Deno.test("zip advances all inputs past an element that fails in one", async () => {
  const dataset = Dataset.zip([Dataset.range(3).map(failingOn(1)), Dataset.range(3)]);
  assertEquals(await collectWithErrors(dataset), [[0, 0], "error data_loss", [2, 2]]);
});

Deno.test("concatenate joins, and refuses elements of another structure", async () => {
  assertEquals(await collect(Dataset.range(2).concatenate(slow(Dataset.range(1)))), [0, 1, 0]);
  const error = assertThrows(
    () => Dataset.range(2).concatenate(Dataset.from([{ x: 1 }])),
    LeatError,
  );
  assertStringIncludes(error.message, "differ at $: float64 and an object of {x}");
});

Deno.test("enumerate numbers elements from start", async () => {
  assertEquals(await collect(Dataset.from(["a", "b"]).enumerate(5)), [[5, "a"], [6, "b"]]);
});

Deno.test("groupByWindow flushes full windows immediately, and the rest in numeric order", async () => {
  const dataset = Dataset.from([3, -10, 2, 3, 12, -1]).groupByWindow({
    key: (x) => x,
    reduce: (key, window) => window.batch(9).map((batch) => [key, batch.size]),
    windowSize: 2,
  });
  assertEquals(await collect(dataset), [[3, 2], [-10, 1], [-1, 1], [2, 1], [12, 1]]);
});

Deno.test("groupByWindow's window may be iterated twice, and its size depend on the key", async () => {
  const dataset = Dataset.range(6).groupByWindow({
    key: (x) => Promise.resolve(x % 2),
    reduce: (_key, window) => window.concatenate(window),
    windowSize: (key) => key + 1,
  });
  assertEquals(await collect(dataset), [0, 0, 2, 2, 1, 3, 1, 3, 4, 4, 5, 5]);
});

Deno.test("groupByWindow refuses sizes below one and keys that are not integers", async () => {
  const group = (key: number, windowSize: number | (() => number)) =>
    Dataset.range(1).groupByWindow({ key: () => key, reduce: (_, window) => window, windowSize });
  assertThrows(() => group(0, 0), LeatError);
  assertEquals(await collectWithErrors(group(0, () => 0)), ["error invalid_argument"]);
  assertEquals(await collectWithErrors(group(0.5, 1)), ["error invalid_argument"]);
});

Deno.test("reduce folds all elements and rejects at the first error", async () => {
  assertEquals(await Dataset.range(5).reduce(0, (sum, x) => sum + x), 10);
  assertEquals(await slow(Dataset.range(3)).reduce("", async (all, x) => await (all + x)), "012");
  const endless = Dataset.range(3).repeat().reduce(0, (sum, x) => sum + x);
  await assertRejects(() => endless, LeatError, "reduce: the dataset is endless");
  const failing = Dataset.range(3).map(failingOn(1)).reduce(0, (sum, x) => sum + x);
  assertEquals(await failing.catch((error) => error.code), "data_loss");
});

Deno.test("apply returns its function's result, which must be a dataset", async () => {
  assertEquals(await collect(Dataset.range(3).apply((d) => d.take(1))), [0]);
  assertThrows(() => Dataset.range(3).apply((() => 5) as never), LeatError);
});

Deno.test("withOptions does not change random numbers, wherever and however often it is used", async () => {
  type Step = (dataset: Dataset<unknown>) => Dataset<unknown>;
  const steps: Step[] = [
    (dataset) => dataset.shuffle(8),
    (dataset) => dataset.map((x, { random }) => [x, random.next()]),
    (dataset) => Dataset.sampleFromDatasets([dataset, Dataset.range(5).shuffle(5)]),
    (dataset) => dataset.filter((_, { random }) => random.next() < 0.8),
  ];
  const withOptionsAfter = (places: readonly number[]) => {
    let dataset: Dataset<unknown> = Dataset.range(20);
    for (const [i, step] of steps.entries()) {
      if (places.includes(i)) dataset = dataset.withOptions({ deterministic: true });
      dataset = step(dataset);
    }
    return collect(dataset.withOptions({ seed: 7 }));
  };
  const wanted = await withOptionsAfter([]);
  for (const places of [[0], [1], [2], [3], [0, 1, 2, 3]]) {
    assertEquals(await withOptionsAfter(places), wanted, `before steps ${places}`);
  }
});

Deno.test("random numbers inside flatMap differ by element and repeat by seed", async () => {
  const dataset = Dataset.range(3).flatMap((_, { Dataset }) =>
    Dataset.range(4).map((_, { random }) => random.int(1_000_000))
  ).withOptions({ seed: 9 });
  const first = await collect(dataset);
  assertEquals(new Set(first).size, 12);
  const again = Dataset.range(3).flatMap((_, { Dataset }) =>
    Dataset.range(4).map((_, { random }) => random.int(1_000_000))
  ).withOptions({ seed: 9 });
  assertEquals(await collect(again), first);
});

Deno.test("groupByWindow treats -0 as 0", async () => {
  const windows = Dataset.from([-0, 0]).groupByWindow({
    key: (x) => x,
    reduce: (key, window) => window.map(() => 1 / key),
    windowSize: 1,
  });
  assertEquals(await collect(windows), [Infinity, Infinity]);
});

Deno.test("interleave skips empty slots", async () => {
  const words = Dataset.from(["ab", "c", "de"]).interleave((word, { Dataset }) => {
    return Dataset.from(word);
  }, { cycleLength: 2 ** 40 });
  assertEquals((await collect(words)).join(""), "acdbe");
});

Deno.test("operators with a spec refuse an invalid one", () => {
  const numbers = Dataset.range(1);
  const spec = { x: "float32" } as unknown as TensorSpec;
  assertThrows(() => numbers.map((x) => x, { spec }), LeatError, "map: spec must be");
  assertThrows(() => numbers.flatMap(() => numbers, { spec }), LeatError, "flatMap: spec must be");
  assertThrows(
    () => numbers.interleave(() => numbers, { spec }),
    LeatError,
    "interleave: spec must",
  );
  assertThrows(() => new TensorSpec("float" as "float32", []), LeatError, "TensorSpec: dtype");
  assertThrows(() => new TensorSpec("float32", [-1]), LeatError, "TensorSpec: shape");
});

Deno.test("take and skip divide what a shuffle with a seed of its own gives, whatever follows", async () => {
  const all = Dataset.range(100).shuffle(100, { seed: 7, reshuffleEachIteration: false });
  const training = all.take(80).map((x) => x).prefetch(2).withOptions({ seed: 1 });
  const validation = all.skip(80).withOptions({ seed: 1 });
  const both = [...await collect(training), ...await collect(validation)];
  assertEquals(new Set(both).size, 100);
});

Deno.test("withOptions in a dataset that a function returns does not seed its operators", async () => {
  const orders = (own: number, seed: number) =>
    collect(
      Dataset.range(1).flatMap(
        (_, { Dataset, own }) => Dataset.range(20).shuffle(20).withOptions({ seed: own }),
        { captures: { own } },
      ).withOptions({ seed }),
    );
  assertEquals(await orders(1, 5), await orders(2, 5));
  assertNotEquals(await orders(1, 5), await orders(1, 6));
});

Deno.test("cache keeps a pass that take ends early only if it was read to its end", async () => {
  const drawn = () => Dataset.range(12).map((_, { random }) => random.next());
  const distinctIn = async (numbers: Dataset<number>) =>
    new Set(await collect(numbers.repeat(2).withOptions({ seed: 1 }))).size;
  const left = await distinctIn(drawn().cache().take(8));
  const readOn = await distinctIn(drawn().cache().shuffle(13, { seed: 1 }).take(8));
  assertEquals(left, 16);
  assert(readOn <= 12, `${readOn}`);
  for (const n of [1, 20]) {
    assertEquals(await distinctIn(drawn().take(8).cache().prefetch(n)), 8);
  }
});
