/** `window`: what is in each window, and how many there are. */

import { Dataset, LeatError, TensorSpec } from "../../../../mod.ts";
import { assertEquals, assertThrows } from "../../../assert.ts";
import { assertCheckpointLaw } from "../../lib/checkpoint_law.ts";
import { collect, collectWithErrors, failingOn, turn } from "../../lib/collect.ts";

interface Shape {
  readonly shift?: number;
  readonly stride?: number;
  readonly dropRemainder?: boolean;
}

/** The windows of range(count), each as an array. */
async function windowsOf(count: number, size: number, shape?: Shape): Promise<number[][]> {
  const windows: number[][] = [];
  for await (const window of Dataset.range(count).window(size, shape)) {
    windows.push(await Array.fromAsync(window));
  }
  return windows;
}

Deno.test("window gives consecutive elements, the last ones shorter", async () => {
  assertEquals(await windowsOf(7, 3), [[0, 1, 2], [3, 4, 5], [6]]);
  assertEquals(await windowsOf(7, 3, { dropRemainder: true }), [[0, 1, 2], [3, 4, 5]]);
  assertEquals(await windowsOf(5, 3, { shift: 1 }), [[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4], [4]]);
  assertEquals(await windowsOf(4, 3, { shift: 1, dropRemainder: true }), [[0, 1, 2], [1, 2, 3]]);
  assertEquals(await windowsOf(7, 3, { stride: 2 }), [[0, 2, 4], [3, 5], [6]]);
  assertEquals(await windowsOf(7, 2, { shift: 3 }), [[0, 1], [3, 4], [6]]);
  assertEquals(await windowsOf(0, 3), []);
});

Deno.test("window makes the computed number of windows for any size, shift and stride", async () => {
  for (const count of [0, 1, 7, 140]) {
    for (const size of [1, 10, 14, 17]) {
      for (const shift of [1, 7, 14, 30]) {
        for (const stride of [1, 2, 6]) {
          const span = (size - 1) * stride + 1;
          const full = Math.max(0, Math.floor((count - span) / shift) + 1);
          const starts = Array.from({ length: Math.ceil(count / shift) }, (_, i) => i * shift);
          const wanted = starts.map((start) =>
            Array.from({ length: size }, (_, i) => start + i * stride).filter((x) => x < count)
          );
          const what = JSON.stringify({ count, size, shift, stride });
          assertEquals(await windowsOf(count, size, { shift, stride }), wanted, what);
          const dropped = { shift, stride, dropRemainder: true };
          assertEquals(await windowsOf(count, size, dropped), wanted.slice(0, full), what);
          const windows = Dataset.range(count).window(size, { shift, stride });
          assertEquals(windows.cardinality(), wanted.length, what);
          assertEquals(Dataset.range(count).window(size, dropped).cardinality(), full, what);
        }
      }
    }
  }
});

Deno.test("window of components gives a dataset per component, which zip combines", async () => {
  const windows = Dataset.zip({ a: Dataset.range(4), b: Dataset.from("wxyz") }).window(3);
  const seen: unknown[] = [];
  for await (const { a, b } of windows) seen.push(await collect(a), await collect(b));
  assertEquals(seen, [[0, 1, 2], ["w", "x", "y"], [3], ["z"]]);
  const joined = windows.flatMap((window, { Dataset }) => Dataset.zip(window));
  assertEquals((await collect(joined)).length, 4);
  assertEquals((await collect(joined))[3], { a: 3, b: "z" });
});

Deno.test("windows may be iterated twice, nest, and keep their spec", async () => {
  const twice = Dataset.range(3).window(2).flatMap((w) => w.concatenate(w));
  assertEquals(await collect(twice), [0, 1, 0, 1, 2, 2]);
  const nested = Dataset.range(4).window(2).window(2).flatMap((w) => w).flatMap((w) => w);
  assertEquals(await collect(nested), [0, 1, 2, 3]);
  const spec = new TensorSpec("float32", []);
  const batches = Dataset.range(2).map((x) => x, { spec }).window(2).flatMap((w) => w.batch(2));
  for await (const batch of batches) assertEquals(batch.dtype, "float32");
});

Deno.test("window keeps gathered elements when one fails", async () => {
  const failing = Dataset.range(6).map(failingOn(1, 4));
  const windows = failing.window(2).flatMap((w) => w.batch(2));
  assertEquals(await collectWithErrors(windows), [
    "error data_loss",
    [0, 2],
    "error data_loss",
    [3, 5],
  ]);
});

Deno.test("window fails an element of another structure", async () => {
  const mixed = Dataset.from<unknown>([{ x: 1 }, 2, { y: 3 }, { x: 4 }]).window<
    { x: Dataset<number> }
  >(2);
  const answers = await collectWithErrors(mixed.flatMap(({ x }) => x));
  assertEquals(answers, ["error invalid_argument", "error invalid_argument", 1, 4]);
});

Deno.test("window refuses sizes, shifts and strides below one", () => {
  const range = Dataset.range(3);
  assertThrows(() => range.window(0), LeatError, "window: size");
  assertThrows(() => range.window(3, { shift: 0 }), LeatError, "window: shift");
  assertThrows(() => range.window(3, { stride: 0 }), LeatError, "window: stride");
});

Deno.test("window has an unknown or infinite cardinality if its input has", () => {
  assertEquals(Dataset.range(3).filter(() => true).window(2).cardinality(), -2);
  assertEquals(Dataset.range(3).repeat().window(2).cardinality(), Infinity);
});

Deno.test("window saved anywhere continues, by index or by content", async () => {
  await assertCheckpointLaw(() => Dataset.range(8).window(3, { shift: 2 }));
  await assertCheckpointLaw(() => Dataset.range(8).window(2, { shift: 3, dropRemainder: true }));
  await assertCheckpointLaw(() => Dataset.range(9).shuffle(3).window(2, { stride: 3 }));
  await assertCheckpointLaw(() =>
    Dataset.range(6).scan(0, async (state, x) => {
      await turn();
      return [state, { x: failingOn(2)(x) }] as const;
    }).window(4, { shift: 1 })
  );
});
