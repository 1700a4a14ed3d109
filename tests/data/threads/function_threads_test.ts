/** Functions of `map` and `filter` on other threads: the same stream, and what happens to threads. */
import { existsSync } from "node:fs";
import { openIterator } from "../../../data/dataset_iterator.ts";
import { AUTOTUNE, Dataset, type DatasetOptions, LeatError, udf } from "../../../mod.ts";
import type { DenoHost } from "../../../platform/deno_host.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";
import { TempFolder } from "../../lib/temp_folder.ts";
import { until } from "../../lib/until.ts";
import { everyKind } from "../lib/every_kind.ts";
import { type Outcome, outcomesOf, readOutcomes } from "../lib/outcomes.ts";
import { ThreadsHost } from "./threads_host.ts";

const THREADS = { threads: true } as const;
const FUNCTIONS = import.meta.resolve("./functions.ts");

/** Removes the folder of `countRunning`; calls that are in flight fail then. */
async function endCalls(folder: string): Promise<void> {
  await until(async () => {
    await Deno.remove(`${folder}/running`, { recursive: true }).catch(() => {});
    return !existsSync(`${folder}/running`);
  });
}

/** The outcomes of a dataset. */
async function outcomes(dataset: Dataset<unknown>, host: DenoHost): Promise<Outcome[]> {
  await using iterator = openIterator(dataset.node, { host, seed: 5n });
  return await outcomesOf(iterator);
}

/** The outcomes with threads, how many calls they made, and the outcomes without threads. */
async function both(make: (options: DatasetOptions) => Dataset<unknown>, host: DenoHost) {
  await using iterator = openIterator(make(THREADS).node, { host, seed: 5n });
  const threaded = await outcomesOf(iterator);
  const calls = iterator.stats().reduce((sum, { threads }) => sum + (threads?.calls ?? 0), 0);
  return { threaded, calls, here: await outcomes(make({ threads: false }), host) };
}

/** Everything that the result of a call may depend on, and errors. */
function varied(x: number, { random, index, offset, tensor }: {
  random: { int(n: number): number };
  index: number;
  offset: number;
  tensor(values: number[]): unknown;
}): unknown {
  if (x % 5 === 3) throw new RangeError(`no ${x}`);
  return [x + offset, index, random.int(1_000), tensor([x, x])];
}
const captures = { offset: 100 };

Deno.test("map and filter give the same elements and errors with threads and without", async () => {
  await using host = new ThreadsHost(2);
  for (const numParallelCalls of [1, 2, 7, AUTOTUNE]) {
    const { threaded, calls, here } = await both((options) =>
      Dataset.range(60)
        .filter((x, { random }) => x % 7 !== 6 && random.next() < 0.9, { numParallelCalls })
        .map(varied as never, { numParallelCalls, captures })
        .repeat(2)
        .withOptions(options), host);
    assertEquals(threaded, here);
    assert(calls > 180, `${calls} calls on threads`);
  }
});

Deno.test("threads call a function with what its captures hold when the iterator begins", async () => {
  await using host = new ThreadsHost(2);
  const captures = { scale: 1 };
  const dataset = Dataset.range(4)
    .map((x, { scale }) => x * scale, { captures, numParallelCalls: 2 }).withOptions(THREADS);
  for (const scale of [1, 10]) {
    captures.scale = scale;
    await using iterator = openIterator(dataset.node, { host });
    assertEquals(await Array.fromAsync(iterator), [0, scale, 2 * scale, 3 * scale]);
    assertEquals(iterator.stats()[1]!.threads?.calls, 4);
  }
});

Deno.test("map on threads gives the same set of elements with deterministic false", async () => {
  await using host = new ThreadsHost(3);
  const { threaded, calls, here } = await both(
    (options) =>
      Dataset.range(100).map(varied as never, {
        numParallelCalls: 5,
        deterministic: false,
        captures,
      }).withOptions(options),
    host,
  );
  const sorted = (all: Outcome[]) => all.map((one) => JSON.stringify(one)).sort();
  assertEquals(sorted(threaded), sorted(here));
  assertEquals(calls, 100);
});

Deno.test("asynchronous functions on threads overlap as often as numParallelCalls says", async () => {
  await using host = new ThreadsHost(2);
  const { threaded, here } = await both(
    (options) =>
      Dataset.range(40).map(async (x, { random }) => {
        await Promise.resolve();
        return x + random.int(9);
      }, { numParallelCalls: 12 }).withOptions(options),
    host,
  );
  assertEquals(threaded, here);
});

Deno.test("an element of every kind of operator passes through a thread unchanged", async () => {
  await using folder = await TempFolder.make();
  await using host = new ThreadsHost(2);
  let tried = 0;
  for (const { node, dataset } of await everyKind(folder.path)) {
    const isRunHere = !["distribute", "offload", "fromId"].includes(node.kind);
    const isRepeatable = !["snapshot", "cache"].includes(node.kind);
    if (!isRunHere || !isRepeatable) continue;
    const { threaded, here } = await both(
      (options) => dataset.map((x) => ({ x }), { numParallelCalls: 2 }).withOptions(options),
      host,
    );
    assertEquals(threaded, here, node.kind);
    tried++;
  }
  assert(tried > 50, `${tried}`);
});

Deno.test("an iterator saved with threads continues without, and the other way round", async () => {
  await using host = new ThreadsHost(2);
  const make = (options: DatasetOptions) =>
    Dataset.range(30).shuffle(4)
      .map(varied as never, { numParallelCalls: 3, captures })
      .filter((parts) => (parts as number[])[2]! % 4 !== 0, { numParallelCalls: 2 })
      .withOptions(options);
  const whole = await outcomes(make({ threads: false }), host);
  for (let position = 0; position <= whole.length; position += 4) {
    for (const [first, second] of [[true, true], [true, false], [false, true]]) {
      const open = (threads: boolean) => openIterator(make({ threads }).node, { host, seed: 5n });
      await using saver = open(first!);
      const before = await readOutcomes(saver, position);
      const state = await saver.save();
      await using restored = open(second!);
      await restored.restore(state);
      const where = `${position}: ${first} to ${second}`;
      assertEquals([...before, ...await outcomesOf(restored)], whole, where);
      assertEquals([...before, ...await outcomesOf(saver)], whole, where);
    }
  }
});

/** Pipelines whose first part has ended while a shuffle still holds elements of it. */
const ENDED_PARTS: Record<string, (part: Dataset<number>) => Dataset<number>> = {
  repeat: (part) => part.repeat(2).concatenate(Dataset.range(5)).shuffle(12),
  "repeat of concatenate": (part) =>
    Dataset.range(1).concatenate(part).repeat(2).concatenate(Dataset.range(5)).shuffle(12),
  concatenate: (part) =>
    Dataset.range(1).concatenate(part).concatenate(Dataset.range(5)).shuffle(12),
};

for (const [name, make] of Object.entries(ENDED_PARTS)) {
  Deno.test(`${name} closes on threads what it opens to recompute elements`, async () => {
    await using host = new ThreadsHost(1);
    const open = new Set<unknown>();
    const { threads } = host;
    const openFunction = threads.open.bind(threads);
    threads.open = (...args) => {
      const opened = openFunction(...args);
      open.add(opened);
      const close = opened.close.bind(opened);
      opened.close = () => (open.delete(opened), close());
      return opened;
    };
    const { node } = make(Dataset.range(4).map((x) => x + 1, { numParallelCalls: 2 }))
      .withOptions(THREADS);
    await using saver = openIterator(node, { host, seed: 5n });
    await readOutcomes(saver, 2);
    const state = await saver.save();
    const rest = await outcomesOf(saver);
    await using restored = openIterator(node, { host, seed: 5n });
    await restored.restore(state);
    assertEquals(await outcomesOf(restored), rest);
    assertEquals(open.size, 0);
  });
}

Deno.test("an error on a thread carries message, stack and cause, and costs one element", async () => {
  await using host = new ThreadsHost(2);
  const dataset = Dataset.range(7).map(udf<(x: number) => number>(FUNCTIONS, "fail"), {
    numParallelCalls: 3,
  }).withOptions(THREADS);
  await using iterator = openIterator<number>(dataset.node, { host });
  assertEquals((await iterator.next()).value, 0);
  const error = await assertRejects(() => iterator.next(), LeatError);
  assertEquals(error.message, "map (operator 1): the function failed at element 1: no 1");
  const cause = error.cause as Error;
  assertEquals([cause.name, cause.message], ["TypeError", "no 1"]);
  assertStringIncludes(cause.stack!, "functions.ts");
  assertEquals((cause.cause as Error).message, "too deep");
  assertEquals((await outcomesOf(iterator)).length, 5);
  assertEquals(
    await outcomes(dataset.ignoreErrors(), host),
    [0, 2, 3, 5, 6].map((element) => ({ element })),
  );
});

Deno.test("a function that cannot travel is called here, and explain says why and what to do", async () => {
  await using host = new ThreadsHost(2);
  const mean = 3;
  const dataset = Dataset.range(4).map((x) => x - mean, { numParallelCalls: 2 })
    .withOptions(THREADS);
  await using iterator = openIterator(dataset.node, { host });
  assertEquals((await outcomesOf(iterator)).length, 4);
  const remedy =
    "map (operator 1) calls its function on the thread of the pipeline. This function " +
    "cannot travel to another thread or host, because it uses mean from around it. Either pass its " +
    "inputs by name: (x, { mean })=>x - mean, { captures: { mean } }";
  assertStringIncludes(String(iterator.explain()), remedy);
  assertStringIncludes(String(dataset.explain()), remedy);
  assertEquals(dataset.withOptions({ threads: false }).explain().obstacles, []);
});

Deno.test("elements and results that cannot be sent are dealt with here, and explain names them", async () => {
  await using host = new ThreadsHost(2);
  const made = Dataset.range(9).map((x, { Dataset }) => Dataset.range(x), { numParallelCalls: 2 });
  const taken = made.map((_dataset, { index }) => index, { numParallelCalls: 2 });
  const { threaded, here } = await both((options) => taken.withOptions(options), host);
  assertEquals(threaded, here);
  await using iterator = openIterator(taken.withOptions(THREADS).node, { host });
  await outcomesOf(iterator);
  const [result, element] = iterator.explain().obstacles;
  assertStringIncludes(element!, "map (operator 2) calls its function on the thread");
  assertStringIncludes(result!, "Dataset cannot be sent to another thread");
});

Deno.test("cpuBudget bounds how many functions run at once, over all operators", async () => {
  await using folder = await TempFolder.make();
  await using host = new ThreadsHost(4);
  await Deno.mkdir(`${folder.path}/running`);
  const most = async (cpuBudget: number, operators: number) => {
    const counting = udf<(x: { x: number; most: number }) => { x: number; most: number }>(
      FUNCTIONS,
      "countRunning",
    );
    const how = { numParallelCalls: 4, captures: { folder: folder.path } };
    // Endless, so that there are blocks for all threads.
    let dataset = Dataset.counter().map((x) => ({ x, most: 0 }));
    for (let i = 0; i < operators; i++) dataset = dataset.map(counting, how);
    const options = { ...THREADS, autotune: { cpuBudget }, seed: 1 };
    await using iterator = openIterator<{ most: number }>(dataset.withOptions(options).node, {
      host,
    });
    let most = 0;
    for (let i = 0; i < 60; i++) most = Math.max(most, (await iterator.next()).value!.most);
    return { most, threads: iterator.stats()[1]!.threads };
  };
  assertEquals(await most(1, 2), { most: 1, threads: undefined });
  // The thread of the pipeline calls the first function, which does not move.
  for (const budget of [2, 3, 4]) {
    for (const operators of [1, 3]) {
      const { most: seen, threads } = await most(budget, operators);
      assert(seen <= budget - 1, `${seen} functions beside the first, with ${budget}`);
      assert(threads!.calls >= 60);
    }
  }
  await endCalls(folder.path);
});

Deno.test("numParallelCalls bounds how many threads call a function", async () => {
  await using folder = await TempFolder.make();
  await using host = new ThreadsHost(4);
  await Deno.mkdir(`${folder.path}/running`);
  const dataset = Dataset.counter().map((x) => ({ x, most: 0 })).map(
    udf(FUNCTIONS, "countRunning"),
    {
      numParallelCalls: 2,
      captures: { folder: folder.path },
    },
  ).withOptions(THREADS);
  await using iterator = openIterator<{ most: number }>(dataset.node, { host });
  let most = 0;
  for (let i = 0; i < 60; i++) most = Math.max(most, (await iterator.next()).value!.most);
  assert(most <= 2, `${most}`);
  await endCalls(folder.path);
});

Deno.test("threads call functions while a training step blocks the thread of the pipeline", async () => {
  await using folder = await TempFolder.make();
  await using host = new ThreadsHost(2);
  const dataset = Dataset.range(40).map(udf(FUNCTIONS, "leaveFile"), {
    numParallelCalls: 8,
    captures: { folder: folder.path },
  }).withOptions(THREADS);
  await using iterator = openIterator(dataset.node, { host });
  const files = () => [...Deno.readDirSync(folder.path)].length;
  let isCalled = false;
  // If this thread pauses before it looks, all calls in flight have ended: the next step has others.
  for (let step = 0; step < 40 && !isCalled; step++) {
    await iterator.next();
    const before = files();
    // Nothing else runs on this thread until the step ends.
    const endMs = performance.now() + 1_000;
    while (!isCalled && performance.now() < endMs) isCalled = files() > before;
  }
  assert(isCalled);
});

Deno.test("disposing iterators midway leaves no function on any thread, and no more threads", async () => {
  await using host = new ThreadsHost(2);
  const dataset = Dataset.range(100).map((x) => x + 1, { numParallelCalls: 2 })
    .withOptions(THREADS);
  for (let i = 0; i < 300; i++) {
    const iterator = openIterator(dataset.node, { host });
    const first = iterator.next();
    if (i % 3 > 0) await first;
    await iterator.return();
    await first;
  }
  await until(() => host.threads.usage.functions === 0);
  assertEquals(host.threads.usage, { threads: 2, functions: 0 });
});

Deno.test("a call that ends its thread fails alone, and another thread takes its place", async () => {
  await using host = new ThreadsHost(2);
  const dataset = Dataset.range(12).map(udf(FUNCTIONS, "endThread"), {
    numParallelCalls: 3,
    captures: { fatal: [4, 7] },
  }).withOptions(THREADS);
  const all = await outcomes(dataset, host);
  const failed = (x: number) => ({
    error:
      `internal: map (operator 1): the function failed at element ${x}: The thread that called ` +
      `it has ended: fatal ${x}`,
  });
  assertEquals(
    all,
    Array.from({ length: 12 }, (_, x) => [4, 7].includes(x) ? failed(x) : { element: x }),
  );
});

Deno.test("a call that ends its thread fails alone, even if the calls before it have not ended", async () => {
  await using host = new ThreadsHost(1);
  const dataset = Dataset.range(6).map(udf(FUNCTIONS, "endThreadOfOthers"), {
    numParallelCalls: 6,
    captures: { fatal: [2, 5] },
  }).withOptions(THREADS);
  const all = await outcomes(dataset, host);
  const failed = (x: number) => [2, 5].includes(x);
  assertEquals(
    all.map((outcome, x) => "error" in outcome ? outcome.error.endsWith(`fatal ${x}`) : outcome),
    Array.from({ length: 6 }, (_, x) => failed(x) ? true : { element: x }),
  );
});

Deno.test("a function on a thread cannot end it", async () => {
  await using host = new ThreadsHost(1);
  const dataset = Dataset.range(3).map(udf(FUNCTIONS, "exit"), { numParallelCalls: 2 })
    .withOptions(THREADS);
  const [, second] = await outcomes(dataset, host);
  assertStringIncludes((second as { error: string }).error, "called Deno.exit(3)");
});

Deno.test("short functions stay on the thread of the pipeline, long ones move, by default", async () => {
  await using host = new ThreadsHost(2);
  const spinning = (x: number, { rounds }: { rounds: number }) => {
    for (let i = 0; i < rounds; i++) x = Math.sqrt(x * x + i);
    return x;
  };
  const callsOnThreads = async (rounds: number, isDone: (calls: number) => boolean) => {
    const dataset = Dataset.counter().map(spinning, { numParallelCalls: 4, captures: { rounds } });
    await using iterator = openIterator(dataset.node, { host });
    let calls = 0;
    for (let read = 0; read < 20_000 && !isDone(calls); read++) {
      await iterator.next();
      calls = iterator.stats()[0]!.threads?.calls ?? 0;
    }
    return calls;
  };
  assertEquals(await callsOnThreads(1, () => false), 0);
  assert(await callsOnThreads(1_000_000, (calls) => calls > 0) > 0);
});
