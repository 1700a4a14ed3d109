/** `scan`, `takeWhile` and `unique`. */

import { Dataset, LeatError, Tensor, TensorSpec, UNKNOWN_CARDINALITY } from "../../../mod.ts";
import { assertEquals, assertStringIncludes, assertThrows } from "../../assert.ts";
import { assertCheckpointLaw } from "../lib/checkpoint_law.ts";
import { collect, collectWithErrors, failingOn, turn } from "../lib/collect.ts";

/** Sums of what came so far. */
const sums = (dataset: Dataset<number>) =>
  dataset.scan(0, (sum, x) => [sum + x, sum + x] as [number, number]);

Deno.test("scan passes its state from call to call, synchronous or not", async () => {
  assertEquals(await collect(sums(Dataset.range(5))), [0, 1, 3, 6, 10]);
  const fibonacci = Dataset.range(8).scan([1, 1] as [number, number], async ([a, b]) => {
    await turn();
    return [[b, a + b] as [number, number], a] as const;
  });
  assertEquals(await collect(fibonacci), [1, 1, 2, 3, 5, 8, 13, 21]);
  const captured = Dataset.range(3)
    .scan(0, (n, x, { step }) => [n + step, n * x], { captures: { step: 2 } });
  assertEquals(await collect(captured), [0, 2, 8]);
});

Deno.test("scan starts from its initial state in every iteration", async () => {
  const dataset = sums(Dataset.range(3));
  assertEquals(await collect(dataset.repeat(2)), [0, 1, 3, 0, 1, 3]);
  assertEquals(await collect(dataset), [0, 1, 3]);
});

Deno.test("scan keeps its state when an element or a call fails", async () => {
  const failing = sums(Dataset.range(4).map(failingOn(2)));
  assertEquals(await collectWithErrors(failing), [0, 1, "error data_loss", 4]);
  const calls = Dataset.range(4).scan(0, (sum, x) => [sum + failingOn(2)(x), sum]);
  assertEquals(await collectWithErrors(calls), [0, 0, "error data_loss", 1]);
  const odd = Dataset.range(2).scan(0, ((sum: number) => sum) as never);
  assertEquals(await collectWithErrors(odd), ["error invalid_argument", "error invalid_argument"]);
});

Deno.test("scan keeps its state when the element that shares it is changed in place", async () => {
  const changed = (x: { n: number }) => (x.n += 1000) - 1000;
  const whole = Dataset.range(4).scan({ n: 0 }, ({ n }, x) => {
    const state = { n: n + x };
    return [state, state];
  });
  assertEquals(await collect(whole.map(changed)), [0, 1, 3, 6]);
  const part = Dataset.range(4).scan([{ n: 0 }] as [{ n: number }], ([{ n }], x) => {
    const state = [{ n: n + x }] as [{ n: number }];
    return [state, state[0]!];
  });
  assertEquals(await collect(part.map(changed)), [0, 1, 3, 6]);
  const views = Dataset.range(4).scan(new Int32Array(1), (sums, x) => {
    const bytes = sums.slice();
    bytes[0]! += x;
    return [bytes, bytes.subarray(0, 1)];
  });
  assertEquals(await collect(views.map((view) => (view[0]! += 1000) - 1000)), [0, 1, 3, 6]);
});

Deno.test("scan's initial state stays as it is when its function changes the state", async () => {
  const dataset = Dataset.range(3).scan({ n: 0 }, (state, x) => {
    state.n += x;
    return [state, state.n];
  });
  for (let i = 0; i < 2; i++) assertEquals(await collect(dataset), [0, 1, 3]);
});

Deno.test("scan has as many elements as its input, and the given spec", () => {
  assertEquals(sums(Dataset.range(5)).cardinality(), 5);
  assertEquals(sums(Dataset.range(5).repeat()).cardinality(), Infinity);
  assertEquals(sums(Dataset.range(5)).elementSpec, undefined);
  const spec = new TensorSpec("int32", []);
  assertEquals(Dataset.range(1).scan(0, (s, x) => [s, x], { spec }).elementSpec, spec);
});

Deno.test("takeWhile ends at the first element with false, and reads no further", async () => {
  let read = 0;
  const input = Dataset.range(9).map((x) => (read++, x));
  assertEquals(await collect(input.takeWhile((x) => x < 3)), [0, 1, 2]);
  assertEquals(read, 4);
  assertEquals(await collect(Dataset.range(9).takeWhile((x) => x !== 0)), []);
  assertEquals(await collect(Dataset.range(3).takeWhile(() => Promise.resolve(true))), [0, 1, 2]);
  assertEquals(await collect(Dataset.range(4).takeWhile((x) => x < 2).repeat(2)), [0, 1, 0, 1]);
  const endless = Dataset.range(1).repeat().takeWhile(() => true);
  assertEquals(endless.cardinality(), UNKNOWN_CARDINALITY);
});

Deno.test("takeWhile's errors lose their elements; a result that is no boolean is one", async () => {
  const failing = Dataset.range(5).takeWhile((x) => failingOn(1)(x) < 3);
  assertEquals(await collectWithErrors(failing), [0, "error data_loss", 2]);
  const odd = Dataset.range(1).takeWhile(((x: number) => x) as never);
  assertEquals(await collectWithErrors(odd), ["error invalid_argument"]);
});

Deno.test("unique gives the first of equal scalars", async () => {
  const of = (elements: unknown[]) => collect(Dataset.from(elements).unique());
  assertEquals(await of([1, 1, 2, 2, 37, 37, 2]), [1, 2, 37]);
  assertEquals(await of(["foo", "foo", "bar", "foo", "baz", ""]), ["foo", "bar", "baz", ""]);
  assertEquals(await of([1n, 2n, 1n, 2n ** 60n]), [1n, 2n, 2n ** 60n]);
  assertEquals(await of([NaN, 0, NaN, -0]), [NaN, 0]);
  assertEquals(await of([true, false, true]), [true, false]);
  const bytes = [[1, 2], [1], [1, 2], []].map((at) => new Uint8Array(at));
  assertEquals(await of(bytes), [[1, 2], [1], []]);
  const scalar = (x: number) => new Tensor("int32", [], new Int32Array([x]));
  assertEquals((await of([scalar(1), scalar(2), scalar(1)])).length, 2);
  assertEquals(await of([]), []);
});

Deno.test("unique refuses elements that are no scalars, early if possible", async () => {
  const error = assertThrows(() => Dataset.from([{ x: 1 }]).unique(), LeatError);
  assertStringIncludes(error.message, "unique: elements must be");
  assertThrows(() => Dataset.range(4).batch(2).unique(), LeatError);
  const late = Dataset.range(2).map((x) => x === 0 ? new Float32Array(2) : x).unique();
  assertEquals(await collectWithErrors(late), ["error invalid_argument", 1]);
});

Deno.test("unique reports the memory that it holds", async () => {
  await using iterator = Dataset.range(100).unique().iterator();
  while (!(await iterator.next()).done);
  assertEquals(iterator.stats()[0]!.bufferedBytes, 800);
});

Deno.test("scan, takeWhile and unique continue from every checkpoint", async () => {
  const noisy = (dataset: Dataset<number>) =>
    dataset.scan({ sum: 0n }, ({ sum }, x, { random }) => {
      const next = sum + BigInt(failingOn(3)(x)) + BigInt(random.int(9));
      return [{ sum: next }, next] as const;
    });
  await assertCheckpointLaw(() => noisy(Dataset.range(6)));
  await assertCheckpointLaw(() => Dataset.range(9).shuffle(4).takeWhile((x) => x !== 5).shuffle(2));
  await assertCheckpointLaw(() => Dataset.from([3, NaN, 3, 1n, "a", 1n, "a", NaN, 5]).unique());
  await assertCheckpointLaw(() =>
    Dataset.from([1, 2, 1, 3].map((x) => new Uint8Array([x]))).unique().shuffle(2)
  );
});
