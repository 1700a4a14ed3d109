/** range, from, fromTensors, fromTensorSlices, fromGenerator. */

import {
  assertEquals,
  assertRejects,
  assertStrictEquals,
  assertStringIncludes,
  assertThrows,
} from "../../../assert.ts";
import { LeatError } from "../../../../core/error.ts";
import { Tensor, tensor } from "../../../../core/tensor.ts";
import { Dataset, specOf, TensorSpec, UNKNOWN_CARDINALITY } from "../../../../data/mod.ts";
import { collect, collectWithErrors, rounds } from "../../lib/collect.ts";

Deno.test("range counts from start to stop by step, in both directions", async () => {
  assertEquals(await collect(Dataset.range(4)), [0, 1, 2, 3]);
  assertEquals(await collect(Dataset.range(5, 0, -2)), [5, 3, 1]);
  assertEquals(await collect(Dataset.range(0, 1, 0.4)), [0, 0.4, 0.8]);
});

Deno.test("range in the wrong direction is empty, and a step of 0 is refused", async () => {
  assertEquals(await collect(Dataset.range(3, 0)), []);
  assertEquals(await collect(Dataset.range(0, 3, -1)), []);
  assertEquals(Dataset.range(3, 0).cardinality(), 0);
  const error = assertThrows(() => Dataset.range(0, 3, 0), LeatError);
  assertStringIncludes(error.message, "range: step");
});

Deno.test("from gives elements as they are, in every iteration", async () => {
  const dataset = Dataset.from(new Set(["a", "b"]));
  assertEquals(await collect(dataset), ["a", "b"]);
  assertEquals(await collect(dataset), ["a", "b"]);
  assertEquals(dataset.cardinality(), 2);
  assertEquals(await collect(Dataset.from([[1, 2], [3]])), [[1, 2], [3]]);
});

Deno.test("from knows the common spec of its elements", () => {
  const spec = Dataset.from([new Int8Array(2), new Int8Array(3)]).elementSpec;
  assertEquals(spec, new TensorSpec("int8", [null]));
  assertEquals(Dataset.from([1, "a"]).elementSpec, undefined);
  assertEquals(Dataset.from([{ x: 1 }]).elementSpec, { x: new TensorSpec("float64", []) });
});

Deno.test("fromTensors reads nested arrays of scalars as tensors, and has one element", async () => {
  const dataset = Dataset.fromTensors({ x: [[1, 2], [3, 4]], y: "a" });
  const [element] = await Array.fromAsync(dataset);
  assertEquals(element!.x instanceof Tensor, true);
  assertEquals(element, { x: tensor([[1, 2], [3, 4]]), y: "a" });
  assertEquals(dataset.cardinality(), 1);
});

Deno.test("fromTensorSlices slices every component along axis 0", async () => {
  const dataset = Dataset.fromTensorSlices({
    x: [[1, 2], [3, 4]],
    y: new Float32Array([0.5, 1.5]),
    z: ["a", "b"],
  });
  assertEquals(await collect(dataset), [
    { x: [1, 2], y: 0.5, z: "a" },
    { x: [3, 4], y: 1.5, z: "b" },
  ]);
  assertEquals(dataset.elementSpec, {
    x: new TensorSpec("float64", [2]),
    y: new TensorSpec("float32", []),
    z: new TensorSpec("string", []),
  });
  const tuples = Dataset.fromTensorSlices([new Uint8Array([1, 2]), tensor([true, false])]);
  assertEquals(await collect(tuples), [[1, true], [2, false]]);
});

Deno.test("fromTensorSlices refuses components of different lengths, naming both", () => {
  const error = assertThrows(
    () => Dataset.fromTensorSlices({ x: [1, 2], y: [1, 2, 3] }),
    LeatError,
  );
  assertEquals(error.code, "invalid_argument");
  assertStringIncludes(error.message, "$.x has 2 and $.y has 3");
});

Deno.test("fromGenerator calls its function for every iteration, synchronous or not", async () => {
  let calls = 0;
  const numbers = Dataset.fromGenerator(function* () {
    calls++;
    yield* [1, 2];
  });
  assertEquals(await collect(numbers.repeat(2)), [1, 2, 1, 2]);
  assertEquals(calls, 2);
  assertEquals(numbers.cardinality(), UNKNOWN_CARDINALITY);
  const later = Dataset.fromGenerator(async function* () {
    yield await Promise.resolve(3);
  });
  assertEquals(await collect(later), [3]);
});

Deno.test("fromGenerator ends after the error of a generator, and when it cannot start", async () => {
  const failing = Dataset.fromGenerator(function* () {
    yield 1;
    throw new LeatError("unavailable", "gone");
  });
  assertEquals(await collectWithErrors(failing), [1, "error unavailable"]);
  const wrong = Dataset.fromGenerator(() => 5 as unknown as number[]);
  assertEquals(await collectWithErrors(wrong), ["error invalid_argument"]);
});

Deno.test("fromGenerator gives an error where a generator throws a value that throws when read", async () => {
  const dataset = Dataset.fromGenerator(function* (): Generator<number> {
    yield 1;
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    throw proxy;
  });
  await using iterator = dataset.enumerate().repeat(1).map(([, x]) => x).iterator();
  assertEquals(await iterator.next(), { done: false, value: 1 });
  assertEquals((await assertRejects(() => iterator.next(), LeatError)).code, "unknown");
  assertEquals((await iterator.next()).done, true);
});

Deno.test("disposing runs the finally block of a generator", async () => {
  let cleaned = false;
  const dataset = Dataset.fromGenerator(function* () {
    try {
      for (let i = 0;; i++) yield i;
    } finally {
      cleaned = true;
    }
  });
  for await (const x of dataset) if (x === 2) break;
  assertEquals(cleaned, true);
});

Deno.test("range refuses more than 2^53 - 1 elements", async () => {
  assertEquals(await collect(Dataset.range(Number.MAX_SAFE_INTEGER).take(2)), [0, 1]);
  for (const make of [() => Dataset.range(1e300), () => Dataset.range(-1e308, 1e308, 1e308)]) {
    assertStringIncludes(assertThrows(make, LeatError).message, "range: stop must be no more than");
  }
});

Deno.test("range counts alike alone and in blocks beyond 2^53, where sums and products differ", async () => {
  const range = Dataset.range(2 ** 53 - 2, 2 ** 53 + 8);
  const alone = await collect(range);
  assertEquals(await collect(range.batch(20).unbatch()), alone);
});

Deno.test("restore of fromGenerator passes over promises that a generator yielded, also rejected ones", async () => {
  const numbers = Dataset.fromGenerator(function* () {
    yield Promise.resolve(1);
    yield Promise.reject(new LeatError("data_loss", "2"));
    yield Promise.resolve(3);
  });
  await using iterator = numbers.iterator();
  await iterator.next();
  await assertRejects(() => iterator.next(), LeatError, "2");
  await using restored = numbers.iterator();
  await restored.restore(await iterator.save()); // an unhandled rejection would fail the test
  await rounds(1);
  assertEquals<unknown>((await restored.next()).value, 3);
});

Deno.test("fromGenerator counts a function that gives nothing to iterate over as an error", async () => {
  const iterator = Dataset.fromGenerator(() => 5 as unknown as number[])[Symbol.asyncIterator]();
  await assertRejects(() => iterator.next(), LeatError);
  assertEquals(iterator.stats().map(({ errors }) => errors), [1]);
});

Deno.test("fromGenerator accepts any thenable as a promise, and refuses invalid results", async () => {
  let given = 0;
  const later = {
    [Symbol.asyncIterator]: () => ({
      next: () => ({
        then: (resolve: (result: unknown) => void) => resolve({ done: ++given > 2, value: given }),
      }),
    }),
  } as unknown as AsyncIterable<number>;
  assertEquals(await collect(Dataset.fromGenerator(() => later)), [1, 2]);
  const odd = { [Symbol.iterator]: () => ({ next: () => 5 }) } as unknown as Iterable<number>;
  assertEquals(await collectWithErrors(Dataset.fromGenerator(() => odd)), [
    "error invalid_argument",
  ]);
});

Deno.test("elements and captures with many cycles pass, and their walks end", async () => {
  const root = { children: [] as unknown[] };
  for (let i = 0; i < 4; i++) root.children.push({ parent: root });
  assertStrictEquals(specOf(root), undefined);
  const dataset = Dataset.from([root])
    .map((element, { root, double }) => [element, double(root.children.length)], {
      captures: { root, double: (x: number) => 2 * x },
    });
  const [[element, size]] = await Array.fromAsync(dataset) as [[unknown, number]];
  assertStrictEquals(element, root);
  assertEquals(size, 8);
});

Deno.test("a cyclic element passes unchanged, and is lost in a batch", async () => {
  const cycle: Record<string, unknown> = {};
  cycle.cycle = cycle;
  const dataset = Dataset.from([cycle, cycle]);
  await using iterator = dataset.iterator();
  assertStrictEquals((await iterator.next()).value, cycle);
  assertEquals(await collectWithErrors(dataset.batch(1)), [
    "error resource_exhausted",
    "error resource_exhausted",
  ]);
});
