/** Disposing, queueing and sharing the thread. */

import { assert, assertEquals, assertRejects } from "../assert.ts";
import { LeatError } from "../../core/error.ts";
import { openIterator } from "../../data/dataset_iterator.ts";
import { Dataset } from "../../data/mod.ts";
import { turn } from "./lib/collect.ts";

const ENDLESS = Number.MAX_SAFE_INTEGER;

/** Pipelines that never give an element, and never wait either. */
const BARREN: Record<string, Dataset<unknown>> = {
  "a filter that passes nothing": Dataset.range(ENDLESS).filter(() => false),
  "a skip without end": Dataset.range(ENDLESS).skip(Number.MAX_SAFE_INTEGER),
  "a flatMap over empty datasets": Dataset.range(ENDLESS).flatMap(() => Dataset.range(0)),
  "an interleave of empty datasets": Dataset.range(ENDLESS).interleave(() => Dataset.range(0)),
  "a repeat of skipped elements": Dataset.range(1).repeat().skip(Number.MAX_SAFE_INTEGER),
  "a batch without end": Dataset.range(ENDLESS).filter((x) => x < 0).batch(2),
  "a shard that never comes": Dataset.range(ENDLESS).shard(2 ** 40, 2 ** 40 - 1),
  "a filter over a filter": Dataset.range(ENDLESS).filter((x) => x % 7 === 0).filter(() => false),
  "an unbatch of empty rows": Dataset.from([new Int8Array(0)]).repeat().unbatch(),
  "a group that nothing is made of": Dataset.range(ENDLESS).groupByWindow({
    key: () => 0,
    reduce: () => Dataset.range(0),
    windowSize: 1,
  }),
  "an asynchronous filter that passes nothing": Dataset.range(ENDLESS)
    .filter(() => Promise.resolve(false)),
};

for (const [name, dataset] of Object.entries(BARREN)) {
  Deno.test(`timers tick during ${name}, and disposing ends it at once`, async () => {
    const iterator = dataset.iterator();
    const pending = [iterator.next(), iterator.next()];
    await turn(1);
    await turn(1);
    await iterator[Symbol.asyncDispose]();
    for (const next of pending) assertEquals((await next).done, true);
    assertEquals((await iterator.next()).done, true);
    await turn(20);
  });
}

Deno.test("a pipeline without elements stops when it is disposed", async () => {
  let calls = 0;
  const iterator = Dataset.range(ENDLESS).filter(() => (calls++, false)).iterator();
  const pending = iterator.next();
  await turn(1);
  await iterator.return();
  const atOnce = calls;
  await turn(20);
  assertEquals(calls, atOnce);
  assert(atOnce > 0);
  await pending;
});

Deno.test("for await over millions of ready elements lets timers tick", async () => {
  let ticks = 0;
  const timer = setInterval(() => ticks++, 1);
  let elements = 0;
  for await (const _ of Dataset.range(1_000_000)) {
    elements++;
    if (ticks >= 3) break;
  }
  clearInterval(timer);
  assertEquals(ticks, 3);
  assert(elements < 1_000_000);
});

Deno.test("a loop over a dataset that ends with an error closes its inputs", async () => {
  for (const wait of [undefined, Promise.resolve()]) {
    const closed: string[] = [];
    const numbers = Dataset.fromGenerator(function* () {
      try {
        for (let x = 0;; x++) yield x;
      } finally {
        closed.push("closed");
      }
    }).map((x) => {
      if (x === 2) throw new Error("two");
      return wait === undefined ? x : wait.then(() => x);
    });
    const seen: number[] = [];
    const error = await assertRejects(async () => {
      for await (const x of numbers) seen.push(x);
    }, LeatError);
    assertEquals([seen, closed], [[0, 1], ["closed"]]);
    assert(error.message.includes("two"));
  }
});

Deno.test("concurrent calls of next complete in order", async () => {
  for (
    const dataset of [Dataset.range(5), Dataset.range(5).map((x) => turn(x % 2).then(() => x))]
  ) {
    const iterator = dataset.iterator();
    const answers = await Promise.all(Array.from({ length: 7 }, () => iterator.next()));
    assertEquals(answers.map(({ value }) => value), [0, 1, 2, 3, 4, undefined, undefined]);
  }
});

Deno.test("return completes waiting calls, even if an element never comes", async () => {
  const iterator = Dataset.range(3).map(() => new Promise<number>(() => {})).iterator();
  const pending = [iterator.next(), iterator.next()];
  assertEquals(await iterator.return(), { done: true, value: undefined });
  assertEquals((await Promise.all(pending)).map(({ done }) => done), [true, true]);
  assertEquals(await iterator.next(), { done: true, value: undefined });
});

Deno.test("disposing stops further calls after those in flight", async () => {
  let calls = 0;
  const gate = Promise.withResolvers<void>();
  const iterator = Dataset.range(100).map(async (x) => {
    calls++;
    await gate.promise;
    return x;
  }, { numParallelCalls: 3 }).prefetch(5).iterator();
  const pending = iterator.next();
  // It may yield to the event loop between two calls.
  while (calls < 3) await turn();
  await iterator.return();
  gate.resolve();
  await turn(5);
  assertEquals(calls, 3);
  assertEquals((await pending).done, true);
});

/** A generator of ten steps, which `restore()` runs again. */
function rerunning(onStep: (step: number) => void): Dataset<number> {
  return Dataset.fromGenerator(function* () {
    for (let step = 1; step <= 10; step++) {
      onStep(step);
      yield step;
    }
  });
}

Deno.test("return during restore rejects it and stops the iterator that is being restored", async () => {
  await using saver = rerunning(() => {}).iterator();
  for (let i = 0; i < 9; i++) await saver.next();
  const state = await saver.save();
  let last = 0;
  let closing: Promise<unknown> | undefined;
  const iterator = rerunning((step) => {
    last = step;
    if (step === 4) closing = iterator.return();
  }).iterator();
  await assertRejects(() => iterator.restore(state), LeatError, "closed");
  await closing;
  await turn(1);
  assertEquals(last, 4);
});

Deno.test("return during restore leaves the caches that iterators of the dataset share", async () => {
  const withCache = (calls: { made: number }, onStep: (step: number) => void) => {
    const cached = Dataset.range(10).map((x) => (calls.made++, x)).cache();
    return { cached, both: Dataset.zip([cached, rerunning(onStep)]) };
  };
  const saved = withCache({ made: 0 }, () => {});
  await Array.fromAsync(saved.cached);
  await using saver = saved.both.iterator();
  for (let i = 0; i < 9; i++) await saver.next();
  const state = await saver.save();
  const calls = { made: 0 };
  const { cached, both } = withCache(calls, (step) => step === 4 && iterator.return());
  const iterator = both.iterator();
  await assertRejects(() => iterator.restore(state), LeatError, "closed");
  await turn(1);
  await Array.fromAsync(cached);
  assertEquals(calls.made, 10);
});

Deno.test("breaking out of a loop disposes", async () => {
  let calls = 0;
  for await (const x of Dataset.range(100).map((x) => (calls++, x)).prefetch(3)) {
    if (x === 1) break;
  }
  const atOnce = calls;
  await turn(10);
  assertEquals(calls, atOnce);
});

Deno.test("an iterator closed during next() leaves no unhandled rejection", async () => {
  const split = Promise.withResolvers<never>();
  const iterator = openIterator(Dataset.range(10).node, {
    splits: { next: () => split.promise, total: () => Promise.resolve(1) },
  });
  const next = iterator.next();
  iterator.return();
  split.reject(new LeatError("cancelled", "The task has ended"));
  assertEquals((await next).done, true);
  // An unhandled rejection fails the test.
  await new Promise((resolve) => setTimeout(resolve, 0));
});
