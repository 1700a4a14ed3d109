/** `prefetch` with `thread`: the pipeline up to there runs on a thread of its own. */
import { existsSync } from "node:fs";
import { openIterator } from "../../../data/dataset_iterator.ts";
import { memoryFile } from "../../../data/formats/byte_ranges.ts";
import type { Files } from "../../../data/host.ts";
import { AUTOTUNE, Dataset, type IteratorStats, LeatError, udf } from "../../../mod.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";
import { TempFolder } from "../../lib/temp_folder.ts";
import { until } from "../../lib/until.ts";
import { everyKind } from "../lib/every_kind.ts";
import { hurried } from "../lib/hurried.ts";
import { outcomesOf, readOutcomes } from "../lib/outcomes.ts";
import { ThreadsHost } from "./threads_host.ts";

const FUNCTIONS = import.meta.resolve("./functions.ts");
const APART = { thread: true };

async function runApart(dataset: Dataset<unknown>, host: ThreadsHost) {
  await using iterator = openIterator(dataset.node, { host, seed: 5n });
  const outcomes = await outcomesOf(iterator);
  const { obstacles } = iterator.explain();
  return { outcomes, obstacles, stats: iterator.stats() };
}

async function runHere(dataset: Dataset<unknown>, host: ThreadsHost) {
  await using iterator = openIterator(dataset.node, { host, seed: 5n });
  const outcomes = await outcomesOf(iterator);
  return { outcomes, stats: iterator.stats() };
}

Deno.test("every kind of operator gives the same elements on a thread, with the same figures", async () => {
  await using folder = await TempFolder.make();
  await using host = new ThreadsHost(2);
  let apart = 0;
  for (const { node, dataset } of await everyKind(folder.path)) {
    const isServed = ["distribute", "offload", "fromId"].includes(node.kind);
    const isStored = ["snapshot", "cache"].includes(node.kind);
    if (isServed || isStored || node.kind === "window") continue; // windows are datasets
    const here = await runHere(dataset.prefetch(2), host);
    const there = await runApart(dataset.prefetch(2, APART), host);
    assertEquals(there.outcomes, here.outcomes, node.kind);
    if (there.obstacles.length > 0) continue;
    apart++;
    const counts = (stats: typeof here.stats) =>
      stats.map(({ elements, errors }) => [elements, errors]);
    assertEquals(counts(there.stats), counts(here.stats), node.kind);
  }
  assert(apart > 45, `${apart}`);
});

Deno.test("stats of prefetch on a thread add up repetitions", async () => {
  await using host = new ThreadsHost(1);
  const dataset = (thread: boolean) =>
    Dataset.range(10).map((x) => {
      if (x === 4) throw new RangeError(`no ${x}`);
      return x;
    }).prefetch(2, { thread }).repeat(3);
  const counts = ({ stats }: { stats: IteratorStats }) =>
    stats.map(({ elements, errors, bytesIn, bytesOut }) => [elements, errors, bytesIn, bytesOut]);
  const there = await runApart(dataset(true), host);
  assertEquals(there.obstacles, []);
  assertEquals(counts(there), counts(await runHere(dataset(false), host)));
});

Deno.test("prefetch of no elements runs on a thread if told so, and is left out otherwise", async () => {
  await using host = new ThreadsHost(1);
  const dataset = (thread: boolean) => Dataset.range(10).map((x) => x + 1).prefetch(0, { thread });
  const there = await runApart(dataset(true), host);
  assertEquals(there.obstacles, []);
  assertEquals(there.outcomes, (await runHere(dataset(false), host)).outcomes);
  assertEquals(dataset(true).node.noOp, undefined);
  assert(dataset(false).node.noOp !== undefined);
});

Deno.test("a segment keeps the order of datasets that functions make where its iteration does", async () => {
  await using host = new ThreadsHost(1);
  const { node } = hurried(Dataset.range(2)).prefetch(2, APART);
  await using iterator = openIterator(node, { host, needsOrder: true });
  assertEquals(await Array.fromAsync(iterator), [0, 1, 2, 3]);
  assertEquals(iterator.explain().obstacles, []);
});

Deno.test("prefetch on a thread fails an element with an array whose buffer was transferred, and no other", async () => {
  await using host = new ThreadsHost(1);
  const dataset = Dataset.range(3).map((x) => {
    const array = new Float32Array([x]);
    if (x === 1) array.buffer.transfer();
    return array;
  });
  const [first, failed, last] = (await runApart(dataset.prefetch(1, APART), host)).outcomes;
  assertEquals([first, last], [
    { element: new Float32Array([0]) },
    { element: new Float32Array([2]) },
  ]);
  assert("error" in failed!);
  assertStringIncludes(
    failed.error,
    "failed_precondition: An element's Float32Array cannot be sent",
  );
});

Deno.test("an iterator saved on a thread continues here, and the other way round", async () => {
  await using host = new ThreadsHost(2);
  const make = (thread: boolean) =>
    Dataset.range(40).shuffle(8)
      .map((x, { random, index }) => {
        if (x % 9 === 4) throw new RangeError(`no ${x}`);
        return x + random.int(50) + index;
      })
      .prefetch(3, { thread })
      .batch(2);
  const open = (thread: boolean) => openIterator(make(thread).node, { host, seed: 5n });
  await using first = open(false);
  const whole = await outcomesOf(first);
  for (let position = 0; position <= whole.length; position += 5) {
    for (const [from, to] of [[true, true], [true, false], [false, true]]) {
      await using saver = open(from!);
      const before = await readOutcomes(saver, position);
      await using restored = open(to!);
      await restored.restore(await saver.save());
      const where = `${position}: ${from} to ${to}`;
      assertEquals([...before, ...await outcomesOf(restored)], whole, where);
      assertEquals([...before, ...await outcomesOf(saver)], whole, where);
    }
  }
});

Deno.test("operators that hold elements of a thread restore those of this one, and the other way round", async () => {
  await using host = new ThreadsHost(2);
  const holding: Readonly<Record<string, (dataset: Dataset<number>) => Dataset<unknown>>> = {
    shuffle: (dataset) => dataset.shuffle(4),
    prefetch: (dataset) => dataset.map((x) => x).prefetch(3),
    calls: (dataset) => dataset.map((x) => Promise.resolve(x), { numParallelCalls: 3 }),
    window: (dataset) => dataset.window(4, { shift: 2 }).flatMap((window) => window.batch(3)),
    groups: (dataset) =>
      dataset.groupByWindow({
        key: (x) => x % 2,
        reduce: (_key, window) => window.batch(3),
        windowSize: 3,
      }),
    interleave: (dataset) =>
      dataset.interleave((x, { Dataset }) => Dataset.range(x % 5), { cycleLength: 3 }),
  };
  for (const [name, hold] of Object.entries(holding)) {
    const open = (thread: boolean) =>
      openIterator(
        hold(
          Dataset.range(12).map((x, { random }) => x + random.int(50)).prefetch(2, { thread }),
        ).node,
        { host, seed: 5n },
      );
    await using first = open(false);
    const whole = await outcomesOf(first);
    for (const position of [1, 2, 4]) {
      for (const [from, to] of [[true, true], [true, false], [false, true]]) {
        await using saver = open(from!);
        const before = await readOutcomes(saver, position);
        await using restored = open(to!);
        await restored.restore(await saver.save());
        const where = `${name} at ${position}: ${from} to ${to}`;
        assertEquals([...before, ...await outcomesOf(restored)], whole, where);
      }
    }
  }
});

Deno.test("elements of a thread that has ended are made again here", async () => {
  await using host = new ThreadsHost(1);
  const ending: Readonly<Record<string, (part: Dataset<number>) => Dataset<number>>> = {
    repeat: (part) => part.repeat(2).concatenate(Dataset.range(5)).shuffle(12),
    concatenate: (part) => part.concatenate(Dataset.range(5)).shuffle(12),
    "concatenate of concatenate": (part) =>
      Dataset.range(1).concatenate(part).concatenate(Dataset.range(5)).shuffle(12),
  };
  for (const [name, make] of Object.entries(ending)) {
    const open = (thread: boolean) => {
      const part = Dataset.range(4).map((x, { random }) => x + random.int(50));
      return openIterator(make(part.prefetch(2, { thread })).node, { host, seed: 5n });
    };
    await using saver = open(false);
    await readOutcomes(saver, 1);
    await using restored = open(true);
    await restored.restore(await saver.save());
    assertEquals(await outcomesOf(restored), await outcomesOf(saver), name);
  }
});

Deno.test("random access reaches elements and errors behind prefetch on a thread", async () => {
  await using host = new ThreadsHost(2);
  const make = (thread: boolean) =>
    Dataset.range(20).map((x) => {
      if (x % 9 === 4) throw new RangeError(`no ${x}`);
      return [x];
    }).prefetch(2, { thread }).globalShuffle({ seed: 1 });
  const here = await runHere(make(false), host);
  const there = await runApart(make(true), host);
  assertEquals(there.outcomes, here.outcomes);
  assertEquals(there.outcomes.length, 20);
  assertEquals(there.obstacles, []);
});

Deno.test("a cache in files behind prefetch on a thread counts the seed of withOptions after it", async () => {
  await using folder = await TempFolder.make();
  await using host = new ThreadsHost(2);
  const { path } = folder;
  const outcomesWith = async (seed: number, thread: boolean) => {
    const dataset = Dataset.range(20).map((x, { random }) => x + random.int(50))
      .cache(path).prefetch(2, { thread }).withOptions({ seed });
    await using iterator = openIterator(dataset.node, { host });
    const outcomes = await outcomesOf(iterator);
    assertEquals(iterator.explain().obstacles, []);
    return outcomes;
  };
  const [there, here] = [await outcomesWith(1, true), await outcomesWith(1, false)];
  assertEquals(here, there);
  assertEquals(here.length, 20);
  for (const thread of [true, false]) assertEquals((await outcomesWith(2, thread)).length, 1);
});

Deno.test("a training step that blocks its thread does not stop the pipeline behind prefetch", async () => {
  await using folder = await TempFolder.make();
  await using host = new ThreadsHost(1);
  const dataset = Dataset.range(50)
    .map(udf(FUNCTIONS, "leaveFile"), { captures: { folder: folder.path } })
    .prefetch(10, APART);
  await using iterator = openIterator(dataset.node, { host });
  await iterator.next();
  const files = () => [...Deno.readDirSync(folder.path)].length;
  while (files() < 11); // nothing else runs on this thread
  assertEquals((await outcomesOf(iterator)).length, 49);
});

Deno.test("numbers drawn once for all iterations are the same in those on threads", async () => {
  await using host = new ThreadsHost(2);
  const dataset = Dataset.range(30).shuffle(30, { reshuffleEachIteration: false })
    .prefetch(2, APART);
  const read = async () => {
    await using iterator = openIterator(dataset.node, { host });
    return await outcomesOf(iterator);
  };
  assertEquals(await read(), await read());
});

Deno.test("an error behind prefetch on a thread carries message, stack and cause", async () => {
  await using host = new ThreadsHost(1);
  const dataset = Dataset.range(4).map(udf<(x: number) => number>(FUNCTIONS, "fail")).prefetch(
    2,
    APART,
  );
  await using iterator = openIterator<number>(dataset.node, { host });
  await iterator.next();
  const error = await assertRejects(() => iterator.next(), LeatError);
  assertEquals(error.message, "map (operator 1): the function failed at element 1: no 1");
  assertStringIncludes((error.cause as Error).stack!, "functions.ts");
  assertEquals(await outcomesOf(iterator), [{ element: 2 }, { element: 3 }]);
});

Deno.test("prefetch on a thread goes on behind an error whose cause throws when it is read", async () => {
  await using host = new ThreadsHost(1);
  const dataset = Dataset.range(4).map((x) => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    const asked = {
      get: () => {
        throw 1;
      },
    };
    if (x === 1) throw new Error("revoked", { cause: proxy });
    if (x === 2) throw Object.defineProperty(new Error("asked"), "stack", asked);
    return x;
  });
  const there = await runApart(dataset.prefetch(1, APART), host);
  assertEquals(there.obstacles, []);
  assertEquals(there.outcomes, (await runHere(dataset.prefetch(1), host)).outcomes);
  assertEquals(there.outcomes.length, 4);
});

Deno.test("a pipeline that cannot leave runs here behind prefetch, and explain says why", async () => {
  await using host = new ThreadsHost(1);
  const mean = 2;
  const closure = Dataset.range(4).map((x) => x - mean).prefetch(1, APART);
  const cached = Dataset.range(4).cache().prefetch(AUTOTUNE, APART);
  const received = await Dataset.deserialize(Dataset.range(4).map((x) => x).serialize());
  for (
    const [dataset, why] of [
      [received.prefetch(1, APART), "map comes from another program"],
      [closure, "uses mean from around it. Either pass its inputs by name"],
      [cached, "cache keeps elements for later iterations here; cache(path) keeps them in a file"],
    ] as const
  ) {
    const { outcomes, obstacles } = await runApart(dataset, host);
    assertEquals(outcomes.length, 4);
    assertStringIncludes(obstacles[0]!, "prefetch (operator 0) runs on the thread of the pipeline");
    assertStringIncludes(obstacles[0]!, why);
    assertEquals(dataset.explain().obstacles, obstacles);
  }
  const served = Dataset.range(4).distribute({ service: "ws://127.0.0.1:1" }).prefetch(1, APART);
  const [obstacle = "", ...more] = served.explain().obstacles;
  assertStringIncludes(obstacle, "distribute reads from a service, whose client is here");
  assertEquals(more, []);
  const alone = Dataset.range(4).prefetch(1, APART).withOptions({ autotune: { cpuBudget: 1 } });
  assertEquals((await runApart(alone, host)).outcomes.length, 4);
  assertEquals(host.threads.usage.threads, 0);
});

Deno.test("disposing iterators midway frees their threads", async () => {
  await using host = new ThreadsHost(2);
  const dataset = Dataset.range(1_000).map((x) => x + 1).prefetch(4, APART);
  for (let i = 0; i < 60; i++) {
    const iterator = openIterator(dataset.node, { host });
    const first = iterator.next();
    if (i % 3 > 0) await first;
    await iterator.return();
    await first;
  }
  await until(() => host.threads.usage.threads <= 2);
});

Deno.test("a thread that ends says so, and the next iterator has another one", async () => {
  await using host = new ThreadsHost(1);
  const dataset = (fatal: number[]) =>
    Dataset.range(4).map(udf(FUNCTIONS, "endThread"), { captures: { fatal } }).prefetch(1, APART);
  await using iterator = openIterator(dataset([2]).node, { host });
  const outcomes = await outcomesOf(iterator);
  assertEquals(outcomes.at(-1), { error: "internal: The thread of prefetch has ended: fatal 2" });
  assertEquals((await runApart(dataset([]), host)).outcomes.length, 4);
});

Deno.test("prefetch on a thread stays with files and storage that only its host has", async () => {
  const lines = Dataset.textLines(["memory:lines"]).prefetch(2, APART);
  const files: Files = {
    open: () => Promise.resolve(memoryFile(new TextEncoder().encode("a\nb\n"))),
    list: () => Promise.resolve([]),
  };
  await using iterator = openIterator(lines.node, { host: new DenoHost({ files }) });
  assertEquals(await Array.fromAsync(iterator), ["a", "b"]);
  const [obstacle = ""] = iterator.explain().obstacles;
  assertStringIncludes(obstacle, "that thread lacks `files` and `storage` of this host");
});

Deno.test("a segment starts although a disposed one still blocks its thread", async () => {
  await using folder = await TempFolder.make();
  await using host = new ThreadsHost(2);
  const captures = { folder: folder.path };
  const blocking = Dataset.range(1).map(udf(FUNCTIONS, "block"), { captures }).prefetch(1, APART);
  const disposed = openIterator(blocking.node, { host });
  const pending = disposed.next();
  await until(() => existsSync(`${folder.path}/blocked`));
  await disposed.return();
  await pending;
  const { outcomes } = await runApart(Dataset.range(1).map((x) => x).prefetch(1, APART), host);
  const isLate = existsSync(`${folder.path}/late`);
  await Deno.writeTextFile(`${folder.path}/free`, "");
  assertEquals(outcomes, [{ element: 0 }]);
  assertEquals(isLate, false);
});
