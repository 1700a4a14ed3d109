/** Splits: how sources are cut, who reads what, and what repeat makes of it. */

import { assert, assertEquals, assertNotEquals, assertRejects } from "../../assert.ts";
import { LeatError } from "../../../core/error.ts";
import { openIterator } from "../../../data/dataset_iterator.ts";
import { Dataset } from "../../../data/mod.ts";
import { ElementIterator, END } from "../../../data/iterator.ts";
import { rootContext } from "../../../data/root_context.ts";
import {
  cutRuns,
  KeptSplits,
  listSplitTable,
  type Split,
  type SplitSource,
} from "../../../data/sharding/splits.ts";
import { FileGroupsNode } from "../../../data/sources/file_groups.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { TempFolder } from "../../lib/temp_folder.ts";
import { failingOn } from "../lib/collect.ts";

const host = new DenoHost();

/** Hands out each source's table once per repetition to whoever asks first. */
class Provider {
  readonly #table: readonly (readonly Split[])[];
  readonly #handedOut = new Map<string, number>();

  constructor(table: readonly (readonly Split[])[]) {
    this.#table = table;
  }

  /** One task's view; `wants` false makes it come away with nothing. */
  source(wants: (repetition: number) => boolean = () => true): SplitSource {
    return {
      next: (source, repetition) => {
        const key = `${source}/${repetition}`;
        const at = this.#handedOut.get(key) ?? 0;
        if (!wants(repetition) || at >= this.#table[source]!.length) return Promise.resolve(END);
        this.#handedOut.set(key, at + 1);
        return Promise.resolve(this.#table[source]![at]!);
      },
      total: (source) => Promise.resolve(this.#table[source]!.length),
    };
  }
}

class EmptyIterator extends ElementIterator {
  readonly #atEnd: () => void;

  constructor(atEnd: () => void) {
    super();
    this.#atEnd = atEnd;
  }

  override next(): unknown {
    this.#atEnd();
    return END;
  }

  protected override saveState = (): Promise<void> => Promise.resolve();
  protected override restoreState = (): Promise<void> => Promise.resolve();
  protected override release(): void {}
}

async function run(dataset: Dataset<unknown>, splits: SplitSource, most = 1000) {
  const elements: unknown[] = [];
  await using iterator = openIterator(dataset.node, { splits });
  for await (const element of iterator) if (elements.push(element) === most) break;
  return elements;
}

Deno.test("FileGroupsNode.listSplits gives 16 groups or more, of 16 files or fewer, if there are as many files", async () => {
  const groupsOf = async (count: number, multiple = 1) => {
    const names = Array.from({ length: count }, (_, i) => [`${i}.txt`, ""] as const);
    await using folder = await TempFolder.make(Object.fromEntries(names));
    const groups = new FileGroupsNode(Dataset.listFiles(`${folder.path}/*`).node, multiple);
    const splits = await groups.listSplits(host);
    for (const [i, { start }] of splits.slice(1).entries()) assertEquals(start, splits[i]!.stop);
    return splits.map(({ start, stop }) => stop - start);
  };
  for (const count of [1, 15, 16, 17, 31]) {
    assertEquals(await groupsOf(count), new Array(count).fill(1), `${count}`);
  }
  for (const count of [32, 33, 47, 100, 300]) {
    const sizes = await groupsOf(count);
    assert(sizes.length >= 16 && Math.max(...sizes) <= 16, `${count}: ${sizes}`);
    assertEquals(sizes.reduce((sum, size) => sum + size, 0), count);
  }
  assertEquals((await groupsOf(100, 4)).slice(0, -1), new Array(24).fill(4), "whole batches");
});

Deno.test("cutRuns cuts into about 256 runs of at most 4,096, at multiples", () => {
  assertEquals(cutRuns(0), []);
  assertEquals(cutRuns(3), [{ start: 0, stop: 1 }, { start: 1, stop: 2 }, { start: 2, stop: 3 }]);
  assertEquals(cutRuns(2560).length, 256);
  assertEquals(cutRuns(10_000_000)[0], { start: 0, stop: 4096 });
  const most = cutRuns(Number.MAX_SAFE_INTEGER);
  assertEquals(most.length, 1 << 18);
  assertEquals(most.at(-1)?.stop, Number.MAX_SAFE_INTEGER);
  assertEquals(cutRuns(10, 4), [
    { start: 0, stop: 4 },
    { start: 4, stop: 8 },
    { start: 8, stop: 10 },
  ]);
});

Deno.test("splits are multiples of the batch size where operators are one to one", async () => {
  const first = async (dataset: Dataset<unknown>) =>
    (await listSplitTable(dataset.node, host))[0]![0];
  const range = Dataset.range(100);
  assertEquals(await first(range.map((x) => x).prefetch(2).batch(8)), { start: 0, stop: 8 });
  assertEquals(await first(range.batch(4).batch(2)), { start: 0, stop: 8 });
  assertEquals(await first(range.filter(() => true).batch(8)), { start: 0, stop: 1 });
});

Deno.test("listSplitTable finds sources in pre-order, and none inside functions", async () => {
  const node = Dataset.range(1).concatenate(Dataset.range(2)).concatenate(
    Dataset.range(3).flatMap(() => Dataset.range(9)),
  ).node;
  const table = await listSplitTable(node, host);
  assertEquals(table.map((splits) => splits.at(-1)!.stop), [1, 2, 3]);
});

Deno.test("a source that cannot be split is refused", async () => {
  const node = Dataset.fromGenerator(() => [1]).node;
  const error = await assertRejects(() => listSplitTable(node, host), LeatError);
  assertEquals(error.code, "unimplemented");
});

Deno.test("tasks that share splits produce every element once", async () => {
  const dataset = Dataset.range(100).map((x) => x + 1).batch(4).unbatch();
  const provider = new Provider(await listSplitTable(dataset.node, host));
  const parts = await Promise.all([1, 2, 3].map(() => run(dataset, provider.source())));
  const all = parts.flat() as number[];
  assertEquals(all.toSorted((a, b) => a - b), Array.from({ length: 100 }, (_, i) => i + 1));
});

Deno.test("the same source twice in a graph is split twice", async () => {
  const range = Dataset.range(3);
  const dataset = range.concatenate(range);
  const table = await listSplitTable(dataset.node, host);
  assertEquals(table.length, 2);
  assertEquals(await run(dataset, new Provider(table).source()), [0, 1, 2, 0, 1, 2]);
});

Deno.test("zip keeps elements with one number together, up to the shortest input", async () => {
  const letters = Dataset.from([..."abcdefghijklmnopqrstuvwxyz"]).map((x) => x.toUpperCase());
  const pairs = Dataset.zip({
    number: Dataset.range(20).map((x) => Promise.resolve(x), { numParallelCalls: 3 }).prefetch(2),
    nested: Dataset.zip([letters, Dataset.counter(100)]),
    all: Dataset.range(1000),
  });
  const wanted = await Array.fromAsync(pairs);
  assertEquals(wanted.length, 20);
  const table = await listSplitTable(pairs.node, host);
  assertEquals(table.map((splits) => splits.at(-1)?.stop), [20]);
  const provider = new Provider(table);
  const parts = await Promise.all([1, 2, 3].map(() => run(pairs, provider.source())));
  const byNumber = (a: unknown, b: unknown) =>
    (a as { number: number }).number - (b as { number: number }).number;
  assertEquals(parts.flat().toSorted(byNumber), wanted);
});

Deno.test("zip asks the inputs below a chain of zips a number of times that its length bounds", async () => {
  const source = Dataset.range(4);
  let reads = 0;
  Object.defineProperty(source.node, "cardinality", { get: () => (reads++, 4) });
  const length = 12;
  let chain: Dataset<unknown> = source;
  for (let i = 0; i < length; i++) chain = chain.zip(Dataset.range(4));
  await chain.iterator().return();
  assert(reads <= 2 * length, `${reads} reads`);
  assertEquals((await listSplitTable(chain.node, host)).length, 1);
});

Deno.test("zip is repeated from the beginning of all of its inputs", async () => {
  const pairs = Dataset.range(7).zip(Dataset.range(3)).repeat(3);
  const provider = new Provider(await listSplitTable(pairs.node, host));
  const parts = await Promise.all([1, 2].map(() => run(pairs, provider.source())));
  assertEquals(
    parts.flat().map(String).toSorted(),
    ["0,0", "0,0", "0,0", "1,1", "1,1", "1,1", "2,2", "2,2", "2,2"],
  );
});

Deno.test("listSplitTable refuses a zip of inputs that would be divided separately", async () => {
  const filtered = Dataset.range(9).filter(() => true);
  for (
    const pairs of [
      filtered.zip(Dataset.range(4).repeat()),
      Dataset.zip([Dataset.counter(), filtered, Dataset.textLines(["a", "b"])]).batch(2),
    ]
  ) {
    const error = await assertRejects(() => listSplitTable(pairs.node, host), LeatError);
    assertEquals(error.code, "unimplemented");
    assert(error.message.includes("zip") && error.message.includes("DETERMINISTIC"), error.message);
  }
});

Deno.test("every task reads choices, weights and endless sources whole", async () => {
  const two = [Dataset.range(6), Dataset.range(100, 106)];
  const chosen = Dataset.chooseFromDatasets(two, Dataset.from([1, 0]).repeat());
  const weighted = Dataset.sampleFromDatasets(two, { weights: Dataset.from([[0, 1]]).repeat() });
  assertEquals((await listSplitTable(weighted.node, host)).length, 2);
  const table = await listSplitTable(chosen.node, host);
  assertEquals(table.length, 2);
  const provider = new Provider(table);
  const parts = await Promise.all([1, 2].map(() => run(chosen, provider.source())));
  for (const part of parts as number[][]) {
    assertEquals(part.map((x) => x >= 100), part.map((_, i) => i % 2 === 0));
  }
  const beside = Dataset.counter().zip(Dataset.range(4).filter(() => true));
  assertEquals((await listSplitTable(beside.node, host)).length, 1);
  const alone = await assertRejects(() => listSplitTable(Dataset.counter().node, host), LeatError);
  assertEquals(alone.code, "unimplemented");
});

Deno.test("operators that add elements are not split", async () => {
  const range = Dataset.range(4);
  const distributed = range.distribute({ service: "ws://127.0.0.1:1" });
  for (const dataset of [range.snapshot("/tmp/none").map((x) => x), distributed.batch(2)]) {
    const error = await assertRejects(() => listSplitTable(dataset.node, host), LeatError);
    assertEquals(error.code, "unimplemented");
    assertEquals(error.message.includes("Splitting is not implemented for"), true);
  }
});

Deno.test("repeat asks for the next repetition, nested or not", async () => {
  const dataset = Dataset.range(2).repeat(2).repeat(2);
  const provider = new Provider(await listSplitTable(dataset.node, host));
  const seen: number[] = [];
  const source = provider.source((repetition) => (seen.push(repetition), true));
  assertEquals(await run(dataset, source), [0, 1, 0, 1, 0, 1, 0, 1]);
  assertEquals([...new Set(seen)], [0, 1, 2, 3]);
});

Deno.test("repeat continues for a task that was assigned nothing in a repetition", async () => {
  const dataset = Dataset.range(2).repeat();
  const provider = new Provider(await listSplitTable(dataset.node, host));
  assertEquals(await run(dataset, provider.source((repetition) => repetition > 1), 3), [0, 1, 0]);
});

Deno.test("repeat ends where the whole table is empty, or all of it gave nothing", async () => {
  const empty = Dataset.range(0).repeat();
  assertEquals(await run(empty, new Provider([[]]).source()), []);
  const filtered = Dataset.range(9).filter(() => false).repeat();
  const provider = new Provider(await listSplitTable(filtered.node, host));
  assertEquals(await run(filtered, provider.source()), []);
});

/** The splits of a task that gets the first of two, in its first repetition. */
function firstOfTwo(): SplitSource {
  const provider = new Provider([[{ start: 0, stop: 4 }, { start: 4, stop: 8 }]]);
  let isAssigned = false;
  return provider.source(() => !isAssigned && (isAssigned = true));
}

/** Fails when a task asks too often whether it saw the whole table, which it would do for ever. */
function patient(source: SplitSource): SplitSource {
  let asked = 0;
  const total = (index: number) => {
    if (++asked > 9) throw new Error("repeat does not end");
    return source.total(index);
  };
  return { ...source, total };
}

Deno.test("repeat ends for a task whose cache gives nothing", async () => {
  const cached = Dataset.range(8).cache();
  for (const dataset of [cached, cached.shuffle(4), cached.repeat(2), cached.repeat()]) {
    const provider = new Provider(await listSplitTable(dataset.node, host));
    const late = patient(provider.source((repetition) => repetition > 0));
    assertEquals(await run(dataset.repeat(), late, 3), []);
  }
  const pure = [
    cached.filter((x) => x >= 4),
    cached.filter((x, { least }) => x >= least, { captures: { least: 4 } }),
    cached.skip(4),
  ];
  for (const dataset of pure) {
    assertEquals(await run(dataset.repeat(), patient(firstOfTwo()), 3), []);
  }
});

Deno.test("repeat goes on for a task whose cache has elements that a later repetition may give", async () => {
  const cached = Dataset.range(8).cache();
  let calls = 0;
  const state = { calls: 0 };
  const varying = [
    cached.filter((_, { random }) => random.next() < 0.1).withOptions({ seed: 1 }),
    cached.filter(() => calls++ % 10 === 9),
    Dataset.range(8).map((x) => {
      if (calls++ % 10 !== 9) throw new Error("not yet");
      return x;
    }).cache().ignoreErrors(),
    cached.filter((_, { state }) => state.calls++ % 10 === 9, { captures: { state } }),
    Dataset.zip([cached, Dataset.random({ seed: 1, rerandomizeEachIteration: true })]).filter((
      [_, drawn],
    ) => drawn % 10 === 0),
    cached.shuffle(8, { seed: 1 }).take(1).filter((x, { last }) => x === last, {
      captures: { last: 3 },
    }),
  ];
  for (const [i, dataset] of varying.entries()) {
    const elements = await run(dataset.repeat(), firstOfTwo(), 3);
    assertEquals(elements.length, 3, `dataset ${i}`);
  }
  const all = new Provider([[{ start: 0, stop: 8 }]]).source();
  assertEquals(await run(cached.filter(() => calls++ < 0).repeat(), all), []);
});

class StoppedClock extends DenoHost {
  yields = 0;
  override nowMs = () => 0;

  override async yield(): Promise<void> {
    this.yields++;
    await super.yield();
  }
}

Deno.test("repeat yields after each repetition without an element", async () => {
  const host = new StoppedClock();
  let calls = 0;
  const dataset = Dataset.range(8).cache().filter(() => {
    if (calls++ > 4 * (host.yields + 1)) throw new Error("a repetition has not yielded");
    return calls === 40;
  }).repeat();
  await using iterator = openIterator(dataset.node, { host, splits: firstOfTwo() });
  assertEquals((await iterator.next()).value, 3);
});

Deno.test("repeat ends where a repetition reads nothing of a stream that others read before", async () => {
  const source = Dataset.range(9);
  const context = rootContext(source.repeat().node, {});
  let reads = 0;
  context.replace(source.node, (context) => {
    if (++reads > 9) throw new Error("repeat does not end");
    return new EmptyIterator(() => reads === 1 && context.noteOtherConsumers());
  });
  const iterator = context.makeIterator();
  assertEquals([await iterator.next(), await iterator.next()], [END, END]);
  assertEquals(reads, 2);
});

Deno.test("a task that reads splits caches its own elements only", async () => {
  const dataset = Dataset.range(4).cache().repeat(2);
  const table = await listSplitTable(dataset.node, host);
  const provider = new Provider([table[0]!.slice(0, 2)]);
  assertEquals(await run(dataset, provider.source()), [0, 1, 0, 1]);
  assertEquals(await Array.fromAsync(dataset), [0, 1, 2, 3, 0, 1, 2, 3]);
});

Deno.test("a task repeats the splits of its first pass until its cache is full", async () => {
  const range = Dataset.range(8);
  const numbered = Dataset.zip([range.cache(), Dataset.counter().take(2)]);
  const datasets = {
    "an element that fails": range.map(failingOn(5)).cache().ignoreErrors(),
    "an element that fails between caches": range.cache().map(failingOn(5)).cache().ignoreErrors(),
    "repetitions below the cache": range.repeat(2).map(failingOn(5)).cache().ignoreErrors(),
    "take": range.cache().take(2),
    "a shorter input": numbered.map(([x]) => x),
    "a shuffled source": range.globalShuffle({ seed: 1 }).cache().take(2),
    "random numbers": range.map((_, { random }) => random.next()).cache().take(2),
  };
  const two = [{ start: 0, stop: 4 }, { start: 4, stop: 8 }];
  for (const [name, dataset] of Object.entries(datasets)) {
    const provider = new Provider([two]);
    const source = provider.source();
    for (const repetition of [0, 1]) await source.next(0, repetition); // another task reads these
    const elements = await run(dataset.repeat(3), source);
    const first = elements.slice(0, elements.length / 3);
    assert(first.length > 0, name);
    assertEquals(elements, [...first, ...first, ...first], name);
    assertEquals(await run(dataset.repeat(3), provider.source()), [], `${name}: a later task`);
  }
});

/** Answers with splits that start at these numbers; null fails. Then END. */
function answering(...starts: (number | null)[]): SplitSource {
  const next = (): Promise<Split | typeof END> => {
    const start = starts.shift();
    if (start === null) return Promise.reject(new Error("away"));
    return Promise.resolve(start === undefined ? END : { start, stop: start });
  };
  return { next, total: () => Promise.resolve(starts.length) };
}

/** The results of as many calls that do not wait for each other. */
async function startsOf(pass: SplitSource, count: number) {
  const calls = Array.from({ length: count }, () => pass.next(0, 0));
  const answers = await Promise.allSettled(calls);
  return answers.map((answer) => {
    if (answer.status === "rejected") return (answer.reason as Error).message;
    return answer.value === END ? "end" : answer.value.start;
  });
}

Deno.test("KeptSplits requests again what failed, and leaves no gap for later passes", async () => {
  for (const callsAtOnce of [1, 5]) {
    const kept = new KeptSplits(answering(1, null, 2, 3));
    const first = kept.pass();
    const found = [];
    while (found.length < 5) found.push(...await startsOf(first, callsAtOnce));
    assertEquals(found, [1, "away", 2, 3, "end"]);
    assertEquals(await startsOf(kept.pass(), 4), [1, 2, 3, "end"]);
  }
});

Deno.test("KeptSplits gives the same splits to passes that meet at a request that fails", async () => {
  const kept = new KeptSplits(answering(1, null, 2, null, 3));
  const [first, second] = [kept.pass(), kept.pass()];
  const found = await Promise.all([startsOf(first, 6), startsOf(second, 6)]);
  for (const starts of found) assertEquals(starts, [1, "away", 2, "away", 3, "end"]);
  assertEquals(await startsOf(kept.pass(), 4), [1, 2, 3, "end"]);
});

Deno.test("a cache is filled with all splits of its task though a request failed", async () => {
  const dataset = Dataset.range(8).cache().ignoreErrors().repeat(3);
  const all = [0, 1, 2, 3, 4, 5, 6, 7];
  const two = [{ start: 0, stop: 2 }, { start: 2, stop: 8 }];
  for (const failing of [1, 2, 3]) {
    const { next, total } = new Provider([two]).source();
    let calls = 0;
    const fails = () => ++calls === failing;
    const source: SplitSource = {
      next: (source, repetition) =>
        fails() ? Promise.reject(new Error("away")) : next(source, repetition),
      total,
    };
    assertEquals(await run(dataset, source), [...all, ...all, ...all], `request ${failing}`);
  }
});

Deno.test("a salt gives a task its own order, even with a seed in shuffle", async () => {
  const dataset = Dataset.range(20).shuffle(20, { seed: 1 });
  const order = (salt: bigint) => Array.fromAsync(openIterator(dataset.node, { salt }));
  assertEquals(await order(1n), await order(1n));
  assertNotEquals(await order(1n), await order(2n));
});
