/** map: order, parallelism, errors, and what functions get. */

import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertNotEquals,
  assertStringIncludes,
  assertThrows,
} from "../../../assert.ts";
import { LeatError } from "../../../../core/error.ts";
import { AUTOTUNE, Dataset, TensorSpec, udf } from "../../../../data/mod.ts";
import { collect, collectWithErrors, failingOn, turn } from "../../lib/collect.ts";

Deno.test("map applies synchronous and asynchronous functions in order", async () => {
  assertEquals(await collect(Dataset.range(3).map((x) => x * 2)), [0, 2, 4]);
  const later = Dataset.range(3).map(async (x) => {
    await turn();
    return x * 2;
  });
  assertEquals(await collect(later), [0, 2, 4]);
});

Deno.test("an error of map loses its element, names it, and the next call continues", async () => {
  const dataset = Dataset.range(4).map(failingOn(1));
  assertEquals(await collectWithErrors(dataset), [0, "error data_loss", 2, 3]);
  const iterator = dataset.iterator();
  await iterator.next();
  const error = await iterator.next().then(() => undefined, (error) => error);
  assertInstanceOf(error, LeatError);
  assertStringIncludes(error.message, "map (operator 0): the function failed at element 1: no 1");
});

for (const numParallelCalls of [1, 3, AUTOTUNE]) {
  Deno.test(`map with numParallelCalls ${numParallelCalls} keeps order and errors`, async () => {
    const dataset = Dataset.range(8).map(async (x) => {
      await turn((7 - x) % 3);
      if (x === 4) throw new LeatError("aborted", "four");
      return x;
    }, { numParallelCalls });
    assertEquals(await collectWithErrors(dataset), [0, 1, 2, 3, "error aborted", 5, 6, 7]);
  });
}

Deno.test("map has at most numParallelCalls calls in flight, and reaches that number", async () => {
  let inFlight = 0;
  let most = 0;
  const dataset = Dataset.range(20).map(async (x) => {
    most = Math.max(most, ++inFlight);
    await turn();
    inFlight--;
    return x;
  }, { numParallelCalls: 3 });
  assertEquals((await collect(dataset)).length, 20);
  assertEquals(most, 3);
});

Deno.test("map calls at most its window ahead of its consumer", async () => {
  let calls = 0;
  const dataset = Dataset.range(100).map((x) => {
    calls++;
    return Promise.resolve(x);
  }, { numParallelCalls: 4 });
  await using iterator = dataset.iterator();
  await iterator.next();
  while (calls < 5) await turn();
  await turn(5);
  assertEquals(calls, 5);
});

Deno.test("map with deterministic false gives results as they are ready", async () => {
  const gate = Promise.withResolvers<void>();
  const dataset = Dataset.range(3).map(async (x) => {
    if (x === 0) await gate.promise;
    return x;
  }, { numParallelCalls: 2, deterministic: false });
  await using iterator = dataset.iterator();
  assertEquals(await iterator.next(), { done: false, value: 1 });
  assertEquals(await iterator.next(), { done: false, value: 2 });
  gate.resolve();
  assertEquals(await iterator.next(), { done: false, value: 0 });
  assertEquals((await iterator.next()).done, true);
});

Deno.test("map calls a synchronous function on demand even with numParallelCalls", async () => {
  let calls = 0;
  const dataset = Dataset.range(100).map((x) => (calls++, x), { numParallelCalls: 8 });
  await using iterator = dataset.iterator();
  await iterator.next();
  assertEquals(calls, 1);
});

Deno.test("functions get index, captures, tensor and Dataset", async () => {
  const dataset = Dataset.range(10, 13).map(
    (x, { index, offset, tensor, Dataset: Given }) => [
      x + offset,
      index,
      tensor([x]).shape,
      Given === Dataset,
    ],
    { captures: { offset: 0.5 } },
  );
  assertEquals(await collect(dataset), [
    [10.5, 0, [1], true],
    [11.5, 1, [1], true],
    [12.5, 2, [1], true],
  ]);
});

Deno.test("index belongs to its element while calls overlap", async () => {
  const dataset = Dataset.range(6).map(async (x, extra) => {
    await turn((6 - x) % 3);
    return [x, extra.index];
  }, { numParallelCalls: 3 });
  assertEquals(await collect(dataset), [0, 1, 2, 3, 4, 5].map((x) => [x, x]));
});

Deno.test("random repeats for a seed, differs between operators, elements and seeds", async () => {
  const drawn = (seed: number) =>
    collect(
      Dataset.range(4).map((_, { random }) => [random.next()])
        .map((x, { random }) => [...x, random.next()]).withOptions({ seed }),
    ) as Promise<number[][]>;
  const first = await drawn(1);
  assertEquals(await drawn(1), first);
  assertEquals(new Set(first.flat()).size, 8);
  assertNotEquals(await drawn(2), first);
});

Deno.test("random does not depend on how many calls overlap", async () => {
  const drawn = (numParallelCalls?: number) =>
    collect(
      Dataset.range(5).map(async (_, { random }) => {
        await turn();
        return random.next();
      }, numParallelCalls === undefined ? {} : { numParallelCalls }).withOptions({ seed: 3 }),
    );
  assertEquals(await drawn(4), await drawn());
});

Deno.test("a function may be a reference to an export of a module", async () => {
  const fixture = import.meta.resolve("../../lib/functions.ts");
  const dataset = Dataset.range(3).map(udf<(x: number) => number>(fixture, "double"));
  assertEquals(await collect(dataset), [0, 2, 4]);
  const missing = Dataset.range(2).map(udf<(x: number) => number>(fixture, "absent"));
  assertEquals(await collectWithErrors(missing), ["error not_found", "error not_found"]);
});

Deno.test("the spec of map decides the dtype of batched numbers", async () => {
  const spec = new TensorSpec("float32", []);
  const [batch] = await Array.fromAsync(Dataset.range(2).map((x) => x, { spec }).batch(2));
  assertEquals(batch!.dtype, "float32");
});

Deno.test("map checks its arguments when it is called", () => {
  const refuse = (make: () => unknown, named: string) => {
    const error = assertThrows(make, LeatError);
    assertEquals(error.code, "invalid_argument");
    assertStringIncludes(error.message, named);
  };
  const dataset = Dataset.range(3);
  refuse(() => dataset.map(5 as never), "map: fn must be a function");
  refuse(() => dataset.map((x) => x, { numParallelCalls: 0 }), "map: numParallelCalls");
  refuse(() => dataset.map((x) => x, { captures: { index: 1 } }), '"index"');
});

Deno.test("stats count elements and the time of functions", async () => {
  await using iterator = Dataset.range(5).map((x) => {
    const until = performance.now() + 1;
    while (performance.now() < until);
    return x;
  }).iterator();
  for await (const _ of iterator);
  const [map, range] = iterator.stats();
  assertEquals([map!.operator, map!.elements, range!.operator, range!.elements], [
    "map",
    5,
    "range",
    5,
  ]);
  assert(map!.selfMs > 0);
});

/** A promise of a class that the engine does not know. */
function thenable<T>(settle: () => T): Promise<T> {
  return {
    then(resolve: (value: T) => void, reject: (error: unknown) => void) {
      try {
        resolve(settle());
      } catch (error) {
        reject(error);
      }
    },
  } as unknown as Promise<T>;
}

Deno.test("functions may return promises of any class", async () => {
  const numbers = Dataset.range(8);
  const later = (x: number) => thenable(() => failingOn(2, 5)(x));
  for (const options of [{}, { numParallelCalls: 3 }]) {
    const kept = numbers.filter((x) => thenable(() => failingOn(2)(x) % 3 !== 0), options);
    assertEquals(await collectWithErrors(kept), [1, "error data_loss", 4, 5, 7]);
    const mapped = numbers.map(later, options);
    const [no, all] = ["error data_loss", [0, 1, 3, 4, 6, 7]];
    assertEquals(await collectWithErrors(mapped), [0, 1, no, 3, 4, no, 6, 7]);
    assertEquals(await collectWithErrors(mapped.batch(8)), [no, no, all]); // by blocks
  }
  const made = numbers.take(2).flatMap((x, { Dataset }) => thenable(() => Dataset.range(x + 1)));
  assertEquals(await collect(made), [0, 0, 1]);
});

Deno.test("then is an ordinary key of elements unless it is a function", async () => {
  const dataset = Dataset.range(2).map((then) => ({ then })).filter(({ then }) => then > 0);
  assertEquals(await collect(dataset), [{ then: 1 }]);
});

Deno.test("a failure within a block, before its element is requested, is that element's error", async () => {
  const dataset = Dataset.range(12)
    .map((x) => x % 4 === 2 ? Promise.reject(new LeatError("aborted", `no ${x}`)) : x)
    .map((x) => failingOn(1, 5, 9)(x as number)).batch(12);
  await using iterator = dataset.iterator();
  const answers: unknown[] = [];
  while (answers.length < 7) {
    answers.push(
      await iterator.next().then(({ value }) => value?.toArray(), (error) => error.code),
    );
    await turn(); // a rejection that nobody handles would end the process here
  }
  assertEquals(answers.filter((answer) => answer === "aborted").length, 3);
  assertEquals(answers.at(-1), [0, 3, 4, 7, 8, 11]);
});
