/** Reading in blocks gives the same as reading elements one by one. */

import { assert, assertEquals } from "../../assert.ts";
import { LeatError } from "../../../core/error.ts";
import { rootContext } from "../../../data/root_context.ts";
import { END, NO_BLOCK } from "../../../data/iterator.ts";
import { Dataset, type DatasetIterator } from "../../../data/mod.ts";
import { collect, collectWithErrors, failingOn, turn } from "../lib/collect.ts";

/** Everything a dataset gives, read in blocks of `count` where possible; 0: never. */
async function byBlocks(dataset: Dataset<unknown>, count: number): Promise<unknown[]> {
  const iterator = rootContext(dataset.node, { seed: 7n }).makeIterator();
  const given: unknown[] = [];
  const into: unknown[] = [];
  for (;;) {
    const length = count === 0 ? NO_BLOCK : iterator.nextBlock(into, count);
    assert(length <= count);
    if (length !== NO_BLOCK) {
      given.push(...into.slice(0, length));
      continue;
    }
    try {
      const element = await iterator.next();
      if (element === END) return given;
      given.push(element);
    } catch (error) {
      given.push(`error ${LeatError.from(error).code}`);
    }
  }
}

const THOUSAND = Dataset.range(1000);

const PIPELINES: Record<string, Dataset<unknown>> = {
  range: Dataset.range(7, -500, -3),
  fractions: Dataset.range(0.1, 60, 0.1),
  from: Dataset.from(Array.from({ length: 300 }, (_, i) => ({ i }))),
  map: THOUSAND.map((x) => x * 0.5),
  "map that fails": THOUSAND.map(failingOn(0, 1, 50, 333, 334, 999)),
  "map of a failing map": THOUSAND.map(failingOn(70, 71)).map(failingOn(5, 69, 72)),
  "map that waits at times": THOUSAND.map((x) => x % 97 === 5 ? turn().then(() => x) : x),
  "map with index and random values": THOUSAND.map((
    x,
    { index, random },
  ) => [x, index, random.int(1000)]),
  filter: THOUSAND.filter((x) => x % 3 !== 0),
  "filter that holds for nothing": THOUSAND.filter(() => false),
  "filter that fails": THOUSAND.filter((x) => failingOn(3, 400, 401)(x) % 2 === 0),
  "filter that answers wrongly at times": THOUSAND.filter((x) =>
    x % 100 === 40 ? 1 as unknown as boolean : x % 2 === 0
  ),
  "filter that waits at times": THOUSAND.filter((x) =>
    x % 211 === 9 ? turn().then(() => true) : true
  ),
  "filters of filters of maps": THOUSAND.map((x) => x + 1).filter((x) => x % 2 === 0)
    .map(failingOn(100)).filter((x) => x % 5 !== 0),
  "take and skip": THOUSAND.map((x) => x).skip(37).take(400).map((x) => -x),
  repeat: Dataset.range(45).map((x) => x).repeat(9).map(failingOn(44)),
  concatenate: THOUSAND.concatenate(THOUSAND.map(failingOn(2))),
  "cache, twice": THOUSAND.map((x) => x).cache().repeat(2),
};

for (const [name, dataset] of Object.entries(PIPELINES)) {
  Deno.test(`blocks give the same as single elements: ${name}`, async () => {
    const singly = await byBlocks(dataset, 0);
    for (const count of [1, 2, 13, 128, 5000]) {
      assertEquals(await byBlocks(dataset, count), singly, `${name} by ${count}`);
    }
  });
}

Deno.test("a block ends before an element whose memory was transferred, which fails once", async () => {
  for (const isCached of [false, true]) {
    const kept = Array.from({ length: 100 }, (_, i) => Float32Array.of(i));
    const source = Dataset.from(kept);
    const dataset = isCached ? source.cache() : source;
    await Array.fromAsync(dataset);
    structuredClone(kept[70], { transfer: [kept[70]!.buffer] });
    const singly = await byBlocks(dataset, 0);
    assertEquals(singly.indexOf("error failed_precondition"), 70);
    for (const count of [1, 70, 71, 500]) assertEquals(await byBlocks(dataset, count), singly);
    const others = dataset.map(([x]) => x!).ignoreErrors().batch(64);
    await using iterator = others.iterator();
    const read = (await Array.fromAsync(iterator)).flatMap(({ data }) => [...data as Float64Array]);
    assertEquals(read, (await collect(Dataset.range(100))).toSpliced(70, 1));
    assertEquals(iterator.stats()[3]!.errors, 1);
  }
});

Deno.test("a batch reads and calls no further than its own elements", async () => {
  const called: number[] = [];
  const iterator = Dataset.range(5000).map((x) => (called.push(x), x)).filter((x) => x % 3 === 0)
    .batch(200).iterator();
  for (const batches of [1, 2, 3]) {
    await iterator.next();
    assertEquals(called.length, (batches * 200 - 1) * 3 + 1);
  }
  await iterator.return();
});

Deno.test("a function that disposes its iterator within a block is not called again", async () => {
  let calls = 0;
  let iterator: DatasetIterator<unknown> | undefined;
  const callsUntilDisposed = (x: number) => {
    if (++calls === 500) iterator?.return();
    return x >= 0;
  };
  const numbers = Dataset.range(5000);
  for (const dataset of [numbers.map(callsUntilDisposed), numbers.filter(callsUntilDisposed)]) {
    calls = 0;
    iterator = dataset.batch(5000).iterator();
    assertEquals(await iterator.next(), { done: true, value: undefined });
    assertEquals(calls, 500);
    assertEquals(await iterator.next(), { done: true, value: undefined });
  }
});

Deno.test("a batch keeps the elements of a block after one that does not fit", async () => {
  const odd = Dataset.range(3000).map((x) => x % 1000 === 900 ? "odd" : x).batch(1500);
  const answers = await collectWithErrors(odd);
  assertEquals(answers.filter((answer) => typeof answer === "string"), [
    "error invalid_argument",
    "error invalid_argument",
    "error invalid_argument",
  ]);
  const kept = answers.filter((answer) => Array.isArray(answer)).flat();
  assertEquals(kept, await collect(Dataset.range(3000).filter((x) => x % 1000 !== 900)));
});

Deno.test("batches of structured elements are read in blocks, too", async () => {
  const rows = Dataset.range(700).map((x) => ({ x, odd: x % 2 === 1, name: `${x}` })).batch(300);
  const [first, , last] = await collect(rows) as { x: number[]; odd: boolean[]; name: string[] }[];
  assertEquals(first!.x, Array.from({ length: 300 }, (_, i) => i));
  assertEquals(last!.name.at(-1), "699");
  assertEquals(last!.odd.slice(-2), [false, true]);
});
