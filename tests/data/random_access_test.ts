/** `at` and `globalShuffle`: elements by number. */

import { Permutation } from "../../data/random/permutation.ts";
import { RandomStream } from "../../core/philox.ts";
import { END } from "../../data/iterator.ts";
import { openIterator } from "../../data/dataset_iterator.ts";
import { Dataset, LeatError, tensor } from "../../mod.ts";
import { assert, assertEquals, assertNotEquals, assertRejects, assertThrows } from "../assert.ts";
import { assertCheckpointLaw } from "./lib/checkpoint_law.ts";
import { collect, collectWithErrors, failingOn, plain } from "./lib/collect.ts";

const range = (n: number) => Dataset.range(n);

/** All datasets with random access. */
const DATASETS: Record<string, () => Dataset<unknown>> = {
  range: () => Dataset.range(2, 20, 3),
  from: () => Dataset.from(["a", "b", "c"]),
  fromTensors: () => Dataset.fromTensors([1, 2]),
  fromTensorSlices: () => Dataset.fromTensorSlices({ x: [[1, 2], [3, 4]], y: ["a", "b"] }),
  map: () => range(5).map((x, { index, random }) => [x, index, random.int(1000)]),
  mapLater: () => range(5).map((x) => Promise.resolve(x * 2), { numParallelCalls: 2 }),
  take: () => range(5).take(3),
  takeAll: () => range(5).take(-1),
  skip: () => range(5).map((x, { index }) => [x, index]).skip(2),
  shard: () => range(11).shard(3, 1),
  repeat: () => range(3).map((x, { random }) => [x, random.int(1000)]).repeat(3),
  zip: () => Dataset.zip({ a: range(5), b: Dataset.from("abc") }),
  concatenate: () => range(3).concatenate(range(2)).concatenate(range(4)),
  enumerate: () => Dataset.from("abc").enumerate(7),
  select: () => range(5).map((x) => ({ x, y: -x })).select(["y"]),
  prefetch: () => range(3).prefetch(2),
  withOptions: () => range(3).withOptions({ deterministic: false }),
  globalShuffle: () => range(9).globalShuffle(),
  globalShuffleTwice: () => range(9).map((x) => -x).globalShuffle().globalShuffle().take(4),
};

Deno.test("at gives every element of an iteration, by its index", async () => {
  for (const [name, make] of Object.entries(DATASETS)) {
    const dataset = make().withOptions({ seed: 5 });
    const wanted = await collect(make().withOptions({ seed: 5 }));
    assertEquals(dataset.cardinality(), wanted.length, name);
    for (let i = wanted.length - 1; i >= 0; i--) {
      assertEquals(plain(await dataset.at(i)), wanted[i], `${name} at ${i}`);
    }
  }
});

Deno.test("at refuses numbers out of range, and datasets without random access", async () => {
  for (const index of [-1, 3, 1e9]) {
    const error = await assertRejects(() => range(3).at(index), LeatError);
    assertEquals(error.code, "out_of_range");
  }
  for (const index of [0.5, NaN, "1" as never]) {
    await assertRejects(() => range(3).at(index), LeatError, "at: index must be an integer");
  }
  const iterated = [
    range(3).filter(() => true),
    range(3).repeat(),
    range(3).batch(1),
    range(3).shuffle(2),
    range(3).cache(),
    Dataset.counter(),
    range(3).concatenate(range(3).unique()),
    Dataset.zip([range(3), range(3).scan(0, (s, x) => [s, x])]),
  ];
  for (const dataset of iterated) {
    const error = await assertRejects(() => dataset.at(0), LeatError, "has no random access");
    assertEquals(error.code, "failed_precondition");
    assertThrows(() => dataset.globalShuffle(), LeatError, "globalShuffle: ");
  }
});

Deno.test("at rejects with the element's own error", async () => {
  const dataset = range(3).map(failingOn(1));
  assertEquals((await assertRejects(() => dataset.at(1), LeatError)).code, "data_loss");
  assertEquals(await dataset.at(2), 2);
});

Deno.test("a permutation has every index once, for any length", () => {
  for (const count of [1, 2, 3, 5, 8, 9, 100, 1023, 1024, 1025]) {
    for (const seed of [1, 2, 3]) {
      const permutation = new Permutation(count, new RandomStream(seed));
      const all = Array.from({ length: count }, (_, i) => permutation.at(i));
      assertEquals(all.toSorted((a, b) => a - b), Array.from({ length: count }, (_, i) => i));
    }
  }
});

Deno.test("permutations put every index at every position, and neighbours at every distance, equally often", () => {
  for (const count of [2, 3, 5, 8, 13]) {
    const tries = 400 * count;
    const places = new Map<string, number>();
    for (let seed = 0; seed < tries; seed++) {
      const permutation = new Permutation(count, new RandomStream(seed));
      for (let i = 0; i < count; i++) {
        const place = `${i} at ${permutation.at(i)}`;
        const step = `next ${
          ((permutation.at(i) - permutation.at((i + 1) % count)) + count) % count
        }`;
        for (const key of [place, step]) places.set(key, (places.get(key) ?? 0) + 1);
      }
    }
    for (const [what, found] of places) {
      // A step occurs `count` times per try, and is never 0.
      const wanted = what.startsWith("next") ? tries * count / (count - 1) : tries / count;
      assert(Math.abs(found - wanted) < 6 * Math.sqrt(wanted), `${what} of ${count}: ${found}`);
    }
  }
});

Deno.test("a permutation of 2^53 - 1 stays within it", () => {
  const count = Number.MAX_SAFE_INTEGER;
  const permutation = new Permutation(count, new RandomStream(1));
  const found = [0, 1, 2 ** 31, 2 ** 52, count - 1].map((i) => permutation.at(i));
  assertEquals(new Set(found).size, 5);
  for (const at of found) assert(Number.isSafeInteger(at) && at >= 0 && at < count, String(at));
  assert(found.some((at) => at > 2 ** 50));
});

Deno.test("globalShuffle gives every element once, in an order over the whole dataset", async () => {
  const order = await collect(range(1000).globalShuffle({ seed: 1 })) as number[];
  assertEquals(order.toSorted((a, b) => a - b), await collect(range(1000)));
  // The first hundred of a buffered shuffle would all be early ones.
  const early = order.slice(0, 100).filter((x) => x < 500).length;
  assert(early > 25 && early < 75, `${early} of the first hundred are early`);
  assertEquals(await collect(range(0).globalShuffle()), []);
  const dataset = range(6).map(failingOn(2)).globalShuffle({ seed: 1 });
  assertEquals((await collectWithErrors(dataset)).toSorted(), [0, 1, 3, 4, 5, "error data_loss"]);
});

Deno.test("globalShuffle reshuffles like shuffle", async () => {
  const seeded = () => range(20).globalShuffle({ seed: 3 });
  const first = await collect(seeded());
  assertEquals(await collect(seeded()), first);
  assertNotEquals(await collect(range(20).globalShuffle({ seed: 4 })), first);
  const one = seeded();
  assertEquals(await collect(one), first);
  const second = await collect(one);
  assertNotEquals(second, first);
  assertEquals(await collect(seeded().repeat(2)), [...first, ...second]);
  const fixed = range(20).globalShuffle({ reshuffleEachIteration: false });
  assertEquals(await collect(fixed), await collect(fixed));
  assertNotEquals(
    await collect(range(20).globalShuffle()),
    await collect(range(20).globalShuffle()),
  );
});

Deno.test("globalShuffle continues from every checkpoint, which is a position", async () => {
  await assertCheckpointLaw(() => range(7).globalShuffle());
  await assertCheckpointLaw(() => range(5).globalShuffle({ seed: 1 }).repeat(2).shuffle(3));
  const make = () =>
    range(6).map((x, { random }) => failingOn(4)(x) + random.int(9)).globalShuffle().map((x) =>
      Promise.resolve(x)
    );
  await assertCheckpointLaw(make);
  const dataset = range(6).globalShuffle({ reshuffleEachIteration: false });
  await using iterator = dataset.iterator();
  await iterator.next();
  const state = await iterator.save();
  const other = range(6).globalShuffle({ reshuffleEachIteration: false });
  await using restored = other.iterator();
  await restored.restore(state);
  assertEquals(await Array.fromAsync(restored), await Array.fromAsync(iterator));
  assertEquals(await collect(other), await collect(dataset)); // and later iterations too
  const rows = tensor(new Uint8Array(1 << 20), { shape: [1 << 10, 1 << 10] });
  await using large = Dataset.fromTensorSlices(rows).globalShuffle().shuffle(100).iterator();
  await large.next();
  assert((await large.save()).length < 10_000);
});

Deno.test("tasks that share a globalShuffle read one permutation", async () => {
  const make = () => range(50).map((x, { random }) => [x, random.int(1e6)]).globalShuffle();
  const whole = await Array.fromAsync(openIterator(make().node, { seed: 9n, epoch: 2 }));
  const runs = [[0, 20], [20, 21], [21, 50]] as const;
  const parts: unknown[] = [];
  for (const [split, [start, stop]] of runs.entries()) {
    const handed = [{ start, stop }];
    parts.push(
      ...await Array.fromAsync(openIterator(make().node, {
        seed: 9n,
        epoch: 2,
        split: split + 1,
        splits: {
          next: () => Promise.resolve(handed.pop() ?? END),
          total: () => Promise.resolve(3),
        },
      })),
    );
  }
  assertEquals(parts, whole);
});
